/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/wording.h"

#include <errno.h>
#include <string.h>

#include "analysis/wording/also.h"
#include "analysis/wording/arg.h"
#include "analysis/wording/reason.h"
#include "analysis/wording/ruled_out.h"
#include "model/cause.h"

/* ---- the text of an alert: its first sentence names the culprit ---- */

/*
 * The summary names the ranks of at most NODES_WITH_RANKS nodes, and lists at most NODES_LISTED. A
 * job with more nodes has them in its document.
 */
#define NODES_WITH_RANKS 3u
#define NODES_LISTED 4096u
/* The summary names at most so many further calls that some members completed and others not. */
#define UNFINISHED_LISTED 3u

struct words {
	struct cw_arg who, victims, call, comm, since;
	/*
	 * there: the culprits that are members of the verdict's comm. elsewhere: the culprits that
	 * some ranks wait for on another comm. All other culprits only share a process with these.
	 */
	struct cw_arg there, elsewhere;
	uint32_t n_there, one_there, n_elsewhere;
	struct cw_clause waiting; /* ". Ranks 0-2 have been waiting for it for 12 s.", or "." */
};

static uint32_t job_size(const struct cw_snapshot *snap)
{
	return snap->n_ranks > snap->ranks_expected ? snap->n_ranks : snap->ranks_expected;
}

/*
 * Returns "the other 7 ranks" if `ranks` and the n_named ranks are all n_all ranks of the job.
 * Otherwise returns "ranks 0-2".
 */
static struct cw_arg arg_others(const struct diagnosis *diag, const uint32_t *ranks, uint32_t n,
				uint32_t n_named, uint32_t n_all)
{
	struct cw_arg others = arg_ranks(diag, ranks, n);

	others.ranks.is_rest = n_named && n + n_named == n_all;
	return others;
}

static void say_waiting(const struct diagnosis *diag, const struct words *w, struct cw_arg ranks,
			const struct cw_clause *where, struct cw_clause *clause)
{
	if (diag->v->waiting_since_ns)
		cw_say(clause, has_waited, ranks, arg_clause(where), w->since);
	else
		cw_say(clause, is_waiting, ranks, arg_clause(where));
}

/* True if each victim waits in the verdict's call, and none waits in another call behind it. */
static bool all_wait_in(const struct diagnosis *diag)
{
	const struct gate *gate;
	uint32_t n = 0;

	if (diag->main->gate == CW_SNAP_NONE)
		return false;
	gate = &diag->s->g.gates[diag->main->gate];
	/* All waiters of the gate are victims or culprits. */
	for (uint32_t i = 0; i < gate->n_waiters; i++)
		n += !diag->is_culprit[gate->waiters[i]];
	return n >= diag->v->n_victims;
}

/*
 * Returns " in all_reduce #133 on world". Adds " or behind it" if some ranks wait in other calls.
 */
static struct cw_clause in_call(const struct diagnosis *diag, const struct words *w)
{
	struct cw_clause where = clause_of(diag);

	if (all_wait_in(diag))
		cw_say(&where, in_call, w->call, w->comm);
	else
		cw_say(&where, in_call_or_behind, w->call, w->comm);
	return where;
}

/* Returns " in it", or " in it or behind it", for a call that the sentence has already named. */
static struct cw_clause in_it(const struct diagnosis *diag)
{
	struct cw_clause where = clause_of(diag);

	if (all_wait_in(diag))
		cw_say(&where, in_it);
	else
		cw_say(&where, in_it_or_behind);
	return where;
}

/* Returns the number of culprits that the previous sentence names. */
static uint32_t n_named(const struct cw_verdict *v, const struct words *w)
{
	return v->verdict_class == CW_CLASS_NEVER_ENTERED ? w->n_there + w->n_elsewhere
							  : v->n_culprits;
}

/*
 * Fills w->waiting: the end of the first sentence, and a sentence that says which ranks wait, where
 * or for which rank, and since when.
 */
static void find_waiting(const struct diagnosis *diag, struct words *w,
			 const struct cw_clause *where)
{
	const struct cw_verdict *v = diag->v;
	struct cw_clause sentence = clause_of(diag);

	w->waiting = clause_of(diag);
	if (!v->n_victims || diag->main->ended) { /* say_ended() names the waiting ranks */
		cw_say(&w->waiting, end);
		return;
	}
	say_waiting(
		diag, w,
		arg_others(diag, v->victims, v->n_victims, n_named(v, w), job_size(diag->s->snap)),
		where, &sentence);
	cw_say(&w->waiting, that_waits, arg_clause(&sentence));
}

static bool is_member(const struct cw_snapshot *snap, uint32_t comm, uint32_t rank)
{
	const struct cw_snap_comm *c = comm < snap->n_comms ? &snap->comms[comm] : NULL;

	for (uint32_t i = 0; c && i < c->nranks; i++)
		if (c->members[i].rank == rank)
			return true;
	return false;
}

static void find_culprits_elsewhere(const struct diagnosis *diag, uint32_t *ranks, struct words *w)
{
	const struct cw_verdict *v = diag->v;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (!is_member(diag->s->snap, v->comm, v->culprits[i].rank) &&
		    waitgraph_is_missing(&diag->s->g, v->culprits[i].rank))
			ranks[w->n_elsewhere++] = v->culprits[i].rank;
	w->elsewhere = arg_ranks(diag, ranks, w->n_elsewhere);
}

static void find_culprits(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);
	uint32_t n = ranks ? v->n_culprits : 0;

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = v->culprits[i].rank;
	w->who = arg_who(diag, ranks, n);
	for (uint32_t i = 0; i < n; i++)
		if (is_member(snap, v->comm, v->culprits[i].rank))
			ranks[w->n_there++] = v->culprits[i].rank;
	if (!w->n_there || w->n_there == n) {
		w->n_there = n;
		w->there = w->who;
		w->one_there = n == 1 ? ranks[0] : CW_SNAP_NONE;
		return;
	}
	w->there = arg_who(diag, ranks, w->n_there);
	w->one_there = w->n_there == 1 ? ranks[0] : CW_SNAP_NONE;
	find_culprits_elsewhere(diag, ranks, w);
}

