/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/wording.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/wording/phrase.h"
#include "analysis/wording/reason.h"
#include "analysis/wording/ruled_out.h"
#include "common/text.h"

/* ---- the text of an alert: the first of its sentences names the culprit ---- */

/* The summary lists at most this many nodes. If there are more, it gives their number. */
#define NODES_LISTED 3u

struct words {
	struct phrase who, victims, call, comm, since;
	const char *they; /* refers to the culprits after they are named */
	/*
	 * The culprits that are in the comm, and the culprits that some ranks wait for on another
	 * comm. All other culprits only share a process with these.
	 */
	struct phrase there, elsewhere;
	uint32_t n_there, one_there, n_elsewhere;
	char waiting[448]; /* ". Ranks 0-2 have been waiting for it for 12 s.", or "." */
};

static uint32_t job_size(const struct cw_snapshot *snap)
{
	return snap->n_ranks > snap->ranks_expected ? snap->n_ranks : snap->ranks_expected;
}

/* "the other 7 ranks" if these and the named ones are all ranks, else "ranks 0-2" */
static void say_others(const struct cw_snapshot *snap, const uint32_t *ranks, uint32_t n,
		       uint32_t n_named, uint32_t n_all, struct phrase *p)
{
	p->text[0] = '\0';
	if (!n_named || n + n_named != n_all)
		(void)phrase_ranks(snap, ranks, n, p);
	else if (n == 1)
		cw_text_append(p->text, sizeof(p->text), "the other rank");
	else
		cw_text_append(p->text, sizeof(p->text), "the other %" PRIu32 " ranks", n);
}

/* Appends a sentence with a capital letter at its beginning. */
static void say_sentence(char *text, size_t len, const char *sentence)
{
	size_t at = strlen(text);

	cw_text_append(text, len, "%s", sentence);
	if (text[at] >= 'a' && text[at] <= 'z')
		text[at] = (char)(text[at] - 'a' + 'A');
}

/* Writes "have been waiting for 12 s" or, with `what`, "has been waiting in it for 12 s". */
static const char *say_waiting(const struct cw_verdict *v, const struct words *w, const char *what,
			       struct phrase *p)
{
	p->text[0] = '\0';
	if (v->waiting_since_ns)
		cw_text_append(p->text, sizeof(p->text), "%s been waiting%s for %s",
			       v->n_victims == 1 ? "has" : "have", what, w->since.text);
	else
		cw_text_append(p->text, sizeof(p->text), "%s waiting%s",
			       v->n_victims == 1 ? "is" : "are", what);
	return p->text;
}

/* True if each victim waits in the call itself, and none in another call behind it. */
static bool all_wait_in(const struct diagnosis *diag)
{
	const struct gate *gate;
	uint32_t n = 0;

	if (diag->main->gate == CW_SNAP_NONE)
		return false;
	gate = &diag->s->g.gates[diag->main->gate];
	/* All waiters of the gate are victims, except those that are culprits. */
	for (uint32_t i = 0; i < gate->n_waiters; i++)
		n += !diag->is_culprit[gate->waiters[i]];
	return n >= diag->v->n_victims;
}

/* " in all_reduce #133 on world", with " or behind it" if some ranks wait in other calls. */
static void say_where(const struct diagnosis *diag, const struct words *w, char *text, size_t len)
{
	cw_text_append(text, len, " in %s on %s%s", w->call.text, w->comm.text,
		       all_wait_in(diag) ? "" : " or behind it");
}

/* Returns how many culprits the previous sentence names. */
static uint32_t n_named(const struct cw_verdict *v, const struct words *w)
{
	return v->verdict_class == CW_CLASS_NEVER_ENTERED ? w->n_there + w->n_elsewhere
							  : v->n_culprits;
}

/* Ends the first sentence and says which ranks wait, for which rank, and since when. */
static void find_waiting(const struct diagnosis *diag, struct words *w, const char *what)
{
	const struct cw_verdict *v = diag->v;
	struct phrase others, since;
	char sentence[400] = "";

	w->waiting[0] = '\0';
	if (!v->n_victims || diag->main->ended) { /* say_ended() names the waiting ranks */
		cw_text_append(w->waiting, sizeof(w->waiting), ".");
		return;
	}
	say_others(diag->s->snap, v->victims, v->n_victims, n_named(v, w), job_size(diag->s->snap),
		   &others);
	cw_text_append(sentence, sizeof(sentence), "%s %s.", others.text,
		       say_waiting(v, w, what, &since));
	cw_text_append(w->waiting, sizeof(w->waiting), ". ");
	say_sentence(w->waiting, sizeof(w->waiting), sentence);
}

static void say_culprits(const struct cw_snapshot *snap, const uint32_t *ranks, uint32_t n,
			 struct phrase *p)
{
	if (n == 1)
		(void)phrase_rank(snap, ranks[0], p);
	else
		(void)phrase_ranks(snap, ranks, n, p);
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
	(void)phrase_ranks(diag->s->snap, ranks, w->n_elsewhere, &w->elsewhere);
}

static void find_culprits(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);
	uint32_t n = ranks ? v->n_culprits : 0;

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = v->culprits[i].rank;
	say_culprits(snap, ranks, n, &w->who);
	for (uint32_t i = 0; i < n; i++)
		if (is_member(snap, v->comm, v->culprits[i].rank))
			ranks[w->n_there++] = v->culprits[i].rank;
	if (!w->n_there || w->n_there == n) {
		w->n_there = n;
		w->there = w->who;
		w->one_there = n == 1 ? ranks[0] : CW_SNAP_NONE;
		return;
	}
	say_culprits(snap, ranks, w->n_there, &w->there);
	w->one_there = w->n_there == 1 ? ranks[0] : CW_SNAP_NONE;
	find_culprits_elsewhere(diag, ranks, w);
}

