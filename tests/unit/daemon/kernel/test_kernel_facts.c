/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's facts, and the cause they make, by its sentence. */
#include "daemon/kernel/kernel_facts.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "model/snapshot.h"

#define PAGE 4096
#define GIB_PAGES (UINT64_C(1) << 18)
#define S ((uint64_t)CW_NS_PER_S)

struct row {
	const char *says;
	struct cw_facts_process facts;
	bool is_stopped;
};

#define SENDER .sender_pid = 4242, .sender_uid = 1000, .sender_comm = "python3"

static const struct row rows[] = {
	{ "", { .fatal = { .sig = SIGKILL, SENDER } } },
	{ "exited with status 0", { .ended_ns = 1 } },
	{ "exited with status 1", { .ended_ns = 1, .status = 1 << 8 } },
	/* a signal it survived, or that came too late, is not the cause */
	{ "exited with status 1",
	  { .ended_ns = 1, .status = 1 << 8, .fatal = { .sig = SIGKILL, SENDER } } },
	{ "killed by SIGTERM",
	  { .ended_ns = 1, .status = SIGTERM, .fatal = { .sig = SIGKILL, SENDER } } },
	{ "killed by SIGKILL sent by python3 (pid 4242, uid 1000)",
	  { .ended_ns = 1, .status = SIGKILL, .fatal = { .sig = SIGKILL, SENDER } } },
	{ "killed by SIGKILL sent by a process outside the daemon's container (x, root)",
	  { .ended_ns = 1, .status = SIGKILL, .fatal = { .sig = SIGKILL, .sender_comm = "x" } } },
	{ "killed itself (SIGABRT sent by its own pid)",
	  { .ended_ns = 1,
	    .status = SIGABRT | 0x80,
	    .fatal = { .sig = SIGABRT, .flags = CW_FACTS_BY_SELF, SENDER } } },
	{ "killed by SIGSEGV from the kernel",
	  { .ended_ns = 1,
	    .status = SIGSEGV,
	    .fatal = { .sig = SIGSEGV, .code = 1, .flags = CW_FACTS_BY_KERNEL } } },
	/* the process that ran when the kernel decided did not send it */
	{ "killed by SIGKILL from the kernel",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .fatal = { .sig = SIGKILL, .flags = CW_FACTS_BY_KERNEL, SENDER } } },
	{ "killed by SIGKILL as its parent or session leader ended: python3 (pid 4242, uid 1000)",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .fatal = { .sig = SIGKILL, .flags = CW_FACTS_SENDER_EXITS, SENDER } } },
	{ "killed by SIGKILL as pid 1 of its container ended: python3 (pid 4242, uid 1000)",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .fatal = { .sig = SIGKILL,
		       .flags =
			       CW_FACTS_BY_KERNEL | CW_FACTS_SENDER_EXITS | CW_FACTS_SENDER_IS_INIT,
		       SENDER } } },
	{ "OOM-killed (cgroup limit of 8.00 GiB reached, 7.90 GiB resident)",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .is_oom_victim = 1,
	    .rss_pages = 79 * GIB_PAGES / 10 + 1,
	    .group_usage_pages = 8 * GIB_PAGES,
	    .group_limit_pages = 8 * GIB_PAGES,
	    .fatal = { .sig = SIGKILL, .flags = CW_FACTS_BY_KERNEL } } },
	{ "OOM-killed (1023 MiB resident, its cgroup at 0 MiB of 1.00 GiB)",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .is_oom_victim = 1,
	    .rss_pages = GIB_PAGES - 256,
	    .group_limit_pages = GIB_PAGES } },
	{ "OOM-killed (2.00 GiB resident)",
	  { .ended_ns = 1, .status = SIGKILL, .is_oom_victim = 1, .rss_pages = 2 * GIB_PAGES } },
	/* chosen, but it was quicker */
	{ "exited with status 0", { .ended_ns = 1, .is_oom_victim = 1 } },
	{ "exited with status 143 after SIGTERM sent by python3 (pid 4242, uid 1000)",
	  { .ended_ns = 100 * S,
	    .status = 143 << 8,
	    .asked = { .sig = SIGTERM, .at_ns = 90 * S, SENDER } } },
	{ "exited with status 1",
	  { .ended_ns = 1000 * S,
	    .status = 1 << 8,
	    .asked = { .sig = SIGTERM, .at_ns = 90 * S, SENDER } } },
	{ "stopped by SIGSTOP sent by python3 (pid 4242, uid 1000)",
	  { .stop = { .sig = SIGSTOP, SENDER } },
	  true },
	{ "", { .stop = { .sig = SIGSTOP, SENDER } }, false },
	/* a process chooses its own name */
	{ "killed by SIGKILL sent by ??[31m?abcdefghi (pid 7, root)",
	  { .ended_ns = 1,
	    .status = SIGKILL,
	    .fatal = { .sig = SIGKILL,
		       .sender_pid = 7,
		       .sender_comm = { '\n', '\033', '[', '3', '1', 'm', '\xff', 'a', 'b', 'c',
					'd', 'e', 'f', 'g', 'h', 'i' } } } },
};