static void find_words(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	struct cw_clause whom = clause_of(diag);
	uint32_t n;

	find_culprits(diag, w);
	w->victims = arg_ranks(diag, v->victims, v->n_victims);
	if (v->n_sides && v->sides[0].has_op)
		w->call = arg_call(diag, v->comm, &v->sides[0].op);
	else if (diag->main->gate != CW_SNAP_NONE)
		w->call = arg_kind(diag->s->g.gates[diag->main->gate].op_kind);
	else
		w->call = arg_call(diag, v->comm, NULL);
	w->comm = arg_comm(diag, v->comm);
	w->since = arg_since(diag, v->waiting_since_ns);
	n = n_named(v, w);
	if (n == 1)
		cw_say(&whom, for_it);
	else if (n)
		cw_say(&whom, for_them);
	find_waiting(diag, w, &whom);
}

/* Fills w->waiting like find_waiting(), without saying where the ranks wait. */
static void find_who_waits(const struct diagnosis *diag, struct words *w)
{
	struct cw_clause nowhere = clause_of(diag);

	find_waiting(diag, w, &nowhere);
}

/*
 * Writes the summary for a differing call that has left all windows. We still know which ranks
 * differ from which.
 */
static void summarize_histories(const struct diagnosis *diag, struct words *w)
{
	const struct alignment *al = &diag->s->alignments[diag->main->comm];
	struct cw_verdict *v = diag->v;
	struct cw_clause where = clause_of(diag);

	if (v->after_seq)
		cw_say(&where, between_calls, arg_count(v->after_seq), arg_count(v->coll_seq));
	else
		cw_say(&where, before_call, arg_count(v->coll_seq));
	find_who_waits(diag, w);
	if (al->majority != ALIGN_NO_SIDE)
		cw_say(&v->said, made_other_call, w->who,
		       arg_others(diag, al->sides[0].ranks, al->sides[0].n_ranks, v->n_culprits,
				  diag->s->snap->comms[v->comm].nranks),
		       w->comm, arg_clause(&where));
	else
		cw_say(&v->said, made_different_calls,
		       arg_ranks(diag, al->sides[0].ranks, al->sides[0].n_ranks),
		       arg_ranks(diag, al->sides[1].ranks, al->sides[1].n_ranks), w->comm,
		       arg_clause(&where));
	cw_clause_append(&v->said, &w->waiting);
}

/* Writes "rank 3 loaded NCCL 2.21.5, but ranks 0-2 loaded NCCL 2.28.9; …". */
static void summarize_setup(const struct diagnosis *diag, const struct words *w)
{
	const struct alignment *al = diag->main->setup;
	const struct cw_side *usual = &al->sides[0], *odd = &al->sides[1];
	struct cw_verdict *v = diag->v;
	struct cw_clause its = clause_of(diag), theirs = clause_of(diag);
	struct cw_arg odd_ranks = arg_ranks(diag, odd->ranks, odd->n_ranks);
	struct cw_arg usual_ranks = arg_ranks(diag, usual->ranks, usual->n_ranks);

	say_trait(diag, v->comm, odd->ranks[0], v->detail, &its);
	say_trait(diag, v->comm, usual->ranks[0], v->detail, &theirs);
	if (v->detail == CW_DETAIL_ENVIRONMENT || v->detail == CW_DETAIL_ORDER)
		cw_say(&v->said, setup_differs, odd_ranks, arg_clause(&its), usual_ranks, w->call,
		       w->comm, w->since);
	else
		cw_say(&v->said, setups_differ, odd_ranks, arg_clause(&its), usual_ranks,
		       arg_clause(&theirs), w->call, w->comm, w->since);
}

/* Says the argument of a call that `detail` names: "count 512". Says nothing for other details. */
static void say_argument(enum cw_detail detail, const struct cw_op *op, struct cw_clause *clause)
{
	if (detail == CW_DETAIL_COUNT)
		cw_say(clause, count, arg_count(op->count));
	else if (detail == CW_DETAIL_DTYPE)
		cw_say(clause, type, arg_number(CW_ARG_DTYPE, op->dtype));
	else if (detail == CW_DETAIL_REDOP)
		cw_say(clause, operator, arg_number(CW_ARG_REDOP, op->redop));
	else if (detail == CW_DETAIL_ROOT)
		cw_say(clause, root, arg_number(CW_ARG_NUMBER, op->root));
}

static void summarize_sides(const struct diagnosis *diag, const struct words *w, struct cw_arg most)
{
	struct cw_verdict *v = diag->v;
	const struct cw_op *odd = &v->sides[1].op, *usual = &v->sides[0].op;
	struct cw_clause its = clause_of(diag), theirs = clause_of(diag);

	say_argument(v->detail, odd, &its);
	say_argument(v->detail, usual, &theirs);
	if (v->detail == CW_DETAIL_KIND && odd->kind != usual->kind)
		cw_say(&v->said, called_other_kind, w->who, arg_kind(odd->kind),
		       arg_count(v->coll_seq), w->comm, most, arg_kind(usual->kind));
	else if (odd->kind == usual->kind && !cw_clause_is_same(&its, &theirs))
		cw_say(&v->said, called_with, w->who, arg_kind(odd->kind), arg_count(v->coll_seq),
		       w->comm, arg_clause(&its), most, arg_clause(&theirs));
	else
		cw_say(&v->said, called_differently, w->who, arg_op(odd), w->comm, most,
		       arg_op(usual), arg_number(CW_ARG_DETAIL, (int32_t)v->detail));
}

/* True for "killed itself (…)". This text needs no "was", and fits one process only. */
static bool is_own_deed(const struct cw_snap_rank *r)
{
	return r->cause_kind == CW_CAUSE_KILLED && r->cause_by == CW_END_BY_ITSELF;
}

/*
 * Returns "was killed by SIGKILL sent by …". Returns "ended" if the cause is not known. Some causes
 * have a verb of their own: "killed itself", "exited".
 */
static struct cw_clause how_it_ended(const struct diagnosis *diag, const struct cw_snap_rank *r,
				     bool are_many)
{
	struct cw_clause how = reason_of_death(diag, r), verb = clause_of(diag);

	if (!how.n)
		cw_say(&how, ended);
	else if (r->liveness != CW_LIVE_KILLED || is_own_deed(r))
		return how;
	else if (are_many)
		cw_say(&verb, were, arg_clause(&how));
	else
		cw_say(&verb, was, arg_clause(&how));
	return verb.n ? verb : how;
}

