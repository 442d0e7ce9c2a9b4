/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/phrase.h"
#include "analysis/position.h"

/* Appends to a text; what does not fit is cut off. */
static void say(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(char *text, size_t len, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, len - used, format, args);
	va_end(args);
}

/* ---- what a culprit is doing ---- */

static const struct cw_snap_member *member_at(const struct incident *inc, uint32_t rank)
{
	uint32_t m;

	if (inc->v->comm == CW_SNAP_NONE)
		return NULL;
	m = scene_comm_rank(inc->s, inc->v->comm, rank);
	return m == CW_SNAP_NONE ? NULL : &inc->s->snap->comms[inc->v->comm].members[m];
}

/* "; its last call there, all_reduce #41, returned 12 s ago" */
static void add_last_call(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_member *m = member_at(inc, rank);
	struct phrase call, time;

	if (!m || !m->last)
		return;
	if (m->last->flags & CW_OPF_RETURNED)
		say(buf, len, "; its last call there, %s, returned %s ago",
		    phrase_call(m->last, &call),
		    phrase_since(inc->s->snap, m->last->return_ns, &time));
	else
		say(buf, len, "; it is inside %s there", phrase_call(m->last, &call));
}

static void add_headway(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &inc->s->snap->ranks[rank];
	struct phrase time;

	if (!r->headway_ns)
		return;
	say(buf, len, "; last sign of work %s ago%s%.24s%s",
	    phrase_since(inc->s->snap, r->headway_ns, &time), r->headway_by ? " (" : "",
	    r->headway_by ? r->headway_by : "", r->headway_by ? ")" : "");
}

static void say_death(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &inc->s->snap->ranks[rank];
	char how[64];
	struct phrase time;

	if (r->flags & CW_RANKF_OOM_KILLED)
		(void)snprintf(how, sizeof(how), "killed for lack of memory");
	else if (r->liveness == CW_LIVE_KILLED)
		(void)snprintf(how, sizeof(how), "killed by signal %" PRId32, r->term_signal);
	else if (r->liveness == CW_LIVE_EXITED)
		(void)snprintf(how, sizeof(how), "exited with status %" PRId32, r->exit_code);
	else
		(void)snprintf(how, sizeof(how), "its process has ended");
	if (r->ended_ns)
		say(buf, len, "%s %s ago", how, phrase_since(inc->s->snap, r->ended_ns, &time));
	else
		say(buf, len, "%s", how);
	add_last_call(inc, rank, buf, len);
}

/* The comm it is inside of while others wait elsewhere, as far as the findings know. */
static void say_other_call(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct waitgraph *g = &inc->s->g;
	const struct cw_snap_rank *r = &inc->s->snap->ranks[rank];
	struct phrase call, comm;

	if (waitgraph_waits(g, rank)) {
		const struct gate *gate = &g->gates[g->waits[g->wait_start[rank]]];

		say(buf, len, "inside %s on %s, where it waits for nobody",
		    gate->op ? phrase_call(gate->op, &call) : "a call",
		    phrase_comm(inc->s->snap, gate->comm, &comm));
	} else {
		say(buf, len, "inside %s", phrase_call(&r->host_call, &call));
	}
}

static void say_alive(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const char *detail = inc->v->detail;

	if (strcmp(detail, "stopped") == 0)
		say(buf, len, "stopped by a signal (state T)");
	else if (strcmp(detail, "traced") == 0)
		say(buf, len, "held by a debugger");
	else if (strcmp(detail, "inside_other_call") == 0)
		say_other_call(inc, rank, buf, len);
	else if (strcmp(detail, "aborted") == 0 || strcmp(detail, "destroyed") == 0)
		say(buf, len, "alive; it has %s the communicator", detail);
	else
		say(buf, len, "alive, outside NCCL");
	if (inc->s->snap->ranks[rank].flags & CW_RANKF_D_STATE) {

		say(buf, len, ", in uninterruptible sleep (state D)");
	}
	add_last_call(inc, rank, buf, len);
	add_headway(inc, rank, buf, len);
}

static void say_own_call(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct cw_verdict *v = inc->v;
	char op[96];

	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; v->sides[i].has_op && k < v->sides[i].n_ranks; k++)
			if (v->sides[i].ranks[k] == rank) {
				say(buf, len, "called %s",
				    cw_op_format(&v->sides[i].op, op, sizeof(op)));
				return;
			}
}

static void say_pending(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_member *m = member_at(inc, rank);
	char op[96];

	if (m && m->pending)
		say(buf, len, "inside %s", cw_op_format(m->pending, op, sizeof(op)));
	else
		say(buf, len, "has posted a call of another size");
}

