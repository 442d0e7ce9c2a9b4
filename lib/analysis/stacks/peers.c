/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five rules protect ranks that have a role of their own:
 *
 *  - If a communicator made no collective, it may belong to a pipeline, and we treat its members as
 *    a pipeline. The communicator of all ranks is exempt.
 *  - We also recognise the communicator of a pipeline by its name, because no rank may have sent
 *    yet.
 *  - Peers have communicators of the same sizes. The first and last stage often share one more
 *    communicator, for their embeddings.
 *  - If there is no communicator yet, the first and the last ranks have no peers.
 *  - Peers of peers could include two ranks of one pipeline. Then none of them has peers.
 */
#include "analysis/stacks/peers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/signature.h"

/*
 * If all members of a communicator with at least this many members exchange messages, they make an
 * all-to-all. Three stages whose last one sends to the first look the same.
 */
#define ALL_TO_ALL_MIN 4u
/* Without communicators we omit one in EDGE_SHARE ranks, plus one rank, at each end. */
#define EDGE_SHARE 8

struct search {
	const struct cw_snapshot *snap;
	uint32_t *pipelines, *groups; /* union-find over ranks; a root is its own parent */
	uint64_t *shapes;             /* sum over the sizes of the rank's communicators */
	uint32_t *marks; /* for each pipeline: the last communicator that touched it, plus 1 */
};

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

/*
 * Joins two sets. The lower root becomes the root of both, so results do not depend on the order of
 * joins.
 */
static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
	a = find_root(parent, a);
	b = find_root(parent, b);
	if (a < b)
		parent[b] = a;
	else
		parent[a] = b;
}

/* ---- communicators ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True for a name such as "pp", "mesh_pp" or "PIPELINE_MODEL_PARALLEL_GROUP". */
static bool names_a_pipeline(const char *name)
{
	for (const char *p = name; p && *p; p++) {
		bool begins = p == name || !is_letter(p[-1]);

		if (strncasecmp(p, "pipe", 4) == 0 ||
		    (begins && strncasecmp(p, "pp", 2) == 0 && !is_letter(p[2])))
			return true;
	}
	return false;
}

static bool is_message(const struct cw_op *op)
{
	return op && (op->kind == CW_OP_SEND || op->kind == CW_OP_RECV);
}

/* Joins the rank with the counterpart of its messages. peer: index of a member. */
static void join_counterpart(struct search *s, const struct cw_snap_comm *comm, uint32_t rank,
			     int64_t peer)
{
	if (peer >= 0 && peer < comm->nranks && comm->members[peer].rank != CW_SNAP_NONE)
		join(s->pipelines, rank, comm->members[peer].rank);
}

/* True if each member exchanges messages with all others. */
static bool is_all_to_all(const struct cw_snap_comm *comm)
{
	if (comm->nranks < ALL_TO_ALL_MIN)
		return false;
	for (uint32_t m = 0; m < comm->nranks; m++) {
		const struct cw_snap_member *member = &comm->members[m];
		uint32_t n = 0;

		for (uint32_t i = 0; i < member->n_p2p; i++)
			n += member->p2p[i].peer != m && member->p2p[i].sends &&
			     member->p2p[i].recvs;
		if (member->rank == CW_SNAP_NONE || n + 1 < comm->nranks)
			return false;
	}
	return true;
}

/* Returns true if the communicator has sends and receives, and joins their ranks. */
static bool join_messages(struct search *s, const struct cw_snap_comm *comm)
{
	bool has_any = false;

	for (uint32_t m = 0; m < comm->nranks; m++) {
		const struct cw_snap_member *member = &comm->members[m];
		const struct cw_op *ops[] = { member->pending, member->last };

		if (member->rank == CW_SNAP_NONE)
			continue;
		for (uint32_t i = 0; i < member->n_p2p; i++)
			join_counterpart(s, comm, member->rank, member->p2p[i].peer);
		for (unsigned i = 0; i < 2; i++)
			if (is_message(ops[i]))
				join_counterpart(s, comm, member->rank, ops[i]->peer);
		has_any |= member->n_p2p || is_message(ops[0]) || is_message(ops[1]) ||
			   member->sends || member->recvs;
	}
	return has_any;
}

static void join_all(uint32_t *parent, const struct cw_snap_comm *comm)
{
	uint32_t first = CW_SNAP_NONE;

	for (uint32_t m = 0; m < comm->nranks; m++) {
		uint32_t rank = comm->members[m].rank;

		if (rank == CW_SNAP_NONE)
			continue;
		if (first == CW_SNAP_NONE)
			first = rank;
		join(parent, first, rank);
	}
}

