/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/tracer.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/kernel_facts.h"
#include "daemon/kernel/procstat.h"

/*
 * Reads the tracer's name and user. Returns false if the tracer has ended, or if we may not see it.
 */
static bool look_at_tracer(pid_t pid, struct cw_facts_signal *ret)
{
	_cleanup_(closep) int proc_fd = cw_procstat_open(pid);
	struct cw_facts_signal who = { .sender_pid = (uint32_t)pid };
	struct cw_procstat st;
	struct stat owner;

	if (proc_fd < 0 || cw_procstat_read(proc_fd, &st) < 0 || fstat(proc_fd, &owner) < 0)
		return false;
	memcpy(who.sender_comm, st.comm, sizeof(who.sender_comm));
	who.sender_uid = owner.st_uid;
	*ret = who;
	return true;
}

bool cw_tracer_find(int proc_fd, struct cw_cause *ret)
{
	struct cw_facts_signal who;
	struct cw_cause cause = { .facts.cause_kind = CW_CAUSE_TRACED };
	pid_t pid;

	if (cw_procstat_tracer(proc_fd, &pid) < 0)
		return false;
	cause.facts.cause_pid = (int32_t)pid;
	if (look_at_tracer(pid, &who)) {
		cause.facts.cause_by = CW_END_BY_PROCESS;
		cw_kernel_facts_set_process(&who, &cause);
	}
	*ret = cause;
	return true;
}
