/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a snapshot. The arrays of nodes, ranks, comms and notes grow by doubling, so their indices
 * are stable, but their addresses are not. Members, ops and strings live in an arena.
 */
#include "model/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "model/arena.h"
#include "model/cause.h"
#include "model/signature.h"

/*
 * Limits of the numbers of nodes and notes. A job has fewer nodes than ranks. A job has far fewer
 * than 1,024 notes, and people would not read more.
 */
#define MAX_NODES CW_SNAP_MAX_RANKS
#define MAX_NOTES 1024u
/*
 * Limits per member. They exceed the room of a flight record for one rank, because recordings of
 * other tools may have more.
 */
#define MAX_WINDOW_OPS (1u << 16)
#define MAX_P2P_PEERS (1u << 16)

struct cw_thresholds cw_thresholds_default(void)
{
	return (struct cw_thresholds){
		.stall_min_ns = 10 * CW_NS_PER_S,
		.stall_max_ns = 120 * CW_NS_PER_S,
		.stall_factor = 5,
		.first_op_ns = 120 * CW_NS_PER_S,
		.first_op_per_rank_ns = 20 * CW_NS_PER_S / 1000,
		.proof_ns = 3 * CW_NS_PER_S,
		.confirm_ns = 2 * CW_NS_PER_S,
		.window_after_ns = 1 * CW_NS_PER_S,
		.no_progress_after_ns = 60 * CW_NS_PER_S,
		.host_activity_alert_ns = 300 * CW_NS_PER_S,
		.in_collective_ns = 15 * CW_NS_PER_S,
		.node_silent_ns = 10 * CW_NS_PER_S,
		.bytes_per_s = 0,
	};
}

struct cw_snap_store {
	struct cw_arena arena;
	size_t cap_nodes, cap_ranks, cap_comms, cap_notes;
	uint64_t n_members;
	/*
	 * A hash table from (id, instance) to an index into comms. A slot has the index + 1; 0 =
	 * free. Open addressing; the size is a power of two, and the table is at most half full.
	 */
	uint32_t *comm_slots;
	uint32_t n_comm_slots;
};

static void sanitise_ops(struct cw_op *ops, uint32_t n)
{
	for (uint32_t i = 0; ops && i < n; i++) {
		ops[i].enter_ns = cw_bounded_ns(ops[i].enter_ns);
		ops[i].return_ns = cw_bounded_ns(ops[i].return_ns);
	}
}

static void sanitise_connections(struct cw_snap_connection *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		v[i].moved_ns = cw_bounded_ns(v[i].moved_ns);
		v[i].same_since_ns = cw_bounded_ns(v[i].same_since_ns);
		v[i].held_ns = v[i].held_ns < 0 ? 0 : cw_bounded_ns(v[i].held_ns);
	}
}

struct cw_snapshot *cw_snapshot_new(void)
{
	struct cw_snapshot *snap = calloc(1, sizeof(*snap));

	if (!snap)
		return NULL;
	snap->store = calloc(1, sizeof(*snap->store));
	if (!snap->store) {
		free(snap);
		return NULL;
	}
	snap->thresholds = cw_thresholds_default();
	return snap;
}

struct cw_snapshot *cw_snapshot_free(struct cw_snapshot *snap)
{
	if (!snap)
		return NULL;
	cw_arena_fini(&snap->store->arena);
	free(snap->store->comm_slots);
	free(snap->store);
	free(snap->nodes);
	free(snap->ranks);
	free(snap->comms);
	free(snap->notes);
	free(snap);
	return NULL;
}

void cw_snapshot_reset(struct cw_snapshot *snap)
{
	struct cw_snap_store *st = snap->store;

	cw_arena_reset(&st->arena);
	st->n_members = 0;
	if (st->n_comm_slots)
		memset(st->comm_slots, 0, st->n_comm_slots * sizeof(*st->comm_slots));
	*snap = (struct cw_snapshot){
		.thresholds = cw_thresholds_default(),
		.nodes = snap->nodes,
		.ranks = snap->ranks,
		.comms = snap->comms,
		.notes = snap->notes,
		.store = st,
	};
}

