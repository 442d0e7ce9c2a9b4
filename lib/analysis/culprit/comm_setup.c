/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/comm_setup.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/culprit/launch_order.h"

/* The call in which we compare the members. seq = 0: the initialisation of the comm. */
struct call {
	const struct cw_snapshot *snap;
	const struct cw_snap_comm *comm;
	uint64_t seq;
};

typedef uint64_t (*value_fn)(const struct call *call, const struct cw_snap_member *m);

static uint64_t size_of(const struct call *call, const struct cw_snap_member *m)
{
	(void)call;
	return m->nranks;
}

static uint64_t order_of(const struct call *call, const struct cw_snap_member *m)
{
	return call->seq ? launch_order_of(call->comm, m, call->seq) : 0;
}

static uint64_t version_of(const struct call *call, const struct cw_snap_member *m)
{
	return call->snap->ranks[m->rank].nccl_version;
}

static uint64_t environment_of(const struct call *call, const struct cw_snap_member *m)
{
	return call->snap->ranks[m->rank].env_hash;
}

struct trait {
	enum cw_detail detail;
	value_fn value;
	bool zero_is_unknown;
	bool is_proof; /* NCCL cannot work if the members' values differ */
};

static const struct trait traits[] = {
	{ CW_DETAIL_MEMBERSHIP, size_of, true, true },
	{ CW_DETAIL_ORDER, order_of, true, false },
	{ CW_DETAIL_VERSION, version_of, true, false },
	/* The value 0 means that none of the variables is set. */
	{ CW_DETAIL_ENVIRONMENT, environment_of, false, false },
};

struct valued {
	uint64_t value;
	uint32_t rank;
};

static int compare_values(const void *x, const void *y)
{
	const struct valued *a = x, *b = y;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Lists the members' values in v, sorted. Omits a member that has no record or no value. */
static uint32_t list_values(const struct call *call, const struct trait *trait, struct valued *v)
{
	const struct cw_snapshot *snap = call->snap;
	const struct cw_snap_comm *c = call->comm;
	uint32_t n = 0;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];
		uint64_t value;

		if (member->rank >= snap->n_ranks ||
		    !(snap->ranks[member->rank].flags & CW_RANKF_HAS_RECORD))
			continue;
		value = trait->value(call, member);
		if (value || !trait->zero_is_unknown)
			v[n++] = (struct valued){ value, member->rank };
	}
	qsort(v, n, sizeof(*v), compare_values);
	return n;
}

/* Makes one side for each distinct value, the largest side first, and finds the majority. */
static int fill_sides(const struct cw_snapshot *snap, const struct valued *v, uint32_t n,
		      const struct cw_op *op, struct cw_arena *a, struct alignment *ret)
{
	uint32_t end;

	for (uint32_t i = 0; i < n; i = end) {
		struct cw_side side = { .has_op = op != NULL };
		uint32_t at = ret->n_sides;

		for (end = i; end < n && v[end].value == v[i].value;)
			end++;
		side.ranks = cw_arena_new_array(a, uint32_t, end - i);
		if (!side.ranks)
			return -ENOMEM;
		for (uint32_t k = i; k < end; k++)
			side.ranks[side.n_ranks++] = v[k].rank;
		if (op)
			side.op = *op;
		align_sort_ranks(snap, side.ranks, side.n_ranks);
		for (; at && align_side_before(snap, &side, &ret->sides[at - 1]); at--)
			ret->sides[at] = ret->sides[at - 1];
		ret->sides[at] = side;
		ret->n_sides++;
	}
	ret->n_compared = n;
	if (ret->sides[0].n_ranks > ret->sides[1].n_ranks)
		ret->majority = 0;
	return 0;
}

int comm_setup_compare(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq,
		       const struct cw_op *op, struct cw_arena *a, struct alignment *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	const struct call call = { snap, c, seq };
	struct valued *v = cw_arena_new_array(a, struct valued, c->nranks);

	*ret = (struct alignment){ .majority = ALIGN_NO_SIDE, .knows_call = true };
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(traits) / sizeof(*traits); i++) {
		uint32_t n = list_values(&call, &traits[i], v), distinct = n > 0;
		bool is_meant_to_differ;

		for (uint32_t k = 1; k < n; k++)
			distinct += v[k].value != v[k - 1].value;
		/*
		 * Nearly every member has its own value, for example its own address of an
		 * interface. Such values are meant to differ.
		 */
		is_meant_to_differ =
			traits[i].detail != CW_DETAIL_ORDER && distinct > 2 && 2 * distinct > n;
		if (distinct < 2 || is_meant_to_differ)
			continue;
		ret->detail = traits[i].detail;
		ret->is_proof = traits[i].is_proof;
		ret->sides = cw_arena_new_array(a, struct cw_side, distinct);
		return ret->sides ? fill_sides(snap, v, n, op, a, ret) : -ENOMEM;
	}
	return 0;
}