static void find_words(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t n;

	find_culprits(diag, w);
	w->they = v->n_culprits == 1 ? "it" : "they";
	(void)phrase_ranks(snap, v->victims, v->n_victims, &w->victims);
	w->call.text[0] = '\0';
	if (v->n_sides && v->sides[0].has_op)
		(void)phrase_call(snap, v->comm, &v->sides[0].op, &w->call);
	else
		cw_text_append(w->call.text, sizeof(w->call.text), "%s",
			       diag->main->gate == CW_SNAP_NONE
				       ? "a call"
				       : phrase_kind(diag->s->g.gates[diag->main->gate].op_kind));
	(void)phrase_comm(snap, v->comm, &w->comm);
	(void)phrase_since(snap, v->waiting_since_ns, &w->since);
	n = n_named(v, w);
	find_waiting(diag, w, n == 1 ? " for it" : n ? " for them" : "");
}

/* "between collective #128 and #192", or "before collective #192" if the lower end is not known */
static const char *say_between(const struct cw_verdict *v, struct phrase *p)
{
	p->text[0] = '\0';
	if (v->after_seq)
		cw_text_append(p->text, sizeof(p->text),
			       "between collective #%" PRIu64 " and #%" PRIu64, v->after_seq,
			       v->coll_seq);
	else
		cw_text_append(p->text, sizeof(p->text), "before collective #%" PRIu64,
			       v->coll_seq);
	return p->text;
}

/* The differing call has left all windows. We still know which ranks differ from which. */
static void summarize_histories(const struct diagnosis *diag, struct words *w)
{
	const struct alignment *al = &diag->s->alignments[diag->main->comm];
	struct cw_verdict *v = diag->v;
	struct phrase where, most, other;

	(void)say_between(v, &where);
	find_waiting(diag, w, "");
	if (al->majority != ALIGN_NO_SIDE) {
		say_others(diag->s->snap, al->sides[0].ranks, al->sides[0].n_ranks, v->n_culprits,
			   diag->s->snap->comms[v->comm].nranks, &most);
		cw_text_append(
			v->summary, sizeof(v->summary),
			"%s made another call than %s on %s, %s; the call itself is no longer "
			"recorded%s",
			w->who.text, most.text, w->comm.text, where.text, w->waiting);
		return;
	}
	(void)phrase_ranks(diag->s->snap, al->sides[0].ranks, al->sides[0].n_ranks, &most);
	(void)phrase_ranks(diag->s->snap, al->sides[1].ranks, al->sides[1].n_ranks, &other);
	cw_text_append(
		v->summary, sizeof(v->summary),
		"%s and %s made different calls on %s, %s; the calls themselves are no longer "
		"recorded%s",
		most.text, other.text, w->comm.text, where.text, w->waiting);
}

/* "rank 3 loaded NCCL 2.21.5, ranks 0-2 loaded NCCL 2.28.9; …" */
static void summarize_setup(const struct diagnosis *diag, const struct words *w)
{
	const struct alignment *al = diag->main->setup;
	const struct cw_side *usual = &al->sides[0], *odd = &al->sides[1];
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	char *text = v->summary;
	size_t len = sizeof(v->summary);
	struct phrase ranks;

	cw_text_append(text, len, "%s ", phrase_ranks(snap, odd->ranks, odd->n_ranks, &ranks));
	phrase_trait(snap, v->comm, odd->ranks[0], v->detail, text, len);
	(void)phrase_ranks(snap, usual->ranks, usual->n_ranks, &ranks);
	if (v->detail == CW_DETAIL_ENVIRONMENT || v->detail == CW_DETAIL_ORDER) {
		cw_text_append(text, len, ", %s", ranks.text);
	} else {
		cw_text_append(text, len, ", %s ", ranks.text);
		phrase_trait(snap, v->comm, usual->ranks[0], v->detail, text, len);
	}
	cw_text_append(text, len, "; %s of %s has not finished for %s.", w->call.text, w->comm.text,
		       w->since.text);
}

/*
 * Names the one argument that differs: "count 512". Returns false if its text is equal on
 * both sides.
 */
static bool say_argument(enum cw_detail detail, const struct cw_op *op, struct phrase *p)
{
	p->text[0] = '\0';
	if (detail == CW_DETAIL_COUNT)
		cw_text_append(p->text, sizeof(p->text), "count %" PRIu64, op->count);
	else if (detail == CW_DETAIL_DTYPE)
		cw_text_append(p->text, sizeof(p->text), "type %s", cw_dtype_name(op->dtype));
	else if (detail == CW_DETAIL_REDOP)
		cw_text_append(p->text, sizeof(p->text), "operator %s", cw_redop_name(op->redop));
	else if (detail == CW_DETAIL_ROOT)
		cw_text_append(p->text, sizeof(p->text), "root %" PRId32, op->root);
	else
		return false;
	return true;
}

static void summarize_sides(const struct diagnosis *diag, const struct words *w,
			    const struct phrase *most)
{
	struct cw_verdict *v = diag->v;
	const struct cw_op *odd = &v->sides[1].op, *usual = &v->sides[0].op;
	struct phrase theirs, its;
	char text[96];

	if (v->detail == CW_DETAIL_KIND && odd->kind != usual->kind) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s called %s as #%" PRIu64 " on %s; %s called %s.", w->who.text,
			       phrase_kind(odd->kind), v->coll_seq, w->comm.text, most->text,
			       phrase_kind(usual->kind));
	} else if (odd->kind == usual->kind && say_argument(v->detail, odd, &its) &&
		   say_argument(v->detail, usual, &theirs) && strcmp(its.text, theirs.text) != 0) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s called %s #%" PRIu64 " on %s with %s; %s called it with %s.",
			       w->who.text, phrase_kind(odd->kind), v->coll_seq, w->comm.text,
			       its.text, most->text, theirs.text);
	} else {
		cw_text_append(v->summary, sizeof(v->summary), "%s called %s on %s", w->who.text,
			       cw_op_format(odd, text, sizeof(text)), w->comm.text);
		cw_text_append(v->summary, sizeof(v->summary), "; %s called %s (%s differs).",
			       most->text, cw_op_format(usual, text, sizeof(text)),
			       cw_detail_name(v->detail));
	}
}

