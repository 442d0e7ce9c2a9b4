/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up baseline: the reader refuses it, or the result holds the promises of its header. Then
 * we compare it with itself, and with a part of itself.
 */
#include <stdbool.h>
#include <string.h>

#include "numerics/collect/baseline_file.h"
#include "numerics/compare/baseline.h"
#include "tests/fuzz/fuzz.h"

static void check_file(const struct cw_baseline_file *f)
{
	for (uint32_t i = 0; i < f->run.n_rows; i++) {
		const struct cw_baseline_row *row = &f->run.rows[i];

		FUZZ_CHECK(row->comm < f->run.n_comms && row->site <= f->run.n_sites);
		FUZZ_CHECK(row->seq > 0 && row->kind < CW_OP__MAX);
	}
	for (uint32_t i = 0; i < f->run.n_comms; i++)
		FUZZ_CHECK(memchr(f->run.comms[i].name, '\0', CW_BASELINE_NAME));
	for (uint32_t i = 0; i < f->run.n_sites; i++)
		FUZZ_CHECK(!strchr(f->run.sites[i], 0x1b) && !strchr(f->run.sites[i], '\n'));
}

static void check_said(const struct cw_baseline_run *a, const struct cw_baseline_run *b,
		       const struct cw_baseline_said *said)
{
	const struct cw_baseline_difference *d = &said->first;
	uint64_t differ = said->n_missing + said->n_extra + said->n_unlike +
			  said->n_called_otherwise + said->n_tensor_stats;

	FUZZ_CHECK(said->n_paired <= a->n_rows && said->n_paired <= b->n_rows);
	FUZZ_CHECK(said->n_checked + said->n_denied + said->n_called_otherwise <= said->n_paired);
	FUZZ_CHECK((d->what == CW_BASELINE_EQUAL) == (differ == 0));
	if (d->what == CW_BASELINE_EQUAL)
		return;
	FUZZ_CHECK(d->row_a == CW_BASELINE_NONE || d->row_a < a->n_rows);
	FUZZ_CHECK(d->row_b == CW_BASELINE_NONE || d->row_b < b->n_rows);
	FUZZ_CHECK(d->row_a != CW_BASELINE_NONE || d->row_b != CW_BASELINE_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_baseline_options options;
	struct cw_baseline_file file;
	struct cw_baseline_said said;
	struct cw_baseline_run part;
	struct cw_err err;

	if (cw_baseline_file_read(fuzz_file(data, size), &file, &err) < 0)
		return 0;
	check_file(&file);
	cw_baseline_options_init(&options);
	FUZZ_CHECK(cw_baseline_compare(&file.run, &file.run, &options, &said) == 0);
	check_said(&file.run, &file.run, &said);
	FUZZ_CHECK(said.first.what == CW_BASELINE_EQUAL);
	part = file.run;
	part.rows += part.n_rows / 3;
	part.n_rows -= part.n_rows / 3 + (part.n_rows > 5);
	FUZZ_CHECK(cw_baseline_compare(&file.run, &part, &options, &said) == 0);
	check_said(&file.run, &part, &said);
	FUZZ_CHECK(cw_baseline_compare(&part, &file.run, &options, &said) == 0);
	check_said(&part, &file.run, &said);
	cw_baseline_file_fini(&file);
	return 0;
}
