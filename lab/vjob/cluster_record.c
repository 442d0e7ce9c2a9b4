/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks whose calls go through the agent's own code into flight records. The daemon's code
 * (digest/) samples the records and makes digests. So no fact about a rank's ops comes from this
 * simulation. This file simulates only NCCL and the device, and provides the facts about processes.
 */
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "digest/digest.h"
#include "digest/window.h"
#include "lab/recorder/recorder.h"
#include "lab/vjob/cluster_state.h"
#include "model/facts.h"

/* The sampling interval of the daemons. */
#define SAMPLE_NS (250 * MS)
/*
 * Limit on the ranks. Each has a record of some megabytes, of which only written pages take memory.
 */
#define MAX_RANKS 64u
#define WALL_NS (INT64_C(1800000000) * S)

enum open_call { OPEN_NONE = 0, OPEN_LONE, OPEN_GROUP };

struct drawn {
	struct recorder *recorder;
	struct cw_record *reader;
	struct cw_sampler sampler;
	enum open_call open;
	bool is_final; /* the rank has ended, and we have sampled it since */
};

/* The latest report of a node, kept until the next one. */
struct record_digests {
	struct cw_digest digest;
	struct cw_msg_window_reply windows;
};

static void note_error(struct cluster *c, int r)
{
	if (r < 0 && !c->error)
		c->error = r;
}

/* ---- construction ---- */

static bool has_graph(const struct suite_scenario *s)
{
	for (uint32_t p = 0; p < s->n_programs; p++)
		for (uint32_t i = 0; i < s->programs[p].n_insns; i++)
			if (s->programs[p].insns[i].kind == SUITE_GRAPH)
				return true;
	return false;
}

static bool is_possible(const struct suite_scenario *s)
{
	return s->is_recorded && !s->is_fast_forwarding && s->n_ranks <= MAX_RANKS &&
	       !has_graph(s) && s->per_process == 1;
}

static int make_recorder(struct rank *r)
{
	const struct cluster *c = r->c;
	struct recorder_config config = {
		.rank = (int32_t)r->index,
		.world_size = (int32_t)c->s->n_ranks,
		.pid = 1000 + r->index,
		.start_ticks = (uint64_t)(c->start_ns / MS) + 7,
		.job_label = "suite",
		.nccl_version = trait_version(c->s, r->index),
		.env_hash = trait_environment(c->s, r->index),
		.job_timeout_ns = c->s->job_timeout_ns,
		.has_progress = !c->s->has_no_progress,
		.now_ns = c->now_ns,
		.wall_ns = WALL_NS + c->now_ns,
	};
	const void *memory;
	size_t bytes;

	r->drawn = cw_or_exit(calloc(1, sizeof(*r->drawn)));
	cw_sampler_init(&r->drawn->sampler);
	r->drawn->recorder = recorder_new(&config);
	memory = recorder_memory(r->drawn->recorder, &bytes);
	return cw_record_open_memory(memory, bytes, &r->drawn->reader, NULL);
}

/* Makes the member's entry in its rank's record. */
static void make_entry(struct member *m)
{
	struct recorder_comm comm = {
		.comm_id = m->comm->id,
		.nccl_hash = m->comm->id >> 1,
		.nranks = trait_size(m),
		.comm_rank = (int32_t)m->comm_rank,
		.device = (int32_t)(m->rank->index % m->rank->c->s->per_node),
		.name = m->comm->name,
	};

	m->entry = recorder_comm(m->rank->drawn->recorder, &comm, m->rank->c->now_ns);
}

int cluster_record(struct cluster *c, bool *ret)
{
	*ret = is_possible(c->s);
	if (!*ret)
		return 0;
	c->digests = cw_or_exit(calloc(c->n_nodes, sizeof(*c->digests)));
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		struct rank *r = &c->ranks[i];
		int e = make_recorder(r);

		if (e < 0)
			return e;
		cluster_at(c, c->now_ns + r->sample_phase_ns % SAMPLE_NS, EVENT_READ, r, NULL, 0);
		for (uint32_t f = 0; f < c->s->n_families; f++)
			if (r->members[f] && r->members[f]->state == CW_COMM_READY)
				record_ready(r->members[f]);
	}
	return 0;
}

