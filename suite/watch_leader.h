/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario's cluster watched as people have it watched: the daemons of its nodes (suite/network/)
 * send digests of what their ranks do (cluster_tell()), and the alerts are those of the incidents
 * that leaders tell. It is watched until 90 s after the last alert, or to the end of the scenario,
 * whichever is later.
 */
#pragma once

#include "suite/watch.h"

/* As cw_watch(). */
int cw_watch_leader(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret);
int cw_watch_leader_with(const struct suite_scenario *s, const struct watch_eyes *eyes,
			 struct cw_err *err, struct outcome *ret);
/*
 * What the job's leader knows after so long, with the windows of all communicators; *ret is the
 * caller's. As cw_watch(); -ENOENT: nobody leads it then.
 */
int cw_watch_snapshot(const struct suite_scenario *s, int64_t after_ns, struct cw_err *err,
		      struct cw_snapshot **ret);
