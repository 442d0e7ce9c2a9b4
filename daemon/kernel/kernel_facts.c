/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that find the party that ended a process. The OOM killer's choice explains a SIGKILL,
 * so we then look for no sender. We name the sender of a signal only if this signal ended the
 * process. SIGTERM and the like only request an end. We blame such a request only if the process
 * exited soon afterwards.
 */
#include "daemon/kernel/kernel_facts.h"

#include <signal.h>

#include "common/clock.h"
#include "model/facts.h"

/* Longest time between a request to end and the exit that it caused. */
#define ASKED_NS (60 * (uint64_t)CW_NS_PER_S)
/*
 * Greatest age of an end that we believe. A daemon restarts in less time, so a greater age must be
 * wrong.
 */
#define ENDS_WITHIN_NS (600 * CW_NS_PER_S)

int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret)
{
	if (!facts->ended_ns)
		return CW_LIVENESS_AGAIN;
	*ret = cw_ending_of_status(facts->status);
	return 0;
}

static enum cw_end_by sender_kind(const struct cw_facts_signal *s, int32_t *ret_sender)
{
	bool by_self = s->flags & CW_FACTS_BY_SELF;

	if (s->flags & CW_FACTS_SENDER_IS_INIT)
		return CW_END_BY_INIT;
	/*
	 * The sender was exiting itself. The signal is then that of PR_SET_PDEATHSIG, or the
	 * hang-up after the end of a session's leader.
	 */
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

/* Copy only printable ASCII, because a process chooses its own name. */
static void copy_command(const struct cw_facts_signal *s, char ret[CW_CAUSE_COMMAND_BYTES])
{
	size_t n = 0;

	for (; n < sizeof(s->sender_comm) && s->sender_comm[n]; n++) {
		char c = s->sender_comm[n];

		ret[n] = c < ' ' || c > '~' ? '?' : c;
	}
	ret[n] = '\0';
}

void cw_kernel_facts_set_process(const struct cw_facts_signal *s, struct cw_cause *cause)
{
	cause->facts.cause_pid = (int32_t)s->sender_pid;
	cause->facts.cause_uid = s->sender_uid;
	copy_command(s, cause->command);
}

static void set_signal(const struct cw_facts_signal *s, struct cw_cause *cause)
{
	int32_t sender = 0; /* not needed, because the cause names the sender */

	cause->facts.cause_signal = s->sig;
	cause->facts.cause_by = sender_kind(s, &sender);
	if (cause->facts.cause_by != CW_END_BY_ITSELF && cause->facts.cause_by != CW_END_BY_KERNEL)
		cw_kernel_facts_set_process(s, cause);
}

static void set_oom(const struct cw_facts_process *f, uint64_t page_bytes, struct cw_cause *cause)
{
	cause->facts.cause_kind = CW_CAUSE_OOM_KILLED;
	cause->facts.cause_by = CW_END_BY_KERNEL;
	cause->facts.cause_resident = f->rss_pages > 0 ? (uint64_t)f->rss_pages * page_bytes : 0;
	cause->facts.cause_group_bytes = f->group_usage_pages * page_bytes;
	cause->facts.cause_group_limit = f->group_limit_pages * page_bytes;
}

static void set_end(const struct cw_facts_process *f, uint64_t page_bytes, struct cw_cause *cause)
{
	struct cw_ending end = cw_ending_of_status(f->status);

	if (end.liveness != CW_LIVE_KILLED) {
		cause->facts.cause_kind = was_asked(f) ? CW_CAUSE_ASKED : CW_CAUSE_EXITED;
		if (was_asked(f))
			set_signal(&f->asked, cause);
	} else if (f->is_oom_victim && end.term_signal == SIGKILL) {
		set_oom(f, page_bytes, cause);
	} else {
		cause->facts.cause_kind = CW_CAUSE_KILLED;
		cause->facts.cause_signal = end.term_signal;
		if (f->fatal.sig == end.term_signal)
			set_signal(&f->fatal, cause);
	}
}

struct cw_cause cw_kernel_facts_cause(const struct cw_facts_process *facts, bool is_stopped,
				      uint64_t page_bytes)
{
	struct cw_cause cause = { 0 };

	if (facts->ended_ns) {
		set_end(facts, page_bytes, &cause);
	} else if (is_stopped && facts->stop.sig) {
		cause.facts.cause_kind = CW_CAUSE_STOPPED;
		set_signal(&facts->stop, &cause);
	}
	return cause;
}
