/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/wording.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/wording/phrase.h"
#include "analysis/wording/reason.h"
#include "analysis/wording/ruled_out.h"

/* ---- the one line ---- */

struct words {
	struct phrase who, victims, call, comm, since;
	char waiting[448]; /* "; ranks 0-2 have waited in it for 12 s" */
};

static void find_words(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snapshot *snap = diag->s->snap;
	bool elsewhere = v->n_victims && v->n_sides && v->n_victims > v->sides[0].n_ranks;

	if (v->n_culprits == 1) {
		(void)phrase_rank(snap, v->culprits[0].rank, &w->who);
	} else {
		uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);

		for (uint32_t i = 0; ranks && i < v->n_culprits; i++)
			ranks[i] = v->culprits[i].rank;
		(void)phrase_ranks(snap, ranks, ranks ? v->n_culprits : 0, &w->who);
	}
	(void)phrase_ranks(snap, v->victims, v->n_victims, &w->victims);
	if (v->n_sides && v->sides[0].has_op)
		(void)phrase_call(&v->sides[0].op, &w->call);
	else
		phrase_say(w->call.text, sizeof(w->call.text), "%s",
			   diag->main->gate == CW_SNAP_NONE
				   ? "a call"
				   : cw_op_kind_name(diag->s->g.gates[diag->main->gate].op_kind));
	(void)phrase_comm(snap, v->comm, &w->comm);
	(void)phrase_since(snap, v->waiting_since_ns, &w->since);
	w->waiting[0] = '\0';
	if (v->n_victims)
		phrase_say(w->waiting, sizeof(w->waiting), "; %s %s waited %s for %s",
			   w->victims.text, v->n_victims == 1 ? "has" : "have",
			   elsewhere ? "there or behind it" : "in it", w->since.text);
}

/* "between collective #128 and #192", or as far as that is known */
static const char *say_between(const struct cw_verdict *v, struct phrase *p)
{
	p->text[0] = '\0';
	if (v->after_seq)
		phrase_say(p->text, sizeof(p->text),
			   "between collective #%" PRIu64 " and #%" PRIu64, v->after_seq,
			   v->coll_seq);
	else
		phrase_say(p->text, sizeof(p->text), "before collective #%" PRIu64, v->coll_seq);
	return p->text;
}

/* The call has left all windows; who differs from whom has not. */
static void sum_up_histories(const struct diagnosis *diag, const struct words *w)
{
	const struct alignment *al = &diag->s->alignments[diag->main->comm];
	struct cw_verdict *v = diag->v;
	struct phrase where, most, other;

	(void)say_between(v, &where);
	(void)phrase_ranks(diag->s->snap, al->sides[0].ranks, al->sides[0].n_ranks, &most);
	(void)phrase_ranks(diag->s->snap, al->sides[1].ranks, al->sides[1].n_ranks, &other);
	if (al->majority != ALIGN_NO_SIDE)
		phrase_say(v->summary, sizeof(v->summary),
			   "%s made another call than %s on %s, %s; which one is not recorded any "
			   "more%s",
			   w->who.text, most.text, w->comm.text, where.text, w->waiting);
	else
		phrase_say(
			v->summary, sizeof(v->summary),
			"%s and %s made different calls on %s, %s; which one is not recorded any "
			"more%s",
			most.text, other.text, w->comm.text, where.text, w->waiting);
}

/* "rank 3 came with NCCL 2.21.5, ranks 0-2 came with NCCL 2.28.9; …" */
static void sum_up_setup(const struct diagnosis *diag, const struct words *w)
{
	const struct alignment *al = diag->main->setup;
	const struct cw_side *usual = &al->sides[0], *odd = &al->sides[1];
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	char *text = v->summary;
	size_t len = sizeof(v->summary);
	struct phrase ranks;

	phrase_say(text, len, "%s ", phrase_ranks(snap, odd->ranks, odd->n_ranks, &ranks));
	phrase_trait(snap, v->comm, odd->ranks[0], v->detail, text, len);
	(void)phrase_ranks(snap, usual->ranks, usual->n_ranks, &ranks);
	if (v->detail == CW_DETAIL_ENVIRONMENT) {
		phrase_say(text, len, ", %s", ranks.text);
	} else {
		phrase_say(text, len, ", %s ", ranks.text);
		phrase_trait(snap, v->comm, usual->ranks[0], v->detail, text, len);
	}
	phrase_say(text, len, "; %s of %s has not ended for %s", w->call.text, w->comm.text,
		   w->since.text);
}