/*
 * "was killed by SIGKILL sent by …", beginning with `were` ("was " or "were "). "ended" if the
 * cause is not known.
 */
static const char *how_it_ended(const struct cw_snap_rank *r, const char *were, char *buf,
				size_t len)
{
	*buf = '\0';
	if (!*reason_of_death(r, buf, len))
		return "ended";
	/* "killed itself" and "exited" need no "was" or "were". */
	if (r->liveness == CW_LIVE_KILLED && strncmp(buf, "killed itself", 13) != 0) {
		memmove(buf + strlen(were), buf, len - strlen(were));
		memcpy(buf, were, strlen(were));
		buf[len - 1] = '\0';
	}
	return buf;
}

/* " After that rank 3 exited with status 1, and ranks 0-1 have been waiting for 12 s." */
static void say_ended(const struct diagnosis *diag, const struct words *w)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_rank *r = diag->main->ended;
	struct cw_verdict *v = diag->v;
	uint32_t rank = (uint32_t)(r - snap->ranks);
	struct phrase who, since;
	char how[192];

	cw_text_append(v->summary, sizeof(v->summary), " After that %s %s",
		       phrase_rank(snap, rank, &who), how_it_ended(r, "was ", how, sizeof(how)));
	if (v->n_victims)
		cw_text_append(v->summary, sizeof(v->summary), ", and %s %s", w->victims.text,
			       say_waiting(v, w, "", &since));
	cw_text_append(v->summary, sizeof(v->summary), ".");
}

static void summarize_mismatch(const struct diagnosis *diag, struct words *w)
{
	const struct cw_verdict *v = diag->v;
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	char usual[96], odd[96];
	struct phrase most, other;

	if (diag->main->setup) {
		summarize_setup(diag, w);
		return;
	}
	if (!al->knows_call) {
		summarize_histories(diag, w);
		return;
	}
	find_waiting(diag, w, "");
	if (al->majority == ALIGN_NO_SIDE) {
		cw_text_append(
			diag->v->summary, sizeof(diag->v->summary),
			"the ranks of %s disagree on call #%" PRIu64 ": %s called %s, %s called "
			"%s (%s differs).",
			w->comm.text, v->coll_seq,
			phrase_ranks(diag->s->snap, v->sides[0].ranks, v->sides[0].n_ranks, &most),
			cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			phrase_ranks(diag->s->snap, v->sides[1].ranks, v->sides[1].n_ranks, &other),
			cw_op_format(&v->sides[1].op, odd, sizeof(odd)), cw_detail_name(v->detail));
		return;
	}
	say_others(diag->s->snap, v->sides[0].ranks, v->sides[0].n_ranks, v->n_culprits,
		   diag->s->snap->comms[v->comm].nranks, &most);
	if (v->detail == CW_DETAIL_MISSING)
		cw_text_append(diag->v->summary, sizeof(diag->v->summary),
			       "%s skipped %s on %s, which %s called, and went on with %s%s",
			       w->who.text, cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			       w->comm.text, most.text,
			       cw_op_format(&v->sides[1].op, odd, sizeof(odd)), w->waiting);
	else if (v->detail == CW_DETAIL_EXTRA)
		cw_text_append(diag->v->summary, sizeof(diag->v->summary),
			       "%s made an extra call on %s: %s, where %s called %s%s", w->who.text,
			       w->comm.text, cw_op_format(&v->sides[1].op, odd, sizeof(odd)),
			       most.text, cw_op_format(&v->sides[0].op, usual, sizeof(usual)),
			       w->waiting);
	else
		summarize_sides(diag, w, &most);
}

static void summarize_cycle(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	cw_text_append(v->summary, sizeof(v->summary), "deadlock: ");
	for (uint32_t i = 0; i < v->n_chain; i++) {
		struct phrase who, call, comm;
		uint32_t rank = v->chain[i].rank;
		uint32_t next = v->chain[(i + 1) % v->n_chain].rank;

		/* After four ranks of the cycle, the text gives only their number. */
		if (i == 4) {
			cw_text_append(v->summary, sizeof(v->summary),
				       ", and so on around a cycle of %" PRIu32 " ranks.",
				       v->n_chain);
			return;
		}
		cw_text_append(v->summary, sizeof(v->summary), "%s waits in %s on %s",
			       i ? ", which" : phrase_ranks(diag->s->snap, &rank, 1, &who),
			       phrase_call(diag->s->snap, v->chain[i].comm, &v->chain[i].op, &call),
			       phrase_comm(diag->s->snap, v->chain[i].comm, &comm));
		cw_text_append(v->summary, sizeof(v->summary), " for %s",
			       phrase_ranks(diag->s->snap, &next, 1, &who));
	}
	cw_text_append(v->summary, sizeof(v->summary), ".");
}

