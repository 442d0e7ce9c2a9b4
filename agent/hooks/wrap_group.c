/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclGroupStart, ncclGroupEnd and ncclGroupSimulateEnd. Groups nest: only the outermost end
 * launches.
 */
#include <errno.h>

#include "agent/agent.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"

ncclResult_t cw_impl_ncclGroupStart(const struct cw_real *real, const void *caller)
{
	ncclResult_t r;

	if (!real->ncclGroupStart)
		return ncclInvalidUsage;
	/*
	 * The program may create communicators inside the group, so the agent must make the record
	 * now.
	 */
	if (!cw_agent_live() || !cw_enter(real, caller))
		return real->ncclGroupStart();
	r = real->ncclGroupStart();
	if (r == ncclSuccess && cw_tls.group_depth++ == 0)
		cw_group_begin();
	cw_leave();
	return r;
}

/*
 * The common part of ncclGroupEnd and ncclGroupSimulateEnd. NCCL simulates a group only if the
 * caller passes a struct for the result. It never simulates non-blocking communicators, because its
 * own thread launches their groups and does not get the struct.
 */
static ncclResult_t end_group(const struct cw_real *real, ncclSimInfo_t *sim, bool is_sim_end)
{
	bool is_simulated = is_sim_end && sim;
	struct cw_group *group = cw_tls.group_depth == 1 ? cw_tls.group : NULL;
	int saved_errno = errno;
	ncclResult_t r;

	if (group && !is_simulated) {
		cw_group_prepare(group);
		cw_group_launch(group);
	}
	errno = saved_errno;
	r = is_sim_end ? real->ncclGroupSimulateEnd(sim) : real->ncclGroupEnd();
	saved_errno = errno;
	if (is_simulated && r == ncclInProgress) {
		is_simulated = false;
		if (group)
			cw_group_launch(group);
	}
	if (cw_tls.group_depth)
		cw_tls.group_depth--;
	if (group)
		cw_group_finish(group, r, !is_simulated);
	cw_leave();
	errno = saved_errno;
	return r;
}

ncclResult_t cw_impl_ncclGroupEnd(const struct cw_real *real, const void *caller)
{
	if (!real->ncclGroupEnd)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclGroupEnd();
	return end_group(real, NULL, false);
}

ncclResult_t cw_impl_ncclGroupSimulateEnd(const struct cw_real *real, const void *caller,
					  ncclSimInfo_t *simInfo)
{
	if (!real->ncclGroupSimulateEnd)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclGroupSimulateEnd(simInfo);
	return end_group(real, simInfo, true);
}