/*
 * Makes room for one more element. Returns the array, which may have moved; NULL = out of memory.
 */
static void *grow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *more;

	if (n < *cap)
		return array;
	if (want > SIZE_MAX / size)
		return NULL;
	more = realloc(array, want * size);
	if (more)
		*cap = want;
	return more;
}

/* Copies a text to the arena; NULL stays NULL. Returns false if out of memory. */
static bool copy_text(struct cw_snapshot *snap, const char *text, const char **ret)
{
	*ret = cw_arena_strdup(&snap->store->arena, text);
	return *ret || !text;
}

/*
 * CW_RANK_FACTS(OWN), and OWN with the other lists of facts, copies the texts of *to and bounds its
 * times. If out of memory, it sets `ok`, a bool of the caller, to false.
 */
/* clang-format off */
#define OWN(kind, type, name, ...) OWN_##kind(name)
#define OWN_SAME(name)
#define OWN_TEXT(name) ok = copy_text(snap, to->name, &to->name) && ok;
#define OWN_TIME(name) to->name##_ns = cw_bounded_ns(to->name##_ns);
#define OWN_SPAN(name) to->name = to->name < 0 ? 0 : cw_bounded_ns(to->name);
#define OWN_SENT(name)
#define OWN_KEPT(name)
#define OWN_PART(name)
/* clang-format on */

int cw_snapshot_set_job(struct cw_snapshot *snap, const char *job, const char *group)
{
	const char *j, *g;

	if (!copy_text(snap, job, &j) || !copy_text(snap, group, &g))
		return -ENOMEM;
	snap->job = j;
	snap->group = g;
	return 0;
}

int cw_snapshot_add_note(struct cw_snapshot *snap, const char *note)
{
	const char **notes;

	if (snap->n_notes >= MAX_NOTES)
		return -E2BIG;
	notes = grow(snap->notes, snap->n_notes, &snap->store->cap_notes, sizeof(*notes));
	if (!notes)
		return -ENOMEM;
	snap->notes = notes;
	if (!copy_text(snap, note ? note : "", &notes[snap->n_notes]))
		return -ENOMEM;
	snap->n_notes++;
	return 0;
}

int cw_snapshot_add_stack(struct cw_snapshot *snap, const char *text, uint32_t *ret_number)
{
	for (uint32_t i = 0; i < snap->n_stacks; i++) {
		if (strcmp(snap->stacks[i], text) == 0) {
			*ret_number = i + 1;
			return 0;
		}
	}
	*ret_number = 0;
	if (snap->n_stacks >= CW_SNAP_MAX_STACKS)
		return 0;
	if (!snap->stacks)
		snap->stacks =
			cw_arena_new_array(&snap->store->arena, const char *, CW_SNAP_MAX_STACKS);
	if (!snap->stacks || !copy_text(snap, text, &snap->stacks[snap->n_stacks]))
		return -ENOMEM;
	*ret_number = ++snap->n_stacks;
	return 0;
}

const char *cw_snapshot_stack(const struct cw_snapshot *snap, const struct cw_op *op)
{
	return op->stack && op->stack <= snap->n_stacks ? snap->stacks[op->stack - 1] : NULL;
}

const struct cw_snap_rank *cw_snapshot_job_timeout(const struct cw_snapshot *snap)
{
	const struct cw_snap_rank *of = NULL;

	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		if (r->job_timeout_ns > 0 && (!of || r->job_timeout_ns < of->job_timeout_ns))
			of = r;
	}
	return of;
}