/* " on node-a (ranks 1,3) and node-b (ranks 5,7)", or " on 12 nodes" */
static void add_nodes(const struct diagnosis *diag, const struct gate *gate, char *text, size_t len)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, gate->n_waiters);
	uint32_t nodes[NODES_LISTED + 1], n_nodes = 0;

	if (!ranks)
		return;
	for (uint32_t i = 0; i < gate->n_waiters && n_nodes <= NODES_LISTED; i++) {
		uint32_t node = snap->ranks[gate->waiters[i]].node, k = 0;

		if (node >= snap->n_nodes)
			return;
		while (k < n_nodes && nodes[k] != node)
			k++;
		if (k == n_nodes)
			nodes[n_nodes++] = node;
	}
	if (n_nodes > NODES_LISTED) {
		cw_text_append(text, len, " on their nodes");
		return;
	}
	for (uint32_t k = 0; k < n_nodes; k++) {
		struct phrase who;
		uint32_t n = 0;

		for (uint32_t i = 0; i < gate->n_waiters; i++)
			if (snap->ranks[gate->waiters[i]].node == nodes[k])
				ranks[n++] = gate->waiters[i];
		cw_text_append(text, len, "%s%.64s (%s)",
			       k == 0             ? " on "
			       : k + 1 == n_nodes ? " and "
						  : ", ",
			       snap->nodes[nodes[k]].name, phrase_ranks(snap, ranks, n, &who));
	}
}

static bool is_inside(const struct gate *gate, uint32_t rank)
{
	for (uint32_t i = 0; i < gate->n_waiters; i++)
		if (gate->waiters[i] == rank)
			return true;
	return false;
}

/* A stopped process also stops the threads that move the data of the other ranks. */
static void summarize_halted(const struct diagnosis *diag, struct words *w, const char *how,
			     const struct phrase *inside)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	uint32_t n_behind = v->n_victims - gate->n_waiters;

	if (is_inside(gate, v->culprits[0].rank)) {
		find_waiting(diag, w, "");
		cw_text_append(v->summary, sizeof(v->summary), "%s is %s inside %s on %s%s",
			       w->who.text, how, w->call.text, w->comm.text, w->waiting);
		return;
	}
	cw_text_append(
		v->summary, sizeof(v->summary),
		"%s is %s, with its own part of %s on %s done; %s %s been inside it for %s, and "
		"its threads may have their data to hand on.",
		w->who.text, how, w->call.text, w->comm.text, inside->text,
		gate->n_waiters == 1 ? "has" : "have", w->since.text);
	if (v->n_victims > gate->n_waiters)
		cw_text_append(v->summary, sizeof(v->summary), " %" PRIu32 " more %s behind them.",
			       n_behind, n_behind == 1 ? "rank waits" : "ranks wait");
}

static void summarize_full_call(const struct diagnosis *diag, struct words *w)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	uint32_t n_completed = engine_context_n_completed(diag->s, gate);
	uint32_t nranks = diag->s->snap->comms[v->comm].nranks;
	struct phrase inside;
	char how[192];

	(void)phrase_ranks(diag->s->snap, gate->waiters, gate->n_waiters, &inside);
	if (v->n_culprits == 1 && *reason_of_halt(diag, v->culprits[0].rank, how, sizeof(how))) {
		summarize_halted(diag, w, how, &inside);
		return;
	}
	if (n_completed)
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s %s not finished %s on %s, which %" PRIu32 " of its %" PRIu32
			       " members have completed; nothing has moved there for %s.",
			       inside.text, gate->n_waiters == 1 ? "has" : "have", w->call.text,
			       w->comm.text, n_completed, nranks, w->since.text);
	else if (gate->n_waiters == nranks && nranks > 1 && gate->kind != GATE_P2P)
		cw_text_append(v->summary, sizeof(v->summary),
			       "all %" PRIu32
			       " ranks of %s entered %s and none has finished for %s.",
			       nranks, w->comm.text, w->call.text, w->since.text);
	else
		cw_text_append(
			v->summary, sizeof(v->summary),
			"%s entered %s on %s, nobody is missing, and it has not finished for %s.",
			inside.text, w->call.text, w->comm.text, w->since.text);
	cw_text_append(v->summary, sizeof(v->summary),
		       v->blind_spots & CW_BLIND_OF_CALL
			       ? " Check network, GPUs and NCCL"
			       : " Not the program: check network, GPUs and NCCL");
	add_nodes(diag, gate, v->summary, sizeof(v->summary));
	cw_text_append(v->summary, sizeof(v->summary), ".");
	if (v->n_victims + v->n_culprits > gate->n_waiters)
		cw_text_append(v->summary, sizeof(v->summary), " %" PRIu32 " more %s behind it.",
			       v->n_victims + v->n_culprits - gate->n_waiters,
			       v->n_victims + v->n_culprits - gate->n_waiters == 1 ? "rank waits"
										   : "ranks wait");
}

/* True if all culprits left recordings without a call. */
static bool have_empty_recordings(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (!phrase_is_empty_recording(&diag->s->snap->ranks[diag->v->culprits[i].rank]))
			return false;
	return true;
}

/* True if all members with an unknown place left recordings, which do not contain the place. */
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

