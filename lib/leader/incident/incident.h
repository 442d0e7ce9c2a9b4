/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One incident of one job, from the first suspicion to its end:
 *
 *	idle → suspect → stalled → (noted →) confirmed → (objection period ∥ evidence) → alerted →
 *	resolved
 *
 * The table of moves is in incident_state.c. When a hang is confirmed, this node announces the
 * alert to the other nodes. It waits 2 s for objections, or not at all without other nodes, and
 * collects evidence at the same time. When both are done, or the evidence's deadline has passed, it
 * writes the bundle and sends the alert: exactly once per id. Later facts only change the bundle.
 * The incident keeps the times that were found first. If it is confirmed again after a restart, it
 * continues with its existing bundle.
 *
 * A long stall may or may not be a hang. We first note such a stall: the journal has it, its bundle
 * has the culprits' stacks, and we page no user. Then the stall ends by itself, or the job ends, or
 * we confirm it under the same id: one alert in total.
 *
 * We derive the id (incident_id.h) from facts that every leader sees alike. These are user, label,
 * the verdict's subject (communicator and call) and the start of the first member's process. We
 * never use culprits or class.
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
/* Time that the nodes have for their evidence, and the time after which we alert without it. */
#define CW_INCIDENT_EVIDENCE_MS 4000u
#define CW_INCIDENT_EVIDENCE_NS (4500 * CW_NS_PER_MS)
/*
 * If the verdict is a proof, we alert without waiting for evidence. Evidence then only has the time
 * of the objection period.
 */
#define CW_INCIDENT_PROOF_EVIDENCE_NS CW_INCIDENT_OBJECTION_NS
/*
 * We may send the alert of a proof before the interpreters of its ranks are known to be idle. The
 * ranks then refuse their Python stacks. This long after the alert we request the stacks once more,
 * for the report.
 */
#define CW_INCIDENT_PYTHON_AGAIN_NS (5 * CW_NS_PER_S)
/*
 * The maximum number of culprits that we inspect. We also inspect one representative of the waiting
 * ranks.
 */
#define CW_INCIDENT_MAX_CULPRITS 8u
/* After a failed delivery or an objection, we try the alert again after this time. */
#define CW_INCIDENT_RETRY_NS (30 * CW_NS_PER_S)
/*
 * The maximum number of times that nodes without a part in leading the job may defer an incident,
 * for 30 s each. So a lost node delays an alert by at most 90 s. A leader that cannot reach the
 * rightful leader uses the second limit, ten minutes, because other nodes may know the rightful
 * leader's alerts.
 */
#define CW_INCIDENT_MAX_DEFERRED 3u
#define CW_INCIDENT_MAX_DEFERRED_PARTITIONED 20u
/* The maximum number of objectors that the documents of an incident name. */
#define CW_INCIDENT_MAX_OBJECTORS 4u
/*
 * If a leader was held up (stopped, or without a processor) for this long before it sent its alert,
 * it announces the incident again. Other nodes take over after CW_LEADER_SILENT_NS, counted from a
 * heartbeat before the hold-up.
 */
#define CW_INCIDENT_HELD_NS (5 * CW_NS_PER_S)

struct cw_incident_config {
	const struct cw_clock *clock;
	const struct cw_leader_effects *effects; /* borrowed */
	uint64_t job_hash;
	uint32_t uid;
	const char *job;  /* the job's label; borrowed as long as the incident lives */
	const char *self; /* name of this node */
	/*
	 * Number of ranks and memberships that we convert to text in one iteration; 0 = the
	 * default, 2,048.
	 */
	uint64_t iteration_pieces;
};

/* Makes an idle incident. Returns 0 or -ENOMEM. */
int cw_incident_new(const struct cw_incident_config *config, struct cw_incident **ret);
/* Cancels all requests in flight and frees the incident, which may be NULL. Returns NULL. */
struct cw_incident *cw_incident_free(struct cw_incident *inc);

