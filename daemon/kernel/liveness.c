/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/liveness.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "model/snapshot.h"

/*
 * <linux/pidfd.h> of Linux 6.15; Debian 12's headers are older. The kernel accepts any size of at
 * least the first version (64 bytes) and fills in what fits.
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

#define TOGETHER_NS (2 * CW_NS_PER_S)
#define LAUNCHER_GONE_NS (10 * CW_NS_PER_S)

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
	if (was_permitted && cw_procstat_read(proc_fd, &st) == 0 && st.state == 'Z') {
		*ret = cw_ending_of_status(st.exit_code);
		return 0;
	}
	return CW_LIVENESS_AGAIN;
}

bool cw_ending_is_asked(const struct cw_ending *end)
{
	int sig = 0;

	if (end->liveness == CW_LIVE_KILLED)
		sig = end->term_signal;
	else if (end->liveness == CW_LIVE_EXITED && end->exit_code > 128)
		sig = end->exit_code - 128;
	return sig == SIGTERM || sig == SIGINT;
}

static int64_t distance_ns(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

bool cw_death_is_shutdown(const struct cw_death *self, const struct cw_death *all, unsigned n)
{
	unsigned together = 0, alive = 0;

	if (!self->ended_ns)
		return false;
	if (cw_ending_is_asked(&self->end))
		return true;
	if (self->launcher_gone_ns &&
	    distance_ns(self->launcher_gone_ns, self->ended_ns) <= LAUNCHER_GONE_NS)
		return true;
	for (unsigned i = 0; i < n; i++) {
		alive += !all[i].ended_ns;
		if (!all[i].ended_ns || distance_ns(all[i].ended_ns, self->ended_ns) > TOGETHER_NS)
			continue;
		if (cw_ending_is_asked(&all[i].end))
			return true;
		together++;
	}
	return together >= 2 && !alive;
}
