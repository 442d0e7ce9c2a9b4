/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching windows of ops from the nodes, for a verdict that wants them. Two kinds: the last ops of
 * a communicator, to see what its members do now; and, where rolling hashes say that their calls
 * have differed, the ops between the last checkpoint at which they agreed and the first at which
 * they did not, wherever those lie in the records by now.
 *
 * Loop thread only; answers come into the job (leader/job.h).
 */
#pragma once

#include "leader/incident/leader_effects.h"
#include "leader/job.h"

/* Windows of a job are fetched at most this often, … */
#define CW_WINDOW_FETCH_EVERY_NS CW_NS_PER_S
#define CW_WINDOW_FETCH_MS 2000u
/* … for at most this many communicators at once. */
#define CW_WINDOW_FETCH_MAX_COMMS 64u
/* Ops per window: enough to find the first difference where few ranks are looked at. */
#define CW_WINDOW_FETCH_OPS_SMALL 256u
#define CW_WINDOW_FETCH_OPS 64u
/* Ops per window of where histories parted; more are fetched one part after the other. */
#define CW_WINDOW_FETCH_PAST_OPS 2048u

/*
 * At most once a second for a job; v is about snap. The job must cancel its requests by its address
 * before it goes (cw_leader_effects.forget). Returns how many nodes were asked.
 */
unsigned cw_window_fetch(const struct cw_leader_effects *e, const struct cw_route *route,
			 struct cw_job *job, const struct cw_snapshot *snap,
			 const struct cw_verdict *v);
/*
 * The last ops of all communicators of a job in which nobody waits, to see who comes late. The same
 * limits; 0 also where they are more than a job may keep or a node may answer with.
 */
unsigned cw_window_fetch_all(const struct cw_leader_effects *e, const struct cw_route *route,
			     struct cw_job *job, const struct cw_snapshot *snap);
