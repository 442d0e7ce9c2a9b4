/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OOM killer's choice explains a SIGKILL before any sender does; the sender of a signal is
 * named only if that signal is what ended the process; a request to end is blamed only where the
 * exit followed soon.
 */
#include "daemon/kernel/kernel_facts.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "model/snapshot.h"

/* A request to end that is older than this is not why it exited. */
#define ASKED_NS (60 * (uint64_t)CW_NS_PER_S)

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t len, const char *format,
						      ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(buf + used, len - used, format, ap); /* shortened */
	va_end(ap);
}

int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret)
{
	if (!facts->ended_ns)
		return CW_LIVENESS_AGAIN;
	*ret = cw_ending_of_status(facts->status);
	return 0;
}

static void add_signal_name(char *buf, size_t len, int sig)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		add(buf, len, "SIG%s", name);
	else
		add(buf, len, "signal %d", sig);
}

/* " sent by pid 4242 (python3, uid 1000)"; a name is whatever the process calls itself. */
static void add_process(char *buf, size_t len, const struct cw_facts_signal *s)
{
	char name[CW_FACTS_COMM_BYTES + 1] = "";

	for (size_t i = 0; i < sizeof(s->sender_comm) && s->sender_comm[i]; i++) {
		char c = s->sender_comm[i];

		name[i] = c < ' ' || c > '~' ? '?' : c;
	}
	if (s->sender_pid)
		add(buf, len, "pid %" PRIu32 " (%s, uid %" PRIu32 ")", s->sender_pid, name,
		    s->sender_uid);
	else
		add(buf, len, "a process outside the daemon's container (%s, uid %" PRIu32 ")",
		    name, s->sender_uid);
}

static void add_sender(char *buf, size_t len, const struct cw_facts_signal *s)
{
	bool sender_exits = s->flags & CW_FACTS_SENDER_EXITS;

	if (s->flags & CW_FACTS_SENDER_IS_INIT) {
		add(buf, len, " as pid 1 of its container ended: ");
		add_process(buf, len, s);
	} else if (sender_exits && !(s->flags & CW_FACTS_BY_SELF)) {
		/* PR_SET_PDEATHSIG, or the hang-up of a session whose leader ends */
		add(buf, len, " as its parent or session leader ended: ");
		add_process(buf, len, s);
	} else if (s->flags & CW_FACTS_BY_KERNEL) {
		add(buf, len, " from the kernel");
	} else if (s->flags & CW_FACTS_BY_SELF) {
		add(buf, len, " it sent itself");
	} else {
		add(buf, len, " sent by ");
		add_process(buf, len, s);
	}
}

static void add_pages(char *buf, size_t len, uint64_t pages, int64_t page_bytes)
{
	double mib = (double)pages * (double)page_bytes / (1 << 20);

	if (mib < 1024)
		add(buf, len, "%.0f MiB", mib);
	else
		add(buf, len, "%.2f GiB", mib / 1024);
}

static void say_oom(const struct cw_facts_process *f, int64_t page_bytes, char *buf, size_t len)
{
	add(buf, len, "killed by the OOM killer");
	if (f->rss_pages <= 0)
		return;
	add(buf, len, ": ");
	add_pages(buf, len, (uint64_t)f->rss_pages, page_bytes);
	add(buf, len, " resident");
	if (!f->group_limit_pages)
		return;
	add(buf, len, ", its control group at ");
	add_pages(buf, len, f->group_usage_pages, page_bytes);
	add(buf, len, " of ");
	add_pages(buf, len, f->group_limit_pages, page_bytes);
}

static void say_end(const struct cw_facts_process *f, int64_t page_bytes, char *buf, size_t len)
{
	struct cw_ending end = cw_ending_of_status(f->status);

	if (end.liveness == CW_LIVE_KILLED) {
		if (f->is_oom_victim && end.term_signal == SIGKILL) {
			say_oom(f, page_bytes, buf, len);
			return;
		}
		add(buf, len, "killed by ");
		add_signal_name(buf, len, end.term_signal);
		if (f->fatal.sig == end.term_signal)
			add_sender(buf, len, &f->fatal);
		return;
	}
	add(buf, len, "exited with status %d", end.exit_code);
	if (f->asked.sig && f->ended_ns - f->asked.at_ns < ASKED_NS) {
		add(buf, len, " after ");
		add_signal_name(buf, len, f->asked.sig);
		add_sender(buf, len, &f->asked);
	}
}

void cw_kernel_facts_say(const struct cw_facts_process *facts, bool is_stopped, int64_t page_bytes,
			 char *buf, size_t len)
{
	buf[0] = '\0';
	if (facts->ended_ns) {
		say_end(facts, page_bytes, buf, len);
	} else if (is_stopped && facts->stop.sig) {
		add(buf, len, "stopped by ");
		add_signal_name(buf, len, facts->stop.sig);
		add_sender(buf, len, &facts->stop);
	}
}
