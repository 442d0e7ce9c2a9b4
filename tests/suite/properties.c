/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties that hold for every scenario. We draw scenarios (lab/suite/generate.h), change the
 * digests that leaders get, and compare the verdicts:
 *
 *  - Other rank numbers, or another order of ranks and comms: the verdict, its ranks and its time
 *    stay the same.
 *  - Additional healthy ranks and comms: the same.
 *  - A hidden rank: the leader is never certain of a wrong verdict, never surer of the same one,
 *    and the coverage names the hidden rank.
 *
 * usage: suite-properties [HOW_MANY [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/parse.h"
#include "lab/suite/generate.h"
#include "lab/suite/score.h"
#include "lab/suite/watch.h"
#include "model/arena.h"
#include "model/signature.h"
#include "proto/messages.h"
#include "record/record_layout.h"

#define S INT64_C(1000000000)
#define COMPANY 4u
#define COMPANY_COMM UINT64_C(0xc0ffee)

/* The changes to the digests that leaders get. */
struct view {
	uint32_t n;       /* ranks of the job */
	uint32_t *label;  /* by old label: the new one; NULL = the same */
	int64_t hidden;   /* label of the hidden rank; -1 = none */
	bool has_company; /* company_node has COMPANY healthy ranks more */
	unsigned company_node;
	uint64_t n_digests; /* digests of company_node so far */
	uint32_t n_unnamed; /* pages and notices whose coverage does not name the hidden rank */
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

/* ---- what nodes tell, told otherwise ---- */

static int reverse_members(struct cw_arena *arena, struct cw_msg_rank *rank)
{
	struct cw_msg_member *members =
		cw_arena_array_raw(arena, rank->n_members + 1, sizeof(*members));

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < rank->n_members; i++)
		members[i] = rank->members[rank->n_members - 1 - i];
	rank->members = members;
	return 0;
}

/* Ranks by their new labels, and they and their comms in the other order. */
static int permute_digest(const struct view *view, struct cw_arena *arena, struct cw_msg_digest *d)
{
	int r = 0;

	for (uint32_t i = 0, k = d->n_ranks; i < k; i++) {
		struct cw_msg_rank rank = d->ranks[i];

		if (i < --k) {
			d->ranks[i] = d->ranks[k];
			d->ranks[k] = rank;
		}
	}
	for (uint32_t i = 0; r == 0 && i < d->n_ranks; i++) {
		d->ranks[i].rank = (int32_t)view->label[d->ranks[i].rank];
		r = reverse_members(arena, &d->ranks[i]);
	}
	return r;
}

/* Removes the hidden rank and all ranks of its process: a leader sees a process as a whole. */
static void hide(const struct view *view, struct cw_msg_digest *d)
{
	int32_t pid = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->n_ranks; i++)
		if (d->ranks[i].rank == view->hidden)
			pid = d->ranks[i].pid;
	for (uint32_t i = 0; i < d->n_ranks; i++)
		if (d->ranks[i].pid != pid)
			d->ranks[n++] = d->ranks[i];
	d->n_ranks = n;
}

/* Returns a member of an idle comm. All members completed `done` calls, the last one age_ns ago. */
static struct cw_msg_member quiet_member(uint64_t id, uint32_t nranks, uint32_t place,
					 uint64_t done, int64_t age_ns)
{
	return (struct cw_msg_member){
		.comm_id = id,
		.name = "company",
		.nranks = nranks,
		.comm_rank = (int32_t)place,
		.state = CW_COMM_READY,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED |
			 CW_KNOWN_COMPLETED,
		.coll_entered = done,
		.coll_returned = done,
		.coll_reached = done,
		.coll_completed = done,
		.op_index = done,
		.progress_age_ns = age_ns,
		.interval_ns = S,
		.last_error = "",
	};
}

/* Gives a rank of the job an idle comm with the company. */
static int join_company(const struct view *view, struct cw_arena *arena, struct cw_msg_rank *rank)
{
	struct cw_msg_member *members =
		cw_arena_new_array(arena, struct cw_msg_member, rank->n_members + 1);

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < rank->n_members; i++)
		members[i] = rank->members[i];
	members[rank->n_members] =
		quiet_member(COMPANY_COMM + rank->start_ticks, view->n + COMPANY,
			     (uint32_t)rank->rank, 3, (int64_t)view->n_digests * S);
	rank->world_size += (int32_t)COMPANY;
	rank->members = members;
	rank->n_members++;
	return 0;
}

static int fill_company(const struct view *view, struct cw_arena *arena, uint32_t i,
			struct cw_msg_rank *rank)
{
	struct cw_msg_member *members = cw_arena_new_array(arena, struct cw_msg_member, 2);

	if (!members)
		return -ENOMEM;
	members[0] =
		quiet_member(~(COMPANY_COMM + rank->start_ticks), COMPANY, i, view->n_digests, 0);
	members[1] = quiet_member(COMPANY_COMM + rank->start_ticks, view->n + COMPANY, view->n + i,
				  3, (int64_t)view->n_digests * S);
	rank->rank = (int32_t)(view->n + i);
	rank->pid = (int32_t)(9000 + i);
	rank->liveness = CW_LIVE_ALIVE;
	rank->exit_code = rank->term_signal = 0;
	rank->end_by = rank->end_sender = 0;
	rank->cause_facts = (struct cw_cause_facts){ 0 };
	rank->flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING;
	rank->ended_age_ns = rank->host_activity_age_ns = rank->sampled_age_ns = 0;
	rank->host_activity_by = "cpu";
	rank->host_wait = CW_HOST_WAIT_UNKNOWN;
	rank->host_call = NULL;
	rank->members = members;
	rank->n_members = 2;
	return 0;
}

