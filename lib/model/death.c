/* SPDX-License-Identifier: Apache-2.0 */
#include "model/death.h"

#include <signal.h>
#include <stddef.h>

#include "common/clock.h"
#include "model/facts.h"

#define TOGETHER_NS (2 * CW_NS_PER_S)
#define LAUNCHER_GONE_NS (10 * CW_NS_PER_S)

static const char *const signals[] = {
	[SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
	[SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
	[SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
	[SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
	[SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
	[SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
	[SIGPOLL] = "POLL", [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
};

const char *cw_signal_name(int sig)
{
	if (sig < 0 || (size_t)sig >= sizeof(signals) / sizeof(signals[0]))
		return NULL;
	return signals[sig];
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

bool cw_ending_is_fault(const struct cw_ending *end)
{
	if (end->liveness != CW_LIVE_KILLED)
		return false;
	switch (end->term_signal) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGSYS:
	case SIGABRT:
		return true;
	default:
		return false;
	}
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
	return together >= 2 && !alive && !self->is_own && !cw_ending_is_fault(&self->end);
}