/*
 * Takes one evaluation of the job and moves the state. Once the incident is confirmed, this also
 * keeps the documents current.
 */
void cw_incident_step(struct cw_incident *inc, const struct cw_snapshot *snap,
		      const struct cw_verdict *v, const struct cw_stall_decision *d);
/*
 * The caller runs this when an incident about wrong data (cw_incident_is_wrong_data()) now blocks a
 * rank, according to v. It stays the same incident, with new documents and evidence, and without a
 * second alert.
 */
void cw_incident_holds_up(struct cw_incident *inc, const struct cw_snapshot *snap,
			  const struct cw_verdict *v, const struct cw_stall_decision *d);
/*
 * True if the open incident has the same subject as v and is older than any wait for it. The
 * subject is the call of v on its communicator, or messages there with different sizes.
 */
bool cw_incident_is_wrong_data(const struct cw_incident *inc, const struct cw_verdict *v,
			       const struct cw_verdict_key *key);
/*
 * True if the wait of v is a consequence of this incident. The incident must be open and about
 * mismatched calls that blocked no rank. In v, all ranks must be inside a call of the same
 * communicator, since about the time of the incident.
 *
 * If calls are shifted, the records may have lost the first shifted call. The known mismatch is
 * then in a later call than the one that does not complete.
 */
bool cw_incident_explains_wait(const struct cw_incident *inc, const struct cw_snapshot *snap,
			       const struct cw_verdict *v);
/*
 * True while the incident writes the text of a large snapshot, which takes several iterations of
 * the loop. Until the text is complete, the snapshot of the last step must not change. In each
 * iteration the caller runs cw_incident_write_on() with this snapshot.
 */
bool cw_incident_is_writing(const struct cw_incident *inc);
void cw_incident_write_on(struct cw_incident *inc, const struct cw_snapshot *snap);
/* Handles deadlines. The caller runs this several times a second. */
void cw_incident_tick(struct cw_incident *inc);
/* Ends the incident. The caller runs this when the job is over. */
void cw_incident_end(struct cw_incident *inc);
/*
 * Takes the objection of a node. If we believe it, we defer the incident, up to `most` times in
 * total. most = 0: we always believe the objection, because the node has a part in leading the job.
 * After the last deferral we send the alert, which names the objectors. Returns false if we did not
 * believe the objection.
 */
bool cw_incident_object(struct cw_incident *inc, const char *node, const char *reason,
			unsigned most);
/* The caller runs this when delivery of the alert failed. We try again while the incident lasts. */
void cw_incident_undelivered(struct cw_incident *inc);

/*
 * True if any leader alerted about this verdict, under any id of the same hang. *ret_id becomes
 * that id. No incident needs to be open: it may be over, or from before a restart.
 */
bool cw_incident_was_alerted(const struct cw_incident_config *config,
			     const struct cw_snapshot *snap, const struct cw_verdict *v,
			     const struct cw_verdict_key *key, char ret_id[CW_INCIDENT_ID_LEN]);

/*
 * True if the incident is noted or confirmed, and not over. cw_incident_key() then returns its key.
 */
bool cw_incident_is_open(const struct cw_incident *inc);
/* True if the incident is open, but only as a notice. */
bool cw_incident_is_noted(const struct cw_incident *inc);
const struct cw_verdict_key *cw_incident_key(const struct cw_incident *inc);
/*
 * Gives the incident a new key. The caller runs this when the same ranks wait for the same culprits
 * in a later call.
 */
void cw_incident_move(struct cw_incident *inc, const struct cw_verdict_key *key);
unsigned cw_incident_state(const struct cw_incident *inc);
enum cw_severity cw_incident_severity(const struct cw_incident *inc);
/*
 * Returns one word with the reason why the alert is suppressed. NULL = we sent it, or will send it.
 */
const char *cw_incident_suppressed(const struct cw_incident *inc);
/* Returns the id; "" = not confirmed yet. */
const char *cw_incident_id(const struct cw_incident *inc);