static void sum_up_mismatch(const struct diagnosis *diag, const struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct alignment *al = scene_sides(diag->s, diag->main);
	char usual[96], odd[96];
	struct phrase most;

	if (diag->main->setup) {
		sum_up_setup(diag, w);
		return;
	}
	if (!al->knows_call) {
		sum_up_histories(diag, w);
		return;
	}
	if (al->majority == ALIGN_NO_SIDE) {
		phrase_say(diag->v->summary, sizeof(diag->v->summary),
			   "members of %s made different calls as #%" PRIu64
			   " (%s differs): %s against %s",
			   w->comm.text, v->coll_seq, cw_detail_name(v->detail),
			   cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			   cw_op_format(&v->sides[1].op, odd, sizeof(odd)));
		return;
	}
	(void)phrase_ranks(diag->s->snap, v->sides[0].ranks, v->sides[0].n_ranks, &most);
	if (v->detail == CW_DETAIL_MISSING)
		phrase_say(diag->v->summary, sizeof(diag->v->summary),
			   "%s skipped %s on %s, which %s called; it went on with %s%s",
			   w->who.text, cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			   w->comm.text, most.text, cw_op_format(&v->sides[1].op, odd, sizeof(odd)),
			   w->waiting);
	else if (v->detail == CW_DETAIL_EXTRA)
		phrase_say(diag->v->summary, sizeof(diag->v->summary),
			   "%s made an extra call, %s on %s, where %s called %s%s", w->who.text,
			   cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->comm.text, most.text,
			   cw_op_format(&v->sides[0].op, usual, sizeof(usual)), w->waiting);
	else
		phrase_say(diag->v->summary, sizeof(diag->v->summary),
			   "%s called %s on %s where %s called %s (%s differs)", w->who.text,
			   cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->comm.text, most.text,
			   cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			   cw_detail_name(v->detail));
}

static void sum_up_cycle(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	phrase_say(v->summary, sizeof(v->summary), "deadlock: ");
	for (uint32_t i = 0; i < v->n_chain; i++) {
		struct phrase who, call, comm;
		uint32_t rank = v->chain[i].rank;
		uint32_t next = v->chain[(i + 1) % v->n_chain].rank;

		/* Past four the circle is told by its numbers. */
		if (i == 4) {
			phrase_say(v->summary, sizeof(v->summary),
				   ", and so on round %" PRIu32 " ranks", v->n_chain);
			return;
		}
		phrase_say(v->summary, sizeof(v->summary), "%s waits in %s on %s",
			   i ? ", which" : phrase_ranks(diag->s->snap, &rank, 1, &who),
			   phrase_call(&v->chain[i].op, &call),
			   phrase_comm(diag->s->snap, v->chain[i].comm, &comm));
		phrase_say(v->summary, sizeof(v->summary), " for %s",
			   phrase_ranks(diag->s->snap, &next, 1, &who));
	}
}

static void sum_up_full_call(const struct diagnosis *diag, const struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	uint32_t n_completed = scene_n_completed(diag->s, gate);
	struct phrase inside;

	(void)phrase_ranks(diag->s->snap, gate->waiters, gate->n_waiters, &inside);
	if (n_completed)
		phrase_say(v->summary, sizeof(v->summary),
			   "%s %s been inside %s on %s for %s, which %" PRIu32 " of its %" PRIu32
			   " members have completed; nobody is missing: network, GPU or NCCL",
			   inside.text, gate->n_waiters == 1 ? "has" : "have", w->call.text,
			   w->comm.text, w->since.text, n_completed,
			   diag->s->snap->comms[v->comm].nranks);
	else
		phrase_say(
			v->summary, sizeof(v->summary),
			"%s %s inside %s on %s, nobody is missing, and it has not completed for %s: "
			"network, GPU or NCCL",
			inside.text, gate->n_waiters == 1 ? "is" : "are", w->call.text,
			w->comm.text, w->since.text);
	if (v->n_victims + v->n_culprits > gate->n_waiters)
		phrase_say(v->summary, sizeof(v->summary), "; %" PRIu32 " more wait behind it",
			   v->n_victims + v->n_culprits - gate->n_waiters);
}

