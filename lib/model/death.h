/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, and whether its end was part of a shutdown. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A rank that aborts after waiting this long in a call has given up waiting. No watchdog of a job
 * ends a call sooner.
 */
#define CW_GIVES_UP_AFTER_NS INT64_C(5000000000)

struct cw_ending {
	uint32_t liveness; /* enum cw_liveness: EXITED, KILLED or GONE */
	int exit_code, term_signal;
};

/*
 * Returns the name of a signal without its prefix: "KILL" for SIGKILL, like sigabbrev_np(3) of
 * glibc 2.32. NULL = no such signal, or a real-time signal.
 */
const char *cw_signal_name(int sig);

/*
 * True if the process ended on request. SIGTERM or SIGINT killed it, or it exited with the code
 * that a shell uses for one of these signals.
 */
bool cw_ending_is_asked(const struct cw_ending *end);

/* True if the process ended by a signal that a program causes itself: a fault, or abort(). */
bool cw_ending_is_fault(const struct cw_ending *end);

/*
 * cw_death_is_shutdown() returns whether the death of one rank was part of an orderly stop of its
 * job on its node. It returns true in each of these cases:
 *
 *  - The rank ended on request (cw_ending_is_asked()).
 *  - The launcher of the rank ended within 10 s before or after the rank. An earlier end of the
 *    launcher does not count: the user left the job running on purpose, as with nohup or disown.
 *  - Another rank of the job on this node ended on request, within 2 s of this rank. The kind of
 *    this rank's own end does not matter: handlers call exit(1), and launchers send SIGKILL last.
 *  - No rank of the job is left on this node, and at least two ended within 2 s of each other. A
 *    job manager then sent SIGKILL to all of them. Exception: the rank failed by itself (a fault,
 *    an abort, or is_own).
 *
 * Two ranks that crash by themselves at the same time, while other ranks live, are not a shutdown.
 */
struct cw_death {
	struct cw_ending end;
	/* The kernel knows that no process sent a signal, or that memory ran out. */
	bool is_own;
	int64_t ended_ns;         /* 0 = alive */
	int64_t launcher_gone_ns; /* 0 = the launcher has not ended, as far as we know */
};
bool cw_death_is_shutdown(const struct cw_death *self, const struct cw_death *all, unsigned n);