/* Says " After that rank 3 exited with status 1, and ranks 0-1 have been waiting for 12 s." */
static void say_ended(const struct diagnosis *diag, const struct words *w)
{
	const struct cw_snap_rank *r = diag->main->ended;
	struct cw_clause how = how_it_ended(diag, r, false), waiting = clause_of(diag);
	struct cw_clause nowhere = clause_of(diag);
	struct cw_verdict *v = diag->v;

	cw_say(&v->said, after_that, arg_process(diag, (uint32_t)(r - diag->s->snap->ranks)),
	       arg_clause(&how));
	if (v->n_victims) {
		say_waiting(diag, w, w->victims, &nowhere, &waiting);
		cw_say(&v->said, and_then, arg_clause(&waiting));
	}
	cw_say(&v->said, end);
}

static void summarize_mismatch(const struct diagnosis *diag, struct words *w)
{
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	struct cw_verdict *v = diag->v;
	struct cw_arg most;

	if (diag->main->setup) {
		summarize_setup(diag, w);
		return;
	}
	if (!al->knows_call) {
		summarize_histories(diag, w);
		return;
	}
	find_who_waits(diag, w);
	if (al->majority == ALIGN_NO_SIDE) {
		cw_say(&v->said, disagree_on_call, w->comm, arg_count(v->coll_seq),
		       arg_ranks(diag, v->sides[0].ranks, v->sides[0].n_ranks),
		       arg_op(&v->sides[0].op),
		       arg_ranks(diag, v->sides[1].ranks, v->sides[1].n_ranks),
		       arg_op(&v->sides[1].op), arg_number(CW_ARG_DETAIL, (int32_t)v->detail));
		return;
	}
	most = arg_others(diag, v->sides[0].ranks, v->sides[0].n_ranks, v->n_culprits,
			  diag->s->snap->comms[v->comm].nranks);
	if (v->detail == CW_DETAIL_MISSING) {
		cw_say(&v->said, skipped, w->who, arg_op(&v->sides[0].op), w->comm, most,
		       arg_op(&v->sides[1].op));
		cw_clause_append(&v->said, &w->waiting);
	} else if (v->detail == CW_DETAIL_EXTRA) {
		cw_say(&v->said, made_extra_call, w->who, w->comm, arg_op(&v->sides[1].op), most,
		       arg_op(&v->sides[0].op));
		cw_clause_append(&v->said, &w->waiting);
	} else {
		summarize_sides(diag, w, most);
	}
}

/* Of a group of messages, the argument is the message with that rank. */
static struct cw_arg arg_call_with(const struct diagnosis *diag, const struct cw_wait *link,
				   uint32_t rank)
{
	const struct cw_op *op = NULL;

	if (cw_op_is_p2p(link->op.kind))
		op = engine_context_call_with(diag->s, link->comm, &link->op, link->rank, rank);
	return arg_call(diag, link->comm, op ? op : &link->op);
}

static void summarize_cycle(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	cw_say(&v->said, deadlock);
	for (uint32_t i = 0; i < v->n_chain; i++) {
		uint32_t next_rank = v->chain[(i + 1) % v->n_chain].rank;
		struct cw_arg call = arg_call_with(diag, &v->chain[i], next_rank);
		struct cw_arg comm = arg_comm(diag, v->chain[i].comm);
		struct cw_arg next = arg_rank(diag, next_rank);

		/*
		 * After four ranks of the cycle, the text gives only the number of all its ranks.
		 */
		if (i == 4) {
			cw_say(&v->said, and_so_on, arg_count(v->n_chain));
			return;
		}
		if (i)
			cw_say(&v->said, which_waits_in_for, call, comm, next);
		else
			cw_say(&v->said, waits_in_for, arg_rank(diag, v->chain[0].rank), call, comm,
			       next);
	}
	cw_say(&v->said, end);
}

/*
 * Says " on node-a (ranks 1,3) and node-b (ranks 5,7)". Says " on node-[a-d]" for more nodes, and "
 * on their nodes" for recordings, whose nodes have no names.
 */
static void say_nodes(const struct diagnosis *diag, const struct gate *gate)
{
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_clause *said = &diag->v->said;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, gate->n_waiters);
	uint32_t *nodes = cw_arena_new_array(&diag->s->arena, uint32_t, snap->n_nodes);
	bool *is_listed = cw_arena_new_array(&diag->s->arena, bool, snap->n_nodes);
	uint32_t n_nodes = 0;

	if (!ranks || !nodes || !is_listed)
		return;
	for (uint32_t i = 0; i < gate->n_waiters; i++) {
		uint32_t node = snap->ranks[gate->waiters[i]].node;

		if (node >= snap->n_nodes)
			return;
		if (!is_listed[node])
			nodes[n_nodes++] = node;
		is_listed[node] = true;
	}
	if (n_nodes > NODES_WITH_RANKS) {
		if (n_nodes <= NODES_LISTED && *arg_host(diag, nodes[0]).text)
			cw_say(said, on_hosts, arg_hosts(diag, nodes, n_nodes));
		else
			cw_say(said, on_their_nodes);
		return;
	}
	for (uint32_t k = 0; k < n_nodes; k++) {
		struct cw_arg host = arg_host(diag, nodes[k]), there;
		uint32_t n = 0;

		for (uint32_t i = 0; i < gate->n_waiters; i++)
			if (snap->ranks[gate->waiters[i]].node == nodes[k])
				ranks[n++] = gate->waiters[i];
		there = arg_ranks(diag, ranks, n);
		if (k == 0)
			cw_say(said, on_node, host, there);
		else if (k + 1 == n_nodes)
			cw_say(said, and_node, host, there);
		else
			cw_say(said, comma_node, host, there);
	}
}

static bool is_inside(const struct gate *gate, uint32_t rank)
{
	for (uint32_t i = 0; i < gate->n_waiters; i++)
		if (gate->waiters[i] == rank)
			return true;
	return false;
}

/*
 * Writes the summary for a stopped process. It also stops the threads that move the data of the
 * other ranks.
 */
