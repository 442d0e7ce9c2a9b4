/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches windows of ops from the nodes for a verdict that needs them. There are two kinds of
 * windows. The first kind has the last ops of a communicator, which show the current calls of its
 * members. The second kind is for calls that differ by their rolling hashes. It has the ops between
 * the last checkpoint that agreed and the first that did not, wherever the records now hold these
 * ops.
 *
 * Loop thread only; the answers go into the job (leader/job.h).
 */
#pragma once

#include "leader/incident/leader_effects.h"
#include "leader/job.h"

/* The minimum time between two fetches of a job. */
#define CW_WINDOW_FETCH_EVERY_NS CW_NS_PER_S
#define CW_WINDOW_FETCH_MS 2000u
/* The maximum number of communicators in one fetch. */
#define CW_WINDOW_FETCH_MAX_COMMS 64u
/* Ops per window if we ask few ranks. So many ops suffice to find the first difference. */
#define CW_WINDOW_FETCH_OPS_SMALL 256u
#define CW_WINDOW_FETCH_OPS 64u
/*
 * Ops per window that begins where histories diverged. If there are more ops, we fetch them in
 * successive parts.
 */
#define CW_WINDOW_FETCH_PAST_OPS 2048u

/*
 * Fetches windows for a verdict on snap, at most once a second for a job. Before the caller frees
 * the job, it must cancel the job's requests by the job's address (cw_leader_effects.cancel).
 * Returns the number of nodes asked.
 */
unsigned cw_window_fetch(const struct cw_leader_effects *effects,
			 const struct cw_job_digests *digests, struct cw_job *job,
			 const struct cw_snapshot *snap, const struct cw_verdict *verdict);
/*
 * Fetches the last ops of all communicators of a job in which no rank waits, to find late ranks.
 * The limits of cw_window_fetch() apply. Returns the number of nodes asked. That is also 0 if the
 * ops exceed the limit of a job or of a node's answer.
 */
unsigned cw_window_fetch_all(const struct cw_leader_effects *effects,
			     const struct cw_job_digests *digests, struct cw_job *job,
			     const struct cw_snapshot *snap);
