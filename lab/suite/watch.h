/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a scenario's cluster as a real site would. The daemons of its nodes (lab/vnet/) send
 * digests of their ranks (cluster_digest_ranks()). Alerts come from the incidents that leaders
 * report. We watch until the end of the scenario, and until 90 s after the last alert.
 */
#pragma once

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

struct cw_arena;
struct cw_job_view;
struct cw_msg_digest;
struct json_t;

/* An observer of the watch. All arguments are borrowed. Each function may be NULL. */
struct watch_observer {
	void *user;
	/*
	 * May change the digest that a node is about to send, with memory from the arena. Returns 0
	 * or -ENOMEM.
	 */
	int (*change)(void *user, unsigned node, struct cw_arena *arena, struct cw_msg_digest *d);
	/*
	 * Called with the result of the leader's last evaluation, in each virtual second in which a
	 * node leads the job.
	 */
	void (*on_second)(void *user, int64_t now_ns, const struct cw_job_view *view);
	/*
	 * Called when a leader reports a page, notice or post-mortem, with the state of the cluster
	 * at that time (cluster_truth.c).
	 */
	void (*on_incident)(void *user, const struct suite_scenario *s, const struct json_t *doc,
			    const struct json_t *truth);
	/*
	 * Called for each line that a leader logs, at any level. ns: time since the scenario's
	 * beginning.
	 */
	void (*on_log)(void *user, int64_t ns, const char *node, const char *text);
};

/*
 * Watches a scenario. Returns 0; -EINVAL with a sentence in err if the scenario makes no sense;
 * -ENOMEM.
 */
int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret);
int cw_watch_with(const struct suite_scenario *s, const struct watch_observer *observer,
		  struct cw_err *err, struct outcome *ret);
/*
 * Returns the snapshot of the job's leader at after_ns, with the windows of all communicators. The
 * caller owns *ret. Errors are those of cw_watch(), and -ENOENT if no node leads the job at that
 * time.
 */
int cw_watch_snapshot(const struct suite_scenario *s, int64_t after_ns, struct cw_err *err,
		      struct cw_snapshot **ret);
