/* SPDX-License-Identifier: Apache-2.0 */
/* A dump, pickle or JSON, taken for that of two ranks of one job, up to the verdict. */
#include <errno.h>

#include "analysis/verdict.h"
#include "import/flight_recorder.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_fr_set set = { 0 };
	struct cw_snapshot *snap = NULL;
	struct cw_verdict v;
	int r;

	FUZZ_CHECK(cw_fr_set_add(&set, "rank_0", data, size, 0) == 0);
	FUZZ_CHECK(cw_fr_set_add(&set, "rank_1", data, size, 1) == 0);
	FUZZ_CHECK(set.n_sources + set.n_notes >= (size == 0 ? 2u : 0u));
	r = cw_fr_snapshot_best(&set, &snap);
	FUZZ_CHECK(r == (set.n_sources ? 0 : -ENODATA));
	if (r == 0) {
		/* And the ranks that the dumps name beside their own. */
		FUZZ_CHECK(snap->n_ranks >= 1 && snap->n_ranks <= CW_FR_MAX_RANKS);
		FUZZ_CHECK(cw_verdict_compute(snap, &v) == 0);
		cw_verdict_fini(&v);
	}
	(void)cw_snapshot_free(snap);
	cw_fr_set_fini(&set);
	return 0;
}
