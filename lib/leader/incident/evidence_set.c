/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each target process has one slot. One request covers all targets of a node. The replies come one
 * by one, and we find the slot of a reply by node, pid and start. If a node does not answer, we
 * only stop waiting for it.
 */
#include "leader/incident/evidence_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_whole.h"
#include "identity/job_id.h"
#include "leader/incident/incident.h"
#include "model/death.h"
#include "proto/messages.h"

_Static_assert(CW_EVIDENCE_MAX_TARGETS == CW_INCIDENT_MAX_CULPRITS + 1, "one victim beside them");

void cw_evidence_set_fini(struct cw_evidence_set *set)
{
	for (unsigned i = 0; i < set->n_slots; i++) {
		free(set->slots[i].node);
		json_decref(set->slots[i].doc);
	}
	*set = (struct cw_evidence_set){ 0 };
}

/* True if the process is a target already. A process with several ranks is one target. */
static bool is_target(const struct cw_evidence_set *set, const char *node,
		      const struct cw_snap_rank *r)
{
	for (unsigned i = 0; i < set->n_slots; i++)
		if (set->slots[i].pid == r->pid && set->slots[i].start_ticks == r->start_ticks &&
		    !strcmp(set->slots[i].node, node))
			return true;
	return false;
}

/*
 * True if we can inspect the rank. A dead rank may have left a core file, which has no brief form.
 */
static bool has_stacks(const struct cw_snap_rank *r, uint32_t what)
{
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	return !cw_liveness_is_dead(r->liveness) ||
	       (cw_ending_is_fault(&end) && !(what & CW_EVIDENCE_BRIEF));
}

static void add_target(struct cw_evidence_set *set, const struct cw_snapshot *snap, uint32_t rank,
		       uint32_t what)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];
	struct cw_evidence_slot *slot = &set->slots[set->n_slots];
	const char *node = snap->nodes[r->node].name;

	if (set->n_slots == CW_EVIDENCE_MAX_TARGETS || !has_stacks(r, what) ||
	    is_target(set, node, r))
		return;
	slot->node = strdup(node);
	if (!slot->node)
		return; /* one target less is better than none */
	slot->rank = r->rank;
	slot->pid = r->pid;
	slot->start_ticks = r->start_ticks;
	set->n_slots++;
}

static void choose_targets(struct cw_evidence_set *set, const struct cw_snapshot *snap,
			   const struct cw_verdict *verdict, uint32_t what)
{
	/*
	 * In a silent verdict the call is over. The ranks have moved on, and their current stacks
	 * do not show the call.
	 */
	if (cw_verdict_is_silent(verdict))
		return;
	for (uint32_t i = 0; i < verdict->n_culprits && i < CW_INCIDENT_MAX_CULPRITS; i++)
		add_target(set, snap, verdict->culprits[i].rank, what);
	for (uint32_t i = 0; i < verdict->n_victims; i++) {
		if (cw_liveness_is_dead(snap->ranks[verdict->victims[i]].liveness))
			continue;
		add_target(set, snap, verdict->victims[i], what);
		break;
	}
}

static bool is_asked_for(const struct cw_evidence_slot *slot, uint32_t what)
{
	return what != CW_EVIDENCE_PYTHON || slot->wants_python;
}

static int request_from(struct cw_evidence_set *set, unsigned first, uint32_t what,
			const struct cw_leader_effects *effects, const struct cw_job_id *job,
			uint32_t deadline_ms, cw_leader_answer_fn fn, void *fn_user)
{
	struct cw_msg_evidence_target targets[CW_EVIDENCE_MAX_TARGETS];
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REQUEST };
	const char *node = set->slots[first].node;
	unsigned n = 0;
	int r;

	for (unsigned i = first; i < set->n_slots; i++) {
		struct cw_evidence_slot *slot = &set->slots[i];

		if (strcmp(slot->node, node) != 0 || !is_asked_for(slot, what))
			continue;
		targets[n++] = (struct cw_msg_evidence_target){
			.pid = slot->pid,
			.start_ticks = slot->start_ticks,
			.what = what,
		};
		slot->is_awaited = true;
	}
	msg.evidence_request.job_hash = cw_job_id_hash(job);
	msg.evidence_request.job_key = job->key;
	msg.evidence_request.uid = job->uid;
	msg.evidence_request.label = job->label;
	msg.evidence_request.deadline_ms = deadline_ms;
	msg.evidence_request.targets = targets;
	msg.evidence_request.n_targets = n;
	r = effects->ask(effects->user, node, &msg, deadline_ms + 250, fn, fn_user);
	if (r < 0) {
		leader_log(effects, CW_LOG_INFO, "%s cannot be asked for evidence: %s", node,
			   strerror(-r));
		cw_evidence_set_take(set, node, NULL);
	}
	return r;
}

