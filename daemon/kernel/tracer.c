/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/tracer.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "daemon/kernel/kernel_facts.h"
#include "daemon/kernel/procstat.h"

/* Reads the tracer's name and user. False if it has ended meanwhile, or if we may not see it. */
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

void cw_tracer_say(int proc_fd, char *buf, size_t len)
{
	struct cw_facts_signal who;
	pid_t pid;

	buf[0] = '\0';
	if (cw_procstat_tracer(proc_fd, &pid) < 0)
		return;
	if (!look_at_tracer(pid, &who)) {
		cw_text_append(buf, len, "held by a debugger (pid %d)", (int)pid);
		return;
	}
	cw_text_append(buf, len, "held by ");
	cw_kernel_facts_add_process(&who, buf, len);
}
