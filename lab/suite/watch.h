/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a scenario's cluster as a real site would. The daemons of its nodes (lab/vnet/) send
 * digests of what their ranks do (cluster_digest_ranks()). The alerts are those of the incidents
 * that leaders report. We watch until 90 s after the last alert, or to the end of the scenario,
 * whichever is later.
 */
#pragma once

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

struct cw_arena;
struct cw_job_view;
struct cw_msg_digest;
struct json_t;

/* An observer of the watch. All arguments are borrowed; we skip functions that are NULL. */
struct watch_observer {
	void *user;
	/*
	 * May change the digest that a node is about to send. Memory for this comes from the arena.
	 * 0 or -ENOMEM.
	 */
	int (*change)(void *user, unsigned node, struct cw_arena *arena, struct cw_msg_digest *d);
	/*
	 * Called in each virtual second in which a node leads the job, with the result of its last
	 * evaluation.
	 */
	void (*on_second)(void *user, int64_t now_ns, const struct cw_job_view *view);
	/*
	 * Called for each page, notice and post-mortem when a leader reports it, with the state of
	 * the cluster at that time (cluster_truth.c). All arguments are borrowed. May be NULL.
	 */
	void (*on_incident)(void *user, const struct suite_scenario *s, const struct json_t *doc,
			    const struct json_t *truth);
	/*
	 * Called for each line that a leader logs, of any level. ns counts from the scenario's
	 * beginning.
	 */
	void (*on_log)(void *user, int64_t ns, const char *node, const char *text);
};

/* Watches a scenario. 0; -EINVAL with a sentence in err if the scenario makes no sense; -ENOMEM. */
int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret);
int cw_watch_with(const struct suite_scenario *s, const struct watch_observer *observer,
		  struct cw_err *err, struct outcome *ret);
/*
 * Returns what the job's leader knows at after_ns, with the windows of all communicators. The
 * caller owns *ret. Errors as for cw_watch(), and -ENOENT if no node leads the job then.
 */
int cw_watch_snapshot(const struct suite_scenario *s, int64_t after_ns, struct cw_err *err,
		      struct cw_snapshot **ret);