static void summarize_unknown(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	char where[256] = "";
	struct phrase since;

	say_where(diag, w, where, sizeof(where));
	if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN && engine_context_n_completed(diag->s, gate)) {
		cw_text_append(
			v->summary, sizeof(v->summary),
			"%s entered %s on %s %s ago, and others have completed it; the progress "
			"of their devices is not known.",
			w->victims.text, w->call.text, w->comm.text, w->since.text);
		return;
	}
	if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN && gate->kind != GATE_COLLECTIVE) {
		/*
		 * A message has two ends, and a rooted call may not need all members, so we name
		 * no member.
		 */
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s %s; no rank is seen to be missing there, and the progress of "
			       "their devices is not known.",
			       w->victims.text, say_waiting(v, w, where, &since));
		return;
	}
	if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN) {
		cw_text_append(
			v->summary, sizeof(v->summary),
			"all ranks of %s entered %s, and %s %s not returned for %s; the progress "
			"of their devices is not known.",
			w->comm.text, w->call.text, w->victims.text,
			v->n_victims == 1 ? "has" : "have", w->since.text);
		return;
	}
	cw_text_append(v->summary, sizeof(v->summary), "%s %s", w->victims.text,
		       say_waiting(v, w, where, &since));
	if (v->detail == CW_DETAIL_NOT_VISIBLE && v->n_culprits && have_empty_recordings(diag))
		cw_text_append(v->summary, sizeof(v->summary),
			       "; %s left a recording without a call, so its place is not known.",
			       w->who.text);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE && v->n_culprits)
		cw_text_append(v->summary, sizeof(v->summary),
			       "; %s left no recording: dead, or unable to write one (a held "
			       "interpreter lock, for example).",
			       w->who.text);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE && are_unseen_recorded(diag, gate))
		cw_text_append(v->summary, sizeof(v->summary),
			       "; the recordings do not tell whether %" PRIu32
			       " of its ranks entered it.",
			       gate->n_unseen);
	else if (v->detail == CW_DETAIL_NOT_VISIBLE)
		cw_text_append(v->summary, sizeof(v->summary),
			       "; %" PRIu32 " of its ranks %s not visible and may be missing.",
			       gate->n_unseen, gate->n_unseen == 1 ? "is" : "are");
	else if (v->detail == CW_DETAIL_PROGRESS_UNTRACKED)
		cw_text_append(v->summary, sizeof(v->summary),
			       "; the missing rank may be stuck in an earlier call whose device "
			       "progress was not recorded.");
	else if (v->detail == CW_DETAIL_NODE_SILENT || v->detail == CW_DETAIL_DAEMON_RESTARTING)
		cw_text_append(v->summary, sizeof(v->summary),
			       "; the node of the rank they wait for does not report.");
	else
		cw_text_append(v->summary, sizeof(v->summary),
			       "; which rank they wait for is not recorded.");
}

/* All ranks of the job wait, and some of them wait in a comm_init that no rank is left to enter. */
static void say_crossed(const struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *making = cw_arena_new_array(&diag->s->arena, uint32_t, snap->n_ranks);
	struct cw_verdict *v = diag->v;
	struct phrase who;
	uint32_t n = 0;

	for (uint32_t r = 0; making && r < snap->n_ranks; r++)
		if (waitgraph_is_making(&diag->s->g, r))
			making[n++] = r;
	if (n && n < snap->n_ranks) {
		cw_text_append(v->summary, sizeof(v->summary), " ");
		(void)phrase_ranks(snap, making, n, &who);
		say_sentence(v->summary, sizeof(v->summary), who.text);
		cw_text_append(v->summary, sizeof(v->summary),
			       " wait in one of %" PRIu32 " such calls, all other ranks of the "
			       "job behind them,",
			       v->n_crossed);
	} else {
		cw_text_append(v->summary, sizeof(v->summary),
			       " All %" PRIu32 " ranks of the job wait in one of %" PRIu32
			       " such calls,",
			       snap->n_ranks, v->n_crossed);
	}
	cw_text_append(v->summary, sizeof(v->summary), " and nobody is left to come to any.");
}

/*
 * Members that no node has reported. We name them if the comm's ranks are numbered like the job's.
 */
static void summarize_unseen(const struct diagnosis *diag, const struct words *w,
			     const struct gate *gate)
{
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	struct phrase absent, since;

	if (gate->n_again && gate->n_again == gate->n_unseen) {
		cw_text_append(
			v->summary, sizeof(v->summary),
			"%" PRIu32 " of the %" PRIu32 " ranks of %s left %s, and %s making another "
			"communicator; %s %s.",
			gate->n_again, snap->comms[v->comm].nranks, w->comm.text, w->call.text,
			gate->n_again == 1 ? "is" : "are", w->victims.text,
			say_waiting(v, w, all_wait_in(diag) ? " in it" : " in it or behind it",
				    &since));
		if (v->n_crossed)
			say_crossed(diag);
		return;
	}
	if (gate->unseen)
		cw_text_append(v->summary, sizeof(v->summary), "%s of",
			       phrase_labels(gate->unseen, gate->n_unseen, &absent));
	else
		cw_text_append(v->summary, sizeof(v->summary),
			       "%" PRIu32 " of the %" PRIu32 " ranks of", gate->n_unseen,
			       snap->comms[v->comm].nranks);
	cw_text_append(
		v->summary, sizeof(v->summary), " %s %s not been seen in %s; %s %s.", w->comm.text,
		gate->n_unseen == 1 ? "has" : "have", w->call.text, w->victims.text,
		say_waiting(v, w, all_wait_in(diag) ? " in it" : " in it or behind it", &since));
	if (v->n_crossed)
		say_crossed(diag);
}

/*
 * "failed in ncclCommInitRank on world with ncclSystemError (…)". The error is named if all
 * culprits share it.
 */
static void say_failed_call(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct failed_call call = { 0 }, other;
	bool is_one_result = true, is_one_text = true;
	struct phrase error;

	(void)engine_context_failed_call(diag->s, diag->main->gate, v->culprits[0].rank, &call);
	for (uint32_t i = 1; i < v->n_culprits; i++) {
		(void)engine_context_failed_call(diag->s, diag->main->gate, v->culprits[i].rank,
						 &other);
		is_one_result = is_one_result && other.result == call.result;
		is_one_text = is_one_text &&
			      strcmp(other.text ? other.text : "", call.text ? call.text : "") == 0;
	}
	cw_text_append(v->summary, sizeof(v->summary), "%s failed in %s on %s with %s", w->who.text,
		       phrase_kind(call.kind), w->comm.text,
		       is_one_result
			       ? phrase_error(call.result, is_one_text ? call.text : "", &error)
			       : "different errors of NCCL");
}