static void say_wait(const struct incident *inc, uint32_t rank, char *buf, size_t len)
{
	const struct waitgraph *g = &inc->s->g;
	const struct gate *gate;
	struct phrase call, comm;

	if (!waitgraph_waits(g, rank))
		return;
	gate = &g->gates[g->waits[g->wait_start[rank]]];
	say(buf, len, "waits in %s on %s, while the others wait for it elsewhere",
	    gate->op ? phrase_call(gate->op, &call) : "a call",
	    phrase_comm(inc->s->snap, gate->comm, &comm));
}

static void explain_culprit(const struct incident *inc, struct cw_culprit *c)
{
	const struct cw_snap_rank *r = &inc->s->snap->ranks[c->rank];
	const char *node = r->node < inc->s->snap->n_nodes ? inc->s->snap->nodes[r->node].name : "";
	char *buf = c->reason;
	size_t len = sizeof(c->reason);

	switch (inc->v->klass) {
	case CW_CLASS_PROCESS_DEAD:
		say_death(inc, c->rank, buf, len);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		say(buf, len, "its node %.64s has stopped reporting", node ? node : "");
		break;
	case CW_CLASS_MISMATCH:
		say_own_call(inc, c->rank, buf, len);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (inc->main->partner != CW_SNAP_NONE)
			say_pending(inc, c->rank, buf, len);
		else
			say_alive(inc, c->rank, buf, len);
		break;
	case CW_CLASS_DEADLOCK:
		say_wait(inc, c->rank, buf, len);
		break;
	case CW_CLASS_DEVICE_STALLED:
		say(buf, len, "enqueued the call, but its stream is stuck in earlier work");
		add_headway(inc, c->rank, buf, len);
		break;
	default:
		say_alive(inc, c->rank, buf, len);
		break;
	}
}

/* ---- the one line ---- */

struct words {
	struct phrase who, victims, call, comm, since;
	char waiting[448]; /* "; ranks 0-2 have waited in it for 12 s" */
};

static void find_words(const struct incident *inc, struct words *w)
{
	const struct cw_verdict *v = inc->v;
	const struct cw_snapshot *snap = inc->s->snap;
	bool elsewhere = v->n_victims && v->n_sides && v->n_victims > v->sides[0].n_ranks;

	if (v->n_culprits == 1) {
		(void)phrase_rank(snap, v->culprits[0].rank, &w->who);
	} else {
		uint32_t *ranks = arena_new_array(&inc->s->arena, uint32_t, v->n_culprits);

		for (uint32_t i = 0; ranks && i < v->n_culprits; i++)
			ranks[i] = v->culprits[i].rank;
		(void)phrase_ranks(snap, ranks, ranks ? v->n_culprits : 0, &w->who);
	}
	(void)phrase_ranks(snap, v->victims, v->n_victims, &w->victims);
	if (v->n_sides && v->sides[0].has_op)
		(void)phrase_call(&v->sides[0].op, &w->call);
	else
		say(w->call.text, sizeof(w->call.text), "%s",
		    inc->main->gate == CW_SNAP_NONE
			    ? "a call"
			    : cw_op_kind_name(inc->s->g.gates[inc->main->gate].op_kind));
	(void)phrase_comm(snap, v->comm, &w->comm);
	(void)phrase_since(snap, v->waiting_since_ns, &w->since);
	w->waiting[0] = '\0';
	if (v->n_victims)
		say(w->waiting, sizeof(w->waiting), "; %s %s waited %s for %s", w->victims.text,
		    v->n_victims == 1 ? "has" : "have", elsewhere ? "there or behind it" : "in it",
		    w->since.text);
}

static void sum_up_mismatch(const struct incident *inc, const struct words *w)
{
	const struct cw_verdict *v = inc->v;
	const struct alignment *al = &inc->s->alignments[v->comm];
	char usual[96], odd[96];
	struct phrase most;

	if (al->majority == ALIGN_NO_SIDE) {
		say(inc->v->summary, sizeof(inc->v->summary),
		    "members of %s made different calls as #%" PRIu64
		    " (%s differs): %s against %s",
		    w->comm.text, v->coll_seq, v->detail,
		    cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
		    cw_op_format(&v->sides[1].op, odd, sizeof(odd)));
		return;
	}
	(void)phrase_ranks(inc->s->snap, v->sides[0].ranks, v->sides[0].n_ranks, &most);
	if (strcmp(v->detail, "missing") == 0)
		say(inc->v->summary, sizeof(inc->v->summary),
		    "%s skipped %s on %s, which %s called; it went on with %s%s", w->who.text,
		    cw_op_format(&v->sides[0].op, usual, sizeof(usual)), w->comm.text, most.text,
		    cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->waiting);
	else if (strcmp(v->detail, "extra") == 0)
		say(inc->v->summary, sizeof(inc->v->summary),
		    "%s made an extra call, %s on %s, where %s called %s%s", w->who.text,
		    cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->comm.text, most.text,
		    cw_op_format(&v->sides[0].op, usual, sizeof(usual)), w->waiting);
	else
		say(inc->v->summary, sizeof(inc->v->summary),
		    "%s called %s on %s where %s called %s (%s differs)", w->who.text,
		    cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->comm.text, most.text,
		    cw_op_format(&v->sides[0].op, usual, sizeof(usual)), v->detail);
}