/* Sends one request to each node. */
static int request_all(struct cw_evidence_set *set, uint32_t what,
		       const struct cw_leader_effects *effects, const struct cw_job_id *job,
		       uint32_t deadline_ms, cw_leader_answer_fn fn, void *fn_user)
{
	int r = 0;

	for (unsigned i = 0; i < set->n_slots; i++) {
		bool is_asked = !is_asked_for(&set->slots[i], what);

		for (unsigned k = 0; k < i; k++)
			is_asked |= is_asked_for(&set->slots[k], what) &&
				    !strcmp(set->slots[k].node, set->slots[i].node);
		if (!is_asked &&
		    request_from(set, i, what, effects, job, deadline_ms, fn, fn_user) < 0)
			r = -EIO;
	}
	return r;
}

int cw_evidence_set_request(struct cw_evidence_set *set, uint32_t what,
			    const struct cw_leader_effects *effects, const struct cw_job_id *job,
			    const struct cw_snapshot *snap, const struct cw_verdict *verdict,
			    uint32_t deadline_ms, cw_leader_answer_fn fn, void *fn_user)
{
	cw_evidence_set_fini(set);
	choose_targets(set, snap, verdict, what);
	return request_all(set, what, effects, job, deadline_ms, fn, fn_user);
}

static const char *python_status(const json_t *doc)
{
	const char *status =
		json_string_value(json_object_get(json_object_get(doc, "python"), "status"));

	return status ? status : "";
}

void cw_evidence_set_ask_python(struct cw_evidence_set *set,
				const struct cw_leader_effects *effects,
				const struct cw_job_id *job, uint32_t deadline_ms,
				cw_leader_answer_fn fn, void *fn_user)
{
	for (unsigned i = 0; i < set->n_slots; i++)
		set->slots[i].wants_python = !strcmp(python_status(set->slots[i].doc), "refused");
	(void)request_all(set, CW_EVIDENCE_PYTHON, effects, job, deadline_ms, fn, fn_user);
}

json_t *cw_evidence_set_parse(const char *text)
{
	json_t *doc = cw_json_parse_text(text, JSON_REJECT_DUPLICATES);
	const char *schema = json_string_value(json_object_get(doc, "schema"));

	if (schema && !strcmp(schema, "collwatch.evidence/1"))
		return doc;
	json_decref(doc);
	return NULL;
}

/*
 * A node may answer twice: first with the document, later with the Python stacks. Takes only the
 * Python stacks of the second answer, because its other parts are from a later moment than the
 * document.
 */
static void take_python(struct cw_evidence_slot *slot, const char *text)
{
	json_t *doc = cw_evidence_set_parse(text);

	if (!strcmp(python_status(doc), "ok")) /* out of memory: the status stays "refused" */
		(void)json_object_set(slot->doc, "python", json_object_get(doc, "python"));
	json_decref(doc);
}

void cw_evidence_set_take(struct cw_evidence_set *set, const char *node,
			  const struct cw_message *reply)
{
	for (unsigned i = 0; i < set->n_slots; i++) {
		struct cw_evidence_slot *slot = &set->slots[i];
		const struct cw_msg_evidence_reply *e;

		if (strcmp(slot->node, node) != 0)
			continue;
		if (!reply) {
			slot->is_awaited = slot->wants_python = false;
			continue;
		}
		e = &reply->evidence_reply;
		if (e->pid != slot->pid || e->start_ticks != slot->start_ticks)
			continue;
		if (!slot->doc)
			slot->doc = cw_evidence_set_parse(e->json);
		else if (slot->wants_python)
			take_python(slot, e->json);
		slot->is_awaited = slot->wants_python = false;
	}
}

bool cw_evidence_set_is_complete(const struct cw_evidence_set *set)
{
	for (unsigned i = 0; i < set->n_slots; i++)
		if (set->slots[i].is_awaited)
			return false;
	return true;
}

json_t *cw_evidence_set_array(const struct cw_evidence_set *set)
{
	json_t *array = json_array();

	for (unsigned i = 0; array && i < set->n_slots; i++)
		if (set->slots[i].doc && json_array_append(array, set->slots[i].doc) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}