/* " Its process is now outside NCCL." For several culprits, only if all are in the same place. */
static void say_where_they_are(const struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	char place[192], other[192];

	(void)reason_of_place(diag, v->culprits[0].rank, place, sizeof(place));
	for (uint32_t i = 1; i < v->n_culprits; i++)
		if (strcmp(reason_of_place(diag, v->culprits[i].rank, other, sizeof(other)),
			   place) != 0)
			return;
	if (*place)
		cw_text_append(v->summary, sizeof(v->summary), " %s now %s.",
			       v->n_culprits == 1 ? "Its process is" : "Their processes are",
			       place);
}

static void summarize_failed(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;

	say_failed_call(diag, w);
	cw_text_append(v->summary, sizeof(v->summary), "%s", w->waiting);
	say_where_they_are(diag);
}

/* True if the rank was in the call and gave up the communicator that the call was to make. */
static bool has_given_up_making(const struct diagnosis *diag)
{
	return diag->s->g.gates[diag->main->gate].kind == GATE_INIT &&
	       (diag->v->detail == CW_DETAIL_ABORTED || diag->v->detail == CW_DETAIL_DESTROYED);
}

static void summarize_init(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	char how[192];

	if (v->detail == CW_DETAIL_FAILED && v->n_culprits) {
		summarize_failed(diag, w);
	} else if (v->n_culprits && has_given_up_making(diag)) {
		cw_text_append(v->summary, sizeof(v->summary), "%s %s %s before %s had finished%s",
			       w->who.text, cw_detail_name(v->detail), w->comm.text, w->call.text,
			       w->waiting);
	} else if (v->n_culprits == 1 && is_inside(gate, v->culprits[0].rank) &&
		   *reason_of_halt(diag, v->culprits[0].rank, how, sizeof(how))) {
		find_waiting(diag, w, "");
		cw_text_append(v->summary, sizeof(v->summary), "%s is %s inside %s of %s%s",
			       w->who.text, how, w->call.text, w->comm.text, w->waiting);
	} else if (v->n_culprits == 1 &&
		   *reason_of_halt(diag, v->culprits[0].rank, how, sizeof(how))) {
		find_waiting(diag, w, all_wait_in(diag) ? " in it" : " in it or behind it");
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s is %s and has not called %s for %s%s", w->who.text, how,
			       w->call.text, w->comm.text, w->waiting);
	} else if (v->n_culprits) {
		find_waiting(diag, w, all_wait_in(diag) ? " in it" : " in it or behind it");
		cw_text_append(v->summary, sizeof(v->summary), "%s %s not called %s for %s%s",
			       w->who.text, v->n_culprits == 1 ? "has" : "have", w->call.text,
			       w->comm.text, w->waiting);
	} else if (gate->n_unseen) {
		summarize_unseen(diag, w, gate);
	} else if (gate->n_waiters == diag->s->snap->comms[v->comm].nranks) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "all ranks of %s are inside %s, which has not finished for %s.",
			       w->comm.text, w->call.text, w->since.text);
	} else {
		struct phrase inside;

		cw_text_append(v->summary, sizeof(v->summary),
			       "%s %s been inside %s on %s for %s, and no other rank is missing.",
			       phrase_ranks(diag->s->snap, gate->waiters, gate->n_waiters, &inside),
			       gate->n_waiters == 1 ? "has" : "have", w->call.text, w->comm.text,
			       w->since.text);
	}
}

/*
 * True if both texts on a death are equal and may be said of several ranks. "killed itself"
 * may not.
 */
static bool have_one_cause(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0 && strncmp(a, "killed itself", 13) != 0;
}

/*
 * True if all culprits ended in the same way, and the kernel's facts do not concern one rank alone.
 */
static bool have_ended_alike(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;
	const struct cw_snap_rank *ranks = diag->s->snap->ranks;
	const struct cw_snap_rank *first = &ranks[v->culprits[0].rank];

	for (uint32_t i = 0; i < v->n_culprits; i++) {
		const struct cw_snap_rank *r = &ranks[v->culprits[i].rank];

		if (!have_one_cause(r->cause, first->cause) || r->liveness != first->liveness ||
		    r->exit_code != first->exit_code || r->term_signal != first->term_signal ||
		    (r->flags ^ first->flags) & CW_RANKF_OOM_KILLED)
			return false;
	}
	return true;
}

/* Says how the culprits ended, if this is known and the same for all; else "ended". */
static const char *how_they_ended(const struct diagnosis *diag, char *buf, size_t len)
{
	const struct cw_verdict *v = diag->v;

	if (!v->n_culprits || (v->n_culprits > 1 && !have_ended_alike(diag)))
		return "ended";
	return how_it_ended(&diag->s->snap->ranks[v->culprits[0].rank],
			    v->n_culprits == 1 ? "was " : "were ", buf, len);
}

/* True if all culprits ended inside the call that the others wait in, not before it. */
static bool ended_inside(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (!reason_died_inside(diag, diag->v->culprits[i].rank))
			return false;
	return true;
}

/* True if some culprit made the call and the call returned before the device had run it. */
static bool has_entered_any(const struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (reason_has_entered(diag, diag->v->culprits[i].rank))
			return true;
	return false;
}

/*
 * The verb in " before it could enter …". It depends on the call and on how far the culprits came.
 */
static const char *what_they_could_not(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;

	if (v->n_sides && v->sides[0].has_op && cw_op_is_p2p(v->sides[0].op.kind))
		return "post the counterpart of";
	return has_entered_any(diag) ? "finish" : "enter";
}

static void summarize_dead(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	char how[192];

	if (v->has_failed_call) {
		say_failed_call(diag, w);
		cw_text_append(v->summary, sizeof(v->summary), " and %s%s",
			       how_they_ended(diag, how, sizeof(how)), w->waiting);
		return;
	}
	cw_text_append(v->summary, sizeof(v->summary), "%s %s ", w->who.text,
		       how_they_ended(diag, how, sizeof(how)));
	if (ended_inside(diag))
		cw_text_append(v->summary, sizeof(v->summary), "inside ");
	else
		cw_text_append(v->summary, sizeof(v->summary), "before %s could %s ",
			       w->n_there == v->n_culprits ? w->they : w->there.text,
			       what_they_could_not(diag));
	cw_text_append(v->summary, sizeof(v->summary), "%s on %s%s", w->call.text, w->comm.text,
		       w->waiting);
}

