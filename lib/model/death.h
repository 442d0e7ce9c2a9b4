/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, and what its end was part of. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Who aborts in a call that it has been in for so long gave up waiting: no watchdog of a job ends
 * it sooner. */
#define CW_GIVES_UP_AFTER_NS INT64_C(5000000000)

struct cw_ending {
	uint32_t liveness; /* enum cw_liveness: EXITED, KILLED or GONE */
	int exit_code, term_signal;
};

/* "KILL" of SIGKILL, as sigabbrev_np(3) of glibc 2.32 has it; NULL = no such, or one of real time.
 */
const char *cw_signal_name(int sig);

/* Ended the way a process ends that was asked to: SIGTERM, SIGINT, or a shell's exit code for
 * either. */
bool cw_ending_is_asked(const struct cw_ending *end);

/* Ended by a signal that a program gets for what it does itself: a fault, or abort(). */
bool cw_ending_is_fault(const struct cw_ending *end);

/*
 * Was the death of one rank part of an orderly stop of its job on its node?
 *
 * Yes when it was asked to end (above); when its launcher had gone within the last 10 s or goes
 * with it (an older loss is a job that was left running on purpose: nohup, disown); when another
 * rank of the job on this node was asked to end within 2 s of it (whatever this one made of it:
 * handlers exit(1), launchers send SIGKILL last); or when nobody of the job is left on this node
 * and at least two ended within 2 s of each other (a job manager's SIGKILL to the step), unless
 * this one failed by itself: a fault, an abort, or what the kernel knows that nobody sent.
 *
 * Two ranks that crash by themselves at the same time, with others alive, are not a shutdown.
 */
struct cw_death {
	struct cw_ending end;
	bool is_own; /* the kernel knows that nobody's signal ended it, or that memory ran out */
	int64_t ended_ns;         /* 0 = alive */
	int64_t launcher_gone_ns; /* 0 = never seen to go */
};
bool cw_death_is_shutdown(const struct cw_death *self, const struct cw_death *all, unsigned n);
