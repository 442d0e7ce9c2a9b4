/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We find components by union-find over ranks: two ranks join when they name the same communicator.
 * A rank without a communicator joins the only component that it can belong to. It cannot belong to
 * a component that ended before the rank began, because a launcher restarts all ranks under the
 * same label. Ranks that ended without a communicator at about the same time are one component.
 */
#include "leader/job.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/htable.h"
#include "record/record_layout.h"

/*
 * Ranks may end before they have a communicator. If such ranks begin and end within this time of
 * each other, they belong to one attempt of the launcher. A repeated rank number shows that the
 * launcher has made another attempt.
 */
#define TOGETHER_NS (2 * CW_NS_PER_S)

/* ---- components ---- */

struct comm_key {
	uint64_t id;
	uint64_t instance; /* 64 bits, because the hashed key must have no padding */
};

struct comm_entry {
	UT_hash_handle hh;
	struct comm_key key;
	uint32_t first; /* the rank that named the communicator first */
};

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
	a = find_root(parent, a);
	b = find_root(parent, b);
	if (a < b)
		parent[b] = a;
	else
		parent[a] = b;
}

static int name_comm(struct comm_entry **comms, uint32_t *parent, uint64_t id, uint32_t instance,
		     uint32_t rank)
{
	struct comm_key key = { id, instance };
	struct comm_entry *e;

	HASH_FIND(hh, *comms, &key, sizeof(key), e);
	if (e) {
		join(parent, e->first, rank);
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->key = key;
	e->first = rank;
	HASH_ADD(hh, *comms, key, sizeof(e->key), e);
	if (!cw_htable_added(e)) {
		free(e);
		return -ENOMEM;
	}
	return 0;
}

static void free_comms(struct comm_entry **comms)
{
	struct comm_entry *e, *tmp;

	HASH_ITER (hh, *comms, e, tmp) {
		HASH_DEL(*comms, e);
		free(e);
	}
}

static int join_all(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
		    unsigned n_refs, uint32_t *parent)
{
	_cleanup_(free_comms) struct comm_entry *comms = NULL;
	int r = 0;

	for (unsigned i = 0; i < n_refs && r >= 0; i++) {
		const struct cw_msg_rank *rank = cw_job_digests_rank(digests, &refs[i]);

		for (unsigned k = 0; k < rank->n_members && r >= 0; k++)
			r = name_comm(&comms, parent, rank->members[k].comm_id,
				      rank->members[k].instance, i);
		/* The rank waits in its first init. It is not a member yet, but will be one. */
		if (r >= 0 && rank->host_call && rank->host_call_comm_id)
			r = name_comm(&comms, parent, rank->host_call_comm_id, 0, i);
	}
	return r;
}

/* Returns the time at which the rank ended; 0 = it lives. */
static int64_t ended_ns(const struct cw_job_digests *digests, const struct cw_rank_ref *ref)
{
	const struct cw_msg_rank *r = cw_job_digests_rank(digests, ref);
	int64_t end_ns;

	if (!cw_liveness_is_dead(r->liveness))
		return 0;
	end_ns = digests->nodes[ref->node].received_ns - cw_bounded_ns(r->ended_age_ns);
	return end_ns > 0 ? end_ns : 1;
}

/*
 * True if the process began after end_ns. If its digest does not state its beginning, we assume
 * that the process is old.
 */
static bool began_after(const struct cw_job_digests *digests, const struct cw_rank_ref *ref,
			int64_t end_ns)
{
	uint64_t raw_ns = cw_job_digests_rank(digests, ref)->started_age_ns;
	int64_t age_ns = raw_ns > (uint64_t)CW_BOUND_NS ? CW_BOUND_NS : (int64_t)raw_ns;

	return end_ns && age_ns > 0 && digests->nodes[ref->node].received_ns - age_ns > end_ns;
}

/*
 * The components of ranks with communicators. A rank without a communicator may belong to one of
 * these components.
 */
struct tries {
	uint32_t n_living, living; /* number of living components, and the root of the last one */
	/*
	 * Of the components that ended: last is the one that ended last, and last_ns is its end.
	 * before_ns is the end of the component before that one. 0 = none.
	 */
	uint32_t last;
	int64_t last_ns, before_ns;
};

/*
 * Finds the components that a rank without a communicator may join. last_ns: for each root, when
 * its last rank ended.
 */
static void find_tries(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
		       unsigned n_refs, uint32_t *parent, int64_t *last_ns, struct tries *ret)
{
	for (unsigned i = 0; i < n_refs; i++) {
		int64_t end_ns = ended_ns(digests, &refs[i]);
		int64_t *last = &last_ns[find_root(parent, i)];

		if (cw_job_digests_rank(digests, &refs[i])->n_members == 0)
			continue;
		if (!end_ns)
			*last = INT64_MAX;
		else if (end_ns > *last)
			*last = end_ns;
	}
	for (uint32_t i = 0; i < n_refs; i++) {
		if (last_ns[i] == INT64_MAX) {
			ret->n_living++;
			ret->living = i;
		} else if (last_ns[i] > ret->last_ns) {
			ret->before_ns = ret->last_ns;
			ret->last_ns = last_ns[i];
			ret->last = i;
		} else if (last_ns[i] > ret->before_ns) {
			ret->before_ns = last_ns[i];
		}
	}
}

/* Joins each rank that has no communicator yet to the only component that it can belong to. */
static int adopt_the_unborn(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			    unsigned n_refs, uint32_t *parent)
{
	_cleanup_(freep) int64_t *last_ns = calloc((size_t)n_refs + 1, sizeof(*last_ns));
	struct tries tries = { 0 };

	if (!last_ns)
		return -ENOMEM;
	find_tries(digests, refs, n_refs, parent, last_ns, &tries);
	for (unsigned i = 0; i < n_refs; i++) {
		bool may_be_last;

		if (cw_job_digests_rank(digests, &refs[i])->n_members)
			continue;
		may_be_last = tries.last_ns && !began_after(digests, &refs[i], tries.last_ns);
		if (tries.n_living == 1 && !may_be_last)
			join(parent, i, tries.living);
		else if (tries.n_living == 0 && may_be_last &&
			 (!tries.before_ns || began_after(digests, &refs[i], tries.before_ns)))
			join(parent, i, tries.last);
	}
	return 0;
}

/* ---- an attempt that ends before its first communicator ---- */

struct unborn {
	int64_t began_ns, ended_ns;
	uint32_t i; /* index into refs */
	int32_t rank;
};

static int by_begin(const void *pa, const void *pb)
{
	const struct unborn *a = pa, *b = pb;

	if (a->began_ns != b->began_ns)
		return a->began_ns < b->began_ns ? -1 : 1;
	return a->i < b->i ? -1 : a->i > b->i;
}

struct number {
	UT_hash_handle hh;
	int32_t rank;
};

static void free_numbers(struct number **numbers)
{
	HASH_CLEAR(hh, *numbers); /* the elements are in an array of the caller */
}

/*
 * Joins ranks that ended together before they had a communicator. Without this, each of these ranks
 * would look like a job with one failed rank.
 */
static int join_the_unborn(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n_refs, uint32_t *parent)
{
	/* per root: one of its ranks lives or had a usable communicator */
	_cleanup_(freep) bool *is_shut = calloc((size_t)n_refs + 1, sizeof(*is_shut));
	_cleanup_(freep) struct unborn *v = calloc((size_t)n_refs + 1, sizeof(*v));
	_cleanup_(freep) struct number *known = calloc((size_t)n_refs + 1, sizeof(*known));
	_cleanup_(free_numbers) struct number *numbers = NULL;
	struct number *same;
	int64_t last_ns = 0;
	unsigned count = 0;

	if (!is_shut || !v || !known)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_refs; i++) {
		const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);
		bool *is_root_shut = &is_shut[find_root(parent, i)];

		*is_root_shut = *is_root_shut || !ended_ns(digests, &refs[i]);
		/* A communicator that is in init, or whose init failed, does not count. */
		for (uint32_t k = 0; k < r->n_members; k++)
			*is_root_shut = *is_root_shut || (r->members[k].state != CW_COMM_INIT &&
							  r->members[k].state != CW_COMM_FAILED);
	}
	for (uint32_t i = 0; i < n_refs; i++) {
		const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);
		struct unborn u = { .ended_ns = ended_ns(digests, &refs[i]),
				    .i = i,
				    .rank = r->rank };

		if (is_shut[find_root(parent, i)])
			continue;
		/* Without the time when the process began, we assume that it began when it ended.
		 */
		u.began_ns = r->started_age_ns ? digests->nodes[refs[i].node].received_ns -
							 cw_bounded_ns(r->started_age_ns)
					       : u.ended_ns;
		v[count++] = u;
	}
	qsort(v, count, sizeof(*v), by_begin);
	for (unsigned k = 0; k < count; k++) {
		HASH_FIND(hh, numbers, &v[k].rank, sizeof(v[k].rank), same);
		if (k && !same && v[k].began_ns - last_ns <= TOGETHER_NS) {
			join(parent, v[k - 1].i, v[k].i);
		} else {
			HASH_CLEAR(hh, numbers);
			last_ns = 0;
		}
		if (v[k].ended_ns > last_ns)
			last_ns = v[k].ended_ns;
		known[k].rank = v[k].rank;
		if (v[k].rank < 0)
			continue;
		HASH_ADD(hh, numbers, rank, sizeof(known[k].rank), &known[k]);
		if (!cw_htable_added(&known[k]))
			return -ENOMEM;
	}
	return 0;
}

