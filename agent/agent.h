/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent in its host process is in one of three states: dormant, armed, or permanently off.
 *
 * The loader starts the agent in the dormant state, with no descriptor, no thread and no mapping.
 * The agent arms at the first call that creates a communicator or opens a group. It also arms when
 * NCCL initializes the profiler plugin. It then makes the flight record and starts the helper
 * thread. Every wrapper checks the state through agent/base/state.h.
 *
 * The agent stays off if the user disables it or if it cannot make the record. It then forwards all
 * calls, and reports a missing record to the daemon and to `collwatch run`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * Starts the agent once. Returns true if the agent is armed afterwards. Any thread. The first
 * caller makes the record, which takes milliseconds; other callers wait for the record, at most a
 * second. Keeps errno.
 */
bool cw_agent_start(void);

/* Returns whether the agent records calls. Starts the agent if no call has done so before. */
static inline bool cw_agent_live(void)
{
	return cw_likely(cw_agent_is_armed()) || cw_agent_start();
}

/*
 * Exported for programs that want their step number in reports. agent/collwatch.h is the interface
 * of this function for C programs.
 */
CW_EXPORT void collwatch_mark_step(int64_t step);

/*
 * Exported for a framework that has a name for a communicator but does not pass the name on to
 * NCCL. The name has torch's form, "DESCRIPTION:NAME", or any other form. A name that the
 * communicator already has from NCCL stays. Returns false if we do not record this communicator.
 * Any thread; keeps errno.
 */
CW_EXPORT bool collwatch_name_comm(const void *comm, const char *name);

/*
 * Exported for a framework whose watchdog ends the job if one call takes too long. timeout_ns is
 * the smallest limit of all groups of the framework, in ns. For more than a day we assume that
 * there is no limit. We ignore values <= 0. COLLWATCH_JOB_TIMEOUT takes precedence. Any thread.
 */
CW_EXPORT void collwatch_set_job_timeout(int64_t timeout_ns);