static void summarize_halted(const struct diagnosis *diag, struct words *w,
			     const struct cw_clause *how)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;

	if (is_inside(gate, v->culprits[0].rank)) {
		find_who_waits(diag, w);
		cw_say(&v->said, halted_inside, w->who, arg_clause(how), w->call, w->comm);
		cw_clause_append(&v->said, &w->waiting);
		return;
	}
	cw_say(&v->said, halted_with_part_done, w->who, arg_clause(how), w->call, w->comm,
	       arg_ranks(diag, gate->waiters, gate->n_waiters), w->since);
	if (v->n_victims > gate->n_waiters)
		cw_say(&v->said, more_wait_behind_them, arg_count(v->n_victims - gate->n_waiters));
}

/* Writes the summary of a connection that moves no data, or too few. */
static void summarize_link(const struct diagnosis *diag, struct words *w)
{
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	const struct cw_link *l = &v->link;
	struct cw_arg from = arg_rank(diag, l->sender), to = arg_rank(diag, l->receiver);
	struct cw_arg from_host = arg_host(diag, snap->ranks[l->sender].node);
	struct cw_arg to_host = arg_host(diag, snap->ranks[l->receiver].node);
	struct cw_arg held = { .kind = CW_ARG_DURATION, .duration = { .ns = l->held_ns } };

	if (v->detail == CW_DETAIL_CONNECTION) {
		cw_say(&v->said, connection_is_silent, from, from_host, to, to_host,
		       arg_count(l->channel), w->call, w->comm);
	} else {
		cw_say(&v->said, connection_is_slow, from, from_host, to, to_host,
		       arg_count(l->channel), w->call, w->comm);
		cw_say(&v->said, step_takes, held);
		if (l->bytes_per_s)
			cw_say(&v->said, at_rate, arg_count(l->bytes_per_s));
	}
	cw_clause_append(&v->said, &w->waiting);
	if (v->blind_spots & CW_BLIND_OF_CALL)
		cw_say(&v->said, check_link, from_host, to_host);
	else
		cw_say(&v->said, not_program_but_link, from_host, to_host);
	if (l->side == CW_LINK_SIDE_SENDER)
		cw_say(&v->said, sender_first);
	else if (l->side == CW_LINK_SIDE_RECEIVER)
		cw_say(&v->said, receiver_first);
	cw_say(&v->said, end);
}

/* Writes the summary of a fault that the connections show. */
static void summarize_connections(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct cw_clause where = in_it(diag);

	find_waiting(diag, w, &where);
	if (v->link.is_set) {
		summarize_link(diag, w);
		return;
	}
	if (v->detail == CW_DETAIL_GPU_NOT_CONSUMING)
		cw_say(&v->said, gpu_does_not_consume, w->who, w->call, w->comm);
	else if (v->detail == CW_DETAIL_GPU_NOT_PRODUCING)
		cw_say(&v->said, gpu_does_not_produce, w->who, w->call, w->comm);
	else
		cw_say(&v->said, proxy_lacks_part, w->who, w->call, w->comm);
	cw_clause_append(&v->said, &w->waiting);
	if (v->detail == CW_DETAIL_NOT_IN_PROXY)
		cw_say(&v->said, pool_may_be_exhausted);
	else
		cw_say(&v->said, check_gpu,
		       arg_host(diag, diag->s->snap->ranks[v->culprits[0].rank].node));
}

/* Says "rank 2 has been receiving from rank 1 on pp for 12 s". */
static void say_half(const struct diagnosis *diag, const struct words *w, const struct cw_op *op)
{
	struct cw_arg one = arg_rank(diag, diag->main->rank);
	struct cw_arg other = arg_rank(diag, diag->main->partner);
	struct cw_clause *said = &diag->v->said;
	bool is_send = op->kind == CW_OP_SEND, has_time = diag->v->waiting_since_ns != 0;

	if (is_send && has_time)
		cw_say(said, has_sent_to, one, other, w->comm, w->since);
	else if (is_send)
		cw_say(said, sends_to, one, other, w->comm);
	else if (has_time)
		cw_say(said, has_received_from, one, other, w->comm, w->since);
	else
		cw_say(said, receives_from, one, other, w->comm);
}

/* Says that a rank lists no counterpart of this call. */
static void say_unlisted(struct cw_arg rank, const struct cw_op *op, struct cw_clause *said)
{
	if (op->kind == CW_OP_SEND)
		cw_say(said, receive_not_listed, rank);
	else
		cw_say(said, send_not_listed, rank);
}

/* True for a message of a recording that stands because of one of its two ranks. */
static bool is_about_pair(const struct diagnosis *diag)
{
	return diag->main->partner != CW_SNAP_NONE &&
	       (diag->main->detail == CW_DETAIL_PAIR || diag->main->detail == CW_DETAIL_UNFINISHED);
}

/* Writes the summary of a message that one of its two ranks does not finish. */
static void summarize_pair(const struct diagnosis *diag, const struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_arg partner = arg_rank(diag, diag->main->partner);
	struct cw_verdict *v = diag->v;
	const struct cw_op *op = engine_context_call_with(diag->s, gate->comm, gate->op,
							  diag->main->rank, diag->main->partner);
	uint32_t n = v->n_victims;

	op = op ? op : gate->op;
	say_half(diag, w, op);
	if (v->detail == CW_DETAIL_UNFINISHED && op->kind == CW_OP_SEND)
		cw_say(&v->said, receive_was_completed, partner);
	else if (v->detail == CW_DETAIL_UNFINISHED)
		cw_say(&v->said, send_was_completed, partner);
	else if (gate->n_unlisted)
		say_unlisted(partner, op, &v->said);
	else
		cw_say(&v->said, both_posted);
	cw_say(&v->said, end);
	if (n)
		cw_say(&v->said, more_wait_behind_them, arg_count(n));
}

/* Names the unfinished calls of other communicators, and returns how many ranks are inside all. */
static uint32_t say_also_unfinished(const struct diagnosis *diag)
{
	const struct waitgraph *g = &diag->s->g;
	bool *is_counted = cw_arena_new_array(&diag->s->arena, bool, g->n_ranks);
	uint32_t n = 0;

	for (uint32_t i = 0; i < diag->n_unfinished && is_counted; i++) {
		const struct gate *gate = &g->gates[diag->unfinished[i]->gate];

		for (uint32_t k = 0; k < gate->n_waiters; k++) {
			n += !is_counted[gate->waiters[k]];
			is_counted[gate->waiters[k]] = true;
		}
		if (i && i <= UNFINISHED_LISTED)
			cw_say(&diag->v->said, also_unfinished,
			       arg_ranks(diag, gate->waiters, gate->n_waiters),
			       arg_call(diag, gate->comm, gate->op), arg_comm(diag, gate->comm));
	}
	return n;
}