static void sum_up_cycle(const struct incident *inc)
{
	struct cw_verdict *v = inc->v;

	say(v->summary, sizeof(v->summary), "deadlock: ");
	for (uint32_t i = 0; i < v->n_chain; i++) {
		struct phrase who, call, comm;
		uint32_t rank = v->chain[i].rank;

		/* Past four the circle is told by its numbers. */
		if (i == 4) {
			say(v->summary, sizeof(v->summary), ", and so on round %" PRIu32 " ranks",
			    v->n_chain);
			return;
		}
		say(v->summary, sizeof(v->summary), "%s%s waits in %s on %s", i ? " for " : "",
		    phrase_ranks(inc->s->snap, &rank, 1, &who), phrase_call(&v->chain[i].op, &call),
		    phrase_comm(inc->s->snap, v->chain[i].comm, &comm));
		if (i + 1 < v->n_chain)
			say(v->summary, sizeof(v->summary), ",");
	}
	if (v->n_chain) {
		struct phrase who;

		say(v->summary, sizeof(v->summary), " for %s",
		    phrase_ranks(inc->s->snap, &v->chain[0].rank, 1, &who));
	}
}

static void sum_up_unknown(const struct incident *inc, const struct words *w)
{
	struct cw_verdict *v = inc->v;
	const struct gate *gate = &inc->s->g.gates[inc->main->gate];

	if (strcmp(v->detail, "not_visible") == 0)
		say(v->summary, sizeof(v->summary),
		    "%s waited in %s on %s for %s; %" PRIu32
		    " member%s of it cannot be seen and may be missing",
		    w->victims.text, w->call.text, w->comm.text, w->since.text, gate->n_unseen,
		    gate->n_unseen == 1 ? "" : "s");
	else if (strcmp(v->detail, "progress_unknown") == 0)
		say(v->summary, sizeof(v->summary),
		    "all members of %s have entered %s and %s not returned for %s; how far "
		    "their devices are is not known",
		    w->comm.text, w->call.text, w->victims.text, w->since.text);
	else
		say(v->summary, sizeof(v->summary),
		    "%s waited in %s on %s for %s; the node of the rank they wait for does "
		    "not report",
		    w->victims.text, w->call.text, w->comm.text, w->since.text);
}

static void sum_up_init(const struct incident *inc, const struct words *w)
{
	struct cw_verdict *v = inc->v;
	const struct gate *gate = &inc->s->g.gates[inc->main->gate];

	if (v->n_culprits)
		say(v->summary, sizeof(v->summary), "%s has not come to %s of %s%s", w->who.text,
		    w->call.text, w->comm.text, w->waiting);
	else if (gate->n_unseen)
		say(v->summary, sizeof(v->summary),
		    "%" PRIu32 " of %" PRIu32
		    " members have not been seen at %s of %s; %s waited in it for %s",
		    gate->n_unseen, inc->s->snap->comms[v->comm].nranks, w->call.text, w->comm.text,
		    w->victims.text, w->since.text);
	else
		say(v->summary, sizeof(v->summary),
		    "all members are inside %s of %s, which has not ended for %s", w->call.text,
		    w->comm.text, w->since.text);
}

