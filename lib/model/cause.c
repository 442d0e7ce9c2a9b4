/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cause.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "model/death.h"
#include "model/facts.h"
#include "model/op.h"

static const char *const names[CW_CAUSE__MAX] = {
	[CW_CAUSE_UNKNOWN] = "",
	[CW_CAUSE_EXITED] = "exited",
	[CW_CAUSE_ASKED] = "asked",
	[CW_CAUSE_KILLED] = "killed",
	[CW_CAUSE_OOM_KILLED] = "oom_killed",
	[CW_CAUSE_STOPPED] = "stopped",
	[CW_CAUSE_TRACED] = "traced",
	[CW_CAUSE_FROZEN] = "frozen",
	[CW_CAUSE_STOPPED_NONFINITE] = "stopped_nonfinite",
	[CW_CAUSE_STOPPED_HEADROOM] = "stopped_headroom",
};

const char *cw_cause_kind_name(unsigned kind)
{
	return names[kind < CW_CAUSE__MAX ? kind : CW_CAUSE_UNKNOWN];
}

enum cw_cause_kind cw_cause_kind_from_name(const char *name)
{
	for (unsigned i = 0; i < CW_CAUSE__MAX; i++)
		if (strcmp(names[i], name) == 0)
			return (enum cw_cause_kind)i;
	return CW_CAUSE_UNKNOWN;
}

bool cw_cause_has_verb(unsigned kind, unsigned by)
{
	return kind == CW_CAUSE_EXITED || kind == CW_CAUSE_ASKED ||
	       (kind == CW_CAUSE_KILLED && by == CW_END_BY_ITSELF);
}

const char *cw_cause_verb(unsigned kind, unsigned by)
{
	return kind == CW_CAUSE_UNKNOWN || cw_cause_has_verb(kind, by) ? "" : "was ";
}

/* A cause and the buffer that its text goes into. */
struct teller {
	const struct cw_cause_facts *cause;
	const char *command;
	char *buf;
	size_t len;
};

static void add_process(const struct teller *t)
{
	char user[24] = "root";

	if (t->cause->cause_uid)
		(void)snprintf(user, sizeof(user), "uid %" PRIu32, t->cause->cause_uid);
	if (t->cause->cause_pid)
		cw_text_append(t->buf, t->len, "%s (pid %" PRId32 ", %s)",
			       *t->command ? t->command : "a process", t->cause->cause_pid, user);
	else
		cw_text_append(t->buf, t->len, "a process outside the daemon's container (%s, %s)",
			       t->command, user);
}

static void add_signal(const struct teller *t)
{
	const char *name = cw_signal_name(t->cause->cause_signal);

	if (name)
		cw_text_append(t->buf, t->len, "SIG%s", name);
	else
		cw_text_append(t->buf, t->len, "signal %" PRId32, t->cause->cause_signal);
	switch (t->cause->cause_by) {
	case CW_END_BY_INIT:
		cw_text_append(t->buf, t->len, " as pid 1 of its container ended: ");
		add_process(t);
		break;
	case CW_END_BY_PARENT:
		cw_text_append(t->buf, t->len, " as its parent or session leader ended: ");
		add_process(t);
		break;
	case CW_END_BY_KERNEL:
		cw_text_append(t->buf, t->len, " from the kernel");
		break;
	case CW_END_BY_ITSELF:
		cw_text_append(t->buf, t->len, " sent by its own pid");
		break;
	case CW_END_BY_PROCESS:
	case CW_END_BY_OUTSIDE:
		cw_text_append(t->buf, t->len, " sent by ");
		add_process(t);
		break;
	default: /* the sender is not known */
		break;
	}
}

static void add_bytes(const struct teller *t, uint64_t bytes)
{
	double mib = (double)bytes / (1 << 20);

	if (mib < 1024)
		cw_text_append(t->buf, t->len, "%.0f MiB", mib);
	else
		cw_text_append(t->buf, t->len, "%.2f GiB", mib / 1024);
}