int cw_snapshot_add_node(struct cw_snapshot *snap, const char *name, uint32_t *ret_index)
{
	struct cw_snap_node node = { .state = CW_NODE_REPORTING };
	struct cw_snap_node *nodes;

	if (snap->n_nodes >= MAX_NODES)
		return -E2BIG;
	nodes = grow(snap->nodes, snap->n_nodes, &snap->store->cap_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	snap->nodes = nodes;
	if (!copy_text(snap, name, &node.name))
		return -ENOMEM;
	nodes[snap->n_nodes] = node;
	*ret_index = snap->n_nodes++;
	return 0;
}

/* Copies the texts of a rank's cause. Returns false if out of memory. */
static bool own_cause(struct cw_snapshot *snap, struct cw_snap_rank *to)
{
	char text[CW_CAUSE_BYTES];

	cw_cause_text(&to->cause_facts, to->cause_command, to->cause_group, to->exit_code, text,
		      sizeof(text));
	return copy_text(snap, *text ? text : to->cause, &to->cause);
}

int cw_snapshot_add_rank(struct cw_snapshot *snap, const struct cw_snap_rank *rank,
			 uint32_t *ret_index)
{
	struct cw_snap_rank copy = *rank, *to = &copy;
	struct cw_snap_rank *ranks;
	bool ok = true;

	if (snap->n_ranks >= CW_SNAP_MAX_RANKS)
		return -E2BIG;
	ranks = grow(snap->ranks, snap->n_ranks, &snap->store->cap_ranks, sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	snap->ranks = ranks;
	CW_RANK_FACTS(OWN)
	CW_CAUSE_FACTS(OWN)
	ok = own_cause(snap, to) && ok;
	if (!ok)
		return -ENOMEM;
	sanitise_ops(&copy.host_call, 1);
	ranks[snap->n_ranks] = copy;
	*ret_index = snap->n_ranks++;
	return 0;
}

static uint32_t comm_slot(uint64_t id, uint32_t instance, uint32_t n_slots)
{
	return (uint32_t)cw_hash_step(id, instance) & (n_slots - 1);
}

static void index_comm(struct cw_snap_store *st, const struct cw_snap_comm *comms, uint32_t c)
{
	uint32_t s = comm_slot(comms[c].id, comms[c].instance, st->n_comm_slots);

	while (st->comm_slots[s])
		s = (s + 1) & (st->n_comm_slots - 1);
	st->comm_slots[s] = c + 1;
}

/* Grows the hash table of comms, so that it is at most half full after one more comm. */
static int reserve_comm_slots(struct cw_snapshot *snap)
{
	struct cw_snap_store *st = snap->store;
	uint32_t want = st->n_comm_slots ? st->n_comm_slots * 2 : 64;
	uint32_t *slots;

	if (snap->n_comms + 1 <= st->n_comm_slots / 2)
		return 0;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(st->comm_slots);
	st->comm_slots = slots;
	st->n_comm_slots = want;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		index_comm(st, snap->comms, c);
	return 0;
}

int cw_snapshot_add_comm_raw(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			     uint32_t *ret_index)
{
	struct cw_snap_store *st = snap->store;
	struct cw_snap_comm copy = *comm;
	struct cw_snap_comm *comms;

	if (snap->n_comms >= CW_SNAP_MAX_COMMS ||
	    st->n_members + comm->nranks > CW_SNAP_MAX_MEMBERS)
		return -E2BIG;
	if (reserve_comm_slots(snap) < 0)
		return -ENOMEM;
	comms = grow(snap->comms, snap->n_comms, &st->cap_comms, sizeof(*comms));
	if (!comms)
		return -ENOMEM;
	snap->comms = comms;
	copy.members = cw_arena_array_raw(&st->arena, comm->nranks, sizeof(struct cw_snap_member));
	copy.last_ops = NULL;
	copy.n_claimed = 0;
	if (!copy.members || !copy_text(snap, comm->name, &copy.name))
		return -ENOMEM;
	for (uint32_t m = 0; m < comm->nranks; m++)
		copy.members[m].rank = CW_SNAP_NONE;
	comms[snap->n_comms] = copy;
	st->n_members += comm->nranks;
	index_comm(st, comms, snap->n_comms);
	*ret_index = snap->n_comms++;
	return 0;
}

static void clear_unclaimed(struct cw_snap_comm *c)
{
	if (c->n_claimed == c->nranks)
		return; /* the common case: the caller has filled all members */
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE)
			c->members[m] = (struct cw_snap_member){ .rank = CW_SNAP_NONE };
}

void cw_snapshot_clear_unclaimed(struct cw_snapshot *snap)
{
	for (uint32_t c = 0; c < snap->n_comms; c++)
		clear_unclaimed(&snap->comms[c]);
}

int cw_snapshot_add_comm(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			 uint32_t *ret_index)
{
	int r = cw_snapshot_add_comm_raw(snap, comm, ret_index);

	if (r == 0)
		clear_unclaimed(&snap->comms[*ret_index]);
	return r;
}

int cw_snapshot_grow_comm(struct cw_snapshot *snap, uint32_t comm, uint32_t nranks)
{
	struct cw_snap_store *st = snap->store;
	struct cw_snap_comm *c = &snap->comms[comm];
	struct cw_snap_member *members;

	if (nranks <= c->nranks)
		return 0;
	/* The arena still holds the old members, so the limit counts them too. */
	if (st->n_members + nranks > CW_SNAP_MAX_MEMBERS)
		return -E2BIG;
	members = cw_arena_new_array(&st->arena, struct cw_snap_member, nranks);
	if (!members)
		return -ENOMEM;
	memcpy(members, c->members, c->nranks * sizeof(*members));
	for (uint32_t m = c->nranks; m < nranks; m++)
		members[m].rank = CW_SNAP_NONE;
	st->n_members += nranks;
	c->members = members;
	c->last_ops = NULL; /* the old ops stay in the arena */
	c->nranks = nranks;
	return 0;
}

uint32_t cw_snapshot_find_comm(const struct cw_snapshot *snap, uint64_t id, uint32_t instance)
{
	const struct cw_snap_store *st = snap->store;

	if (!st->n_comm_slots)
		return CW_SNAP_NONE;
	for (uint32_t s = comm_slot(id, instance, st->n_comm_slots); st->comm_slots[s];
	     s = (s + 1) & (st->n_comm_slots - 1)) {
		uint32_t c = st->comm_slots[s] - 1;

		if (snap->comms[c].id == id && snap->comms[c].instance == instance)
			return c;
	}
	return CW_SNAP_NONE;
}

static struct cw_snap_member *find_member(struct cw_snapshot *snap, uint32_t comm,
					  uint32_t comm_rank)
{
	if (comm >= snap->n_comms || comm_rank >= snap->comms[comm].nranks)
		return NULL;
	return &snap->comms[comm].members[comm_rank];
}

static int compare_peers(const void *a, const void *b)
{
	const struct cw_p2p_peer *x = a, *y = b;

	return x->peer < y->peer ? -1 : x->peer > y->peer;
}

int cw_snapshot_claim_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			     uint32_t rank, struct cw_snap_member **ret)
{
	struct cw_snap_member *m = find_member(snap, comm, comm_rank);

	if (!m || m->rank != CW_SNAP_NONE || rank >= snap->n_ranks)
		return -EINVAL;
	*m = (struct cw_snap_member){ .rank = rank };
	snap->comms[comm].n_claimed++;
	*ret = m;
	return 0;
}