static void summarize_full_call(const struct diagnosis *diag, struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	uint32_t n_completed = engine_context_n_completed(diag->s, gate);
	uint32_t nranks = diag->s->snap->comms[v->comm].nranks;
	struct cw_arg inside = arg_ranks(diag, gate->waiters, gate->n_waiters);
	struct cw_clause how = clause_of(diag);
	uint32_t n_inside = gate->n_waiters;

	if (diag->main->connections) {
		summarize_connections(diag, w);
		return;
	}
	if (is_about_pair(diag)) {
		summarize_pair(diag, w);
		return;
	}
	if (v->n_culprits == 1)
		how = reason_of_halt(diag, v->culprits[0].rank);
	if (how.n) {
		summarize_halted(diag, w, &how);
		return;
	}
	if (n_completed)
		cw_say(&v->said, some_completed, inside, w->call, w->comm, arg_count(n_completed),
		       arg_count(nranks), w->since);
	else if (gate->n_waiters == nranks && nranks > 1 && gate->kind != GATE_P2P)
		cw_say(&v->said, all_entered, arg_count(nranks), w->comm, w->call, w->since);
	else
		cw_say(&v->said, entered_none_missing, inside, w->call, w->comm, w->since);
	if (v->blind_spots & CW_BLIND_OF_CALL)
		cw_say(&v->said, check_network);
	else
		cw_say(&v->said, not_the_program);
	say_nodes(diag, gate);
	cw_say(&v->said, end);
	if (diag->n_unfinished > 1)
		n_inside = say_also_unfinished(diag);
	if (v->n_victims + v->n_culprits > n_inside)
		cw_say(&v->said, more_wait_behind_it,
		       arg_count(v->n_victims + v->n_culprits - n_inside));
}

/* True if all culprits left recordings without a call. */
static bool have_empty_recordings(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (!arg_is_empty_recording(&diag->s->snap->ranks[diag->v->culprits[i].rank]))
			return false;
	return true;
}

/*
 * True if every member whose place is unknown left a recording. The recordings lack only the place.
 */
static bool are_unseen_recorded(const struct diagnosis *diag, const struct gate *gate)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_comm *c = &snap->comms[gate->comm];
	uint32_t n = 0;

	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t rank = c->members[m].rank;

		if (c->members[m].known)
			continue;
		if (rank >= snap->n_ranks || snap->ranks[rank].liveness != CW_LIVE_UNKNOWN ||
		    !(snap->ranks[rank].flags & CW_RANKF_HAS_RECORD))
			return false;
		n++;
	}
	return n > 0;
}

/*
 * Writes the summary if we do not know the progress of the devices. Any rank of the call may then
 * block the others.
 */
static void summarize_progress_unknown(const struct diagnosis *diag, const struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_clause where = in_call(diag, w);
	struct cw_clause *said = &diag->v->said;

	if (engine_context_n_completed(diag->s, gate)) {
		cw_say(said, others_completed, w->victims, w->call, w->comm, w->since);
	} else if (gate->kind != GATE_COLLECTIVE) {
		/*
		 * We name no missing member: a message has two ends, and a rooted call may not need
		 * all members.
		 */
		say_waiting(diag, w, w->victims, &where, said);
		cw_say(said, none_seen_missing);
	} else {
		cw_say(said, all_entered_not_returned, w->comm, w->call, w->victims, w->since);
	}
}

static void summarize_unknown(const struct diagnosis *diag, const struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_clause where = in_call(diag, w);
	struct cw_verdict *v = diag->v;

	if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN) {
		summarize_progress_unknown(diag, w);
		return;
	}
	say_waiting(diag, w, w->victims, &where, &v->said);
	if (v->detail == CW_DETAIL_NOT_VISIBLE && v->n_culprits && have_empty_recordings(diag))
		cw_say(&v->said, empty_recording_there, w->who);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE && v->n_culprits)
		cw_say(&v->said, no_recording_there, w->who);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE && are_unseen_recorded(diag, gate))
		cw_say(&v->said, recordings_do_not_tell, arg_count(gate->n_unseen));
	else if (v->detail == CW_DETAIL_NOT_VISIBLE)
		cw_say(&v->said, not_visible, arg_count(gate->n_unseen));
	else if (v->detail == CW_DETAIL_PROGRESS_UNTRACKED)
		cw_say(&v->said, earlier_call_unrecorded);
	else if (v->detail == CW_DETAIL_NODE_SILENT || v->detail == CW_DETAIL_DAEMON_RESTARTING)
		cw_say(&v->said, node_does_not_report);
	else
		cw_say(&v->said, awaited_rank_unrecorded);
}

/*
 * Says that all ranks of the job wait. Some of them wait in a comm_init, and all other ranks wait
 * elsewhere, so no rank can still enter it.
 */
static void say_crossed(const struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *making = cw_arena_new_array(&diag->s->arena, uint32_t, snap->n_ranks);
	struct cw_verdict *v = diag->v;
	uint32_t n = 0;

	for (uint32_t r = 0; making && r < snap->n_ranks; r++)
		if (waitgraph_is_making(&diag->s->g, r))
			making[n++] = r;
	if (n && n < snap->n_ranks)
		cw_say(&v->said, some_wait_crossed, arg_ranks(diag, making, n),
		       arg_count(v->n_crossed));
	else
		cw_say(&v->said, all_wait_crossed, arg_count(snap->n_ranks),
		       arg_count(v->n_crossed));
}

/*
 * Writes the summary for members that no node has reported. We name them if the comm's ranks are
 * numbered like the job's.
 */
static void summarize_unseen(const struct diagnosis *diag, const struct words *w,
			     const struct gate *gate)
{
	struct cw_arg nranks = arg_count(diag->s->snap->comms[diag->v->comm].nranks);
	struct cw_clause where = in_it(diag), waiting = clause_of(diag);
	struct cw_verdict *v = diag->v;

	say_waiting(diag, w, w->victims, &where, &waiting);
	if (gate->n_again && gate->n_again == gate->n_unseen)
		cw_say(&v->said, left_for_another, arg_count(gate->n_again), nranks, w->comm,
		       w->call, arg_clause(&waiting));
	else if (gate->unseen)
		cw_say(&v->said, ranks_not_seen, arg_labels(diag, gate->unseen, gate->n_unseen),
		       w->comm, w->call, arg_clause(&waiting));
	else
		cw_say(&v->said, some_not_seen, arg_count(gate->n_unseen), nranks, w->comm, w->call,
		       arg_clause(&waiting));
	if (v->n_crossed)
		say_crossed(diag);
}

