/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The incidents of one job. Mostly there is none, sometimes one; troubles that have nothing to do
 * with each other (cw_verdict_compute_all()) get one each, with its own id, evidence, bundle and
 * alert, and a job that lives on with wrong data can still hang.
 *
 * While an incident is open of which people were told, whatever else is learnt about the ranks it
 * concerns is a consequence: somebody kills the hanging job, a watchdog aborts. That raises
 * nothing. Wrong data that comes to hold somebody up is one incident. A rank that cannot be seen is
 * missed in all of its communicators: that is one incident.
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
	/* Culprits and victims when it was confirmed, sorted; free(). */
	struct cw_job_incident_rank *ranks;
	uint32_t n_ranks;
	bool is_about_unseen; /* ranks that somebody waits for and nobody can see */
};

struct cw_job_incidents {
	struct cw_incident_config config; /* of each; what it borrows lives as long as the job */
	struct cw_job_incident v[CW_VERDICT_LIST_MAX];
	uint32_t n;
};

/* One look at the job: each decision reaches the incident it is about. */
void cw_job_incidents_step(struct cw_job_incidents *all, const struct cw_snapshot *snap,
			   const struct cw_verdict_list *list, const struct cw_stall_decision *d);
/*
 * Goes on with one of the texts that cw_job_incidents_step() has begun with (see
 * cw_incident_is_writing()). True while there is more to do: snap must stay as it is.
 */
bool cw_job_incidents_write_on(struct cw_job_incidents *all, const struct cw_snapshot *snap);
bool cw_job_incidents_are_writing(const struct cw_job_incidents *all);
void cw_job_incidents_tick(struct cw_job_incidents *all);
/* The job is over. */
void cw_job_incidents_end(struct cw_job_incidents *all);
/* See cw_incident_undelivered(). */
void cw_job_incidents_undelivered(struct cw_job_incidents *all);
/* NULL = not one of this job. */
struct cw_incident *cw_job_incidents_find(const struct cw_job_incidents *all, const char *id);
/* Id of the oldest whose alert went out and that is open, or "". */
const char *cw_job_incidents_alerted_id(const struct cw_job_incidents *all);
/* Whether an alert about this matter went out, and is open. */
bool cw_job_incidents_has_told(const struct cw_job_incidents *all,
			       const struct cw_verdict_key *key);
/* Id of the oldest that is open, or "". */
const char *cw_job_incidents_id(const struct cw_job_incidents *all);
void cw_job_incidents_fini(struct cw_job_incidents *all);
