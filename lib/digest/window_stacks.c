/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/window_stacks.h"

#include <string.h>

void cw_window_stacks_init(struct cw_window_stacks *s)
{
	*s = (struct cw_window_stacks){
		.texts = { .max = CW_MSG_MAX_STACKS, .max_bytes = CW_WINDOW_MAX_STACK_BYTES },
		.looks_left = CW_WINDOW_MAX_STACK_LOOKS,
	};
}

static int number_of(struct cw_window_stacks *s, uint32_t of_record, uint32_t *ret)
{
	char text[CW_RECORD_STACK_BYTES];
	uint32_t *known;
	int r;

	*ret = 0;
	if (of_record == 0 || of_record > CW_REC_STACKS)
		return 0;
	known = &s->known[of_record - 1];
	if (!*known) {
		if (!s->looks_left)
			return 0;
		s->looks_left--; /* an unreadable stack costs as much as a readable one */
		if (cw_record_stack(s->record, of_record, text, sizeof(text)) < 0)
			return 0;
		r = cw_text_set_add(&s->texts, text, ret);
		if (r < 0)
			return r;
		*known = *ret + 1;
	}
	*ret = *known - 1;
	return 0;
}

int cw_window_stacks_of(struct cw_window_stacks *s, const struct cw_record *record,
			struct cw_msg_op *ops, size_t n)
{
	if (s->record != record) {
		s->record = record;
		memset(s->known, 0, sizeof(s->known));
	}
	for (size_t i = 0; i < n; i++) {
		int r = number_of(s, ops[i].stack, &ops[i].stack);

		if (r < 0)
			return r;
	}
	return 0;
}