int cw_snapshot_copy_pending(struct cw_snapshot *snap, struct cw_snap_member *m,
			     const struct cw_op *op)
{
	m->pending = cw_arena_memdup(&snap->store->arena, op, 1, sizeof(*op));
	return m->pending || !op ? 0 : -ENOMEM;
}

int cw_snapshot_copy_last(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			  const struct cw_op *op)
{
	struct cw_snap_comm *c = &snap->comms[comm];
	struct cw_snap_member *m = &c->members[comm_rank];

	m->last = NULL;
	if (!op)
		return 0;
	if (!c->last_ops)
		c->last_ops = cw_arena_array_raw(&snap->store->arena, c->nranks, sizeof(*op));
	if (!c->last_ops)
		return -ENOMEM;
	m->last = &c->last_ops[comm_rank];
	*m->last = *op;
	return 0;
}

/* Returns a copy of a part of a member. NULL stays NULL. If out of memory, sets *ok to false. */
static void *own(struct cw_arena *a, const void *part, size_t n, size_t size, bool *ok)
{
	void *copy = cw_arena_memdup(a, part, n, size);

	*ok = *ok && (copy || !part);
	return copy;
}

static bool has_parts_in_bounds(const struct cw_snap_member *m)
{
	return m->n_window <= MAX_WINDOW_OPS && m->n_p2p <= MAX_P2P_PEERS &&
	       m->n_last_hashes <= CW_SNAP_MAX_LAST_HASHES &&
	       m->n_connections <= CW_SNAP_MAX_CONNECTIONS;
}

