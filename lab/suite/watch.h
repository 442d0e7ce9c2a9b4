/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario's cluster watched as people have it watched: the daemons of its nodes (lab/vnet/)
 * send digests of what their ranks do (cluster_digest_ranks()), and the alerts are those of the
 * incidents that leaders tell. It is watched until 90 s after the last alert, or to the end of the
 * scenario, whichever is later.
 */
#pragma once

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

struct cw_arena;
struct cw_job_view;
struct cw_msg_digest;
struct json_t;

/* Somebody who looks on. What is handed over is borrowed; a function that is NULL is not called. */
struct watch_observer {
	void *user;
	/*
	 * May change what a node is about to tell; memory that it needs comes from the arena. 0 or
	 * -ENOMEM.
	 */
	int (*change)(void *user, unsigned node, struct cw_arena *arena, struct cw_msg_digest *d);
	/* Each virtual second in which somebody leads the job: what its last evaluation showed. */
	void (*on_second)(void *user, int64_t now_ns, const struct cw_job_view *view);
	/*
	 * Gets each page, notice and post-mortem of a leader when the leader tells it to people,
	 * and the state of the cluster then (cluster_truth.c). All borrowed; NULL: nobody.
	 */
	void (*on_incident)(void *user, const struct suite_scenario *s, const struct json_t *doc,
			    const struct json_t *truth);
	/* Each line that a leader logs, of any level; ns: since the scenario began. */
	void (*on_log)(void *user, int64_t ns, const char *node, const char *text);
};

/* 0; -EINVAL with a sentence in err: the scenario makes no sense; -ENOMEM. */
int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret);
int cw_watch_with(const struct suite_scenario *s, const struct watch_observer *observer,
		  struct cw_err *err, struct outcome *ret);
/*
 * What the job's leader knows after so long, with the windows of all communicators; *ret is the
 * caller's. As cw_watch(); -ENOENT: nobody leads it then.
 */
int cw_watch_snapshot(const struct suite_scenario *s, int64_t after_ns, struct cw_err *err,
		      struct cw_snapshot **ret);
