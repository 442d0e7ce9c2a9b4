/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a cluster, and processes its events in order. */
#include "lab/vjob/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "lab/vjob/comm_slot.h"
#include "model/facts.h"
#include "model/signature.h"

uint64_t cluster_random(struct cluster *c, uint64_t n)
{
	c->random += UINT64_C(0x9e3779b97f4a7c15);
	return n ? cw_hash_mix64(c->random) % n : 0;
}

/* ---- events: a heap by time ---- */

static bool is_sooner(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void cluster_at(struct cluster *c, int64_t at_ns, uint32_t kind, struct rank *r, struct item *item,
		uint64_t id)
{
	struct event e = { .at_ns = at_ns > c->now_ns ? at_ns : c->now_ns,
			   .order = ++c->next_order,
			   .kind = kind,
			   .rank = r,
			   .item = item,
			   .id = id };
	size_t i;

	if (c->n_heap == c->cap_heap) {
		c->cap_heap = c->cap_heap ? c->cap_heap * 2 : 256;
		c->heap = cw_or_exit(reallocarray(c->heap, c->cap_heap, sizeof(*c->heap)));
	}
	for (i = c->n_heap++; i && is_sooner(&e, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = e;
}

/* Moves an event down the heap from place i to its right place. */
static void sift_down(struct cluster *c, size_t i, struct event e)
{
	size_t child;

	while ((child = 2 * i + 1) < c->n_heap) {
		if (child + 1 < c->n_heap && is_sooner(&c->heap[child + 1], &c->heap[child]))
			child++;
		if (!is_sooner(&c->heap[child], &e))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = e;
}

static struct event take_event(struct cluster *c)
{
	struct event first = c->heap[0];

	c->n_heap--;
	sift_down(c, 0, c->heap[c->n_heap]);
	return first;
}

void events_reorder(struct cluster *c)
{
	for (size_t i = c->n_heap / 2; i-- > 0;)
		sift_down(c, i, c->heap[i]);
}

void host_wake_at(struct rank *r, int64_t at_ns)
{
	cluster_at(r->c, at_ns, EVENT_WAKE, r, NULL, ++r->wake_id);
}

bool node_is_quiet(const struct cluster *c, const struct node *n)
{
	return n->quiet_from_ns && c->now_ns >= n->quiet_from_ns && c->now_ns < n->quiet_until_ns;
}

static void happen(struct cluster *c, const struct event *e)
{
	switch (e->kind) {
	case EVENT_WAKE:
		if (e->id == e->rank->wake_id)
			host_step(e->rank);
		break;
	case EVENT_ITEM:
		device_on_item(e->item);
		break;
	case EVENT_FAULT:
		fault_on_event(c, (uint32_t)e->id);
		break;
	case EVENT_THAW:
		fault_thaw(e->rank);
		break;
	case EVENT_DAEMONS_BACK:
		fault_daemons_back(c, e->id);
		break;
	case EVENT_DAEMON_ANEW:
		fault_daemon_anew(c, (uint32_t)e->id);
		break;
	case EVENT_READ:
		record_on_read(e->rank);
		break;
	case EVENT_WATCHDOG:
		end_on_watchdog(e->rank);
		break;
	case EVENT_ASK:
		end_on_ask(e->rank);
		break;
	case EVENT_DIE:
		host_die(e->rank, CW_LIVE_KILLED, (uint32_t)e->id);
		break;
	}
}

int cluster_run(struct cluster *c, int64_t until_ns)
{
	while (!c->error && c->n_heap && c->heap[0].at_ns <= until_ns) {
		struct event e = take_event(c);

		c->now_ns = e.at_ns;
		happen(c, &e);
	}
	c->now_ns = until_ns;
	return c->error;
}

/* ---- construction ---- */

/*
 * Finds the rank's comm in a family, and the rank's place in the comm. Returns false if the rank is
 * in no comm. Call it for ranks in ascending order. *filled: number of ranks so far in a comm that
 * is no part of a partition.
 */
static bool place_of(const struct suite_family *f, uint32_t size, uint32_t rank, uint32_t *filled,
		     uint32_t *ret_comm, uint32_t *ret_place)
{
	uint64_t block = (uint64_t)size * f->stride;

	if (f->is_partition) {
		*ret_comm = (uint32_t)(rank / block * f->stride + rank % f->stride);
		*ret_place = (uint32_t)(rank % block / f->stride);
		return true;
	}
	*ret_comm = 0;
	if (!cw_suite_set_has(&f->set, rank))
		return false;
	*ret_place = (*filled)++;
	return true;
}

static int count_comms(struct cluster *c, struct cw_err *err, uint32_t *first)
{
	const struct suite_scenario *s = c->s;

	for (uint32_t i = 0; i < s->n_families; i++) {
		uint32_t n = cw_suite_family_comms(s, i);

		if (n == 0)
			return cw_err_set(err, EINVAL,
					  "%s:%u: %u ranks cannot be cut into comms \"%s\"",
					  s->file, s->line, s->n_ranks, s->families[i].name);
		first[i] = c->n_comms;
		c->n_comms += n;
	}
	return 0;
}

static void make_comm(struct cluster *c, uint32_t index, uint32_t family, uint32_t nth)
{
	const struct suite_family *f = &c->s->families[family];
	struct comm *comm = &c->comms[index];

	comm->family = family;
	comm->nranks = nth ? c->comms[index - 1].nranks : cw_suite_family_size(c->s, family);
	comm->id = cw_hash_mix64((uint64_t)c->start_ns ^ ((uint64_t)family << 32 | nth));
	comm->members = cw_or_exit(calloc(comm->nranks, sizeof(*comm->members)));
	if (f->is_partition)
		(void)snprintf(comm->name, sizeof(comm->name), "%s_%u", f->name, nth);
	else
		(void)snprintf(comm->name, sizeof(comm->name), "%s", f->name);
}

static void make_comms(struct cluster *c, const uint32_t *first)
{
	c->comms = cw_or_exit(calloc(c->n_comms, sizeof(*c->comms)));
	for (uint32_t i = 0, f = 0; i < c->n_comms; i++) {
		while (f + 1 < c->s->n_families && first[f + 1] <= i)
			f++;
		make_comm(c, i, f, i - first[f]);
	}
}

static void join_comms(struct cluster *c, struct rank *r, const uint32_t *first, uint32_t *filled)
{
	const struct suite_scenario *s = c->s;

	r->members = cw_or_exit(calloc(s->n_families, sizeof(struct member *)));
	for (uint32_t f = 0; f < s->n_families; f++) {
		uint32_t size = c->comms[first[f]].nranks, nth, place;
		struct member *m;

		if (!place_of(&s->families[f], size, r->index, &filled[f], &nth, &place))
			continue;
		m = &c->comms[first[f] + nth].members[place];
		*m = (struct member){ .comm = &c->comms[first[f] + nth],
				      .rank = r,
				      .comm_rank = place,
				      .first_open = 1,
				      .hash = CW_HASH_INIT,
				      .moved_ns = c->now_ns,
				      .state = s->families[f].made == SUITE_AT_START
						       ? CW_COMM_READY
						       : CW_COMM_FREE };
		r->members[f] = m;
	}
}

static void make_ranks(struct cluster *c, const uint32_t *first)
{
	uint32_t filled[SUITE_MAX_FAMILIES] = { 0 };
	const struct suite_scenario *s = c->s;

	c->ranks = cw_or_exit(calloc(s->n_ranks, sizeof(*c->ranks)));
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		struct rank *r = &c->ranks[i];

		r->c = c;
		r->index = i;
		r->node = i / s->per_node;
		r->liveness = CW_LIVE_ALIVE;
		r->active_ns = c->now_ns;
		for (uint32_t p = 0; p < s->n_programs && !r->program; p++)
			if (cw_suite_set_has(&s->programs[p].set, i))
				r->program = &s->programs[p];
		join_comms(c, r, first, filled);
	}
}

/*
 * Makes the nodes. Nodes sample their ranks at different instants, and a node samples its ranks up
 * to 250 ms apart.
 */
static void make_nodes(struct cluster *c)
{
	uint32_t n = (c->s->n_ranks + c->s->per_node - 1) / c->s->per_node;

	c->nodes = cw_or_exit(calloc(n, sizeof(*c->nodes)));
	c->n_nodes = n;
	for (uint32_t i = 0; i < n; i++) {
		struct node *node = &c->nodes[i];
		int64_t phase = (int64_t)cluster_random(c, 1000) * MS;

		(void)snprintf(node->name, sizeof(node->name), "node-%u", i);
		/*
		 * We draw this number and do not use it. Without this draw, all later draws would
		 * change.
		 */
		(void)cluster_random(c, 30);
		for (uint32_t r = i * c->s->per_node;
		     r < (i + 1) * c->s->per_node && r < c->s->n_ranks; r++) {
			c->ranks[r].sample_phase_ns = phase + (int64_t)cluster_random(c, 250) * MS;
			c->ranks[r].started_ns = c->now_ns + trait_start_ns(c, r);
			host_wake_at(&c->ranks[r],
				     c->ranks[r].started_ns + (int64_t)cluster_random(c, 100) * MS);
		}
	}
}

static int fill(struct cluster *c, struct cw_err *err)
{
	uint32_t first[SUITE_MAX_FAMILIES];
	int r = count_comms(c, err, first);

	if (r < 0)
		return r;
	make_comms(c, first);
	make_ranks(c, first);
	make_nodes(c);
	end_schedule(c);
	fault_schedule(c);
	return 0;
}

int cluster_new(const struct suite_scenario *s, int64_t start_ns, struct cw_err *err,
		struct cluster **ret)
{
	struct cluster *c = cw_or_exit(calloc(1, sizeof(*c)));
	int r;

	c->s = s;
	c->start_ns = c->now_ns = start_ns;
	c->random = cw_hash_mix64(s->seed) ^ (uint64_t)start_ns;
	r = fill(c, err);
	if (r < 0) {
		(void)cluster_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void free_halves(struct half *h)
{
	struct half *next;

	for (; h; h = next) {
		next = h->next;
		free(h);
	}
}

static void free_comm(struct comm *comm)
{
	for (uint32_t i = 0; comm->members && i < comm->nranks; i++) {
		free(comm->members[i].ring);
		free(comm->members[i].peers);
		for (uint32_t k = 0; comm->members[i].pairs && k < comm->nranks; k++)
			free_halves(comm->members[i].pairs[k].halves);
		free(comm->members[i].pairs);
		free(comm->members[i].view.m.p2p);
	}
	free(comm->members);
	flow_free(comm->flow);
	for (uint32_t i = 0; i < SLOTS; i++) {
		free(comm->slots[i].items);
		free(comm->slots[i].op_indices);
	}
	free_halves(comm->halves);
}

static void free_rank(struct rank *r)
{
	for (uint32_t i = 0; i < STREAMS; i++) {
		struct item *item, *next;

		for (item = r->streams[i]; item; item = next) {
			next = item->next;
			free(item);
		}
	}
	free(r->waiting);
	free(r->graph);
	free(r->members);
}

struct cluster *cluster_free(struct cluster *c)
{
	if (!c)
		return NULL;
	record_end(c);
	for (uint32_t i = 0; c->ranks && i < c->s->n_ranks; i++)
		free_rank(&c->ranks[i]);
	for (uint32_t i = 0; c->comms && i < c->n_comms; i++)
		free_comm(&c->comms[i]);
	free(c->ranks);
	free(c->comms);
	free(c->nodes);
	free(c->heap);
	free(c->fault_done);
	free(c);
	return NULL;
}

int64_t cluster_restart_ns(const struct cluster *c)
{
	return c->restart_ns;
}

int64_t cluster_fault_ns(const struct cluster *c, bool *ret_all)
{
	*ret_all = c->n_faults_hit == c->s->n_faults;
	return c->fault_ns;
}
