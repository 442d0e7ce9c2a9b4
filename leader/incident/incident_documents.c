/* SPDX-License-Identifier: Apache-2.0 */
/* An incident's identity, its documents and its bundle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "leader/incident/incident_private.h"
#include "report/doc/incident_doc.h"

static int64_t wall_of(const struct cw_snapshot *snap, int64_t ns)
{
	return ns && snap->wall_ns ? snap->wall_ns - (snap->now_ns - ns) : 0;
}

/* Start of the first member's process: tells two runs with one constant unique id apart. */
static uint64_t start_of(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	const struct cw_snap_comm *comm;

	if (v->comm == CW_SNAP_NONE)
		return 0;
	comm = &snap->comms[v->comm];
	for (uint32_t i = 0; i < comm->nranks; i++)
		if (comm->members[i].rank != CW_SNAP_NONE)
			return snap->ranks[comm->members[i].rank].start_ticks;
	return 0;
}

int cw_incident_make_id(struct cw_incident *inc, const struct cw_snapshot *snap,
			const struct cw_verdict *v, const struct cw_verdict_key *key)
{
	const struct cw_incident_matter matter = {
		.uid = inc->config.uid,
		.job = inc->config.job,
		.key = *key,
		.start_ticks = start_of(snap, v),
	};
	int r = cw_incident_id_make(&matter, inc->id);

	if (r < 0)
		return r;
	cw_incident_id_make_old(&matter, inc->old_id);
	inc->key = *key;
	return 0;
}

static int add_own_fields(const struct cw_incident *inc, json_t *doc)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "collwatch report %s", inc->id);
	if (json_object_set_new(doc, "command", json_string(command)) < 0)
		return -1;
	if (inc->withheld && json_object_set_new(doc, "withheld", json_string(inc->withheld)) < 0)
		return -1;
	return json_object_set_new(doc, "uid", json_integer(inc->config.uid));
}

/* Takes the communicator into the part if there is room, or if there must be. */
static void take_comm(const struct cw_snapshot *snap, uint32_t comm, bool must, bool *is_in,
		      uint64_t *room)
{
	uint32_t n;

	if (comm >= snap->n_comms || is_in[comm])
		return;
	n = snap->comms[comm].nranks;
	if (n > *room && !must)
		return;
	is_in[comm] = true;
	*room -= n < *room ? n : *room;
}

struct cw_snapshot_text *cw_incident_snapshot_text(const struct cw_snapshot *snap,
						   const struct cw_verdict *v)
{
	_cleanup_(freep) bool *is_in = calloc((size_t)snap->n_comms + 1, sizeof(*is_in));
	uint64_t room = CW_INCIDENT_MAX_MEMBERS;

	if (!is_in)
		return NULL;
	take_comm(snap, v->comm, true, is_in, &room);
	for (uint32_t i = 0; i < v->n_chain; i++)
		take_comm(snap, v->chain[i].comm, false, is_in, &room);
	for (uint32_t c = 0; c < snap->n_comms; c++)
		take_comm(snap, c, false, is_in, &room);
	return cw_snapshot_text_new(snap, is_in);
}

static uint64_t turn_pieces(const struct cw_incident *inc)
{
	return inc->config.turn_pieces ? inc->config.turn_pieces : CW_INCIDENT_TURN_PIECES;
}

bool cw_incident_is_writing(const struct cw_incident *inc)
{
	return inc->text != NULL;
}

void cw_incident_write_on(struct cw_incident *inc, const struct cw_snapshot *snap)
{
	json_t *text = NULL;
	int r;

	if (!inc->text)
		return;
	r = cw_snapshot_text_step(inc->text, snap, turn_pieces(inc));
	if (r == 0)
		return;
	if (r > 0)
		text = cw_snapshot_text_take(inc->text);
	inc->text = cw_snapshot_text_free(inc->text);
	if (!text) {
		log_err("inc=%s: out of memory for its snapshot: its bundle has an older one or "
			"none",
			inc->id);
		return;
	}
	json_decref(inc->snapshot);
	inc->snapshot = text;
	if (inc->state == CW_INCIDENT_ALERTED)
		cw_incident_write_bundle(inc);
}

/* Out of memory: they are as this look sees them. */
static void keep_first_times(struct cw_incident *inc, json_t *doc)
{
	if (!inc->times)
		inc->times = json_deep_copy(json_object_get(doc, "times"));
	else
		(void)json_object_set_new(doc, "times", json_deep_copy(inc->times));
}

/* A hang that went on and stands again in the same place is another one. */
static bool is_the_same(const json_t *doc)
{
	const char *closed_as = json_string_value(json_object_get(doc, "closed_as"));

	return json_is_object(json_object_get(doc, "times")) &&
	       (!closed_as || strcmp(closed_as, "job_ended") == 0);
}