int cw_snapshot_own_member(struct cw_snapshot *snap, struct cw_snap_member *to)
{
	struct cw_arena *a = &snap->store->arena;
	bool ok = true;

	if (!has_parts_in_bounds(to))
		return -E2BIG;
	if (!to->window)
		to->n_window = 0;
	if (!to->last_hashes)
		to->n_last_hashes = 0;
	if (!to->p2p)
		to->n_p2p = 0;
	if (!to->connections)
		to->n_connections = 0;
	to->window = own(a, to->window, to->n_window, sizeof(*to->window), &ok);
	to->p2p = own(a, to->p2p, to->n_p2p, sizeof(*to->p2p), &ok);
	to->last_hashes = own(a, to->last_hashes, to->n_last_hashes, sizeof(*to->last_hashes), &ok);
	to->connections = own(a, to->connections, to->n_connections, sizeof(*to->connections), &ok);
	CW_MEMBER_FACTS(OWN)
	if (!ok)
		return -ENOMEM;
	sanitise_connections(to->connections, to->n_connections);
	sanitise_ops(to->pending, 1);
	sanitise_ops(to->last, 1);
	sanitise_ops(to->window, to->n_window);
	to->window_ns = cw_bounded_ns(to->window_ns);
	/* We sort by peer, because the engine finds a counterpart by bisection. */
	if (to->n_p2p > 1)
		qsort(to->p2p, to->n_p2p, sizeof(*to->p2p), compare_peers);
	return 0;
}

int cw_snapshot_set_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_snap_member *member)
{
	struct cw_snap_member *m;
	int r;

	if (!has_parts_in_bounds(member))
		return -E2BIG;
	r = cw_snapshot_claim_member(snap, comm, comm_rank, member->rank, &m);
	if (r < 0)
		return r;
	*m = *member;
	r = cw_snapshot_copy_pending(snap, m, member->pending);
	if (r == 0)
		r = cw_snapshot_copy_last(snap, comm, comm_rank, member->last);
	if (r == 0)
		r = cw_snapshot_own_member(snap, m);
	if (r < 0) {
		*m = (struct cw_snap_member){ .rank = CW_SNAP_NONE };
		snap->comms[comm].n_claimed--;
	}
	return r;
}

/*
 * Gives an op the call stack of its copy in the window, because other copies may lack the stack.
 */
static void copy_stack(struct cw_op *to, const struct cw_op *window, uint32_t n)
{
	for (uint32_t i = n; to && !to->stack && i-- > 0;)
		if (window[i].op_index == to->op_index && window[i].kind == to->kind)
			to->stack = window[i].stack;
}

int cw_snapshot_set_window(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_op *ops, uint32_t n_ops, uint64_t lost, int64_t read_ns)
{
	struct cw_snap_member *m = find_member(snap, comm, comm_rank);

	if (!m || m->rank == CW_SNAP_NONE || (n_ops && !ops))
		return -EINVAL;
	if (n_ops > MAX_WINDOW_OPS)
		return -E2BIG;
	if (!m->window || n_ops > m->n_window) {
		struct cw_op *copy = cw_arena_array_raw(&snap->store->arena, n_ops, sizeof(*copy));

		if (!copy)
			return -ENOMEM;
		m->window = copy;
	}
	if (n_ops)
		memcpy(m->window, ops, n_ops * sizeof(*ops));
	sanitise_ops(m->window, n_ops);
	if (snap->n_stacks) {
		copy_stack(m->pending, m->window, n_ops);
		copy_stack(m->last, m->window, n_ops);
	}
	m->n_window = n_ops;
	m->window_lost = lost;
	m->window_ns = cw_bounded_ns(read_ns);
	return 0;
}