/*
 * True if the control group was at its memory limit. The kernel kills when it cannot get the last
 * pages. So we also accept a use that is up to a hundredth below the limit.
 */
static bool is_at_limit(const struct cw_cause_facts *c)
{
	return c->cause_group_limit &&
	       c->cause_group_bytes >= c->cause_group_limit - c->cause_group_limit / 100;
}

static void add_oom(const struct teller *t)
{
	const struct cw_cause_facts *c = t->cause;

	cw_text_append(t->buf, t->len, "OOM-killed");
	if (!c->cause_resident)
		return;
	cw_text_append(t->buf, t->len, " (");
	if (is_at_limit(c)) {
		cw_text_append(t->buf, t->len, "cgroup limit of ");
		add_bytes(t, c->cause_group_limit);
		cw_text_append(t->buf, t->len, " reached, ");
	}
	add_bytes(t, c->cause_resident);
	cw_text_append(t->buf, t->len, " resident");
	if (c->cause_group_limit && !is_at_limit(c)) {
		cw_text_append(t->buf, t->len, ", its cgroup at ");
		add_bytes(t, c->cause_group_bytes);
		cw_text_append(t->buf, t->len, " of ");
		add_bytes(t, c->cause_group_limit);
	}
	cw_text_append(t->buf, t->len, ")");
}

static void add_own_stop(const struct teller *t)
{
	const struct cw_cause_facts *c = t->cause;

	cw_text_append(t->buf, t->len, "stopped by collwatch at %s (COLLWATCH_STOP_AT)",
		       c->cause_kind == CW_CAUSE_STOPPED_NONFINITE
			       ? "NaN or Inf"
			       : "values near the limit of their type");
	if (c->cause_op_kind != CW_OP_NONE)
		cw_text_append(t->buf, t->len, ", %s %s #%" PRIu64,
			       c->cause_is_output ? "out of" : "fed into",
			       cw_op_kind_name(c->cause_op_kind), c->cause_op_seq);
}

void cw_cause_text(const struct cw_cause_facts *cause, const char *command, const char *group,
		   int exit_code, char *buf, size_t len)
{
	struct teller t = {
		.cause = cause, .command = command ? command : "", .buf = buf, .len = len
	};

	buf[0] = '\0';
	switch (cause->cause_kind) {
	case CW_CAUSE_EXITED:
		cw_text_append(buf, len, "exited with status %d", exit_code);
		break;
	case CW_CAUSE_ASKED:
		cw_text_append(buf, len, "exited with status %d after ", exit_code);
		add_signal(&t);
		break;
	case CW_CAUSE_KILLED:
		if (cause->cause_by == CW_END_BY_ITSELF) {
			cw_text_append(buf, len, "killed itself (");
			add_signal(&t);
			cw_text_append(buf, len, ")");
		} else {
			cw_text_append(buf, len, "killed by ");
			add_signal(&t);
		}
		break;
	case CW_CAUSE_OOM_KILLED:
		add_oom(&t);
		break;
	case CW_CAUSE_STOPPED:
		cw_text_append(buf, len, "stopped by ");
		add_signal(&t);
		break;
	case CW_CAUSE_TRACED:
		cw_text_append(buf, len, "held by ");
		if (cause->cause_by == CW_END_BY_PROCESS)
			add_process(&t);
		else
			cw_text_append(buf, len, "a debugger (pid %" PRId32 ")", cause->cause_pid);
		break;
	case CW_CAUSE_FROZEN:
		cw_text_append(buf, len, "frozen with its control group%s%s",
			       group && *group ? " " : "", group ? group : "");
		break;
	case CW_CAUSE_STOPPED_NONFINITE:
	case CW_CAUSE_STOPPED_HEADROOM:
		add_own_stop(&t);
		break;
	default: /* CW_CAUSE_UNKNOWN, or a kind of a newer version */
		break;
	}
}