void record_end(struct cluster *c)
{
	for (uint32_t i = 0; c->ranks && i < c->s->n_ranks; i++) {
		struct drawn *d = c->ranks[i].drawn;

		if (!d)
			continue;
		(void)cw_record_close(d->reader);
		cw_sampler_fini(&d->sampler);
		(void)recorder_free(d->recorder);
		free(d);
		c->ranks[i].drawn = NULL;
	}
	for (uint32_t i = 0; c->digests && i < c->n_nodes; i++) {
		cw_digest_fini(&c->digests[i].digest);
		cw_window_fini(&c->digests[i].windows);
	}
	free(c->digests);
	c->digests = NULL;
}

/* ---- the ranks' actions ---- */

void record_ready(struct member *m)
{
	struct drawn *d = m->rank->drawn;

	if (!d)
		return;
	make_entry(m);
	recorder_comm_state(d->recorder, m->entry, CW_COMM_READY, m->rank->c->now_ns);
}

void record_group(struct rank *r)
{
	if (!r->drawn)
		return;
	r->drawn->open = OPEN_GROUP;
	recorder_group_begin(r->drawn->recorder, r->c->now_ns);
}

void record_op(struct member *m, const struct cw_op *op)
{
	const struct rank *r = m->rank;
	const struct recorder_op call = {
		.kind = op->kind,
		.dtype = op->dtype,
		.redop = op->redop,
		.root_or_peer = cw_op_is_p2p(op->kind) ? op->peer : op->root,
		.count = op->count,
		.stream = op->stream,
	};

	if (!r->drawn || cw_op_blocks_host(op->kind))
		return;
	if (r->drawn->open == OPEN_NONE)
		r->drawn->open = OPEN_LONE;
	recorder_enter(r->drawn->recorder, m->entry, &call, op->enter_ns);
}

void record_launch(struct rank *r)
{
	if (r->drawn && r->drawn->open == OPEN_GROUP)
		recorder_group_launch(r->drawn->recorder, r->c->now_ns);
}

static int64_t later_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void record_return(struct rank *r)
{
	struct drawn *d = r->drawn;
	int64_t now_ns = later_ns(r->c->now_ns, r->call_ns) + CALL_NS;

	if (!d)
		return;
	if (d->open == OPEN_GROUP)
		recorder_group_leave(d->recorder, now_ns);
	else if (d->open == OPEN_LONE)
		recorder_leave(d->recorder, now_ns);
	d->open = OPEN_NONE;
}

void record_failed(struct rank *r, int result)
{
	struct drawn *d = r->drawn;

	if (!d)
		return;
	recorder_fail(d->recorder, result, later_ns(r->c->now_ns, r->call_ns) + CALL_NS);
	d->open = OPEN_NONE;
}

void record_error(struct member *m)
{
	if (m->rank->drawn)
		recorder_error(m->rank->drawn->recorder, m->entry, m->async_error,
			       m->rank->c->now_ns);
}

void record_block(struct member *m, unsigned kind)
{
	const struct rank *r = m->rank;

	if (!r->drawn)
		return;
	if (kind == CW_OP_COMM_INIT)
		make_entry(m);
	recorder_block(r->drawn->recorder, m->entry, kind, kind == CW_OP_COMM_INIT, r->c->now_ns);
	if (kind == CW_OP_COMM_FINALIZE)
		recorder_comm_state(r->drawn->recorder, m->entry, CW_COMM_FINALIZING, r->c->now_ns);
}

void record_refused(struct member *m, int result)
{
	const struct rank *r = m->rank;

	if (!r->drawn)
		return;
	recorder_refuse(r->drawn->recorder, result, r->c->now_ns);
	if (m->state == CW_COMM_READY) /* NCCL refused to finalize: the comm stays ready */
		recorder_comm_state(r->drawn->recorder, m->entry, CW_COMM_READY, r->c->now_ns);
}

void record_unblock(struct member *m, unsigned kind)
{
	const struct rank *r = m->rank;

	if (!r->drawn)
		return;
	recorder_unblock(r->drawn->recorder, r->c->now_ns);
	if (kind == CW_OP_COMM_FINALIZE)
		recorder_comm_state(r->drawn->recorder, m->entry, CW_COMM_DESTROYED, r->c->now_ns);
}