static void sum_up(const struct incident *inc)
{
	struct cw_verdict *v = inc->v;
	struct words w = { 0 };

	find_words(inc, &w);
	switch (v->klass) {
	case CW_CLASS_PROCESS_DEAD:
		say(v->summary, sizeof(v->summary), "%s ended before %s on %s%s", w.who.text,
		    w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		say(v->summary, sizeof(v->summary),
		    "the node of %s stopped reporting before %s on %s%s", w.who.text, w.call.text,
		    w.comm.text, w.waiting);
		break;
	case CW_CLASS_NEVER_ENTERED:
		say(v->summary, sizeof(v->summary), "%s never entered %s on %s%s", w.who.text,
		    w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_MISMATCH:
		sum_up_mismatch(inc, &w);
		break;
	case CW_CLASS_DEADLOCK:
		sum_up_cycle(inc);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (inc->main->partner != CW_SNAP_NONE) {
			say(v->summary, sizeof(v->summary),
			    "%s exchange different sizes in %s on %s%s", w.who.text, w.call.text,
			    w.comm.text, w.waiting);
			break;
		}
		say(v->summary, sizeof(v->summary),
		    "%s has not posted the counterpart of %s on %s%s", w.who.text, w.call.text,
		    w.comm.text, w.waiting);
		break;
	case CW_CLASS_INIT_STUCK:
		sum_up_init(inc, &w);
		break;
	case CW_CLASS_DEVICE_STALLED:
		say(v->summary, sizeof(v->summary),
		    "%s enqueued %s on %s, but its device is stuck in earlier work%s", w.who.text,
		    w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		say(v->summary, sizeof(v->summary),
		    "%s are inside %s on %s, nobody is missing, and it has not completed "
		    "for %s: network, GPU or NCCL",
		    w.victims.text, w.call.text, w.comm.text, w.since.text);
		break;
	default:
		sum_up_unknown(inc, &w);
		break;
	}
}

/* ---- what it is not ---- */

static int rule_out(struct incident *inc, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int rule_out(struct incident *inc, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	inc->v->ruled_out[inc->v->n_ruled_out] = arena_strdup(inc->arena, text);
	if (!inc->v->ruled_out[inc->v->n_ruled_out])
		return -ENOMEM;
	inc->v->n_ruled_out++;
	return 0;
}

static bool knows_call(const struct cw_snap_member *m, uint64_t seq)
{
	if (m->pending && position_is_step(m->pending) && m->pending->coll_seq == seq)
		return true;
	if (m->last && position_is_step(m->last) && m->last->coll_seq == seq)
		return true;
	for (uint32_t i = 0; i < m->n_window; i++)
		if (position_is_step(&m->window[i]) && m->window[i].coll_seq == seq)
			return true;
	return false;
}

static int rule_out_mismatch(struct incident *inc)
{
	const struct cw_snap_comm *c = &inc->s->snap->comms[inc->v->comm];
	uint32_t *ranks = arena_new_array(&inc->s->arena, uint32_t, c->nranks);
	struct phrase who, comm;
	uint32_t n = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE &&
		    knows_call(&c->members[m], inc->v->coll_seq))
			ranks[n++] = c->members[m].rank;
	if (n < 2 || inc->s->alignments[inc->v->comm].seq)
		return 0;
	return rule_out(inc, "no signatures differ at #%" PRIu64 " of %s on %s", inc->v->coll_seq,
			phrase_comm(inc->s->snap, inc->v->comm, &comm),
			phrase_ranks(inc->s->snap, ranks, n, &who));
}

static int list_ruled_out(struct incident *inc)
{
	const struct cw_snapshot *snap = inc->s->snap;
	uint32_t dead = 0, cycles = 0, silent = 0;
	int r = 0;

	inc->v->ruled_out = arena_new_array(inc->arena, char *, 4);
	if (!inc->v->ruled_out)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		dead += snap->ranks[i].liveness == CW_LIVE_UNKNOWN ||
			cw_liveness_is_dead(snap->ranks[i].liveness);
	for (uint32_t i = 0; i < inc->s->g.n_components; i++)
		cycles += inc->s->g.ranks_in[i] > 1;
	for (uint32_t i = 0; i < snap->n_nodes; i++)
		silent += snap->nodes[i].state != CW_NODE_REPORTING;
	if (inc->v->klass != CW_CLASS_MISMATCH && inc->v->coll_seq)
		r = rule_out_mismatch(inc);
	if (r == 0 && !dead)
		r = rule_out(inc, "all %" PRIu32 " processes that were seen are alive",
			     snap->n_ranks);
	if (r == 0 && !cycles)
		r = rule_out(inc, "nobody waits in a circle");
	if (r == 0 && !silent && snap->n_nodes)
		r = rule_out(inc, "all %" PRIu32 " nodes report", snap->n_nodes);
	return r;
}

static void explain_alternative(const struct incident *inc, struct cw_alternative *alt)
{
	struct phrase who;

	if (alt->n_culprits)
		say(alt->reason, sizeof(alt->reason), "some of the victims also wait for %s",
		    phrase_ranks(inc->s->snap, alt->culprits, alt->n_culprits, &who));
	else
		say(alt->reason, sizeof(alt->reason),
		    "some of the victims also wait in a call in which nobody is missing");
}

int explain_verdict(struct incident *inc)
{
	struct cw_verdict *v = inc->v;

	if (!inc->main) {
		say(v->summary, sizeof(v->summary), "nobody waits for anything that cannot come");
		return 0;
	}
	for (uint32_t i = 0; i < v->n_culprits; i++)
		explain_culprit(inc, &v->culprits[i]);
	for (uint32_t i = 0; i < v->n_alternatives; i++)
		explain_alternative(inc, &v->alternatives[i]);
	sum_up(inc);
	return list_ruled_out(inc);
}
