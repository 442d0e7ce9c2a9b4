/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the agent in its host process: dormant, armed, or out of the way for good.
 *
 * Dormant from load until the first NCCL call that matters (one that makes a communicator): no
 * descriptor, no thread, no mapping. Armed: the flight record exists. What every call asks of that
 * is in agent/base/state.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * Brings the agent up; true when it is armed afterwards. Any thread; the first caller makes the
 * record (milliseconds), others wait for it, at most a second. Keeps errno.
 */
bool cw_agent_start(void);

/* True when calls are recorded; brings the agent up when this is the first that matters. */
static inline bool cw_agent_live(void)
{
	return cw_likely(cw_agent_is_armed()) || cw_agent_start();
}

/* Exported, for whoever wants the step number in reports. */
CW_EXPORT void collwatch_mark_step(int64_t step);

/*
 * Exported, for a framework that knows what people call a communicator, where NCCL is not given its
 * name: as torch has it, "DESCRIPTION:NAME", or any other. A name that NCCL was given stays. False:
 * the communicator is none that is recorded. Any thread; keeps errno.
 */
CW_EXPORT bool collwatch_name_comm(const void *comm, const char *name);

/*
 * Exported, likewise: after how long in one call its watchdog ends the job, the smallest of its
 * groups'; more than a day is never. What COLLWATCH_JOB_TIMEOUT says stays. Any thread.
 */
CW_EXPORT void collwatch_tell_timeout(int64_t timeout_ns);
