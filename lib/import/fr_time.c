/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of dumps. The dumps of a set are not taken at the same time, and nodes' clocks differ.
 * A call has been open from its own time to the time of its dump, which is the file's time. A call
 * made just before its dump must not look older because another rank's dump was taken a minute
 * later. So we shift the times of each dump until all dumps end now.
 */
#include "import/fr_time.h"

#include "common/clock.h"

/*
 * The maximum time from the last call in a dump to the file's time. If the file's time is later,
 * the file is a copy and its time is meaningless.
 */
#define FILE_TIME_LIMIT_NS (24 * 3600 * CW_NS_PER_S)
/* PyTorch's default time-out of a call. */
#define DEFAULT_TIMEOUT_NS (600 * CW_NS_PER_S)
/*
 * PyTorch writes the dump of a process whose call has timed out, and then ends the process. The
 * latest moment is 8 minutes after the watchdog itself fell silent. A file that is younger than the
 * time-out by more than this is a copy, too.
 */
#define TIMEOUT_SLACK_NS (600 * CW_NS_PER_S)

/* Tolerance for the clock of a file server, which may differ from the node's clock. */
#define CLOCK_SLACK_NS (60 * CW_NS_PER_S)

/*
 * The dumps of a hang appear within seconds, because the first rank that times out makes all others
 * write theirs. If a dump is older than the last dump by more than this, its rank may have gone on
 * since.
 */
#define EARLY_NS (60 * CW_NS_PER_S)

struct pending {
	bool is_any;
	int64_t expires_ns;  /* when the first of these calls times out */
	int64_t shortest_ns; /* the shortest time-out of these calls */
	int64_t longest_ns;
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
	if (timeout_ns > p->longest_ns)
		p->longest_ns = timeout_ns;
	p->is_any = true;
}

static struct pending pending_of(const struct cw_fr_dump *dump)
{
	struct pending p = { 0 };

	for (uint32_t i = 0; i < dump->n_ops; i++)
		look_at_op(&dump->ops[i], &p);
	return p;
}

static void add_pending(struct pending *all, const struct pending *p)
{
	if (!p->is_any)
		return;
	if (!all->is_any || p->expires_ns < all->expires_ns)
		all->expires_ns = p->expires_ns;
	if (!all->is_any || p->shortest_ns < all->shortest_ns)
		all->shortest_ns = p->shortest_ns;
	all->is_any = true;
}

/* True if the file's time may be the time of its dump. */
static bool is_plausible(const struct cw_fr_source *src, const struct pending *p)
{
	int64_t timeout_ns =
		p->longest_ns > DEFAULT_TIMEOUT_NS ? p->longest_ns : DEFAULT_TIMEOUT_NS;
	int64_t after_ns;

	if (src->file_ns <= 0)
		return false;
	after_ns = src->file_ns - src->dump.newest_ns;
	if (after_ns < -CLOCK_SLACK_NS || after_ns > FILE_TIME_LIMIT_NS)
		return false;
	return !p->is_any || after_ns - TIMEOUT_SLACK_NS <= timeout_ns;
}

static int64_t taken_ns(const struct cw_fr_source *src)
{
	return src->file_ns > src->dump.newest_ns ? src->file_ns : src->dump.newest_ns;
}

static void mark_early(struct cw_fr_set *set, int64_t last_waiting_ns)
{
	for (uint32_t s = 0; s < set->n_sources; s++) {
		struct cw_fr_dump *dump = &set->sources[s].dump;

		dump->is_early = dump->taken_ns && dump->taken_ns < last_waiting_ns - EARLY_NS;
	}
}

/*
 * Shifts the times of all dumps so that they end now. We cannot shift a dump without times. If no
 * call is open, we shift no dump. The times of calls then show late ranks, and the clocks of the
 * nodes agree better than the times of the files.
 */
static void move_to(struct cw_fr_set *set, int64_t now_ns, bool has_open)
{
	int64_t last_waiting_ns = 0;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		struct cw_fr_dump *dump = &set->sources[s].dump;

		if (!dump->newest_ns)
			continue;
		dump->taken_ns = taken_ns(&set->sources[s]);
		dump->shift_ns = has_open ? now_ns - dump->taken_ns : 0;
		if (dump->taken_ns > last_waiting_ns && pending_of(dump).is_any)
			last_waiting_ns = dump->taken_ns;
	}
	mark_early(set, last_waiting_ns);
}

static void mark_undated(struct cw_fr_set *set)
{
	for (uint32_t s = 0; s < set->n_sources; s++)
		set->sources[s].dump.is_undated = true;
}

/*
 * Collects facts from all dumps. Returns false if the time of some file cannot be the time of its
 * dump.
 */
static bool look_at_set(const struct cw_fr_set *set, struct pending *ret_all,
			int64_t *ret_newest_ns, int64_t *ret_taken_ns)
{
	bool are_plausible = true;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		const struct cw_fr_source *src = &set->sources[s];
		struct pending p = pending_of(&src->dump);

		add_pending(ret_all, &p);
		if (src->dump.newest_ns > *ret_newest_ns)
			*ret_newest_ns = src->dump.newest_ns;
		if (!src->dump.newest_ns)
			continue;
		if (taken_ns(src) > *ret_taken_ns)
			*ret_taken_ns = taken_ns(src);
		are_plausible = are_plausible && is_plausible(src, &p);
	}
	return are_plausible;
}

bool fr_find_now(struct cw_fr_set *set, struct cw_snapshot *snap)
{
	struct cw_thresholds *t = &snap->thresholds;
	int64_t newest_ns = 0, last_ns = 0;
	struct pending p = { 0 };
	bool is_guessed = false;

	if (look_at_set(set, &p, &newest_ns, &last_ns) && last_ns) {
		snap->now_ns = last_ns;
		move_to(set, last_ns, p.is_any);
	} else {
		snap->now_ns = p.is_any && p.expires_ns > newest_ns ? p.expires_ns : newest_ns;
		is_guessed = p.is_any;
		if (is_guessed)
			mark_undated(set);
	}
	snap->wall_ns = snap->now_ns;
	/* A first call may take long, but not longer than the job itself allows. */
	if (p.is_any && p.shortest_ns < t->first_op_ns) {
		t->first_op_ns = p.shortest_ns;
		t->first_op_per_rank_ns = 0;
	}
	if (p.is_any && p.shortest_ns < t->stall_min_ns)
		t->stall_min_ns = p.shortest_ns;
	return is_guessed;
}

int64_t fr_common_time(const struct cw_fr_dump *dump, int64_t time_ns)
{
	return time_ns ? time_ns + dump->shift_ns : 0;
}
