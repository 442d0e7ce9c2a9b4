/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How we find who ended a process. If the OOM killer chose it, this explains a SIGKILL before any
 * sender does. We name the sender of a signal only if that signal ended the process. We blame a
 * request to end only if the exit followed soon.
 */
#include "daemon/kernel/kernel_facts.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "model/death.h"
#include "model/snapshot.h"

/* The longest time from a request to end until the exit that it caused. */
#define ASKED_NS (60 * (uint64_t)CW_NS_PER_S)
/* We believe no end that is older than this, because a daemon restarts in less time. */
#define ENDS_WITHIN_NS (600 * CW_NS_PER_S)

int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret)
{
	if (!facts->ended_ns)
		return CW_LIVENESS_AGAIN;
	*ret = cw_ending_of_status(facts->status);
	return 0;
}

static void add_signal_name(char *buf, size_t len, int sig)
{
	const char *name = cw_signal_name(sig);

	if (name)
		cw_text_append(buf, len, "SIG%s", name);
	else
		cw_text_append(buf, len, "signal %d", sig);
}

void cw_kernel_facts_add_process(const struct cw_facts_signal *s, char *buf, size_t len)
{
	char name[CW_FACTS_COMM_BYTES + 1] = "", user[24] = "root";

	for (size_t i = 0; i < sizeof(s->sender_comm) && s->sender_comm[i]; i++) {
		char c = s->sender_comm[i];

		name[i] = c < ' ' || c > '~' ? '?' : c;
	}
	if (s->sender_uid)
		(void)snprintf(user, sizeof(user), "uid %" PRIu32, s->sender_uid);
	if (s->sender_pid)
		cw_text_append(buf, len, "%s (pid %" PRIu32 ", %s)", *name ? name : "a process",
			       s->sender_pid, user);
	else
		cw_text_append(buf, len, "a process outside the daemon's container (%s, %s)", name,
			       user);
}

static void add_sender(char *buf, size_t len, const struct cw_facts_signal *s)
{
	bool sender_exits = s->flags & CW_FACTS_SENDER_EXITS;

	if (s->flags & CW_FACTS_SENDER_IS_INIT) {
		cw_text_append(buf, len, " as pid 1 of its container ended: ");
		cw_kernel_facts_add_process(s, buf, len);
	} else if (sender_exits && !(s->flags & CW_FACTS_BY_SELF)) {
		/* PR_SET_PDEATHSIG, or the hang-up of a session whose leader ended */
		cw_text_append(buf, len, " as its parent or session leader ended: ");
		cw_kernel_facts_add_process(s, buf, len);
	} else if (s->flags & CW_FACTS_BY_KERNEL) {
		cw_text_append(buf, len, " from the kernel");
	} else if (s->flags & CW_FACTS_BY_SELF) {
		cw_text_append(buf, len, " sent by its own pid");
	} else {
		cw_text_append(buf, len, " sent by ");
		cw_kernel_facts_add_process(s, buf, len);
	}
}

static enum cw_end_by sender_kind(const struct cw_facts_signal *s, int32_t *ret_sender)
{
	bool by_self = s->flags & CW_FACTS_BY_SELF;

	if (s->flags & CW_FACTS_SENDER_IS_INIT)
		return CW_END_BY_INIT;
	if ((s->flags & CW_FACTS_SENDER_EXITS) && !by_self)
		return CW_END_BY_PARENT;
	if (s->flags & CW_FACTS_BY_KERNEL)
		return CW_END_BY_KERNEL;
	if (by_self)
		return CW_END_BY_ITSELF;
	*ret_sender = (int32_t)s->sender_pid;
	return s->sender_pid ? CW_END_BY_PROCESS : CW_END_BY_OUTSIDE;
}

int64_t cw_kernel_facts_ended_age_ns(const struct cw_facts_process *facts, int64_t monotonic_ns)
{
	int64_t age_ns = monotonic_ns - (int64_t)facts->ended_ns;

	return facts->ended_ns && age_ns >= 0 && age_ns <= ENDS_WITHIN_NS ? age_ns : -1;
}