static void sum_up_unknown(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];

	if (v->detail == CW_DETAIL_NOT_VISIBLE && v->n_culprits)
		phrase_say(v->summary, sizeof(v->summary),
			   "%s waited in %s on %s for %s; %s left no recording: dead, or kept from "
			   "writing one, as by a held interpreter lock",
			   w->victims.text, w->call.text, w->comm.text, w->since.text, w->who.text);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE)
		phrase_say(v->summary, sizeof(v->summary),
			   "%s waited in %s on %s for %s; %" PRIu32
			   " member%s of it cannot be seen and may be missing",
			   w->victims.text, w->call.text, w->comm.text, w->since.text,
			   gate->n_unseen, gate->n_unseen == 1 ? "" : "s");
	else if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN && scene_n_completed(diag->s, gate))
		phrase_say(v->summary, sizeof(v->summary),
			   "%s entered %s on %s %s ago, which others have completed; how far their "
			   "devices are is not known",
			   w->victims.text, w->call.text, w->comm.text, w->since.text);
	else if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN)
		phrase_say(v->summary, sizeof(v->summary),
			   "all members of %s have entered %s and %s not returned for %s; how far "
			   "their devices are is not known",
			   w->comm.text, w->call.text, w->victims.text, w->since.text);
	else if (v->detail == CW_DETAIL_LEFT_OUT)
		phrase_say(v->summary, sizeof(v->summary),
			   "%s waited in %s on %s for %s; whether who has not come is held up in a "
			   "call before is not known: it got no progress writes",
			   w->victims.text, w->call.text, w->comm.text, w->since.text);
	else
		phrase_say(v->summary, sizeof(v->summary),
			   "%s waited in %s on %s for %s; the node of the rank they wait for does "
			   "not report",
			   w->victims.text, w->call.text, w->comm.text, w->since.text);
}

static void sum_up_init(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];

	if (v->n_culprits)
		phrase_say(v->summary, sizeof(v->summary), "%s has not come to %s of %s%s",
			   w->who.text, w->call.text, w->comm.text, w->waiting);
	else if (gate->n_unseen)
		phrase_say(v->summary, sizeof(v->summary),
			   "%" PRIu32 " of %" PRIu32
			   " members have not been seen at %s of %s; %s waited in it for %s",
			   gate->n_unseen, diag->s->snap->comms[v->comm].nranks, w->call.text,
			   w->comm.text, w->victims.text, w->since.text);
	else
		phrase_say(v->summary, sizeof(v->summary),
			   "all members are inside %s of %s, which has not ended for %s",
			   w->call.text, w->comm.text, w->since.text);
}

/* "was killed by SIGKILL sent by …", as far as it is known; else "ended". */
static const char *how_they_ended(const struct diagnosis *diag, char *buf, size_t len)
{
	const struct cw_snap_rank *r;

	if (diag->v->n_culprits != 1)
		return "ended";
	r = &diag->s->snap->ranks[diag->v->culprits[0].rank];
	*buf = '\0';
	if (r->liveness == CW_LIVE_KILLED)
		phrase_say(buf, len, "was ");
	return *reason_of_death(r, buf + strlen(buf), len - strlen(buf)) ? buf : "ended";
}

/* Where: before the call the others wait in, or inside it. */
static const char *where_they_ended(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (!reason_died_inside(diag, diag->v->culprits[i].rank))
			return "before";
	return "inside";
}

/* "node-1 with ranks 4-7", or "the nodes of ranks 4-11" */
static const char *say_nodes(const struct diagnosis *diag, struct phrase *p)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_verdict *v = diag->v;
	uint32_t node = v->n_culprits ? snap->ranks[v->culprits[0].rank].node : CW_SNAP_NONE;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);
	struct phrase who;

	for (uint32_t i = 0; i < v->n_culprits; i++) {
		if (snap->ranks[v->culprits[i].rank].node != node)
			node = CW_SNAP_NONE;
		if (ranks)
			ranks[i] = v->culprits[i].rank;
	}
	(void)phrase_ranks(snap, ranks, ranks ? v->n_culprits : 0, &who);
	p->text[0] = '\0';
	if (node < snap->n_nodes)
		phrase_say(p->text, sizeof(p->text), "%.64s with %s", snap->nodes[node].name,
			   who.text);
	else
		phrase_say(p->text, sizeof(p->text), "the nodes of %s", who.text);
	return p->text;
}