static void find_pipelines(struct search *s)
{
	for (uint32_t c = 0; c < s->snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &s->snap->comms[c];
		bool has_collective = false;
		uint32_t n_visible = 0;

		if (is_all_to_all(comm))
			continue;
		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_snap_member *member = &comm->members[m];
			const struct cw_op *pending = member->pending;

			if (member->rank == CW_SNAP_NONE)
				continue;
			n_visible++;
			has_collective |= member->coll_entered ||
					  (pending && pending->coll_seq && !is_message(pending));
		}
		if (join_messages(s, comm) || has_collective) {
			if (names_a_pipeline(comm->name))
				join_all(s->pipelines, comm);
		} else if (n_visible < s->snap->n_ranks) {
			join_all(s->pipelines, comm);
		}
	}
}

/* Joins the members of each communicator in which no two members are in one pipeline. */
static void find_groups(struct search *s)
{
	for (uint32_t c = 0; c < s->snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &s->snap->comms[c];
		bool has_equal_roles = true;

		for (uint32_t m = 0; m < comm->nranks; m++) {
			uint32_t rank = comm->members[m].rank, *touched;

			if (rank == CW_SNAP_NONE)
				continue;
			/* A sum does not depend on the order of the communicators. */
			s->shapes[rank] += cw_hash_mix64(comm->nranks);
			touched = &s->marks[find_root(s->pipelines, rank)];
			has_equal_roles = has_equal_roles && *touched != c + 1;
			*touched = c + 1;
		}
		if (has_equal_roles)
			join_all(s->groups, comm);
	}
}

/* ---- ranks ---- */

struct place {
	uint32_t group, pipeline, rank;
	uint64_t shape;
};

static int by_group(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->pipeline != y->pipeline)
		return x->pipeline < y->pipeline ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_shape(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->shape != y->shape)
		return x->shape < y->shape ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Writes the group's number for n ranks that communicators have joined. */
static void number_ranks(struct place *places, uint32_t n, uint32_t *ret)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < n; i++)
		if (places[i].pipeline == places[i - 1].pipeline)
			return;
	qsort(places, n, sizeof(*places), by_shape);
	for (uint32_t i = 1; i <= n; i++) {
		if (i < n && places[i].shape == places[first].shape)
			continue;
		for (uint32_t k = first; k < i && i - first > 1; k++)
			ret[places[k].rank] = places[first].rank;
		first = i;
	}
}

static void number_all(struct search *s, struct place *places, uint32_t *ret)
{
	uint32_t n = s->snap->n_ranks, first = 0;

	for (uint32_t i = 0; i < n; i++) {
		places[i] = (struct place){ .group = find_root(s->groups, i),
					    .pipeline = find_root(s->pipelines, i),
					    .rank = i,
					    .shape = s->shapes[i] };
		ret[i] = CW_SNAP_NONE;
	}
	qsort(places, n, sizeof(*places), by_group);
	for (uint32_t i = 1; i <= n; i++) {
		if (i < n && places[i].group == places[first].group)
			continue;
		number_ranks(places + first, i - first, ret);
		first = i;
	}
}

/*
 * Groups the ranks of a job without communicators. The first and the last stage of a pipeline
 * usually have the lowest and the highest ranks, so we omit these ranks.
 */
static void number_by_rank(const struct cw_snapshot *snap, uint32_t *ret)
{
	int64_t end = 0, edge, group = -1;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank >= end)
			end = (int64_t)snap->ranks[i].rank + 1;
	edge = end / EDGE_SHARE + 1;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		int64_t rank = snap->ranks[i].rank;
		bool is_inner = rank >= edge && rank < end - edge;

		if (is_inner && group < 0)
			group = i;
		ret[i] = is_inner ? (uint32_t)group : CW_SNAP_NONE;
	}
}

int cw_peers_find(const struct cw_snapshot *snap, uint32_t *ret)
{
	size_t n = snap->n_ranks ? snap->n_ranks : 1;
	struct search s = {
		.snap = snap,
		.pipelines = calloc(n, sizeof(*s.pipelines)),
		.groups = calloc(n, sizeof(*s.groups)),
		.shapes = calloc(n, sizeof(*s.shapes)),
		.marks = calloc(n, sizeof(*s.marks)),
	};
	struct place *places = calloc(n, sizeof(*places));
	bool has_all = s.pipelines && s.groups && s.shapes && s.marks && places;

	if (has_all && snap->n_comms == 0) {
		number_by_rank(snap, ret);
	} else if (has_all) {
		for (uint32_t i = 0; i < snap->n_ranks; i++)
			s.pipelines[i] = s.groups[i] = i;
		find_pipelines(&s);
		find_groups(&s);
		number_all(&s, places, ret);
	}
	free(s.pipelines);
	free(s.groups);
	free(s.shapes);
	free(s.marks);
	free(places);
	return has_all ? 0 : -ENOMEM;
}