/*
 * Says "failed in ncclCommInitRank on world with ncclSystemError (…)". Names the error if it is the
 * same for all culprits.
 */
static void say_failed_call(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct failed_call call = { 0 }, other;
	bool is_one_result = true, is_one_text = true;

	(void)engine_context_failed_call(diag->s, diag->main->gate, v->culprits[0].rank, &call);
	for (uint32_t i = 1; i < v->n_culprits; i++) {
		(void)engine_context_failed_call(diag->s, diag->main->gate, v->culprits[i].rank,
						 &other);
		is_one_result = is_one_result && other.result == call.result;
		is_one_text = is_one_text &&
			      strcmp(other.text ? other.text : "", call.text ? call.text : "") == 0;
	}
	if (is_one_result)
		cw_say(&v->said, failed_in, w->who, arg_kind(call.kind), w->comm,
		       arg_error(diag, call.result, is_one_text ? call.text : NULL));
	else
		cw_say(&v->said, failed_differently, w->who, arg_kind(call.kind), w->comm);
}

/*
 * Says " Its process is now outside NCCL." For several culprits, says this only if all are in the
 * same place.
 */
static void say_where_they_are(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	struct cw_clause place = reason_of_place(diag, v->culprits[0].rank);

	for (uint32_t i = 1; i < v->n_culprits; i++) {
		struct cw_clause other = reason_of_place(diag, v->culprits[i].rank);

		if (!cw_clause_is_same(&other, &place))
			return;
	}
	if (place.n && v->n_culprits == 1)
		cw_say(&v->said, its_process_is_now, arg_clause(&place));
	else if (place.n)
		cw_say(&v->said, their_processes_are_now, arg_clause(&place));
}

static void summarize_failed(const struct diagnosis *diag, const struct words *w)
{
	say_failed_call(diag, w);
	cw_clause_append(&diag->v->said, &w->waiting);
	say_where_they_are(diag);
}

/* True if the rank was in the call and then gave up the communicator that the call makes. */
static bool has_given_up_making(const struct diagnosis *diag)
{
	return diag->s->g.gates[diag->main->gate].kind == GATE_INIT &&
	       (diag->v->detail == CW_DETAIL_ABORTED || diag->v->detail == CW_DETAIL_DESTROYED);
}

/*
 * Writes the summary if some ranks wait for culprits that are not in the call that makes the
 * communicator.
 */
static void summarize_init_culprits(const struct diagnosis *diag, struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	struct cw_clause how = clause_of(diag), where = in_it(diag);

	if (v->n_culprits == 1)
		how = reason_of_halt(diag, v->culprits[0].rank);
	if (has_given_up_making(diag)) {
		cw_say(&v->said, left_before, w->who, arg_number(CW_ARG_DETAIL, (int32_t)v->detail),
		       w->comm, w->call);
	} else if (how.n && is_inside(gate, v->culprits[0].rank)) {
		find_who_waits(diag, w);
		cw_say(&v->said, halted_inside_of, w->who, arg_clause(&how), w->call, w->comm);
	} else if (how.n) {
		find_waiting(diag, w, &where);
		cw_say(&v->said, halted_not_called, w->who, arg_clause(&how), w->call, w->comm);
	} else {
		find_waiting(diag, w, &where);
		cw_say(&v->said, not_called, w->who, w->call, w->comm);
	}
	cw_clause_append(&v->said, &w->waiting);
}

static void summarize_init(const struct diagnosis *diag, struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;

	if (v->detail == CW_DETAIL_FAILED && v->n_culprits)
		summarize_failed(diag, w);
	else if (v->n_culprits)
		summarize_init_culprits(diag, w);
	else if (gate->n_unseen)
		summarize_unseen(diag, w, gate);
	else if (gate->n_waiters == diag->s->snap->comms[v->comm].nranks)
		cw_say(&v->said, all_inside, w->comm, w->call, w->since);
	else
		cw_say(&v->said, inside_none_missing,
		       arg_ranks(diag, gate->waiters, gate->n_waiters), w->call, w->comm, w->since);
}

/* True if both ranks ended by the same cause, and the text of the cause fits several ranks. */
static bool have_one_cause(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	if (!a->cause || !b->cause)
		return a->cause == b->cause;
	return strcmp(a->cause, b->cause) == 0 && !is_own_deed(a);
}

/* True if all culprits ended in the same way, by a cause that does not concern one rank alone. */
static bool have_ended_alike(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snap_rank *ranks = diag->s->snap->ranks;
	const struct cw_snap_rank *first = &ranks[v->culprits[0].rank];

	for (uint32_t i = 0; i < v->n_culprits; i++) {
		const struct cw_snap_rank *r = &ranks[v->culprits[i].rank];

		if (!have_one_cause(r, first) || r->liveness != first->liveness ||
		    r->exit_code != first->exit_code || r->term_signal != first->term_signal ||
		    (r->flags ^ first->flags) & CW_RANKF_OOM_KILLED)
			return false;
	}
	return true;
}

/* Says how the culprits ended, if this is known and the same for all. Otherwise says "ended". */
static struct cw_clause how_they_ended(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;
	struct cw_clause how = clause_of(diag);

	if (!v->n_culprits || (v->n_culprits > 1 && !have_ended_alike(diag))) {
		cw_say(&how, ended);
		return how;
	}
	return how_it_ended(diag, &diag->s->snap->ranks[v->culprits[0].rank], v->n_culprits > 1);
}

/* True if all culprits ended inside the call that the others wait in, not before it. */
static bool ended_inside(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (!reason_died_inside(diag, diag->v->culprits[i].rank))
			return false;
	return true;
}

/* True if some culprit made the call, and the call returned before the device had run it. */
static bool has_entered_any(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (reason_has_entered(diag, diag->v->culprits[i].rank))
			return true;
	return false;
}

/*
 * Returns the verb of " before it could enter …". The verb depends on the call and on how far the
 * culprits came.
 */
