/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the ranks one by one in the arena. We count the size of each part before we add it. The
 * first pass adds members with pending ops. The second pass adds quiet members while the frame has
 * room. All times become ages relative to one moment.
 */
#include "digest/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "digest/process_ranks.h"
#include "model/facts.h"
#include "model/snapshot.h"
#include "proto/ages.h"
#include "proto/frame.h"
#include "record/pod.h"

/*
 * An agent writes a beat into the record every second. If the last beat is older than this limit,
 * the agent is not running.
 */
#define BEAT_LIMIT_NS (5 * CW_NS_PER_S)
/* A rank whose launcher ended within this time is about to end, too. */
#define LAUNCHER_GONE_NS (10 * CW_NS_PER_S)

/*
 * We fill a frame up to this limit. For the numbers of each part we assume their largest size on
 * the wire, in which varints of 64 bits take 10 bytes and an op has 18 fields. We count texts, ops
 * and checkpoints as they are. A node with hundreds of memberships would otherwise omit some that
 * fit.
 */
#define FRAME_BUDGET_BYTES (CW_FRAME_MAX_BYTES - (64u << 10))
#define RANK_BYTES 416u
#define OP_BYTES 160u
#define MEMBER_BYTES 288u
#define P2P_PEER_BYTES 48u
#define CHECKPOINT_BYTES 24u
#define CONNECTION_BYTES 130u
/* A text has a tag of one or two bytes, and its length. */
#define TEXT_BYTES 5u
/*
 * Ops that we search for the op of a connection. NCCL queues a few ops on a connection, and the
 * oldest of them is at its head.
 */
#define CONNECTION_OPS 256u

/*
 * A connection whose steps another process recorded than the one that issued the op (NCCL's PXN).
 * Both processes are on this node.
 */
struct foreign {
	const struct cw_digest_rank *reader;
	const struct cw_connection_sample *sample;
};

/* Limit of foreign connections per digest, so that lists of foreign pids cost no time. */
#define MAX_FOREIGN 4096u

struct maker {
	struct cw_arena *arena;
	struct foreign *foreign; /* by pid of the op's process */
	size_t n_foreign;
	size_t bytes, max_bytes; /* estimated size so far, and its limit */
	bool is_full;            /* a membership had no room */
};

static bool takes(struct maker *m, size_t bytes)
{
	if (m->bytes + bytes > m->max_bytes)
		return false;
	m->bytes += bytes;
	return true;
}

static size_t text_bytes(const char *text)
{
	return text && *text ? TEXT_BYTES + strlen(text) : 0;
}

static size_t rank_bytes(const struct cw_msg_rank *r)
{
	return RANK_BYTES + (r->host_call ? OP_BYTES : 0) + text_bytes(r->rank_source) +
	       text_bytes(r->command) + text_bytes(r->host_activity_by) +
	       text_bytes(r->cause_command) + text_bytes(r->cause_group) +
	       text_bytes(r->nonfinite_input) + text_bytes(r->pod) + text_bytes(r->pod_namespace) +
	       text_bytes(r->container) + text_bytes(r->job_timeout_source) +
	       text_bytes(r->nccl_variables);
}

static size_t member_bytes(const struct cw_msg_member *m)
{
	return MEMBER_BYTES + (m->pending ? OP_BYTES : 0) + (m->last ? OP_BYTES : 0) +
	       text_bytes(m->name) + text_bytes(m->last_error) +
	       m->n_checkpoints * CHECKPOINT_BYTES;
}

static const struct cw_msg_op *copy_op(struct maker *m, const struct cw_digest_rank *p,
				       const struct cw_record_op *op)
{
	struct cw_msg_op copy = cw_ages_of_op(op, p->now_ns);

	copy.stack = 0; /* the number is valid only in the record; windows carry the texts */
	return cw_arena_memdup(m->arena, &copy, 1, sizeof(copy));
}

/* ---- a member ---- */

/*
 * A difference between ranks shows in the next checkpoint, after at most eight calls. If a
 * communicator takes longer than SELDOM_NS for eight calls, we also send the hash after each call.
 */