static void reopen(struct cw_incident *inc, json_t *doc)
{
	inc->was_closed = json_object_get(doc, "closed_as") != NULL;
	(void)json_object_del(doc, "closed_as"); /* each: or it was not there */
	(void)json_object_del(doc, "lasted_s");
	(void)json_object_set_new(json_object_get(doc, "times"), "resolved", json_null());
}

bool cw_incident_go_on(struct cw_incident *inc, bool needs_stacks)
{
	const struct cw_incident_due due = { .id = inc->id,
					     .job = inc->config.job,
					     .uid = inc->config.uid };
	const struct cw_incident_io *io = inc->config.io;
	bool is_whole = false;
	json_t *doc = io->before ? io->before(inc->config.io_user, &due, &is_whole) : NULL;
	int klass = cw_class_from_name(json_string_value(json_object_get(doc, "class")) ?: "");

	if (!doc || klass < 0 || !is_the_same(doc)) {
		json_decref(doc);
		return false;
	}
	reopen(inc, doc);
	inc->times = json_deep_copy(json_object_get(doc, "times"));
	if (needs_stacks && !is_whole) {
		json_decref(doc);
		return false;
	}
	inc->doc = doc;
	inc->is_kept = true;
	inc->klass = (uint32_t)klass;
	/* What was decided then stands, unless it was that nothing is known. */
	inc->is_proof = true;
	inc->lacks_call = klass == CW_CLASS_MISMATCH &&
			  !json_array_size(json_object_get(json_object_get(doc, "where"), "sides"));
	return true;
}

void cw_incident_remember(struct cw_incident *inc, const struct cw_snapshot *snap,
			  const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	char path[512] = "";
	/* A proof may come before the stall: then the trouble began with the waiting. */
	int64_t stall_ns = d->stall_ns ? d->stall_ns : d->since_ns;
	struct cw_incident_info info = {
		.id = inc->id,
		/* Patience was about what was known then; a proof found since needs none. */
		.confidence = v->is_proof ? v->confidence : d->confidence,
		.last_progress_wall_ns = wall_of(snap, v->last_progress_ns),
		.stall_wall_ns = wall_of(
			snap, stall_ns > v->last_progress_ns ? stall_ns : v->last_progress_ns),
		.confirmed_wall_ns = wall_of(snap, d->confirmed_ns),
		.leader = inc->config.self,
		.bundle = path,
	};
	struct cw_snapshot_text *text;
	json_t *doc;

	inc->config.io->path(inc->config.io_user, inc->id, path, sizeof(path));
	doc = cw_incident_doc(snap, v, &info);
	text = cw_incident_snapshot_text(snap, v);
	if (!doc || !text || add_own_fields(inc, doc) < 0) {
		log_err("inc=%s: out of memory for its documents, keeping the older ones", inc->id);
		json_decref(doc);
		(void)cw_snapshot_text_free(text); /* always NULL */
		return;
	}
	keep_first_times(inc, doc);
	json_decref(inc->doc);
	inc->doc = doc;
	inc->is_kept = false;
	(void)cw_snapshot_text_free(inc->text); /* of the decision before; always NULL */
	inc->text = text;
	inc->klass = v->klass;
	inc->is_proof = v->is_proof;
	inc->lacks_call = v->klass == CW_CLASS_MISMATCH && v->n_sides == 0;
	if (cw_snapshot_text_left(text) <= turn_pieces(inc))
		cw_incident_write_on(inc, snap);
}

static void amend_bundle(struct cw_incident *inc)
{
	int r = inc->config.io->amend(inc->config.io_user, inc->doc);

	if (r < 0)
		log_warn("inc=%s: its bundle cannot be brought up to date: %s, ignoring", inc->id,
			 strerror(-r));
}

void cw_incident_write_bundle(struct cw_incident *inc)
{
	struct cw_bundle bundle = { .incident = inc->doc, .snapshot = inc->snapshot };
	int r;

	if (!inc->doc)
		return;
	if (inc->is_kept) {
		amend_bundle(inc);
		return;
	}
	bundle.evidence = cw_evidence_array(&inc->evidence);
	if (inc->survey) {
		cw_survey_take(inc->survey, &inc->evidence);
		bundle.stacks = cw_survey_doc(inc->survey);
		inc->survey_written = cw_survey_answers(inc->survey);
		if (bundle.evidence) /* out of memory: the tree has them */
			(void)cw_survey_add_evidence(inc->survey, bundle.evidence);
	}
	(void)cw_incident_doc_add_positions(inc->doc,
					    bundle.evidence); /* without them, less is said */
	r = inc->config.io->put(inc->config.io_user, &bundle);
	if (r < 0)
		log_warn("inc=%s: the bundle cannot be written yet: %s; kept in memory", inc->id,
			 strerror(-r));
	json_decref(bundle.evidence);
	json_decref(bundle.stacks);
}
