/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each reading has targets of its own, because the suspects may change. We keep a digest of each
 * stack instead of the document, which may be large. A process of the newest reading gets a
 * sentence with its stacks in all readings.
 */
#include "leader/incident/earlier_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/messages.h"
#include "report/json_util.h"
#include "report/stacks/stack_signature.h"

void cw_earlier_stacks_init(struct cw_earlier_stacks *e,
			    const struct cw_earlier_stacks_config *config)
{
	*e = (struct cw_earlier_stacks){ .config = *config };
	for (uint32_t i = 0; i < CW_EARLIER_STACKS; i++)
		e->readings[i].owner = e;
}

void cw_earlier_stacks_reset(struct cw_earlier_stacks *e)
{
	const struct cw_leader_effects *effects = e->config.effects;

	for (uint32_t i = 0; i < e->n; i++) {
		effects->cancel(effects->user, &e->readings[i]);
		cw_evidence_set_fini(&e->readings[i].set);
		memset(e->readings[i].seen, 0, sizeof(e->readings[i].seen));
	}
	e->key = (struct cw_verdict_key){ 0 };
	e->n = e->stage = e->n_stacks = 0;
	e->has_answer = false;
}

/* ---- answers ---- */

static int64_t run_ns_of(const json_t *doc)
{
	const json_t *threads = json_object_get(json_object_get(doc, "python"), "threads");

	/* A brief document has only the thread that shows the position. */
	return cw_json_int(json_array_get(threads, 0), "run_ns", 0);
}

/* Keeps a digest of the stack. A document without a stack leaves *ret unchanged. */
static bool digest(const struct cw_earlier_stacks *e, const json_t *doc,
		   struct cw_stack_reading *ret)
{
	struct cw_stack_signature list[CW_STACK_SIGNATURES_MAX];
	double age_s = json_number_value(json_object_get(doc, "age_s"));
	int64_t now = cw_clock_now_ns(e->config.clock);

	if (cw_stack_signatures_read(doc, list) == 0 || !*list[0].place || !(age_s >= 0) ||
	    age_s > (double)CW_EARLIER_STACKS_MS / 1000)
		return false;
	ret->waited_ns = now - e->since_ns - (int64_t)(age_s * (double)CW_NS_PER_S);
	ret->lines = list[0].lines;
	ret->run_ns = run_ns_of(doc);
	(void)snprintf(ret->place, sizeof(ret->place), "%s", list[0].place);
	return true;
}

static void on_answer(const char *node, const struct cw_message *reply, void *user)
{
	struct cw_earlier_reading *r = user;

	cw_evidence_set_take(&r->set, node, reply);
	for (unsigned i = 0; i < r->set.n_slots; i++) {
		struct cw_evidence_slot *slot = &r->set.slots[i];

		if (!slot->doc)
			continue;
		r->owner->has_answer = true;
		if (!*r->seen[i].place)
			r->owner->n_stacks += digest(r->owner, slot->doc, &r->seen[i]);
		json_decref(slot->doc);
		slot->doc = NULL;
	}
}

/* ---- requests ---- */

/* True if the job may have one more reading now. Counts it. */
static bool has_budget(struct cw_earlier_stacks *e, int64_t now_ns)
{
	if (!e->window_ns || now_ns - e->window_ns >= CW_EARLIER_STACKS_WINDOW_NS) {
		e->window_ns = now_ns;
		e->n_in_window = 0;
	}
	return e->n_in_window++ < CW_EARLIER_STACKS_PER_WINDOW;
}

/* Returns the number of the ages T/4, T/2 and T that the wait has reached. */
static uint32_t stage_of(int64_t waited_ns, int64_t limit_ns)
{
	return (uint32_t)(waited_ns >= limit_ns / 4) + (waited_ns >= limit_ns / 2) +
	       (waited_ns >= limit_ns);
}

bool cw_earlier_stacks_are_of(const struct cw_earlier_stacks *e, const struct cw_verdict_key *key)
{
	return cw_verdict_key_is_same(&e->key, key);
}

/* True if the decision is about the wait of these readings. */
static bool is_same_wait(struct cw_earlier_stacks *e, const struct cw_stall_decision *d)
{
	if (cw_verdict_key_is_same(&e->key, &d->moved_from))
		e->key = d->key;
	return cw_verdict_key_is_same(&e->key, &d->key) && e->since_ns >= d->since_ns;
}

void cw_earlier_stacks_step(struct cw_earlier_stacks *e, const struct cw_snapshot *snap,
			    const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	struct cw_earlier_reading *r = &e->readings[e->n];
	uint32_t stage;

	if (!d->key.is_set || cw_verdict_is_silent(v) || !v->waiting_since_ns || d->limit_ns <= 0)
		return;
	if (!is_same_wait(e, d)) {
		cw_earlier_stacks_reset(e);
		e->key = d->key;
		e->since_ns = d->since_ns;
		r = &e->readings[0];
	}
	stage = stage_of(snap->now_ns - e->since_ns, d->limit_ns);
	if (stage <= e->stage)
		return;
	e->stage = stage;
	if ((e->has_answer && !e->n_stacks) || !has_budget(e, snap->now_ns))
		return;
	e->n++;
	/* The function logs errors itself. */
	(void)cw_evidence_set_request(&r->set, CW_EVIDENCE_EARLIER, e->config.effects,
				      e->config.job, snap, v, CW_EARLIER_STACKS_MS, on_answer, r);
}

/* ---- facts ---- */

uint32_t cw_earlier_stacks_readings(const struct cw_earlier_stacks *e)
{
	return e->n_stacks;
}

static bool is_same_process(const struct cw_evidence_slot *a, const struct cw_evidence_slot *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks &&
	       strcmp(a->node, b->node) == 0;
}

/* Collects the stacks of the process in all readings. Returns their number. */
static uint32_t stacks_of(const struct cw_earlier_stacks *e, const struct cw_evidence_slot *process,
			  struct cw_stack_reading ret[static CW_EARLIER_STACKS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->n; i++) {
		const struct cw_earlier_reading *r = &e->readings[i];

		for (unsigned k = 0; k < r->set.n_slots; k++)
			if (*r->seen[k].place && is_same_process(&r->set.slots[k], process))
				ret[n++] = r->seen[k];
	}
	return n;
}

int cw_earlier_stacks_add(const struct cw_earlier_stacks *e, struct cw_incident_facts *facts,
			  struct cw_arena *arena)
{
	const struct cw_evidence_set *newest = e->n ? &e->readings[e->n - 1].set : NULL;
	int r = 0;

	facts->n_earlier_stacks = 0;
	if (!newest)
		return 0;
	facts->earlier_stacks =
		cw_arena_new_array(arena, struct cw_incident_earlier_stack, newest->n_slots + 1u);
	if (!facts->earlier_stacks)
		return -ENOMEM;
	for (unsigned i = 0; i < newest->n_slots && r == 0; i++) {
		struct cw_stack_reading list[CW_EARLIER_STACKS];
		struct cw_stack_readings readings = { .rank = newest->slots[i].rank,
						      .pid = newest->slots[i].pid,
						      .host = newest->slots[i].node,
						      .list = list };

		readings.n = stacks_of(e, &newest->slots[i], list);
		r = cw_earlier_doc_add(&readings, arena, facts);
	}
	if (facts->n_earlier_stacks == 0 || r < 0) {
		facts->earlier_stacks = NULL;
		facts->n_earlier_stacks = 0;
	}
	return r;
}