#define SELDOM_NS CW_NS_PER_S
/*
 * We send the hash after each call for this long after the last call. By then the leader has sent
 * the alert.
 */
#define LAST_HASHES_NS (15 * CW_NS_PER_S)

static int add_p2p(struct maker *m, struct cw_msg_member *out, struct cw_record *record,
		   const struct cw_record_comm *comm)
{
	struct cw_p2p_peer peers[CW_MSG_MAX_P2P];
	size_t n = 0;
	int r;

	if (comm->entry.p2p_block == 0)
		return 0;
	r = cw_record_p2p(record, comm, peers, CW_MSG_MAX_P2P, &n);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !takes(m, n * P2P_PEER_BYTES)) {
		out->known &= ~(uint32_t)CW_KNOWN_P2P;
		return 0;
	}
	out->p2p = cw_arena_memdup(m->arena, peers, n, sizeof(*peers));
	out->n_p2p = (uint32_t)n;
	return out->p2p ? 0 : -ENOMEM;
}

/*
 * Returns the number by which the other end knows the op: coll_seq of a collective, or p2p_seq of a
 * message. 0 = unknown.
 */
static uint64_t seq_of(const struct cw_record_connection *c, const struct cw_record_op *ops,
		       size_t n)
{
	for (size_t i = n; i-- > 0 && c->op_index;)
		if (c->pid ? (uint32_t)ops[i].op_index == c->op_index
			   : ops[i].op_index == c->op_index)
			return c->is_p2p ? ops[i].p2p_seq : ops[i].coll_seq;
	return 0;
}

static struct cw_msg_connection make_connection(const struct cw_digest_rank *reader,
						const struct cw_connection_sample *from,
						const struct cw_record_op *ops, size_t n_ops)
{
	const struct cw_record_connection *c = &from->now;

	return (struct cw_msg_connection){
		.peer = (uint32_t)c->peer,
		.channel = c->channel,
		.flags = (c->is_send ? CW_CONNECTION_SEND : 0u) |
			 (c->is_p2p ? CW_CONNECTION_P2P : 0u) |
			 (c->is_detailed ? CW_CONNECTION_DETAILED : 0u) |
			 (c->pid ? CW_CONNECTION_FOREIGN : 0u),
		.seq = seq_of(c, ops, n_ops),
		.replay = c->replay,
		.open_ops = c->open_ops,
		.steps = c->steps,
		.posted = c->posted,
		.ready = c->ready,
		.handed = c->handed,
		.done = c->done,
		.moved_age_ns = cw_age_ns(reader->now_ns, c->newest_mono_ns),
		.same_since_age_ns = cw_age_ns(reader->now_ns, from->same_since_ns),
		.held_ns = cw_connection_sample_held_ns(from),
		.bytes = c->bytes,
		.bytes_per_s = cw_connection_sample_bytes_per_s(
			from, reader->sampler->connections.taken_ns),
	};
}

static int compare_foreign(const void *a, const void *b)
{
	uint32_t pid_a = ((const struct foreign *)a)->sample->now.pid;
	uint32_t pid_b = ((const struct foreign *)b)->sample->now.pid;

	return (pid_a > pid_b) - (pid_a < pid_b);
}

/* Collects the connections that other processes recorded. Most jobs have none. */
static int find_foreign(struct maker *m, const struct cw_digest_source *source)
{
	size_t max = 0;

	for (uint32_t i = 0; i < source->n_ranks; i++)
		max += source->ranks[i].sampler->connections.n_foreign;
	if (!max)
		return 0;
	if (max > MAX_FOREIGN)
		max = MAX_FOREIGN;
	m->foreign = cw_arena_new_array(m->arena, struct foreign, max);
	if (!m->foreign)
		return -ENOMEM;
	for (uint32_t i = 0; i < source->n_ranks; i++) {
		const struct cw_digest_rank *reader = &source->ranks[i];
		const struct cw_connection_samples *samples = &reader->sampler->connections;

		for (size_t k = 0; k < samples->n && m->n_foreign < max; k++)
			if (samples->v[k].now.pid)
				m->foreign[m->n_foreign++] =
					(struct foreign){ reader, &samples->v[k] };
	}
	qsort(m->foreign, m->n_foreign, sizeof(*m->foreign), compare_foreign);
	return 0;
}

