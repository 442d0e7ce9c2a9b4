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
/* Of the eyes, on_incident() and user count. */
int cw_watch_leader_with(const struct suite_scenario *s, const struct watch_eyes *eyes,
			 struct cw_err *err, struct outcome *ret);