/* True if some rank also waits for them on another comm. */
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

/* "node-1 (ranks 4-7) has not been heard from for 18 s", or "the nodes of ranks 4-11 have not …" */
static void summarize_nodes(const struct diagnosis *diag, struct words *w)
{
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	uint32_t node = v->n_culprits ? snap->ranks[v->culprits[0].rank].node : CW_SNAP_NONE;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, v->n_culprits);
	struct phrase who, silent;
	char where[256] = "";

	for (uint32_t i = 0; i < v->n_culprits; i++) {
		if (snap->ranks[v->culprits[i].rank].node != node)
			node = CW_SNAP_NONE;
		if (ranks)
			ranks[i] = v->culprits[i].rank;
	}
	(void)phrase_ranks(snap, ranks, ranks ? v->n_culprits : 0, &who);
	if (node < snap->n_nodes && snap->nodes[node].last_digest_ns)
		cw_text_append(v->summary, sizeof(v->summary),
			       "%.64s (%s) has not been heard from for %s", snap->nodes[node].name,
			       who.text,
			       phrase_since(snap, snap->nodes[node].last_digest_ns, &silent));
	else if (node < snap->n_nodes)
		cw_text_append(v->summary, sizeof(v->summary), "%.64s (%s) has stopped reporting",
			       snap->nodes[node].name, who.text);
	else
		cw_text_append(v->summary, sizeof(v->summary),
			       "the nodes of %s have stopped reporting", who.text);
	if (all_wait_in(diag) || !is_waited_for_elsewhere(diag))
		say_where(diag, w, where, sizeof(where));
	else
		cw_text_append(where, sizeof(where), " in %s on %s or elsewhere", w->call.text,
			       w->comm.text);
	find_waiting(diag, w, where);
	cw_text_append(v->summary, sizeof(v->summary), "%s", w->waiting);
}

/* The call that the device has not reached differs from the call that the others wait in. */
static void summarize_held(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;
	struct phrase call, comm;
	char where[256] = "";

	say_where(diag, w, where, sizeof(where));
	find_waiting(diag, w, where);
	cw_text_append(v->summary, sizeof(v->summary),
		       "%s enqueued %s on %s, but %s device is stuck in earlier work%s",
		       w->who.text,
		       phrase_call(diag->s->snap, diag->main->held_comm, diag->main->held, &call),
		       phrase_comm(diag->s->snap, diag->main->held_comm, &comm),
		       v->n_culprits == 1 ? "its" : "their", w->waiting);
}

/* "rank 2 has been sending to rank 3 on pp (#31) for 2 s, but rank 3 never posted the recv." */
static void summarize_unposted(const struct diagnosis *diag, const struct words *w)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_op *op;
	const struct waitgraph *g = &diag->s->g;
	struct cw_verdict *v = diag->v;
	const struct cw_side *side = v->n_sides ? &v->sides[0] : NULL;
	struct phrase one, it, call, comm;
	bool sends;

	if (!side || !side->has_op || side->n_ranks != 1 || v->n_culprits != 1 ||
	    !cw_op_is_p2p(side->op.kind) || !v->waiting_since_ns) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s never posted the counterpart of %s on %s%s", w->who.text,
			       w->call.text, w->comm.text, w->waiting);
		return;
	}
	op = engine_context_call_with(diag->s, diag->v->comm, side, v->culprits[0].rank);
	if (!op) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s never posted the counterpart of a call on %s%s", w->who.text,
			       w->comm.text, w->waiting);
		return;
	}
	sends = op->kind == CW_OP_SEND;
	(void)phrase_ranks(snap, &v->culprits[0].rank, 1, &it);
	cw_text_append(v->summary, sizeof(v->summary),
		       "%s has been %s %s on %s (#%" PRIu64
		       ") for %s, but %s never posted the matching "
		       "%s",
		       phrase_ranks(snap, side->ranks, 1, &one),
		       sends ? "sending to" : "receiving from", w->who.text, w->comm.text,
		       op->p2p_seq, w->since.text, it.text, sends ? "recv" : "send");
	if (waitgraph_waits(g, v->culprits[0].rank)) {
		const struct gate *gate = &g->gates[g->waits[g->wait_start[v->culprits[0].rank]]];

		if (gate->op)
			cw_text_append(v->summary, sizeof(v->summary),
				       "; it is already in %s on %s",
				       phrase_call(snap, gate->comm, gate->op, &call),
				       phrase_comm(snap, gate->comm, &comm));
	}
	cw_text_append(v->summary, sizeof(v->summary), ".");
	if (v->n_victims > 1)
		cw_text_append(v->summary, sizeof(v->summary), " %" PRIu32 " more %s behind them.",
			       v->n_victims - 1, v->n_victims == 2 ? "rank waits" : "ranks wait");
}

/*
 * "rank 1 sent a message to rank 2 on pp that rank 2 never received (31 sent, 30 received)."
 * "rank 1 sent 1024 bytes to rank 2 on pp as message #31, and rank 2 received 512."
 */
