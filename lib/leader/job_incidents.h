/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The incidents of one job: usually none, sometimes one. Independent faults
 * (cw_verdict_compute_all()) get one incident each, with its own id, evidence, bundle and alert.
 * Several incidents are possible, because a job that lives on with wrong data can still hang.
 *
 * While an alerted incident is open, any new trouble of its ranks is a consequence. For example, a
 * user kills the hanging job, or a watchdog aborts it. Consequences raise no incident. If wrong
 * data later blocks a rank, the incident stays the same. A rank that no node reports is missing in
 * all of its communicators, and that is one incident too.
 *
 * Loop thread only; owned by the job.
 */
#pragma once

#include <stdbool.h>

#include "leader/incident/incident.h"

struct cw_job_incident_rank {
	uint64_t start_ticks;
	int32_t rank, pid;
};

struct cw_job_incident {
	struct cw_incident *incident;
	/*
	 * Culprits and victims when the incident was confirmed, sorted. The owner frees the array
	 * with free().
	 */
	struct cw_job_incident_rank *ranks;
	uint32_t n_ranks;
	bool is_about_unseen; /* some rank waits for ranks that no node reports */
};

struct cw_job_incidents {
	/* For each incident; its pointers live as long as the job. */
	struct cw_incident_config config;
	struct cw_job_incident v[CW_VERDICT_LIST_MAX];
	uint32_t n;
};

/*
 * Passes the result of one evaluation to the incidents. Each decision goes to the incident that it
 * is about.
 */
void cw_job_incidents_step(struct cw_job_incidents *all, const struct cw_snapshot *snap,
			   const struct cw_verdict_list *list,
			   const struct cw_stall_decision *decision);
/*
 * Continues the text of an incident that cw_job_incidents_step() began (cw_incident_is_writing()).
 * Returns true while more text remains. Until then snap must not change.
 */
bool cw_job_incidents_write_on(struct cw_job_incidents *all, const struct cw_snapshot *snap);
bool cw_job_incidents_are_writing(const struct cw_job_incidents *all);
void cw_job_incidents_tick(struct cw_job_incidents *all);
/* Ends all incidents. The caller runs this when the job is over. */
void cw_job_incidents_end(struct cw_job_incidents *all);
/* The caller runs this when an alert was not delivered; see cw_incident_undelivered(). */
void cw_job_incidents_undelivered(struct cw_job_incidents *all);
/* Returns the incident with this id; NULL = this job has no such incident. */
struct cw_incident *cw_job_incidents_find(const struct cw_job_incidents *all, const char *id);
/* Returns the id of the oldest open incident with an alert; "" = none. */
const char *cw_job_incidents_alerted_id(const struct cw_job_incidents *all);
/* True if an incident about this verdict is open and has an alert. */
bool cw_job_incidents_has_alerted(const struct cw_job_incidents *all,
				  const struct cw_verdict_key *key);
/* Returns the id of the oldest open incident; "" = none. */
const char *cw_job_incidents_id(const struct cw_job_incidents *all);
void cw_job_incidents_fini(struct cw_job_incidents *all);
