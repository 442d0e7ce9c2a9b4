/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches windows of ops from the nodes for a verdict that needs them. There are two kinds. The
 * first kind has the last ops of a communicator, which show the current calls of its members. The
 * second kind is for calls that differ by their rolling hashes. It has the ops between the last
 * checkpoint that agreed and the first that did not, wherever the records now hold them.
 *
 * Loop thread only; answers go into the job (leader/job.h).
 */
#pragma once

#include "leader/incident/leader_effects.h"
#include "leader/job.h"

/* We fetch windows of a job at most this often. */
#define CW_WINDOW_FETCH_EVERY_NS CW_NS_PER_S
#define CW_WINDOW_FETCH_MS 2000u
/* We fetch windows of at most this many communicators at once. */
#define CW_WINDOW_FETCH_MAX_COMMS 64u
/* Ops per window if we ask few ranks. They suffice to find the first difference. */
#define CW_WINDOW_FETCH_OPS_SMALL 256u
#define CW_WINDOW_FETCH_OPS 64u
/*
 * Ops per window if it begins where histories diverged. If there are more, we fetch them in
 * successive parts.
 */
#define CW_WINDOW_FETCH_PAST_OPS 2048u

/*
 * Fetches windows at most once a second for a job; verdict is about snap. Before the job goes, it
 * must cancel its requests by its address (cw_leader_effects.cancel). Returns the number of nodes
 * asked.
 */
unsigned cw_window_fetch(const struct cw_leader_effects *effects,
			 const struct cw_job_digests *digests, struct cw_job *job,
			 const struct cw_snapshot *snap, const struct cw_verdict *verdict);
/*
 * Fetches the last ops of all communicators of a job in which no rank waits, to find late ranks.
 * The same limits as in cw_window_fetch() apply. Also returns 0 if the ops exceed the limit of a
 * job or of a node's answer.
 */
unsigned cw_window_fetch_all(const struct cw_leader_effects *effects,
			     const struct cw_job_digests *digests, struct cw_job *job,
			     const struct cw_snapshot *snap);