void record_device(struct member *m, uint64_t reached_op, uint64_t completed_op)
{
	if (m->rank->drawn)
		recorder_device(m->rank->drawn->recorder, m->entry, reached_op, completed_op);
}

/* ---- the daemon's view ---- */

static void sample(struct rank *r)
{
	struct drawn *d = r->drawn;
	const struct cluster *c = r->c;

	if (d->is_final)
		return;
	if (!r->ended_ns && !r->is_frozen)
		recorder_beat(d->recorder, c->now_ns);
	/* This cannot fail, because only the agent writes the record. */
	note_error(r->c, cw_sampler_sample(&d->sampler, d->reader, c->now_ns));
	d->is_final = r->ended_ns != 0;
}

void record_on_read(struct rank *r)
{
	if (!node_is_quiet(r->c, &r->c->nodes[r->node]) && !r->c->daemons_back_ns)
		sample(r);
	cluster_at(r->c, r->c->now_ns + SAMPLE_NS, EVENT_READ, r, NULL, 0);
}

void record_forget(struct rank *r)
{
	if (!r->drawn)
		return;
	cw_sampler_fini(&r->drawn->sampler);
	cw_sampler_init(&r->drawn->sampler);
	r->drawn->is_final = false;
}

static struct cw_digest_rank facts_of(struct rank *r)
{
	const struct view_rank *v = &r->view;
	bool is_dead = cw_liveness_is_dead(v->liveness);

	return (struct cw_digest_rank){
		.record = r->drawn->reader,
		.sampler = &r->drawn->sampler,
		.now_ns = r->c->now_ns,
		.pid = (int32_t)(1000 + r->index),
		.start_ticks = (uint64_t)(r->c->start_ns / MS) + 7,
		.uid = CLUSTER_UID,
		.liveness = v->liveness,
		.death = { .end = { .liveness = v->liveness,
				    .exit_code = is_dead ? (int)r->exit_code : 0,
				    .term_signal = is_dead ? (int)r->term_signal : 0 },
			   .ended_ns = is_dead ? r->ended_ns : 0 },
		.is_oom_killed = v->flags & CW_RANKF_OOM_KILLED,
		.is_d_state = v->flags & CW_RANKF_D_STATE,
		.is_child_busy = v->flags & CW_RANKF_BUSY_CHILD,
		.host_wait = v->host_wait,
		.host_activity_ns = v->host_activity_ns,
		.host_activity_by = v->host_activity_by,
		.command = "train.py",
		.end_by = is_dead ? view_end_by(r) : 0,
		.end_sender =
			is_dead && view_end_by(r) == CW_END_BY_PROCESS ? CLUSTER_LAUNCHER_PID : 0,
	};
}

/* Samples the ranks that the node's daemon knows, and returns their number. */
static uint32_t known_ranks(struct cluster *c, uint32_t node, struct cw_digest_rank v[MAX_RANKS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		struct rank *r = &c->ranks[i];

		if (r->node != node || !r->view.is_seen || r->is_blind)
			continue;
		sample(r);
		v[n++] = facts_of(r);
	}
	return n;
}

int record_digest_ranks(struct cluster *c, uint32_t node, struct cw_msg_rank **ret, uint32_t *ret_n)
{
	struct cw_digest *digest = &c->digests[node].digest;
	struct cw_digest_rank v[MAX_RANKS];
	struct cw_job_id job = { .uid = CLUSTER_UID }; /* the sender fills in the job's name */
	struct cw_digest_source source = { .node = c->nodes[node].name,
					   .job = &job,
					   .ranks = v,
					   .n_ranks = known_ranks(c, node, v),
					   .is_sent = true };
	int r;

	cw_digest_fini(digest);
	r = cw_digest_make(&source, digest);
	if (r < 0)
		return r;
	*ret = digest->msg.ranks;
	*ret_n = digest->msg.n_ranks;
	return c->error;
}

int record_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		   struct cw_msg_window **ret, uint32_t *ret_n)
{
	struct cw_msg_window_reply *reply = &c->digests[node].windows;
	struct cw_digest_rank v[MAX_RANKS];
	int r;

	cw_window_fini(reply);
	r = cw_window_collect(v, known_ranks(c, node, v), q, reply);
	if (r < 0)
		return r;
	*ret = reply->windows;
	*ret_n = reply->n_windows;
	return c->error;
}
