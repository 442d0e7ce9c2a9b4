/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/liveness.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "model/snapshot.h"

/*
 * Copied from <linux/pidfd.h> of Linux 6.15, because the headers of Debian 12 are older. The kernel
 * accepts any size from the first version (64 bytes) on, and fills in the fields that fit.
 */
struct pidfd_info_v0 {
	uint64_t mask;
	uint64_t cgroupid;
	uint32_t pid, tgid, ppid;
	uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "kernel ABI");
#define PIDFD_GET_INFO_V0 _IOWR(0xff, 11, struct pidfd_info_v0)
#define PIDFD_INFO_EXIT_BIT (UINT64_C(1) << 3)

uint32_t cw_liveness_of_state(char state)
{
	switch (state) {
	case 'T':
		return CW_LIVE_STOPPED;
	case 't':
		return CW_LIVE_TRACED;
	default:
		return CW_LIVE_ALIVE;
	}
}

struct cw_ending cw_ending_of_status(int status)
{
	struct cw_ending end = { .liveness = CW_LIVE_GONE };

	if (WIFEXITED(status)) {
		end.liveness = CW_LIVE_EXITED;
		end.exit_code = WEXITSTATUS(status);
	} else if (WIFSIGNALED(status)) {
		end.liveness = CW_LIVE_KILLED;
		end.term_signal = WTERMSIG(status);
	}
	return end;
}

int cw_liveness_end(int pidfd, int proc_fd, bool was_permitted, struct cw_ending *ret)
{
	struct pidfd_info_v0 info = { .mask = PIDFD_INFO_EXIT_BIT };
	struct cw_procstat st;

	if (ioctl(pidfd, PIDFD_GET_INFO_V0, &info) == 0 && (info.mask & PIDFD_INFO_EXIT_BIT)) {
		*ret = cw_ending_of_status(info.exit_code);
		return 0;
	}
	if (was_permitted && cw_procstat_read_all(proc_fd, &st) == 0 && st.state == 'Z') {
		*ret = cw_ending_of_status(st.exit_code);
		return 0;
	}
	return CW_LIVENESS_AGAIN;
}