static bool was_asked(const struct cw_facts_process *f)
{
	return f->asked.sig && f->ended_ns - f->asked.at_ns < ASKED_NS;
}

enum cw_end_by cw_kernel_facts_end_by(const struct cw_facts_process *facts, int32_t *ret_sender)
{
	struct cw_ending end = cw_ending_of_status(facts->status);

	*ret_sender = 0;
	if (!facts->ended_ns)
		return CW_END_BY_UNKNOWN;
	if (end.liveness != CW_LIVE_KILLED)
		return was_asked(facts) ? sender_kind(&facts->asked, ret_sender) : CW_END_BY_NOBODY;
	if (facts->is_oom_victim && end.term_signal == SIGKILL)
		return CW_END_BY_KERNEL;
	return facts->fatal.sig == end.term_signal ? sender_kind(&facts->fatal, ret_sender)
						   : CW_END_BY_UNKNOWN;
}

static void add_pages(char *buf, size_t len, uint64_t pages, int64_t page_bytes)
{
	double mib = (double)pages * (double)page_bytes / (1 << 20);

	if (mib < 1024)
		cw_text_append(buf, len, "%.0f MiB", mib);
	else
		cw_text_append(buf, len, "%.2f GiB", mib / 1024);
}

/*
 * True if the group was at its limit. The kernel kills when it cannot get the last pages, so we
 * accept a hundredth less.
 */
static bool is_at_limit(const struct cw_facts_process *f)
{
	return f->group_limit_pages &&
	       f->group_usage_pages >= f->group_limit_pages - f->group_limit_pages / 100;
}

static void say_oom(const struct cw_facts_process *f, int64_t page_bytes, char *buf, size_t len)
{
	cw_text_append(buf, len, "OOM-killed");
	if (f->rss_pages <= 0)
		return;
	cw_text_append(buf, len, " (");
	if (is_at_limit(f)) {
		cw_text_append(buf, len, "cgroup limit of ");
		add_pages(buf, len, f->group_limit_pages, page_bytes);
		cw_text_append(buf, len, " reached, ");
	}
	add_pages(buf, len, (uint64_t)f->rss_pages, page_bytes);
	cw_text_append(buf, len, " resident");
	if (f->group_limit_pages && !is_at_limit(f)) {
		cw_text_append(buf, len, ", its cgroup at ");
		add_pages(buf, len, f->group_usage_pages, page_bytes);
		cw_text_append(buf, len, " of ");
		add_pages(buf, len, f->group_limit_pages, page_bytes);
	}
	cw_text_append(buf, len, ")");
}

static bool by_itself(const struct cw_facts_process *f, int sig)
{
	return f->fatal.sig == sig && (f->fatal.flags & CW_FACTS_BY_SELF) &&
	       !(f->fatal.flags & (CW_FACTS_SENDER_IS_INIT | CW_FACTS_BY_KERNEL));
}

static void say_end(const struct cw_facts_process *f, int64_t page_bytes, char *buf, size_t len)
{
	struct cw_ending end = cw_ending_of_status(f->status);

	if (end.liveness == CW_LIVE_KILLED) {
		if (f->is_oom_victim && end.term_signal == SIGKILL) {
			say_oom(f, page_bytes, buf, len);
			return;
		}
		cw_text_append(buf, len,
			       by_itself(f, end.term_signal) ? "killed itself (" : "killed by ");
		add_signal_name(buf, len, end.term_signal);
		if (f->fatal.sig == end.term_signal)
			add_sender(buf, len, &f->fatal);
		if (by_itself(f, end.term_signal))
			cw_text_append(buf, len, ")");
		return;
	}
	cw_text_append(buf, len, "exited with status %d", end.exit_code);
	if (was_asked(f)) {
		cw_text_append(buf, len, " after ");
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
		cw_text_append(buf, len, "stopped by ");
		add_signal_name(buf, len, facts->stop.sig);
		add_sender(buf, len, &facts->stop);
	}
}