/* Ranks of the last attempt that get on among themselves, on one of the job's nodes. */
static int add_company(struct view *view, unsigned node, struct cw_arena *arena,
		       struct cw_msg_digest *d)
{
	struct cw_msg_rank *ranks =
		cw_arena_new_array(arena, struct cw_msg_rank, d->n_ranks + COMPANY);
	uint32_t n = d->n_ranks;
	int r = ranks ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		ranks[i] = d->ranks[i];
		r = join_company(view, arena, &ranks[i]);
	}
	for (uint32_t i = 0; r == 0 && i < COMPANY && n && node == view->company_node; i++) {
		ranks[n + i] = ranks[n - 1]; /* of the same versions */
		r = fill_company(view, arena, i, &ranks[n + i]);
		d->n_ranks++;
	}
	view->n_digests += node == view->company_node;
	d->ranks = ranks;
	return r;
}

static int change(void *user, unsigned node, struct cw_arena *arena, struct cw_msg_digest *d)
{
	struct view *view = user;

	hide(view, d);
	if (view->has_company)
		return add_company(view, node, arena, d);
	return view->label ? permute_digest(view, arena, d) : 0;
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

/* What the document of each page and notice says could not be seen. */
static void note_coverage(void *user, const struct suite_scenario *s, const struct json_t *doc,
			  const struct json_t *truth)
{
	const char *missing =
		json_string_value(json_object_get(json_object_get(doc, "coverage"), "missing"));
	struct view *view = user;

	(void)s;
	(void)truth;
	if (json_object_get(doc, "ended"))
		return; /* a post-mortem, which names no rank that is missing */
	view->n_unnamed += !missing || !is_named(missing, view->hidden);
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
 * True if the other outcome names no rank where the base outcome names the absent rank of a comm's
 * init. Healthy ranks more may hide which rank is absent, but must not make us name a wrong one.
 */
static bool is_less_sure(const struct outcome *base, const struct outcome *other)
{
	return base->verdict_class == CW_CLASS_INIT_STUCK && other->is_alert &&
	       other->verdict_class == CW_CLASS_INIT_STUCK && other->n_culprits == 0 &&
	       other->confidence < base->confidence;
}

static int check_same(struct tally *t, const struct suite_scenario *s, const struct outcome *base,
		      struct view *view, const char *property)
{
	const struct watch_observer observer = { .user = view, .change = change };
	struct outcome o = { 0 };
	int r = cw_watch_with(s, &observer, &t->err, &o);

	if (r < 0)
		return r;
	if (view->has_company && is_less_sure(base, &o))
		t->n_less_sure++;
	else if (o.is_alert != base->is_alert ||
		 (o.is_alert &&
		  (o.verdict_class != base->verdict_class || o.detail != base->detail ||
		   o.confidence != base->confidence || o.after_ns != base->after_ns ||
		   !same_culprits(base, &o, view->label))))
		fail(t, s, property, base, &o);
	cw_outcome_fini(&o);
	return 0;
}

static int check_hidden(struct tally *t, const struct suite_scenario *s, const struct outcome *base,
			int64_t hidden)
{
	struct view view = { .n = s->n_ranks, .hidden = hidden };
	const struct watch_observer observer = { .user = &view,
						 .change = change,
						 .on_incident = note_coverage };
	struct suite_scenario seen = *s;
	struct outcome o = { 0 };
	int r;

	seen.may_be_silent = true; /* who is not seen may keep it from ever becoming a page */
	r = cw_watch_with(&seen, &observer, &t->err, &o);
	if (r < 0)
		return r;
	if (o.is_alert && o.confidence == CW_CONFIDENCE_CERTAIN && !cw_score_is_right(s, &o))
		fail(t, s, "one rank is not seen, and the verdict is certain and wrong", base, &o);
	if (o.is_alert && base->is_alert && o.verdict_class == base->verdict_class &&
	    o.confidence > base->confidence)
		fail(t, s, "one rank is not seen, and the verdict is surer", base, &o);
	if (view.n_unnamed)
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

/* Returns a node that no fault strikes as a whole: the company on it stays healthy. */
static unsigned quiet_node(const struct suite_scenario *s)
{
	unsigned n = (s->n_ranks + s->per_node - 1) / s->per_node;

	for (unsigned node = 0; node < n; node++) {
		bool is_quiet = true;

		for (uint32_t i = 0; i < s->n_faults; i++)
			is_quiet &= s->faults[i].action < SUITE_NODE_LOST ||
				    s->faults[i].action > SUITE_NODE_KILLED ||
				    !cw_suite_set_has(&s->faults[i].set, node);
		if (is_quiet)
			return node;
	}
	return 0;
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	struct tally *t = user;
	struct view company = {
		.n = s->n_ranks, .hidden = -1, .has_company = true, .company_node = quiet_node(s)
	};
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
	cw_log_set_level(CW_LOG_ERR); /* what leaders log is told by what is compared */
	if (cw_suite_generate(n, seed, on_scenario, &t, &t.err) < 0) {
		fprintf(stderr, "suite-properties: %s\n",
			t.err.text[0] ? t.err.text : "out of memory");
		return 2;
	}
	printf("%" PRIu64 " scenarios, %" PRIu64 " properties violated, %" PRIu64
	       " times no rank named beside healthy ranks\n",
	       t.n, t.failed, t.n_less_sure);
	return t.failed ? 1 : 0;
}