/* What the device does not come to is not the call that the others wait in. */
static void sum_up_held(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct phrase call, comm;

	phrase_say(v->summary, sizeof(v->summary),
		   "%s enqueued %s on %s, but its device is stuck in earlier work", w->who.text,
		   phrase_call(diag->main->held, &call),
		   phrase_comm(diag->s->snap, diag->main->held_comm, &comm));
	if (v->n_victims)
		phrase_say(v->summary, sizeof(v->summary),
			   "; %s %s waited in %s on %s, or behind it, for %s", w->victims.text,
			   v->n_victims == 1 ? "has" : "have", w->call.text, w->comm.text,
			   w->since.text);
}

static void sum_up(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	struct words w = { 0 };
	struct phrase nodes;
	char how[192];

	find_words(diag, &w);
	switch (v->klass) {
	case CW_CLASS_PROCESS_DEAD:
		phrase_say(v->summary, sizeof(v->summary), "%s %s %s %s on %s%s", w.who.text,
			   how_they_ended(diag, how, sizeof(how)), where_they_ended(diag),
			   w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		phrase_say(v->summary, sizeof(v->summary), "%s stopped reporting before %s on %s%s",
			   say_nodes(diag, &nodes), w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_NEVER_ENTERED:
		phrase_say(v->summary, sizeof(v->summary), "%s never entered %s on %s%s",
			   w.who.text, w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_MISMATCH:
		sum_up_mismatch(diag, &w);
		break;
	case CW_CLASS_DEADLOCK:
		sum_up_cycle(diag);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (diag->main->partner != CW_SNAP_NONE) {
			phrase_say(v->summary, sizeof(v->summary),
				   "%s exchange different sizes in %s on %s%s", w.who.text,
				   w.call.text, w.comm.text, w.waiting);
			break;
		}
		phrase_say(v->summary, sizeof(v->summary),
			   "%s has not posted the counterpart of %s on %s%s", w.who.text,
			   w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_INIT_STUCK:
		sum_up_init(diag, &w);
		break;
	case CW_CLASS_DEVICE_STALLED:
		if (diag->main->held) {
			sum_up_held(diag, &w);
			break;
		}
		phrase_say(v->summary, sizeof(v->summary),
			   "%s enqueued %s on %s, but its device is stuck in earlier work%s",
			   w.who.text, w.call.text, w.comm.text, w.waiting);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		sum_up_full_call(diag, &w);
		break;
	default:
		sum_up_unknown(diag, &w);
		break;
	}
}

static void wording_of_alternative(const struct diagnosis *diag, struct cw_alternative *alt)
{
	struct phrase who;

	if (alt->klass == CW_CLASS_MISMATCH && diag->main->setup) {
		phrase_say(alt->reason, sizeof(alt->reason), "%s ",
			   phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
		phrase_trait(diag->s->snap, diag->v->comm, alt->culprits[0],
			     diag->main->setup->detail, alt->reason, sizeof(alt->reason));
	} else if (alt->klass == CW_CLASS_MISMATCH && diag->v->klass == CW_CLASS_NEVER_ENTERED)
		phrase_say(alt->reason, sizeof(alt->reason),
			   "%s may have made a call that the others were never to make",
			   phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
	else if (alt->n_culprits)
		phrase_say(alt->reason, sizeof(alt->reason), "some of the victims also wait for %s",
			   phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
	else
		phrase_say(alt->reason, sizeof(alt->reason),
			   "some of the victims also wait in a call in which nobody is missing");
}

int wording_of_verdict(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	if (!diag->main) {
		phrase_say(v->summary, sizeof(v->summary),
			   "nobody waits for anything that cannot come");
		return 0;
	}
	for (uint32_t i = 0; i < v->n_culprits; i++)
		reason_of_culprit(diag, &v->culprits[i]);
	for (uint32_t i = 0; i < v->n_alternatives; i++)
		wording_of_alternative(diag, &v->alternatives[i]);
	sum_up(diag);
	return ruled_out_list(diag);
}
