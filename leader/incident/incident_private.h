/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by incident.c (states, deadlines) and incident_documents.c (what is kept and sent). */
#pragma once

#include "common/address.h"
#include "identity/job_id.h"
#include "leader/incident/incident.h"
#include "leader/incident/incident_evidence.h"
#include "leader/incident/incident_survey.h"
#include "report/doc/snapshot_text.h"

/*
 * Memberships in a bundle's snapshot, unless the one communicator it is about has more: a leader of
 * 300,000 has neither memory nor time for the text of all.
 */
#define CW_INCIDENT_MAX_MEMBERS 8192u
/* Of ranks and memberships, so many are made text in one turn of the loop: 7 us each. */
#define CW_INCIDENT_TURN_PIECES 2048u

struct cw_objector {
	char node[CW_NODE_NAME_MAX + 1];
	char reason[96];
};

struct cw_incident {
	struct cw_incident_config config;
	struct cw_job_id job;
	uint32_t state;
	struct cw_verdict_key key; /* of the verdict it is about */
	char id[CW_INCIDENT_ID_LEN];
	char old_id[CW_INCIDENT_OLD_ID_LEN];
	json_t *doc, *snapshot;        /* of the decision, or its refinement; snapshot: as text */
	struct cw_snapshot_text *text; /* of a snapshot that is not yet whole; else NULL */
	uint32_t klass;
	bool is_proof;
	bool lacks_call;      /* a mismatch, but not of which call */
	int64_t lasted_ns;    /* from the first wait until it went on; 0 = it has not */
	const char *withheld; /* static; NULL = not */
	json_t *times;        /* as they were found first; NULL = not yet */
	bool is_kept;         /* its bundle is there from before: only its incident is changed */
	bool was_closed;      /* … and said that it is over */
	int64_t confirmed_ns;
	int64_t clear_ns, evidence_ns, retry_ns; /* deadlines, awake; 0 = not running */
	int64_t announced_held_ns; /* how long this daemon had been held up when it announced it */
	unsigned put_off; /* times, because of nodes that have no part in leading the job */
	bool is_overruling;
	struct cw_objector objectors[CW_INCIDENT_MAX_OBJECTORS];
	unsigned n_objectors;
	struct cw_evidence_set evidence;
	struct cw_survey *survey; /* NULL = none, or out of memory */
	uint32_t survey_written;  /* answers that the bundle holds */
	int64_t survey_due_ns;    /* awake; not written before */
};

/* The ids and key of what this verdict is about. 0 or -ENOMEM. */
int cw_incident_make_id(struct cw_incident *inc, const struct cw_snapshot *snap,
			const struct cw_verdict *v, const struct cw_verdict_key *key);
/*
 * Begins with the snapshot's text, of a large job a part of it: the communicator the verdict is
 * about, those on its chain, then others, as far as there is room. NULL = out of memory.
 */
struct cw_snapshot_text *cw_incident_snapshot_text(const struct cw_snapshot *snap,
						   const struct cw_verdict *v);
/*
 * Goes on with the bundle that is there from before, if there is one; false: there is none, or it
 * lacks something, and documents and evidence are to be made anew. Its times hold in any case.
 */
bool cw_incident_go_on(struct cw_incident *inc, bool needs_stacks);
/*
 * Replaces the documents by those of this look; on failure the old ones stay. The snapshot's may
 * have to be gone on with (cw_incident_write_on()).
 */
void cw_incident_remember(struct cw_incident *inc, const struct cw_snapshot *snap,
			  const struct cw_verdict *v, const struct cw_stall_decision *d);
/* With all evidence there is by now; without documents it does nothing. */
void cw_incident_write_bundle(struct cw_incident *inc);
