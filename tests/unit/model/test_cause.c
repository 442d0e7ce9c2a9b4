/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence of each kind of cause, from its facts. */
#include "model/cause.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "model/facts.h"
#include "model/op.h"

#define GIB (UINT64_C(1) << 30)
#define OF(kind, ...)                                                                              \
	{                                                                                          \
		.cause_kind = CW_CAUSE_##kind, __VA_ARGS__                                         \
	}
#define PYTHON .cause_by = CW_END_BY_PROCESS, .cause_pid = 4242, .cause_uid = 1000

static const struct row {
	const char *says;
	struct cw_cause_facts facts;
	const char *command, *group;
	int exit_code;
} rows[] = {
	{ "", { 0 } },
	{ "", { .cause_kind = CW_CAUSE__MAX } },
	{ "exited with status 3", OF(EXITED, 0), NULL, NULL, 3 },
	{ "exited with status 143 after SIGTERM sent by python3 (pid 4242, uid 1000)",
	  OF(ASKED, .cause_signal = SIGTERM, PYTHON), "python3", NULL, 143 },
	{ "killed by SIGTERM", OF(KILLED, .cause_signal = SIGTERM) },
	{ "killed by signal 40", OF(KILLED, .cause_signal = 40) },
	{ "killed by SIGKILL sent by python3 (pid 4242, uid 1000)",
	  OF(KILLED, .cause_signal = SIGKILL, PYTHON), "python3" },
	{ "killed by SIGKILL sent by a process (pid 4242, uid 1000)",
	  OF(KILLED, .cause_signal = SIGKILL, PYTHON) },
	{ "killed by SIGKILL sent by a process outside the daemon's container (x, root)",
	  OF(KILLED, .cause_signal = SIGKILL, .cause_by = CW_END_BY_OUTSIDE), "x" },
	{ "killed by SIGSEGV from the kernel",
	  OF(KILLED, .cause_signal = SIGSEGV, .cause_by = CW_END_BY_KERNEL) },
	{ "killed by SIGKILL as its parent or session leader ended: bash (pid 7, root)",
	  OF(KILLED, .cause_signal = SIGKILL, .cause_by = CW_END_BY_PARENT, .cause_pid = 7),
	  "bash" },
	{ "killed by SIGKILL as pid 1 of its container ended: tini (pid 7, root)",
	  OF(KILLED, .cause_signal = SIGKILL, .cause_by = CW_END_BY_INIT, .cause_pid = 7), "tini" },
	{ "killed itself (SIGABRT sent by its own pid)",
	  OF(KILLED, .cause_signal = SIGABRT, .cause_by = CW_END_BY_ITSELF) },
	{ "OOM-killed", OF(OOM_KILLED, .cause_group_limit = GIB) },
	{ "OOM-killed (2.00 GiB resident)", OF(OOM_KILLED, .cause_resident = 2 * GIB) },
	{ "OOM-killed (cgroup limit of 8.00 GiB reached, 7.50 GiB resident)",
	  OF(OOM_KILLED, .cause_resident = 15 * GIB / 2, .cause_group_bytes = 8 * GIB,
	     .cause_group_limit = 8 * GIB) },
	{ "OOM-killed (512 MiB resident, its cgroup at 0 MiB of 1.00 GiB)",
	  OF(OOM_KILLED, .cause_resident = GIB / 2, .cause_group_limit = GIB) },
	{ "stopped by SIGSTOP", OF(STOPPED, .cause_signal = SIGSTOP) },
	{ "stopped by SIGSTOP sent by its own pid",
	  OF(STOPPED, .cause_signal = SIGSTOP, .cause_by = CW_END_BY_ITSELF) },
	{ "held by gdb (pid 4242, root)",
	  OF(TRACED, .cause_by = CW_END_BY_PROCESS, .cause_pid = 4242), "gdb" },
	{ "held by a debugger (pid 4242)", OF(TRACED, .cause_pid = 4242) },
	{ "frozen with its control group /docker/4f1c", OF(FROZEN, 0), NULL, "/docker/4f1c" },
	{ "frozen with its control group", OF(FROZEN, 0) },
	{ "stopped by collwatch at NaN or Inf (COLLWATCH_STOP_AT), out of all_reduce #7",
	  OF(STOPPED_NONFINITE, .cause_op_kind = CW_OP_ALL_REDUCE, .cause_is_output = 1,
	     .cause_op_seq = 7) },
	{ "stopped by collwatch at values near the limit of their type (COLLWATCH_STOP_AT), fed "
	  "into send #2",
	  OF(STOPPED_HEADROOM, .cause_op_kind = CW_OP_SEND, .cause_op_seq = 2) },
	{ "stopped by collwatch at NaN or Inf (COLLWATCH_STOP_AT)", OF(STOPPED_NONFINITE, 0) },
};

Test(cause, text_says_the_facts_and_no_more)
{
	char text[CW_CAUSE_BYTES];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cw_cause_text(&rows[i].facts, rows[i].command, rows[i].group, rows[i].exit_code,
			      text, sizeof(text));
		cr_expect_str_eq(text, rows[i].says);
	}
}

/* A path has up to 4,096 bytes. */
Test(cause, long_group_is_cut)
{
	struct cw_cause_facts facts = { .cause_kind = CW_CAUSE_FROZEN };
	char group[512], text[CW_CAUSE_BYTES];

	memset(group, 'g', sizeof(group) - 1);
	group[sizeof(group) - 1] = '\0';
	cw_cause_text(&facts, NULL, group, 0, text, sizeof(text));
	cr_assert_eq(strlen(text), sizeof(text) - 1);
}

/* Readers put "was" before the text, except before these. */
Test(cause, verb_belongs_to_exits_and_to_a_process_that_killed_itself)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cw_cause_facts *c = &rows[i].facts;
		bool has_verb = strncmp(rows[i].says, "exited", 6) == 0 ||
				strncmp(rows[i].says, "killed itself", 13) == 0;

		cr_expect_eq(cw_cause_has_verb(c->cause_kind, c->cause_by), has_verb, "%s",
			     rows[i].says);
	}
}

Test(cause, names_are_read_as_written)
{
	for (unsigned i = 0; i < CW_CAUSE__MAX; i++)
		cr_expect_eq(cw_cause_kind_from_name(cw_cause_kind_name(i)), i);
	cr_expect_eq(cw_cause_kind_from_name("of_a_newer_version"), CW_CAUSE_UNKNOWN);
	cr_expect_str_eq(cw_cause_kind_name(CW_CAUSE__MAX), "");
}