static int by_component(const void *pa, const void *pb)
{
	const struct cw_rank_ref *a = pa, *b = pb;

	if (a->component != b->component)
		return a->component < b->component ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

int cw_job_components(const struct cw_job_digests *digests, struct cw_rank_ref **ret_refs,
		      unsigned *ret_n_refs, unsigned *ret_n_components)
{
	_cleanup_(freep) struct cw_rank_ref *refs = NULL;
	_cleanup_(freep) uint32_t *parent = NULL;
	unsigned n_refs = 0, n_components = 0;
	int r;

	for (uint32_t i = 0; i < digests->n_nodes; i++)
		n_refs += digests->nodes[i].digest->digest.n_ranks;
	refs = calloc(n_refs + 1, sizeof(*refs));
	parent = calloc(n_refs + 1, sizeof(*parent));
	if (!refs || !parent)
		return -ENOMEM;
	n_refs = 0;
	for (uint32_t i = 0; i < digests->n_nodes; i++)
		for (uint32_t k = 0; k < digests->nodes[i].digest->digest.n_ranks; k++) {
			refs[n_refs] = (struct cw_rank_ref){ .node = i, .rank = k };
			parent[n_refs] = n_refs;
			n_refs++;
		}
	r = join_all(digests, refs, n_refs, parent);
	if (r < 0)
		return r;
	r = adopt_the_unborn(digests, refs, n_refs, parent);
	if (r < 0)
		return r;
	r = join_the_unborn(digests, refs, n_refs, parent);
	if (r < 0)
		return r;
	/*
	 * A root has the smallest index of its component, so its number is known before its members
	 * need it.
	 */
	for (uint32_t i = 0; i < n_refs; i++) {
		uint32_t root = find_root(parent, i);

		refs[i].component = root == i ? n_components++ : refs[root].component;
	}
	qsort(refs, n_refs, sizeof(*refs), by_component);
	*ret_refs = steal_ptr(&refs);
	*ret_n_refs = n_refs;
	*ret_n_components = n_components;
	return 0;
}

/* ---- life ---- */

int cw_job_new(uint64_t number, int64_t now_ns, struct cw_job **ret)
{
	struct cw_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->number = number;
	job->stacks.max = CW_SNAP_MAX_STACKS;
	job->stacks.max_bytes = CW_JOB_MAX_STACK_BYTES;
	job->started_ns = now_ns;
	job->late.asked_ns = now_ns;
	job->view.since_ns = now_ns;
	job->stall = cw_stall_new();
	if (!job->stall) {
		(void)cw_job_free(job); /* always NULL */
		return -ENOMEM;
	}
	*ret = job;
	return 0;
}

struct cw_job *cw_job_free(struct cw_job *job)
{
	struct cw_job_window *w, *tmp;

	if (!job)
		return NULL;
	DL_FOREACH_SAFE (job->windows, w, tmp) {
		free(w->node);
		free(w->ops);
		free(w);
	}
	cw_text_set_clear(&job->stacks);
	cw_history_fini(&job->history);
	cw_stall_free(job->stall);
	free(job);
	return NULL;
}
