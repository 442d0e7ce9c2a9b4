/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold for every scenario, over drawn ones (suite/generate.h), seen through the same
 * engine and patience by somebody who sees the snapshots otherwise:
 *
 *  - other rank numbers, another order of ranks, nodes and comms: the same verdict about the same
 *    ranks at the same time;
 *  - healthy ranks and comms besides: the same;
 *  - one rank not seen: never certain and wrong, the same answer never surer, and the coverage
 *    names it.
 *
 * usage: suite-properties [HOW_MANY [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "model/signature.h"
#include "record/record_layout.h"
#include "report/doc/incident_doc.h"
#include "suite/generate.h"
#include "suite/score.h"

#define S INT64_C(1000000000)
#define COMPANY 4u
#define COMPANY_COMM UINT64_C(0xc0ffee)

/* How snapshots are seen. */
struct view {
	uint32_t n;       /* ranks of the job */
	uint32_t *label;  /* by old label: the new one; NULL = the same */
	int64_t hidden;   /* label of the rank not seen; -1 = none */
	bool has_company; /* healthy ranks beside it */
	char missing[64]; /* what the coverage names at the alert */
};

struct tally {
	uint64_t state, n, failed, n_less_sure;
	struct cw_err err;
};

static uint32_t below(struct tally *t, uint32_t n)
{
	t->state += UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(cw_hash_mix64(t->state) % n);
}

/* ---- another snapshot of the same ---- */

static int copy_nodes(const struct cw_snapshot *from, struct cw_snapshot *to)
{
	for (uint32_t i = from->n_nodes; i-- > 0;) {
		uint32_t index;
		int r = cw_snapshot_add_node(to, from->nodes[i].name, &index);

		if (r < 0)
			return r;
		to->nodes[index].state = from->nodes[i].state;
		to->nodes[index].last_digest_ns = from->nodes[i].last_digest_ns;
	}
	return 0;
}

/* In descending order; index[old] = new, or CW_SNAP_NONE. */
static int copy_ranks(const struct view *view, const struct cw_snapshot *from,
		      struct cw_snapshot *to, uint32_t *index)
{
	for (uint32_t i = from->n_ranks; i-- > 0;) {
		struct cw_snap_rank rank = from->ranks[i];
		int r;

		index[i] = CW_SNAP_NONE;
		if (rank.rank == view->hidden)
			continue;
		if (view->label)
			rank.rank = (int32_t)view->label[rank.rank];
		rank.node = from->n_nodes - 1 - rank.node;
		r = cw_snapshot_add_rank(to, &rank, &index[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_comm(const struct cw_snapshot *from, uint32_t c, struct cw_snapshot *to,
		     const uint32_t *index)
{
	const struct cw_snap_comm *comm = &from->comms[c];
	uint32_t at;
	int r = cw_snapshot_add_comm(to, comm, &at);

	for (uint32_t m = 0; r == 0 && m < comm->nranks; m++) {
		struct cw_snap_member member = comm->members[m];

		if (member.rank == CW_SNAP_NONE || index[member.rank] == CW_SNAP_NONE)
			continue;
		member.rank = index[member.rank];
		r = cw_snapshot_set_member(to, at, m, &member);
	}
	return r;
}

/* A comm in which everybody has done `done` calls and nobody is in one. */
static int add_quiet_comm(struct cw_snapshot *to, uint64_t id, uint32_t first, uint64_t done,
			  int64_t moved_ns)
{
	struct cw_snap_comm comm = { .id = id, .nranks = to->n_ranks - first, .name = "company" };
	uint32_t at;
	int r = cw_snapshot_add_comm(to, &comm, &at);

	for (uint32_t m = 0; r == 0 && m < comm.nranks; m++) {
		struct cw_snap_member member = {
			.rank = first + m,
			.state = CW_COMM_READY,
			.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED |
				 CW_KNOWN_COMPLETED,
			.coll_entered = done,
			.coll_returned = done,
			.coll_reached = done,
			.coll_completed = done,
			.op_index = done,
			.progress_ns = moved_ns,
			.interval_ns = S,
		};

		r = cw_snapshot_set_member(to, at, m, &member);
	}
	return r;
}

/* Ranks that get on among themselves, and an idle comm with those of the job. */
static int add_company(const struct view *view, struct cw_snapshot *to)
{
	uint32_t node, index, first = to->n_ranks;
	int r = cw_snapshot_add_node(to, "company", &node);

	if (r < 0)
		return r;
	to->nodes[node].state = CW_NODE_REPORTING;
	to->nodes[node].last_digest_ns = to->now_ns;
	for (uint32_t i = 0; i < COMPANY; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)(view->n + i),
					     .node = node,
					     .pid = (int32_t)(9000 + i),
					     .start_ticks = 7,
					     .liveness = CW_LIVE_ALIVE,
					     .flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
					     .sampled_ns = to->now_ns,
					     .headway_ns = to->now_ns,
					     .nccl_version =
						     to->n_ranks ? to->ranks[0].nccl_version : 0,
					     .env_hash = to->n_ranks ? to->ranks[0].env_hash : 0,
					     .headway_by = "cpu",
					     .command = "train.py" };

		r = cw_snapshot_add_rank(to, &rank, &index);
		if (r < 0)
			return r;
	}
	to->ranks_expected += COMPANY;
	r = add_quiet_comm(to, COMPANY_COMM, first, (uint64_t)(to->now_ns / S), to->now_ns);
	return r < 0 ? r : add_quiet_comm(to, COMPANY_COMM + 1, 0, 3, S);
}

static int change(void *user, struct cw_snapshot **snap)
{
	const struct view *view = user;
	const struct cw_snapshot *from = *snap;
	struct cw_snapshot *to = cw_snapshot_new();
	uint32_t *index = calloc(from->n_ranks + 1, sizeof(*index));
	int r = to && index ? cw_snapshot_set_job(to, from->job, from->group) : -1;

	if (r == 0) {
		to->now_ns = from->now_ns;
		to->wall_ns = from->wall_ns;
		to->policy = from->policy;
		to->ranks_expected = from->ranks_expected;
		to->thresholds = from->thresholds;
		r = copy_nodes(from, to);
	}
	if (r == 0)
		r = copy_ranks(view, from, to, index);
	for (uint32_t c = from->n_comms; r == 0 && c-- > 0;)
		r = copy_comm(from, c, to, index);
	if (r == 0 && view->has_company)
		r = add_company(view, to);
	free(index);
	if (r < 0) {
		(void)cw_snapshot_free(to);
		return r;
	}
	(void)cw_snapshot_free(*snap);
	*snap = to;
	return 0;
}

/* What the document of the alert says could not be seen. */
static void note_coverage(void *user, const struct cw_snapshot *snap, const struct cw_verdict *v,
			  const struct cw_stall_decision *d)
{
	struct cw_incident_info info = { .id = "0", .confidence = d->confidence };
	struct view *view = user;
	json_t *doc, *missing;

	if (d->phase != CW_STALL_HANG)
		return;
	doc = cw_incident_doc(snap, v, &info);
	missing = json_object_get(json_object_get(doc, "coverage"), "missing");
	(void)snprintf(view->missing, sizeof(view->missing), "%s",
		       missing ? json_string_value(missing) : "");
	json_decref(doc);
}

/* ---- properties ---- */

static void fail(struct tally *t, const struct suite_scenario *s, const char *property,
		 const struct outcome *base, const struct outcome *other)
{
	t->failed++;
	fprintf(stderr, "%s: \"%s\": %s:\n  %s after %.1f s: %s\n  %s after %.1f s: %s\n", s->file,
		s->name, property, cw_confidence_name(base->confidence),
		(double)base->after_ns / (double)S, base->is_alert ? base->summary : "silence",
		cw_confidence_name(other->confidence), (double)other->after_ns / (double)S,
		other->is_alert ? other->summary : "silence");
}

static int compare_numbers(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* Label i of `base` is called label[i] in `other`. */
static bool same_culprits(const struct outcome *base, const struct outcome *other,
			  const uint32_t *label)
{
	bool same = base->n_culprits == other->n_culprits;
	int32_t *mapped = calloc(base->n_culprits + 1, sizeof(*mapped));

	if (!mapped)
		return false;
	for (uint32_t i = 0; i < base->n_culprits; i++)
		mapped[i] = label ? (int32_t)label[base->culprits[i]] : base->culprits[i];
	qsort(mapped, base->n_culprits, sizeof(*mapped), compare_numbers);
	if (same && other->n_culprits)
		qsort(other->culprits, other->n_culprits, sizeof(*mapped), compare_numbers);
	for (uint32_t i = 0; same && i < base->n_culprits; i++)
		same = mapped[i] == other->culprits[i];
	free(mapped);
	return same;
}

/*
 * Who is absent while a comm is made is known where nobody else is there to be absent: among others
 * nobody may be named, but no wrong one.
 */
static bool is_less_sure(const struct outcome *base, const struct outcome *other)
{
	return base->klass == CW_CLASS_INIT_STUCK && other->is_alert &&
	       other->klass == CW_CLASS_INIT_STUCK && other->n_culprits == 0 &&
	       other->confidence < base->confidence;
}

static int check_same(struct tally *t, const struct suite_scenario *s, const struct outcome *base,
		      struct view *view, const char *property)
{
	const struct watch_eyes eyes = { .user = view, .change = change };
	struct outcome o = { 0 };
	int r = cw_watch_with(s, &eyes, &t->err, &o);

	if (r < 0)
		return r;
	if (view->has_company && is_less_sure(base, &o))
		t->n_less_sure++;
	else if (o.is_alert != base->is_alert ||
		 (o.is_alert && (o.klass != base->klass || o.detail != base->detail ||
				 o.confidence != base->confidence || o.after_ns != base->after_ns ||
				 !same_culprits(base, &o, view->label))))
		fail(t, s, property, base, &o);
	cw_outcome_fini(&o);
	return 0;
}

/* "1,3-5" names the number. */
static bool is_named(const char *set, int64_t number)
{
	long first, last;
	int n;

	while (sscanf(set, "%ld%n", &first, &n) == 1) {
		set += n;
		last = first;
		if (sscanf(set, "-%ld%n", &last, &n) == 1)
			set += n;
		if (number >= first && number <= last)
			return true;
		if (*set++ != ',')
			break;
	}
	return false;
}

static int check_hidden(struct tally *t, const struct suite_scenario *s, const struct outcome *base,
			int64_t hidden)
{
	struct view view = { .n = s->n_ranks, .hidden = hidden };
	const struct watch_eyes eyes = { .user = &view,
					 .change = change,
					 .on_look = note_coverage };
	struct outcome o = { 0 };
	int r = cw_watch_with(s, &eyes, &t->err, &o);

	if (r < 0)
		return r;
	if (o.is_alert && o.confidence == CW_CONFIDENCE_CERTAIN && !cw_score_is_right(s, &o))
		fail(t, s, "one rank is not seen, and the verdict is certain and wrong", base, &o);
	if (o.is_alert && base->is_alert && o.klass == base->klass &&
	    o.confidence > base->confidence)
		fail(t, s, "one rank is not seen, and the verdict is surer", base, &o);
	if (o.is_alert && !is_named(view.missing, hidden))
		fail(t, s, "one rank is not seen, and the coverage does not name it", base, &o);
	cw_outcome_fini(&o);
	return 0;
}

static int permute(struct tally *t, const struct suite_scenario *s, const struct outcome *base)
{
	struct view view = { .n = s->n_ranks, .hidden = -1 };
	int r;

	view.label = calloc(s->n_ranks, sizeof(*view.label));
	if (!view.label)
		return -1;
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		uint32_t k = below(t, i + 1);

		view.label[i] = view.label[k];
		view.label[k] = i;
	}
	r = check_same(t, s, base, &view, "other rank numbers change the verdict");
	free(view.label);
	return r;
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	struct tally *t = user;
	struct view company = { .n = s->n_ranks, .hidden = -1, .has_company = true };
	struct outcome base = { 0 };
	int64_t culprit = below(t, s->n_ranks);
	int r = cw_watch(s, &t->err, &base);

	t->n++;
	if (base.n_culprits)
		culprit = base.culprits[below(t, base.n_culprits)];
	if (r == 0)
		r = permute(t, s, &base);
	if (r == 0)
		r = check_same(t, s, &base, &company, "healthy company changes the verdict");
	if (r == 0)
		r = check_hidden(t, s, &base, culprit);
	if (r == 0)
		r = check_hidden(t, s, &base, below(t, s->n_ranks));
	cw_outcome_fini(&base);
	return r;
}

int main(int argc, char **argv)
{
	struct tally t = { 0 };
	uint64_t n = 100, seed = 6;

	if (argc > 3 || (argc > 1 && cw_parse_u64(argv[1], 1, 10000000, &n) < 0) ||
	    (argc > 2 && cw_parse_u64(argv[2], 0, UINT64_MAX, &seed) < 0)) {
		fprintf(stderr, "usage: suite-properties [HOW_MANY [SEED]]\n");
		return 2;
	}
	t.state = seed;
	if (cw_suite_generate(n, seed, on_scenario, &t, &t.err) < 0) {
		fprintf(stderr, "suite-properties: %s\n",
			t.err.text[0] ? t.err.text : "out of memory");
		return 2;
	}
	printf("%" PRIu64 " scenarios, %" PRIu64 " properties violated, %" PRIu64
	       " times nobody named among company\n",
	       t.n, t.failed, t.n_less_sure);
	return t.failed ? 1 : 0;
}
