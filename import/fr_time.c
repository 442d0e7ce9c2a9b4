/* SPDX-License-Identifier: Apache-2.0 */
#include "import/fr_time.h"

#include "common/clock.h"

/* A dump file that is older than this was copied: its time says nothing. */
#define FILE_TIME_LIMIT_NS (24 * 3600 * CW_NS_PER_S)
/* PyTorch's own default. */
#define DEFAULT_TIMEOUT_NS (600 * CW_NS_PER_S)
struct pending {
	bool is_any;
	int64_t expires_ns;  /* when the first of them times out */
	int64_t shortest_ns; /* timeout */
};

static void look_at_op(const struct cw_fr_op *op, struct pending *p)
{
	int64_t timeout_ns = op->timeout_ns ? op->timeout_ns : DEFAULT_TIMEOUT_NS;

	if (op->state == CW_FR_COMPLETED || op->created_ns <= 0 ||
	    op->created_ns > INT64_MAX - timeout_ns)
		return;
	if (!p->is_any || op->created_ns + timeout_ns < p->expires_ns)
		p->expires_ns = op->created_ns + timeout_ns;
	if (!p->is_any || timeout_ns < p->shortest_ns)
		p->shortest_ns = timeout_ns;
	p->is_any = true;
}

bool fr_find_now(const struct cw_fr_set *set, struct cw_snapshot *snap)
{
	struct cw_thresholds *t = &snap->thresholds;
	int64_t newest_ns = 0, file_ns = 0;
	struct pending p = { 0 };
	bool is_guessed = false;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		const struct cw_fr_source *src = &set->sources[s];

		if (src->dump.newest_ns > newest_ns)
			newest_ns = src->dump.newest_ns;
		if (src->file_ns > file_ns)
			file_ns = src->file_ns;
		for (uint32_t i = 0; i < src->dump.n_ops; i++)
			look_at_op(&src->dump.ops[i], &p);
	}
	if (file_ns >= newest_ns && file_ns - newest_ns <= FILE_TIME_LIMIT_NS) {
		snap->now_ns = file_ns;
	} else {
		snap->now_ns = p.is_any && p.expires_ns > newest_ns ? p.expires_ns : newest_ns;
		is_guessed = p.is_any;
	}
	snap->wall_ns = snap->now_ns;
	/* A first call may take long, but not longer than the job itself allows. */
	if (p.is_any && p.shortest_ns < t->first_op_ns) {
		t->first_op_ns = p.shortest_ns;
		t->first_op_per_rank_ns = 0;
	}
	return is_guessed;
}