/* In another time namespace its clock shows anything. */
Test(kernel_facts, tells_how_long_ago_it_ended)
{
	static const struct {
		int64_t at_ns, now_ns, age_ns;
	} cases[] = {
		{ 0, 5 * S, -1 },         { 3 * S, 5 * S, 2 * S },     { 5 * S, 5 * S, 0 },
		{ 5 * S + 1, 5 * S, -1 }, { 1, 600 * S + 1, 600 * S }, { 1, 600 * S + 2, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_facts_process f = { .ended_ns = (uint64_t)cases[i].at_ns };

		cr_expect_eq(cw_kernel_facts_ended_age_ns(&f, cases[i].now_ns), cases[i].age_ns,
			     "%zu", i);
	}
}

Test(kernel_facts, sentence_says_what_was_noted_and_no_more)
{
	char text[CW_CAUSE_BYTES];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cw_cause cause =
			cw_kernel_facts_cause(&rows[i].facts, rows[i].is_stopped, PAGE);
		struct cw_ending end = cw_ending_of_status(rows[i].facts.status);

		cw_cause_text(&cause.facts, cause.command, cause.group, end.exit_code, text,
			      sizeof(text));
		cr_assert_str_eq(text, rows[i].says);
	}
}

Test(kernel_facts, ending_only_after_the_end)
{
	struct cw_facts_process facts = { .status = SIGKILL };
	struct cw_ending end;

	cr_assert_eq(cw_kernel_facts_ending(&facts, &end), CW_LIVENESS_AGAIN);
	facts.ended_ns = 5;
	cr_assert_eq(cw_kernel_facts_ending(&facts, &end), 0);
	cr_assert_eq(end.liveness, CW_LIVE_KILLED);
	cr_assert_eq(end.term_signal, SIGKILL);
}

Test(kernel_facts, whose_doing_an_end_was)
{
	static const struct {
		struct cw_facts_process facts;
		enum cw_end_by by;
		int32_t sender;
	} ends[] = {
		{ { .status = SIGKILL }, CW_END_BY_UNKNOWN, 0 }, /* it lives */
		{ { .ended_ns = 1 }, CW_END_BY_NOBODY, 0 },
		{ { .ended_ns = 1, .status = 1 << 8, .fatal = { .sig = SIGKILL, SENDER } },
		  CW_END_BY_NOBODY,
		  0 },
		{ { .ended_ns = 1, .status = SIGTERM, .fatal = { .sig = SIGKILL, SENDER } },
		  CW_END_BY_UNKNOWN,
		  0 },
		{ { .ended_ns = 1, .status = SIGKILL, .fatal = { .sig = SIGKILL, SENDER } },
		  CW_END_BY_PROCESS,
		  4242 },
		{ { .ended_ns = 1, .status = SIGKILL, .fatal = { .sig = SIGKILL } },
		  CW_END_BY_OUTSIDE,
		  0 },
		{ { .ended_ns = 1,
		    .status = SIGABRT | 0x80,
		    .fatal = { .sig = SIGABRT, .flags = CW_FACTS_BY_SELF, SENDER } },
		  CW_END_BY_ITSELF,
		  0 },
		{ { .ended_ns = 1,
		    .status = SIGSEGV,
		    .fatal = { .sig = SIGSEGV, .flags = CW_FACTS_BY_KERNEL } },
		  CW_END_BY_KERNEL,
		  0 },
		{ { .ended_ns = 1, .status = SIGKILL, .is_oom_victim = 1 }, CW_END_BY_KERNEL, 0 },
		{ { .ended_ns = 1,
		    .status = SIGKILL,
		    .fatal = { .sig = SIGKILL, .flags = CW_FACTS_SENDER_EXITS, SENDER } },
		  CW_END_BY_PARENT,
		  0 },
		{ { .ended_ns = 1,
		    .status = SIGKILL,
		    .fatal = { .sig = SIGKILL, .flags = CW_FACTS_SENDER_IS_INIT, SENDER } },
		  CW_END_BY_INIT,
		  0 },
		{ { .ended_ns = 100 * S,
		    .status = 143 << 8,
		    .asked = { .sig = SIGTERM, .at_ns = 90 * S, SENDER } },
		  CW_END_BY_PROCESS,
		  4242 },
		{ { .ended_ns = 1000 * S,
		    .status = 1 << 8,
		    .asked = { .sig = SIGTERM, .at_ns = 90 * S, SENDER } },
		  CW_END_BY_NOBODY,
		  0 },
	};
	int32_t sender;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		cr_expect_eq(cw_kernel_facts_end_by(&ends[i].facts, &sender), ends[i].by, "%zu", i);
		cr_expect_eq(sender, ends[i].sender, "%zu", i);
	}
}
