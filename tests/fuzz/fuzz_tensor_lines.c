/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in collwatch.torch's name: the reader refuses it, or the result holds the promises of its
 * header, and the judge points into it. A file is refused or read regardless of the others. Two
 * equal files either have no rank, or are refused.
 */
#include <stdbool.h>
#include <string.h>

#include "numerics/read/tensor_lines.h"
#include "tests/fuzz/fuzz.h"

static void check_file(const struct cw_tensor_lines_file *f)
{
	json_t *line;
	size_t i;

	FUZZ_CHECK(f->n_steps <= f->room_steps);
	FUZZ_CHECK(json_array_size(f->bad) == f->n_events);
	FUZZ_CHECK(json_array_size(f->before) == f->n_events);
	for (uint32_t e = 0; e < f->n_events; e++) {
		const json_t *bad = json_array_get(f->bad, e);
		const char *at = json_string_value(json_object_get(bad, "at"));

		FUZZ_CHECK(!strcmp(f->events[e].at, at ? at : ""));
		FUZZ_CHECK(json_integer_value(json_object_get(bad, "tensor")) <
			   (json_int_t)json_array_size(json_object_get(bad, "tensors")));
		FUZZ_CHECK(json_is_array(json_array_get(f->before, e)));
	}
	FUZZ_CHECK(json_array_size(f->replicas) <= f->n_compared);
	json_array_foreach (f->replicas, i, line)
		FUZZ_CHECK(json_array_size(json_object_get(line, "different")) > 0);
	json_array_foreach (f->notes, i, line)
		FUZZ_CHECK(json_is_string(line));
}

static void check_said(const struct cw_tensor_lines *l)
{
	static struct cw_modules_report said;

	cw_modules_judge(l->ranks, l->n, &said);
	if (said.has_first)
		FUZZ_CHECK(said.rank < l->n && said.event < l->ranks[said.rank].n_events);
	FUZZ_CHECK(said.n_rows <= CW_MODULES_ROWS);
	for (uint32_t i = 0; i < said.n_rows; i++)
		FUZZ_CHECK(said.rows[i].rank < l->n && said.rows[i].n_steps > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[32];
	char *const paths[] = { path, path };
	struct cw_tensor_lines lines, again;
	struct cw_err err;
	int64_t rank;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fuzz_file(data, size));
	if (cw_tensor_lines_read(paths, 1, &lines, &err) < 0) {
		FUZZ_CHECK(cw_tensor_lines_read(paths, 2, &again, &err) < 0);
		return 0;
	}
	FUZZ_CHECK(cw_tensor_lines_is(path));
	check_file(&lines.files[0]);
	check_said(&lines);
	rank = lines.files[0].rank;
	cw_tensor_lines_fini(&lines);
	if (cw_tensor_lines_read(paths, 2, &again, &err) < 0) {
		FUZZ_CHECK(rank >= 0);
		return 0;
	}
	FUZZ_CHECK(rank < 0);
	check_said(&again);
	cw_tensor_lines_fini(&again);
	return 0;
}