static struct cw_clause what_they_could_not(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;
	struct cw_clause verb = clause_of(diag);

	if (v->n_sides && v->sides[0].has_op && cw_op_is_p2p(v->sides[0].op.kind))
		cw_say(&verb, post_counterpart_of);
	else if (has_entered_any(diag))
		cw_say(&verb, finish);
	else
		cw_say(&verb, enter);
	return verb;
}

static void summarize_dead(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct cw_clause how = how_they_ended(diag), verb = what_they_could_not(diag);

	if (v->has_failed_call) {
		say_failed_call(diag, w);
		cw_say(&v->said, and_also, arg_clause(&how));
	} else if (ended_inside(diag)) {
		cw_say(&v->said, ended_inside, w->who, arg_clause(&how), w->call, w->comm);
	} else if (w->n_there == v->n_culprits) {
		cw_say(&v->said, ended_before, w->who, arg_clause(&how), arg_clause(&verb), w->call,
		       w->comm);
	} else {
		cw_say(&v->said, ended_before_some, w->who, arg_clause(&how), w->there,
		       arg_clause(&verb), w->call, w->comm);
	}
	cw_clause_append(&v->said, &w->waiting);
}

/* True if some rank also waits for the culprits on another comm. */
static bool is_waited_for_elsewhere(const struct diagnosis *diag)
{
	const struct waitgraph *g = &diag->s->g;

	for (uint32_t i = 0; i < g->n_gates; i++) {
		const struct gate *gate = &g->gates[i];

		if (gate->comm == diag->v->comm)
			continue;
		if (gate->n_unseen)
			return true;
		for (uint32_t m = 0; m < gate->n_missing; m++)
			if (diag->is_culprit[gate->missing[m]])
				return true;
	}
	return false;
}

/*
 * Writes "node-1 (ranks 4-7) has not been heard from for 18 s", or "the nodes of ranks 4-11 have
 * not …" for several nodes.
 */
static void summarize_nodes(const struct diagnosis *diag, struct words *w)
{
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	uint32_t node = v->n_culprits ? snap->ranks[v->culprits[0].rank].node : CW_SNAP_NONE;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);
	struct cw_clause where = clause_of(diag);
	struct cw_arg who;

	for (uint32_t i = 0; i < v->n_culprits; i++) {
		if (snap->ranks[v->culprits[i].rank].node != node)
			node = CW_SNAP_NONE;
		if (ranks)
			ranks[i] = v->culprits[i].rank;
	}
	who = arg_ranks(diag, ranks, ranks ? v->n_culprits : 0);
	if (node < snap->n_nodes && snap->nodes[node].last_digest_ns)
		cw_say(&v->said, node_silent_for, arg_host(diag, node), who,
		       arg_since(diag, snap->nodes[node].last_digest_ns));
	else if (node < snap->n_nodes)
		cw_say(&v->said, node_silent, arg_host(diag, node), who);
	else
		cw_say(&v->said, nodes_silent, who);
	if (all_wait_in(diag) || !is_waited_for_elsewhere(diag))
		where = in_call(diag, w);
	else
		cw_say(&where, in_call_or_elsewhere, w->call, w->comm);
	find_waiting(diag, w, &where);
	cw_clause_append(&v->said, &w->waiting);
}

/*
 * Writes the summary if the call that the device has not reached is not the call that the others
 * wait in.
 */
static void summarize_held(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct cw_clause where = in_call(diag, w);

	find_waiting(diag, w, &where);
	cw_say(&v->said, device_is_stuck, w->who,
	       arg_call(diag, diag->main->held_comm, diag->main->held),
	       arg_comm(diag, diag->main->held_comm));
	cw_clause_append(&v->said, &w->waiting);
}

/*
 * Writes "rank 2 has been sending to rank 3 on pp (#31) for 2 s, but rank 3 never posted the recv."
 */
static void summarize_unposted(const struct diagnosis *diag, const struct words *w)
{
	const struct waitgraph *g = &diag->s->g;
	struct cw_verdict *v = diag->v;
	const struct cw_side *side = v->n_sides ? &v->sides[0] : NULL;
	const struct cw_op *op = NULL;
	struct cw_arg one, it;

	if (!side || !side->has_op || side->n_ranks != 1 || v->n_culprits != 1 ||
	    !cw_op_is_p2p(side->op.kind) || !v->waiting_since_ns) {
		cw_say(&v->said, never_posted_counterpart, w->who, w->call, w->comm);
		cw_clause_append(&v->said, &w->waiting);
		return;
	}
	op = engine_context_call_with(diag->s, v->comm, &side->op, side->ranks[0],
				      v->culprits[0].rank);
	if (!op) {
		cw_say(&v->said, never_posted_counterpart, w->who, arg_call(diag, v->comm, NULL),
		       w->comm);
		cw_clause_append(&v->said, &w->waiting);
		return;
	}
	one = arg_ranks(diag, side->ranks, 1);
	it = arg_rank(diag, v->culprits[0].rank);
	if (g->gates[diag->main->gate].n_unlisted) {
		if (op->kind == CW_OP_SEND)
			cw_say(&v->said, has_sent_to, one, it, w->comm, w->since);
		else
			cw_say(&v->said, has_received_from, one, it, w->comm, w->since);
		say_unlisted(it, op, &v->said);
	} else if (op->kind == CW_OP_SEND)
		cw_say(&v->said, has_been_sending, one, w->who, w->comm, arg_count(op->p2p_seq),
		       w->since, it);
	else
		cw_say(&v->said, has_been_receiving, one, w->who, w->comm, arg_count(op->p2p_seq),
		       w->since, it);
	if (waitgraph_waits(g, v->culprits[0].rank)) {
		const struct gate *gate = &g->gates[g->waits[g->wait_start[v->culprits[0].rank]]];

		if (gate->op)
			cw_say(&v->said, it_is_already_in, arg_call(diag, gate->comm, gate->op),
			       arg_comm(diag, gate->comm));
	}
	cw_say(&v->said, end);
	if (v->n_victims > 1)
		cw_say(&v->said, more_wait_behind_them, arg_count(v->n_victims - 1));
}

/*
 * Writes one of these sentences:
 *
 *   "rank 1 sent 31 messages to rank 2 on pp, but rank 2 received only 30."
 *   "rank 1 sent 1024 bytes to rank 2 on pp as message #31, but rank 2 received 512 bytes."
 */