/* Returns the index of the first foreign connection of the process with this pid. */
static size_t first_foreign(const struct maker *m, uint32_t pid)
{
	size_t low = 0, high = m->n_foreign;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->foreign[middle].sample->now.pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_of_member(const struct cw_record_connection *c, const struct cw_record_comm *comm)
{
	return c->comm == (int)comm->index &&
	       (comm->entry.comm_rank < 0 || c->rank == comm->entry.comm_rank);
}

static void add_connection(struct maker *m, struct cw_msg_member *out, uint32_t max,
			   const struct cw_digest_rank *reader,
			   const struct cw_connection_sample *sample,
			   const struct cw_record_op *ops, size_t n_ops, uint64_t *lost)
{
	if (out->n_connections == max || !takes(m, CONNECTION_BYTES))
		++*lost;
	else
		out->connections[out->n_connections++] =
			make_connection(reader, sample, ops, n_ops);
}

/*
 * Lists the connections of the communicator: those that p recorded, and those that other processes
 * recorded for it. Adds the number of connections without room to *lost.
 */
static int add_connections(struct maker *m, struct cw_msg_member *out,
			   const struct cw_digest_rank *p, const struct cw_record_comm *comm,
			   uint64_t *lost)
{
	const struct cw_connection_samples *own = &p->sampler->connections;
	uint32_t pid = (uint32_t)(p->own_pid ? p->own_pid : p->pid), max = 0;
	size_t first = first_foreign(m, pid), end = first, n_ops = 0;
	struct cw_record_op *ops;
	uint64_t older;

	for (size_t k = 0; k < own->n; k++)
		max += !own->v[k].now.pid && is_of_member(&own->v[k].now, comm);
	for (; end < m->n_foreign && m->foreign[end].sample->now.pid == pid; end++)
		max += is_of_member(&m->foreign[end].sample->now, comm);
	if (!max)
		return 0;
	if (max > CW_MSG_MAX_CONNECTIONS)
		max = CW_MSG_MAX_CONNECTIONS;
	ops = cw_arena_new_array(m->arena, struct cw_record_op, CONNECTION_OPS);
	out->connections = cw_arena_new_array(m->arena, struct cw_msg_connection, max);
	if (!ops || !out->connections)
		return -ENOMEM;
	/* Without the ops, the number of each connection's op stays unknown. */
	if (cw_record_window(p->record, comm, ops, CONNECTION_OPS, &n_ops, &older) < 0)
		n_ops = 0;
	for (size_t k = 0; k < own->n; k++)
		if (!own->v[k].now.pid && is_of_member(&own->v[k].now, comm))
			add_connection(m, out, max, p, &own->v[k], ops, n_ops, lost);
	for (size_t k = first; k < end; k++)
		if (is_of_member(&m->foreign[k].sample->now, comm))
			add_connection(m, out, max, m->foreign[k].reader, m->foreign[k].sample, ops,
				       n_ops, lost);
	return 0;
}

/* Returns 0, -ENOMEM, or 1 if the frame has no room for the membership. */
static int make_member(struct maker *m, const struct cw_digest_rank *p,
		       const struct cw_record_comm *comm, const struct cw_track *t,
		       struct cw_msg_member *out, uint64_t *lost)
{
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_checkpoint found[CW_RECORD_CHECKPOINTS];
	size_t n_found;
	int r;

	*out = (struct cw_msg_member){
		.comm_facts = cw_record_comm_facts(comm),
		.member_facts = cw_record_member_facts(comm, &t->state),
		.comm_id = e->comm_id,
		.name = cw_arena_strdup(m->arena, e->name),
		.comm_rank = e->comm_rank,
		.device = e->device,
		.progress_age_ns = cw_age_ns(p->now_ns, t->progress_ns),
		.interval_ns = cw_sampler_interval_ns(t),
		.last_error = cw_arena_strdup(m->arena, e->last_error),
	};
	/* The sampler read these counters and the ops together, so they match. */
	out->coll_entered = t->last.coll_entered;
	out->coll_returned = t->last.coll_returned;
	out->coll_reached = t->last.coll_reached;
	out->coll_completed = t->last.coll_completed;
	out->hash_seq = e->coll_returned;
	out->hash = e->hash;
	if (t->is_hash_stable && !(e->flags & CW_REC_COMM_UNCOUNTED))
		out->known |= CW_KNOWN_HASH;
	if (!out->name || !out->last_error)
		return -ENOMEM;
	if (t->state.has_pending && !(out->pending = copy_op(m, p, &t->state.pending)))
		return -ENOMEM;
	if (t->state.has_last && !(out->last = copy_op(m, p, &t->state.last)))
		return -ENOMEM;
	/* A record that we cannot read yields no checkpoints. */
	if (cw_record_checkpoints(p->record, comm, found, &n_found) >= 0) {
		out->checkpoints = cw_arena_memdup(m->arena, found, n_found, sizeof(*found));
		out->n_checkpoints = (uint32_t)n_found;
		if (!out->checkpoints)
			return -ENOMEM;
	}
	if (!takes(m, member_bytes(out)))
		return 1;
	if (t->n_commits && p->now_ns - t->checkpoint_ns >= SELDOM_NS &&
	    p->now_ns - t->commits_ns <= LAST_HASHES_NS &&
	    takes(m, t->n_commits * CHECKPOINT_BYTES)) {
		out->last_hashes =
			cw_arena_memdup(m->arena, t->commits, t->n_commits, sizeof(*t->commits));
		out->n_last_hashes = t->n_commits;
		if (!out->last_hashes)
			return -ENOMEM;
	}
	r = add_p2p(m, out, p->record, comm);
	return r < 0 ? r : add_connections(m, out, p, comm, lost);
}

static int add_members(struct maker *m, const struct process_ranks *of, bool want_pending,
		       struct cw_msg_rank *ranks)
{
	const struct cw_digest_rank *p = of->process;
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(p->record, &n);
	for (size_t i = 0; i < n; i++) {
		const struct cw_track *t = cw_sampler_find(p->sampler, &comms[i]);
		struct cw_msg_rank *rank =
			&ranks[of->first + process_ranks_with(of, &comms[i].entry)];
		int r;

		if (!t || !t->has_state || t->state.has_pending != want_pending)
			continue;
		if (rank->n_members >= CW_MSG_MAX_MEMBERS || m->is_full) {
			rank->dropped++;
			continue;
		}
		r = make_member(m, p, &comms[i], t, &rank->members[rank->n_members],
				&rank->connections_lost);
		if (r < 0)
			return r;
		if (r > 0) {
			rank->dropped++;
			/* Each further attempt would cost time and memory. */
			m->is_full = true;
			continue;
		}
		rank->n_members++;
	}
	return 0;
}

/* ---- a rank ---- */

static uint32_t rank_flags(const struct cw_digest_rank *p, const struct cw_rec_header *h)
{
	bool is_dead = cw_digest_rank_is_dead(p);
	uint32_t flags = 0;

	if (p->sampler->is_ok && h->state == 1)
		flags |= CW_RANKF_HAS_RECORD;
	if (h->has & CW_REC_HAS_PYTHON)
		flags |= CW_RANKF_PYTHON;
	if (!is_dead && h->beat_ns && cw_age_ns(p->now_ns, (int64_t)h->beat_ns) < BEAT_LIMIT_NS)
		flags |= CW_RANKF_BEATING;
	if (p->is_d_state)
		flags |= CW_RANKF_D_STATE;
	if (p->is_child_busy)
		flags |= CW_RANKF_BUSY_CHILD;
	if (p->is_frozen)
		flags |= CW_RANKF_FROZEN;
	if (h->is_timeout_assumed && cw_record_job_timeout_ns(h))
		flags |= CW_RANKF_TIMEOUT_ASSUMED;
	if (p->is_oom_killed)
		flags |= CW_RANKF_OOM_KILLED;
	if (!is_dead && p->death.launcher_gone_ns &&
	    p->now_ns - p->death.launcher_gone_ns < LAUNCHER_GONE_NS)
		flags |= CW_RANKF_SHUTDOWN;
	return flags;
}

static int add_nonfinite_input(struct maker *m, const struct process_ranks *of, uint32_t nth,
			       struct cw_msg_rank *out)
{
	const struct cw_nonfinite_input *input = of->process->nonfinite_input;
	const struct cw_record_comm *comms;
	char text[256];
	uint32_t used_by = 0; /* index of the process's rank that used the tensor as input */
	size_t n, i = 0;

	out->nonfinite_input = "";
	if (!input || !input->seen_ns)
		return 0;
	comms = cw_record_comms(of->process->record, &n);
	while (i < n && (comms[i].index != input->tensor_stats.comm ||
			 comms[i].entry.generation != input->tensor_stats.comm_generation))
		i++;
	if (i < n)
		used_by = process_ranks_with(of, &comms[i].entry);
	if (used_by != nth)
		return 0;
	cw_nonfinite_input_format(input, out->rank, text, sizeof(text));
	out->nonfinite_input_age_ns = cw_age_ns(of->process->now_ns, input->seen_ns);
	out->nonfinite_input = cw_arena_strdup(m->arena, text);
	return out->nonfinite_input ? 0 : -ENOMEM;
}

/* A rank that has made no call for this long may be stuck, or other ranks may wait for it. */
#define NO_CALL_NS (2 * CW_NS_PER_S)

/*
 * Adds the NCCL_* variables of the rank. They never change, and they matter only for a hang, so a
 * rank that moves does not send them.
 */
static int add_variables(struct maker *m, const struct cw_digest_rank *p, bool is_in_host_call,
			 struct cw_msg_rank *out)
{
	struct cw_rec_variables found = { .omitted = 0 };

	if (p->sampler->stands_still || is_in_host_call ||
	    cw_age_ns(p->now_ns, p->sampler->host_ns) >= NO_CALL_NS)
		/* A record that we cannot read yields no variables. */
		(void)cw_record_nccl_variables(p->record, &found);
	out->nccl_variables_omitted = found.omitted;
	out->nccl_variables = cw_arena_strdup(m->arena, found.text);
	return out->nccl_variables ? 0 : -ENOMEM;
}

static int make_rank(struct maker *m, const struct process_ranks *of, uint32_t nth,
		     struct cw_msg_rank *out)
{
	const struct cw_digest_rank *p = of->process;
	const struct cw_rec_header *h = cw_record_header(p->record);
	const char *timeout_source = cw_record_job_timeout_source(h);
	int64_t call_age_ns = cw_age_ns(p->now_ns, p->sampler->host_ns);
	struct cw_record_op host_call = cw_record_host_call(p->record);
	struct cw_pod pod = cw_record_pod(h);
	bool is_dead = cw_digest_rank_is_dead(p);
	const struct cw_record_comm *comms;
	int32_t device = -1;
	size_t n_comms;

	comms = cw_record_comms(p->record, &n_comms);
	for (size_t i = 0; i < n_comms && device < 0; i++)
		device = comms[i].entry.device >= 0 ? comms[i].entry.device : -1;
	cw_pod_complete(&pod, p->pod);
	*out = (struct cw_msg_rank){
		.rank = process_ranks_number(of, nth, h->rank_label, h->world_size_label),
		.world_size = process_ranks_count(of, h->world_size_label),
		.local_rank = process_ranks_number(of, nth, h->local_rank_label, 0),
		.rank_source = cw_arena_strdup(m->arena, h->rank_label_source),
		.pid = p->pid,
		.own_pid = p->own_pid,
		.start_ticks = p->start_ticks,
		.started_age_ns = p->started_age_ns,
		.device = of->n > 1 ? of->places[nth].device : device,
		.uid = p->uid,
		.liveness = p->liveness,
		.exit_code = p->death.end.exit_code,
		.term_signal = p->death.end.term_signal,
		.flags = rank_flags(p, h),
		.ended_age_ns = is_dead ? cw_age_ns(p->now_ns, p->death.ended_ns) : 0,
		.sampled_age_ns = is_dead ? 0 : cw_age_ns(p->now_ns, p->sampler->sampled_ns),
		.nccl_version = h->nccl_version,
		.env_hash = h->env_hash,
		.machine = CW_MACHINE_OWN,
		.dropped = cw_record_dropped(h),
		.connections_lost = p->sampler->connections.lost,
		.host_wait = p->host_wait,
		.job_timeout_ns = (uint64_t)cw_record_job_timeout_ns(h),
		.net_retry_ns = (uint64_t)cw_record_net_retry_ns(h),
		.command = p->command ? p->command : "",
		.cause_facts = p->cause ? p->cause->facts : (struct cw_cause_facts){ 0 },
		.cause_command = p->cause ? p->cause->command : "",
		.cause_group = p->cause ? p->cause->group : "",
		.end_by = is_dead ? p->end_by : 0,
		.end_sender = is_dead ? p->end_sender : 0,
		.host_activity_age_ns =
			p->host_activity_ns ? cw_age_ns(p->now_ns, p->host_activity_ns) : -1,
		.host_activity_by = p->host_activity_by ? p->host_activity_by : "",
		.members = cw_arena_new_array(m->arena, struct cw_msg_member, n_comms),
		.pod = cw_arena_strdup(m->arena, pod.name),
		.pod_namespace = cw_arena_strdup(m->arena, pod.ns),
		.container = cw_arena_strdup(m->arena, pod.container),
		.job_timeout_source = cw_arena_strdup(m->arena, timeout_source),
	};
	if (!out->rank_source || !out->members || !out->pod || !out->pod_namespace ||
	    !out->container || !out->job_timeout_source ||
	    add_nonfinite_input(m, of, nth, out) < 0 ||
	    add_variables(m, p, host_call.kind != CW_OP_NONE, out) < 0)
		return -ENOMEM;
	/*
	 * A call into NCCL counts as host activity even without CPU time. With blocking
	 * synchronisation, a rank that waits for a GPU uses no CPU time. Without this rule we would
	 * report such a rank as stalled too early.
	 */
	if (p->sampler->host_ns &&
	    (out->host_activity_age_ns < 0 || call_age_ns < out->host_activity_age_ns)) {
		out->host_activity_age_ns = call_age_ns;
		out->host_activity_by = "nccl";
	}
	if (host_call.kind == CW_OP_NONE)
		return 0;
	out->host_call_comm_id = h->host_call_comm_id;
	out->host_call = copy_op(m, p, &host_call);
	return out->host_call ? 0 : -ENOMEM;
}

/*
 * Marks the deaths that belong to a shutdown. We judge all deaths together, because only their
 * comparison shows a shutdown.
 */
static int mark_shutdowns(struct maker *m, const struct cw_digest_source *source,
			  const struct process_ranks *of, struct cw_msg_rank *ranks)
{
	struct cw_death *deaths = cw_arena_new_array(m->arena, struct cw_death, source->n_ranks);

	if (!deaths)
		return -ENOMEM;
	for (uint32_t i = 0; i < source->n_ranks; i++) {
		const struct cw_digest_rank *p = &source->ranks[i];

		deaths[i] = p->death;
		deaths[i].is_own = p->is_oom_killed || p->end_by == CW_END_BY_NOBODY ||
				   p->end_by == CW_END_BY_ITSELF || p->end_by == CW_END_BY_KERNEL;
	}
	for (uint32_t i = 0; i < source->n_ranks; i++) {
		if (!cw_death_is_shutdown(&deaths[i], deaths, source->n_ranks))
			continue;
		for (uint32_t k = 0; k < of[i].n; k++)
			ranks[of[i].first + k].flags |= CW_RANKF_SHUTDOWN;
	}
	return 0;
}

/*
 * Gives each process its range of ranks in the digest, and returns the number of ranks. Receivers
 * refuse a digest with more ranks than CW_MSG_MAX_RANKS. A process beyond this limit counts as one
 * rank.
 */
static uint32_t share_out(const struct cw_digest_source *source, struct process_ranks *of)
{
	uint32_t n = source->n_ranks, first = 0;

	for (uint32_t i = 0; i < source->n_ranks; i++) {
		process_ranks_find(&source->ranks[i], &of[i]);
		if (n + source->n_unregistered + of[i].n - 1 > CW_MSG_MAX_RANKS)
			of[i].n = 1;
		n += of[i].n - 1;
		of[i].first = first;
		first += of[i].n;
	}
	return n;
}

static int make_ranks(struct maker *m, const struct cw_digest_source *source,
		      struct cw_msg_digest *msg)
{
	struct process_ranks *of =
		cw_arena_new_array(m->arena, struct process_ranks, source->n_ranks);
	uint32_t n;
	int r = 0;

	if (!of)
		return -ENOMEM;
	n = share_out(source, of);
	msg->ranks = cw_arena_new_array(m->arena, struct cw_msg_rank, n + source->n_unregistered);
	if (!msg->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < source->n_ranks; i++)
		for (uint32_t k = 0; k < of[i].n && r == 0; k++) {
			struct cw_msg_rank *rank = &msg->ranks[of[i].first + k];

			r = make_rank(m, &of[i], k, rank);
			/* We never omit a rank, although 4,096 ranks do not fit. */
			if (r == 0)
				(void)takes(m, rank_bytes(rank));
		}
	for (uint32_t i = 0; i < source->n_unregistered; i++)
		(void)takes(m, rank_bytes(&source->unregistered[i]));
	for (uint32_t i = 0; i < source->n_ranks && r == 0; i++)
		r = add_members(m, &of[i], true, msg->ranks);
	for (uint32_t i = 0; i < source->n_ranks && r == 0; i++)
		r = add_members(m, &of[i], false, msg->ranks);
	if (r == 0)
		r = mark_shutdowns(m, source, of, msg->ranks);
	/* Add the ranks that have not called NCCL. They are in no communicator. */
	for (uint32_t i = 0; i < source->n_unregistered; i++)
		msg->ranks[n + i] = source->unregistered[i];
	msg->n_ranks = n + source->n_unregistered;
	return r;
}

int cw_digest_make(const struct cw_digest_source *source, struct cw_digest *ret)
{
	struct maker m = { .arena = &ret->arena,
			   .max_bytes = source->is_sent ? FRAME_BUDGET_BYTES : SIZE_MAX / 2 };
	const char *policy = "";
	int r;

	for (uint32_t i = 0; i < source->n_ranks && !*policy; i++)
		policy = cw_record_header(source->ranks[i].record)->job_policy;
	*ret = (struct cw_digest){
		.msg = {
			.job_hash = cw_job_id_hash(source->job),
			.job_key = source->job->key,
			.label = source->job->label,
			.uid = source->job->uid,
			.node = source->node,
			.epoch = source->epoch,
			.number = source->number,
			.untracked = source->untracked,
		},
	};
	/* A copy, because some readers close the records before they use the digest. */
	ret->msg.policy = cw_arena_strdup(m.arena, policy);
	r = ret->msg.policy ? find_foreign(&m, source) : -ENOMEM;
	if (r == 0)
		r = make_ranks(&m, source, &ret->msg);
	if (r < 0)
		cw_digest_fini(ret);
	return r;
}

void cw_digest_fini(struct cw_digest *digest)
{
	cw_arena_fini(&digest->arena);
	*digest = (struct cw_digest){ 0 };
}
