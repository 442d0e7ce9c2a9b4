/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, and whether its end was part of a shutdown. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * If a rank aborts after this time in a call, it gave up waiting. No watchdog of a job ends a call
 * sooner.
 */
#define CW_GIVES_UP_AFTER_NS INT64_C(5000000000)

struct cw_ending {
	uint32_t liveness; /* enum cw_liveness: EXITED, KILLED or GONE */
	int exit_code, term_signal;
};

/*
 * Returns "KILL" for SIGKILL, like sigabbrev_np(3) of glibc 2.32. NULL = no such signal, or a
 * real-time signal.
 */
const char *cw_signal_name(int sig);

/*
 * True if the process ended on request: by SIGTERM or SIGINT, or with a shell's exit code
 * for either.
 */
bool cw_ending_is_asked(const struct cw_ending *end);

/* True if the process ended by a signal that a program causes itself: a fault, or abort(). */
bool cw_ending_is_fault(const struct cw_ending *end);

/*
 * cw_death_is_shutdown() tells whether the death of one rank was part of an orderly stop of its job
 * on its node.
 *
 * It was in each of these cases:
 *
 *  - The rank ended on request (cw_ending_is_asked()).
 *  - Its launcher ended within 10 s before or after it. If the launcher was lost earlier, the user
 *    left the job running on purpose: nohup, disown.
 *  - Another rank of the job on this node ended on request within 2 s of it. The kind of its own
 *    end does not matter: handlers call exit(1), and launchers send SIGKILL last.
 *  - No rank of the job is left on this node, and at least two ended within 2 s of each other: a
 *    job manager sent SIGKILL to the step. Exception: the rank failed by itself (a fault, an abort,
 *    or is_own).
 *
 * Two ranks that crash by themselves at the same time, while others live, are not a shutdown.
 */
struct cw_death {
	struct cw_ending end;
	bool is_own; /* the kernel knows that no process sent a signal, or that memory ran out */
	int64_t ended_ns;         /* 0 = alive */
	int64_t launcher_gone_ns; /* 0 = the launcher has not ended, as far as we know */
};
bool cw_death_is_shutdown(const struct cw_death *self, const struct cw_death *all, unsigned n);
