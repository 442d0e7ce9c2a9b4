/* SPDX-License-Identifier: Apache-2.0 */
/* A pickle of unknown origin: data or an error, no cycles, no depth, memory by the input's size. */
#include <errno.h>
#include <string.h>

#include "import/pickle/pickle.h"
#include "tests/fuzz/fuzz.h"

/* Shared values make walking all of it exponential: only so many are looked at. */
static void look_at(const struct cw_value *v, unsigned depth, unsigned *left)
{
	char text[16];

	FUZZ_CHECK(v && v->type <= CW_VALUE_DICT);
	FUZZ_CHECK(depth + v->height <= CW_VALUE_MAX_HEIGHT);
	if (*left == 0)
		return;
	(*left)--;
	(void)cw_value_copy_text(v, text, sizeof(text));
	FUZZ_CHECK(v->type != CW_VALUE_DICT || v->n % 2 == 0);
	if (v->type < CW_VALUE_LIST)
		return;
	for (uint32_t i = 0; i < v->n; i++)
		look_at(v->items[i], depth + 1, left);
	(void)cw_value_get(v, "entries");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cw_value *value = NULL;
	struct cw_arena arena = { 0 };
	struct cw_err err = { "" };
	unsigned left = 10000;
	int r = cw_pickle_read(data, size, &arena, &value, &err);

	if (r == 0) {
		look_at(value, 0, &left);
	} else {
		FUZZ_CHECK(r == -EPERM || r == -ENODATA || r == -EBADMSG || r == -E2BIG);
		FUZZ_CHECK(err.text[0]);
	}
	cw_arena_fini(&arena);
	return 0;
}