static void summarize_messages(const struct diagnosis *diag, const struct words *w)
{
	const struct message_fault *f = diag->main->messages;
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_comm *c = &snap->comms[diag->main->comm];
	struct cw_verdict *v = diag->v;
	struct phrase one, other;
	const char *from = phrase_ranks(snap, &c->members[f->sender].rank, 1, &one);
	const char *to = phrase_ranks(snap, &c->members[f->receiver].rank, 1, &other);

	if (f->send)
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s sent %" PRIu64 " bytes to %s on %s as message #%" PRIu64
			       ", and %s received %" PRIu64 " as that",
			       from, f->send->bytes, to, w->comm.text, f->send->p2p_seq, to,
			       f->recv->bytes);
	else if (f->detail == CW_DETAIL_SIZE)
		cw_text_append(v->summary, sizeof(v->summary),
			       "the sizes that %s sent to %s on %s are not those that %s received "
			       "(%" PRIu64 " message%s)",
			       from, to, w->comm.text, to, f->sends, f->sends == 1 ? "" : "s");
	else if (f->sends > f->recvs)
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s sent to %s on %s what %s never received (%" PRIu64
			       " message%s sent, %" PRIu64 " received)",
			       from, to, w->comm.text, to, f->sends, f->sends == 1 ? "" : "s",
			       f->recvs);
	else
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s posted receives from %s on %s for what %s never sent (%" PRIu64
			       " posted, %" PRIu64 " message%s sent)",
			       to, from, w->comm.text, from, f->recvs, f->sends,
			       f->sends == 1 ? "" : "s");
	if (f->n_pairs > 1)
		cw_text_append(v->summary, sizeof(v->summary), "; likewise %" PRIu32 " more %s",
			       f->n_pairs - 1, f->n_pairs == 2 ? "pair" : "pairs");
	cw_text_append(v->summary, sizeof(v->summary), ". No rank waits for it.");
}

/*
 * "rank 1 and the others disagree on the size of all_to_all #22 on experts: what they send and what
 * they expect do not add up. Ranks 0,2 have been waiting in it for 90 s."
 */
static void summarize_uneven(const struct diagnosis *diag, struct words *w)
{
	struct cw_verdict *v = diag->v;

	find_waiting(diag, w, "");
	cw_text_append(v->summary, sizeof(v->summary),
		       "%s disagree%s on the size of %s on %s: what all of them send and what they "
		       "expect do not add up%s%s",
		       v->n_culprits ? w->who.text : "the ranks",
		       v->n_culprits == 1 ? "s with the others" : "", w->call.text, w->comm.text,
		       v->n_culprits ? "" : ", and whose size is wrong is not recorded",
		       w->waiting);
}

/*
 * Two ranks that disagree on the size of a message, or one rank that disagrees with several others.
 */
static void summarize_sizes(const struct diagnosis *diag, struct words *w)
{
	const struct finding *f = diag->main;
	struct cw_verdict *v = diag->v;
	struct phrase other;

	find_waiting(diag, w, "");
	if (v->n_culprits == 1)
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s disagrees with several ranks, %s among them, on the size of "
			       "what they exchange on %s%s",
			       w->who.text,
			       phrase_ranks(diag->s->snap,
					    v->culprits[0].rank == f->rank ? &f->partner : &f->rank,
					    1, &other),
			       w->comm.text, w->waiting);
	else
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s disagree on the size of %s on %s%s", w->who.text, w->call.text,
			       w->comm.text, w->waiting);
}

/* If something keeps the rank from running, we say that rather than that the rank is missing. */
static void summarize_absent(const struct diagnosis *diag, const struct words *w)
{
	struct cw_verdict *v = diag->v;
	char how[192];

	cw_text_append(v->summary, sizeof(v->summary), "%s ", w->there.text);
	if (w->one_there != CW_SNAP_NONE && *reason_of_halt(diag, w->one_there, how, sizeof(how)))
		cw_text_append(v->summary, sizeof(v->summary), "is %s and ", how);
	cw_text_append(v->summary, sizeof(v->summary), "never reached %s on %s", w->call.text,
		       w->comm.text);
	if (w->n_elsewhere)
		cw_text_append(v->summary, sizeof(v->summary), "; %s %s missing elsewhere",
			       w->elsewhere.text, w->n_elsewhere == 1 ? "is" : "are");
	cw_text_append(v->summary, sizeof(v->summary), "%s", w->waiting);
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
		cw_text_append(v->summary, sizeof(v->summary),
			       "%s enqueued %s on %s, but %s device is stuck in earlier work%s",
			       w.who.text, w.call.text, w.comm.text,
			       v->n_culprits == 1 ? "its" : "their", w.waiting);
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
	struct phrase who;

	if (alt->verdict_class == CW_CLASS_MISMATCH && diag->main->setup) {
		cw_text_append(alt->reason, sizeof(alt->reason), "%s ",
			       phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
		phrase_trait(diag->s->snap, diag->v->comm, alt->culprits[0],
			     diag->main->setup->detail, alt->reason, sizeof(alt->reason));
	} else if (alt->verdict_class == CW_CLASS_MISMATCH &&
		   diag->v->verdict_class == CW_CLASS_NEVER_ENTERED)
		cw_text_append(alt->reason, sizeof(alt->reason),
			       "%s may have made a call that no other rank makes",
			       phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
	else if (alt->n_culprits)
		cw_text_append(alt->reason, sizeof(alt->reason),
			       "some of the waiting ranks also wait for %s",
			       phrase_ranks(diag->s->snap, alt->culprits, alt->n_culprits, &who));
	else
		cw_text_append(
			alt->reason, sizeof(alt->reason),
			"some of the waiting ranks wait in a call that all its members entered");
}

int wording_of_verdict(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	if (!diag->main) {
		cw_text_append(v->summary, sizeof(v->summary),
			       "no rank is blocked on a call that cannot complete");
		return 0;
	}
	for (uint32_t i = 0; i < v->n_culprits; i++)
		reason_of_culprit(diag, &v->culprits[i]);
	for (uint32_t i = 0; i < v->n_alternatives; i++)
		wording_of_alternative(diag, &v->alternatives[i]);
	summarize(diag);
	return ruled_out_list(diag);
}
