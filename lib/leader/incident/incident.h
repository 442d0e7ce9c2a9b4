/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One incident of one job, from the first suspicion to its end:
 *
 *	idle → suspect → stalled → (noted →) confirmed → (objection period ∥ evidence) → alerted →
 *	resolved
 *
 * The table of moves is in incident_state.c. When a hang is confirmed, the alert is announced to
 * the other nodes (2 s for an objection; nobody there: none) and evidence is taken at the same
 * time; when both are done, or the evidence's deadline has passed, the bundle is written and the
 * alert goes out: once for an id, whatever happens. What is learnt later changes the bundle only.
 * Its times are those that were found first, and one that is confirmed again after a restart goes
 * on with the bundle it has.
 *
 * A stall that lasts, and of which it is not known whether it is a hang, is noted first: it stands
 * in the journal and has a bundle with the culprits' stacks, and nobody is woken. It goes on, or
 * the job ends, or it is confirmed under the same id: one alert in all.
 *
 * The id (incident_id.h) is made of what every leader sees alike: user, label, what the verdict is
 * about (communicator and call) and the start of the first member's process; never of culprits or
 * class.
 *
 * Loop thread only; nothing here blocks beyond writing the bundle.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/stall.h"
#include "common/clock.h"
#include "leader/incident/incident_id.h"
#include "leader/incident/incident_state.h"
#include "leader/incident/leader_effects.h"
#include "model/verdict_types.h"
#include "report/bundle.h"

struct cw_incident;

#define CW_INCIDENT_OBJECTION_NS (2 * CW_NS_PER_S)
/* The nodes' own deadline, and when the alert goes out without what has not come. */
#define CW_INCIDENT_EVIDENCE_MS 4000u
#define CW_INCIDENT_EVIDENCE_NS (4500 * CW_NS_PER_MS)
/* A proof stands without it: the time for objections, and no more. */
#define CW_INCIDENT_PROOF_EVIDENCE_NS CW_INCIDENT_OBJECTION_NS
/*
 * A proof may be told before anybody knows that the interpreters of its ranks rest, and their
 * Python stacks are refused. So long after the alert they are asked for once more, for the report.
 */
#define CW_INCIDENT_PYTHON_AGAIN_NS (5 * CW_NS_PER_S)
/* Culprits looked at, plus one representative of those that wait. */
#define CW_INCIDENT_MAX_CULPRITS 8u
/* An alert that was not delivered, or was objected to, is tried again after this long. */
#define CW_INCIDENT_RETRY_NS (30 * CW_NS_PER_S)
/*
 * Times, of 30 s each, that an incident is put off because of nodes that have no part in leading
 * its job: one lost node keeps an alert back for 90 s at most. Where this node leads only because
 * it does not reach the one that should, others may know what that one has told people: ten
 * minutes.
 */
#define CW_INCIDENT_MAX_DEFERRED 3u
#define CW_INCIDENT_MAX_DEFERRED_APART 20u
/* Objectors that its documents name. */
#define CW_INCIDENT_MAX_OBJECTORS 4u
/* Held up for so long before its alert was out, a leader announces it again: others lead after
 * CW_LEADER_SILENT_NS, counted from a beat before it was held up. */
#define CW_INCIDENT_HELD_NS (5 * CW_NS_PER_S)

struct cw_incident_config {
	const struct cw_clock *clock;
	const struct cw_leader_effects *effects; /* borrowed */
	uint64_t route;
	uint32_t uid;
	const char *job;  /* label; borrowed for the incident's life */
	const char *self; /* this node */
	/* Ranks and memberships of which text is made in one turn; 0 = the default, 2,048. */
	uint64_t turn_pieces;
};

/* 0 or -ENOMEM. */
int cw_incident_new(const struct cw_incident_config *config, struct cw_incident **ret);
/* Takes NULL; returns NULL. Cancels what is in flight. */
struct cw_incident *cw_incident_free(struct cw_incident *inc);

/* One look at the job: moves the state and, from confirmation on, keeps the documents current. */
void cw_incident_step(struct cw_incident *inc, const struct cw_snapshot *snap,
		      const struct cw_verdict *v, const struct cw_stall_decision *d);
/*
 * One that was told of as wrong data (cw_incident_is_wrong_data()) has come to hold somebody up, as
 * v says: the same incident with new documents and evidence, and no second alert.
 */
void cw_incident_holds_up(struct cw_incident *inc, const struct cw_snapshot *snap,
			  const struct cw_verdict *v, const struct cw_stall_decision *d);
/*
 * Open, and about what v is about, from before anybody waited for it: that call on its
 * communicator, or messages there whose sizes differ.
 */
bool cw_incident_is_wrong_data(const struct cw_incident *inc, const struct cw_verdict *v,
			       const struct cw_verdict_key *key);
/*
 * It is open, about calls that differed while nobody waited for them, and v says that all are
 * inside a call of that communicator since about then: of a shift of calls the first may be
 * recorded no more, so that the call that is known to differ stands behind the one that does not
 * open.
 */
bool cw_incident_explains_wait(const struct cw_incident *inc, const struct cw_snapshot *snap,
			       const struct cw_verdict *v);
/*
 * The text of a large snapshot is made in several turns of the loop: while this is true, the
 * snapshot of the last step must stay as it is, and cw_incident_write_on() be called with it.
 */
bool cw_incident_is_writing(const struct cw_incident *inc);
void cw_incident_write_on(struct cw_incident *inc, const struct cw_snapshot *snap);
/* Deadlines; call it several times a second. */
void cw_incident_tick(struct cw_incident *inc);
/* The job is over. */
void cw_incident_end(struct cw_incident *inc);
/*
 * A node objects, and is believed until the incident has been put off so many times in all; 0 = for
 * good, the node has a part in leading the job. Then the alert goes out and names who objected.
 * False: it was not believed.
 */
bool cw_incident_object(struct cw_incident *inc, const char *node, const char *reason,
			unsigned most);
/* The alert did not reach anybody: it is tried again while the incident lasts. */
void cw_incident_undelivered(struct cw_incident *inc);

/*
 * Whether an alert about this verdict went out, from any leader and under any id of the same
 * trouble, which is *ret_id then. It needs no incident: that one may be over, or have been open
 * before a restart.
 */
bool cw_incident_was_alerted(const struct cw_incident_config *config,
			     const struct cw_snapshot *snap, const struct cw_verdict *v,
			     const struct cw_verdict_key *key, char ret_id[CW_INCIDENT_ID_LEN]);

/* Noted or confirmed, and not over: it is about the verdict with this key. */
bool cw_incident_is_open(const struct cw_incident *inc);
/* Open, and no more than a notice. */
bool cw_incident_is_noted(const struct cw_incident *inc);
const struct cw_verdict_key *cw_incident_key(const struct cw_incident *inc);
/* The same ranks wait for the same in a later call: from now on it is about that. */
void cw_incident_move(struct cw_incident *inc, const struct cw_verdict_key *key);
unsigned cw_incident_state(const struct cw_incident *inc);
enum cw_severity cw_incident_severity(const struct cw_incident *inc);
/* Why nobody was told of it, one word; NULL = they were, or will be. */
const char *cw_incident_suppressed(const struct cw_incident *inc);
/* "" before confirmation. */
const char *cw_incident_id(const struct cw_incident *inc);
/* As older versions make it. */
const char *cw_incident_old_id(const struct cw_incident *inc);