static void summarize_messages(const struct diagnosis *diag, const struct words *w)
{
	const struct message_fault *f = diag->main->messages;
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];
	struct cw_verdict *v = diag->v;
	struct cw_arg from = arg_rank(diag, c->members[f->sender].rank);
	struct cw_arg to = arg_rank(diag, c->members[f->receiver].rank);

	if (f->send)
		cw_say(&v->said, bytes_differ, from, arg_count(f->send->bytes), to, w->comm,
		       arg_count(f->send->p2p_seq), arg_count(f->recv->bytes));
	else if (f->detail == CW_DETAIL_SIZE)
		cw_say(&v->said, sizes_differ, from, to, w->comm, arg_count(f->sends));
	else if (f->sends > f->recvs)
		cw_say(&v->said, never_received, from, to, w->comm, arg_count(f->sends),
		       arg_count(f->recvs));
	else
		cw_say(&v->said, never_sent, to, from, w->comm, arg_count(f->recvs),
		       arg_count(f->sends));
	if (f->n_pairs > 1)
		cw_say(&v->said, likewise_pairs, arg_count(f->n_pairs - 1));
	cw_say(&v->said, none_waits_for_it);
}

/*
 * Writes "rank 1 disagrees with the other ranks on the size of all_to_all #22 on experts: the data
 * that the ranks send does not add up to the data that they expect. Ranks 0,2 have been waiting for
 * 90 s."
 */
static void summarize_uneven(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;

	find_who_waits(diag, w);
	if (v->n_culprits)
		cw_say(&v->said, size_disagrees, w->who, w->call, w->comm);
	else
		cw_say(&v->said, all_sizes_disagree, w->call, w->comm);
	cw_clause_append(&v->said, &w->waiting);
}

/*
 * Writes the summary for two ranks that disagree on the size of a message, or for one rank that
 * disagrees with several others.
 */
static void summarize_sizes(const struct diagnosis *diag, struct words *w)
{
	const struct finding *f = diag->main;
	struct cw_verdict *v = diag->v;

	find_who_waits(diag, w);
	if (v->n_culprits == 1)
		cw_say(&v->said, disagrees_with_several, w->who,
		       arg_rank(diag, v->culprits[0].rank == f->rank ? f->partner : f->rank),
		       w->comm);
	else
		cw_say(&v->said, disagree_on_size, w->who, w->call, w->comm);
	cw_clause_append(&v->said, &w->waiting);
}

/*
 * Writes the summary for a missing rank. If something keeps its process from running, we say that
 * instead of "never reached".
 */
static void summarize_absent(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct cw_clause how = clause_of(diag);

	if (w->one_there != CW_SNAP_NONE)
		how = reason_of_halt(diag, w->one_there);
	if (how.n)
		cw_say(&v->said, halted_never_reached, w->there, arg_clause(&how), w->call,
		       w->comm);
	else
		cw_say(&v->said, never_reached, w->there, w->call, w->comm);
	if (w->n_elsewhere)
		cw_say(&v->said, missing_elsewhere, w->elsewhere);
	cw_clause_append(&v->said, &w->waiting);
}

static void summarize(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	struct words w = { 0 };

	find_words(diag, &w);
	switch (v->verdict_class) {
	case CW_CLASS_PROCESS_DEAD:
		summarize_dead(diag, &w);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		summarize_nodes(diag, &w);
		break;
	case CW_CLASS_NEVER_ENTERED:
		summarize_absent(diag, &w);
		break;
	case CW_CLASS_MISMATCH:
		summarize_mismatch(diag, &w);
		if (diag->main->ended)
			say_ended(diag, &w);
		break;
	case CW_CLASS_DEADLOCK:
		summarize_cycle(diag);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (diag->main->messages) {
			summarize_messages(diag, &w);
			break;
		}
		if (diag->main->is_uneven) {
			summarize_uneven(diag, &w);
			break;
		}
		if (diag->main->partner == CW_SNAP_NONE) {
			summarize_unposted(diag, &w);
			break;
		}
		summarize_sizes(diag, &w);
		break;
	case CW_CLASS_INIT_STUCK:
		summarize_init(diag, &w);
		break;
	case CW_CLASS_DEVICE_STALLED:
		if (diag->main->held) {
			summarize_held(diag, &w);
			break;
		}
		cw_say(&v->said, device_is_stuck, w.who, w.call, w.comm);
		cw_clause_append(&v->said, &w.waiting);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		summarize_full_call(diag, &w);
		break;
	default:
		summarize_unknown(diag, &w);
		break;
	}
}

static void wording_of_alternative(const struct diagnosis *diag, struct cw_alternative *alt)
{
	struct cw_clause trait = clause_of(diag);
	struct cw_arg who = arg_ranks(diag, alt->culprits, alt->n_culprits);

	alt->said = clause_of(diag);
	if (alt->verdict_class == CW_CLASS_MISMATCH && diag->main->setup) {
		say_trait(diag, diag->v->comm, alt->culprits[0], diag->main->setup->detail, &trait);
		cw_say(&alt->said, that_property, who, arg_clause(&trait));
	} else if (alt->verdict_class == CW_CLASS_MISMATCH &&
		   diag->v->verdict_class == CW_CLASS_NEVER_ENTERED) {
		cw_say(&alt->said, may_have_made_call, who);
	} else if (alt->n_culprits) {
		cw_say(&alt->said, some_also_wait_for, who);
	} else {
		cw_say(&alt->said, some_wait_in_full_call);
	}
}

int wording_of_verdict(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	bool is_incomplete = false;
	int r = 0;

	v->said = clause_of(diag);
	if (diag->main) {
		for (uint32_t i = 0; i < v->n_culprits; i++) {
			struct cw_culprit *c = &v->culprits[i];

			reason_of_culprit(diag, c);
			is_incomplete = is_incomplete || c->said.is_incomplete;
		}
		for (uint32_t i = 0; i < v->n_alternatives; i++)
			wording_of_alternative(diag, &v->alternatives[i]);
		summarize(diag);
		r = also_list(diag);
		if (r == 0)
			r = ruled_out_list(diag);
	} else {
		cw_say(&v->said, nothing_is_blocked);
	}
	return r == 0 && (is_incomplete || v->said.is_incomplete) ? -ENOMEM : r;
}
