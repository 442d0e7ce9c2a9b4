/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cascades as public threads tell of them (owner/repository#number): which ranks ended, how, and
 * when by the launcher's log. Instants within a second of the log are ours.
 */
#include "leader/postmortem_first.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)
#define MAX_DEATHS 9

#define AT(ms) .ended_ns = 1000 * S + (ms)*MS, .unsure_ns = CW_POSTMORTEM_FAR_NS
#define EXITED(code) .liveness = CW_LIVE_EXITED, .exit_code = (code), .end_by = CW_END_BY_NOBODY
#define ASKED(code)                                                                                \
	.liveness = CW_LIVE_EXITED, .exit_code = (code), .end_by = CW_END_BY_PROCESS,              \
	.end_sender = 900
#define SIGNAL(sig) .liveness = CW_LIVE_KILLED, .term_signal = (sig)
#define SIGTERM_OF(pid)                                                                            \
	SIGNAL(SIGTERM), .end_by = CW_END_BY_PROCESS, .end_sender = (pid), .is_shutdown = true
#define ABORTED SIGNAL(SIGABRT), .end_by = CW_END_BY_ITSELF
#define FAULT(sig) SIGNAL(sig), .end_by = CW_END_BY_KERNEL
#define OOM FAULT(SIGKILL), .is_oom_killed = true
#define ALIVE .liveness = CW_LIVE_ALIVE
#define INSIDE .is_inside_call = true
#define LOST .has_lost_peer = true

struct cascade {
	const char *name; /* or where it was read */
	uint32_t n;
	struct cw_postmortem_death v[MAX_DEATHS];
	const char *first; /* one letter for each: F = first */
	enum cw_postmortem_outcome outcome;
	enum cw_first_reason reason;
};

#define FAIL(by) CW_POSTMORTEM_FAILED, CW_FIRST_##by

static const struct cascade cascades[] = {
	/* ---- read ---- */
	{ "huggingface/picotron_tutorial#6: the watchdogs of eight ranks abort in one second",
	  3,
	  { { AT(0), ABORTED, INSIDE }, { AT(40), ABORTED, INSIDE }, { AT(90), ABORTED, INSIDE } },
	  "FFF",
	  FAIL(TIE) },
	{ "hpcaitech/ColossalAI#3514: local rank 3 is out of memory, the agent ends the others",
	  4,
	  { { AT(60), SIGTERM_OF(900) },
	    { AT(70), SIGTERM_OF(900) },
	    { AT(90), SIGTERM_OF(900) },
	    { AT(0), OOM } },
	  "...F",
	  FAIL(BY_CAUSE) },
	{ "hpcaitech/ColossalAI#3677: SIGKILL by an unknown sender, then SIGTERM to three",
	  4,
	  { { AT(80), SIGNAL(SIGTERM), .is_shutdown = true },
	    { AT(0), SIGNAL(SIGKILL), .is_shutdown = true },
	    { AT(85), SIGNAL(SIGTERM), .is_shutdown = true },
	    { AT(95), SIGNAL(SIGTERM), .is_shutdown = true } },
	  ".F..",
	  FAIL(BY_CAUSE) },
	{ "hiyouga/LlamaFactory#163: local rank 7 exits with 1, SIGTERM to the others",
	  3,
	  { { AT(1200), SIGTERM_OF(900), INSIDE },
	    { AT(1210), SIGTERM_OF(900), INSIDE },
	    { AT(0), EXITED(1) } },
	  "..F",
	  FAIL(BY_TIME) },
	{ "OEvortex/unsloth#10: the agent logs its SIGTERMs before the exit 1 that caused them",
	  4,
	  { { AT(20), SIGTERM_OF(900), INSIDE },
	    { AT(21), SIGTERM_OF(900), INSIDE },
	    { AT(22), SIGTERM_OF(900), INSIDE },
	    { AT(50), EXITED(1) } },
	  "...F",
	  FAIL(BY_CAUSE) },
	{ "NVIDIA/nccl#1409: local rank 7 aborts by its watchdog, the others get SIGTERM",
	  4,
	  { { AT(1700), SIGTERM_OF(900) },
	    { AT(1710), SIGTERM_OF(900), INSIDE },
	    { AT(1720), SIGTERM_OF(900), INSIDE },
	    { AT(0), ABORTED, INSIDE } },
	  "...F",
	  FAIL(BY_TIME) },
	{ "NVIDIA/nccl#795: a segmentation fault on one node, ncclRemoteError on the other",
	  4,
	  { { AT(0), FAULT(SIGSEGV) },
	    { AT(150), SIGTERM_OF(900), INSIDE },
	    { AT(60), .node = 1, ABORTED, INSIDE, LOST },
	    { AT(90), .node = 1, EXITED(1), INSIDE, LOST } },
	  "F...",
	  FAIL(BY_CAUSE) },
	{ "NVIDIA/Megatron-LM#1880: rank 0 ends of SIGSEGV, the others of the agent's SIGTERM",
	  3,
	  { { AT(0), FAULT(SIGSEGV) }, { AT(500), SIGTERM_OF(900) }, { AT(510), SIGTERM_OF(900) } },
	  "F..",
	  FAIL(BY_TIME) },
	{ "hiyouga/LlamaFactory#6849: the remote end of a broken pipe was first, seconds before",
	  3,
	  { { AT(2600), ABORTED, INSIDE, LOST },
	    { AT(2650), ABORTED, INSIDE, LOST },
	    { AT(0), .node = 1, EXITED(1) } },
	  "..F",
	  FAIL(BY_TIME) },
	{ "huggingface/open-r1#620: one of a node aborts after it was told, SIGTERM to the rest",
	  3,
	  { { AT(0), ABORTED, LOST }, { AT(480), SIGTERM_OF(900) }, { AT(482), SIGTERM_OF(900) } },
	  "F..",
	  FAIL(BY_TIME) },
	{ "ZhehengJiangLancaster/AMVUR#2: SIGKILL of one, no other failure",
	  3,
	  { { AT(0), SIGNAL(SIGKILL) }, { AT(500), EXITED(0) }, { AT(500), EXITED(0) } },
	  "F..",
	  FAIL(ONLY) },
	{ "NVIDIA/nvidia-resiliency-ext#18: the agents got a death signal and end all workers",
	  4,
	  { { AT(0), SIGTERM_OF(900) },
	    { AT(3), SIGTERM_OF(901) },
	    { AT(5), .node = 1, SIGTERM_OF(902) },
	    { AT(9), .node = 1, SIGTERM_OF(902) } },
	  NULL,
	  CW_POSTMORTEM_CANCELLED,
	  0 },
	/* ---- made ---- */
	{ "all ends well", 2, { { AT(0), EXITED(0) }, { AT(900), EXITED(0) } }, "..", 0, 0 },
	{ "nobody ended", 2, { { ALIVE }, { ALIVE } }, "..", 0, 0 },
	{ "a second apart on two nodes: time decides, whatever the cause",
	  2,
	  { { AT(1000), .node = 1, EXITED(1) }, { AT(0), SIGTERM_OF(4242) } },
	  ".F",
	  FAIL(BY_TIME) },
	{ "within the uncertainty of two nodes, and alike: a tie",
	  2,
	  { { AT(400), .node = 1, EXITED(1) }, { AT(0), EXITED(2) } },
	  "FF",
	  FAIL(TIE) },
	{ "within the uncertainty, a fault comes before an abort that follows from it",
	  2,
	  { { AT(0), .node = 1, ABORTED, INSIDE }, { AT(300), FAULT(SIGBUS) } },
	  ".F",
	  FAIL(BY_CAUSE) },
	{ "a clock that is hardly known orders nothing",
	  2,
	  { { .ended_ns = 1001200 * MS,
	      .unsure_ns = CW_POSTMORTEM_UNKNOWN_NS,
	      .node = 1,
	      EXITED(1) },
	    { AT(0), EXITED(1) } },
	  "FF",
	  FAIL(TIE) },
	{ "on one clock a fifth of a second is enough",
	  2,
	  { { AT(200), EXITED(1) }, { AT(0), EXITED(1) } },
	  ".F",
	  FAIL(BY_TIME) },
	{ "one rank sends another SIGKILL and ends of that itself: the sender is first",
	  3,
	  { { AT(0), .pid = 11, SIGNAL(SIGKILL), .end_by = CW_END_BY_PROCESS, .end_sender = 12 },
	    { AT(10), .pid = 12, SIGNAL(SIGKILL), .end_by = CW_END_BY_PROCESS, .end_sender = 900 },
	    { AT(3000), .pid = 13, ABORTED, INSIDE } },
	  ".F.",
	  FAIL(BY_CAUSE) },
	{ "a pid of another node is another process",
	  2,
	  { { AT(0), .pid = 11, SIGNAL(SIGKILL), .end_by = CW_END_BY_PROCESS, .end_sender = 12 },
	    { AT(0), .pid = 12, .node = 1, SIGNAL(SIGKILL), .end_by = CW_END_BY_PROCESS } },
	  "FF",
	  FAIL(TIE) },
	{ "cancelled, and one crashes as it cleans up",
	  3,
	  { { AT(0), SIGTERM_OF(900) }, { AT(1), ASKED(1) }, { AT(1500), FAULT(SIGSEGV) } },
	  NULL,
	  CW_POSTMORTEM_CANCELLED,
	  0 },
	{ "one rank alone gets SIGTERM, the others abort of it: not a cancelled job",
	  3,
	  { { AT(0), SIGTERM_OF(4242) },
	    { AT(900), ABORTED, INSIDE, LOST },
	    { AT(950), ABORTED, INSIDE, LOST } },
	  "F..",
	  FAIL(BY_TIME) },
	{ "SIGKILL to all at one stroke is a cancel",
	  3,
	  { { AT(0), SIGNAL(SIGKILL), .is_shutdown = true },
	    { AT(5), SIGNAL(SIGKILL), .is_shutdown = true },
	    { AT(300), .node = 1, SIGNAL(SIGKILL), .is_shutdown = true } },
	  NULL,
	  CW_POSTMORTEM_CANCELLED,
	  0 },
	{ "SIGKILL to all, the last a minute later, is none",
	  2,
	  { { AT(0), SIGNAL(SIGKILL) }, { AT(60000), SIGNAL(SIGKILL) } },
	  "F.",
	  FAIL(BY_TIME) },
	{ "a rank that is gone for an unknown reason has not failed",
	  2,
	  { { AT(0), .liveness = CW_LIVE_GONE }, { AT(10), EXITED(0) } },
	  "..",
	  0,
	  0 },
	{ "a process that is several ranks ends once",
	  4,
	  { { AT(0), SIGNAL(SIGKILL), .pid = 7 },
	    { AT(0), SIGNAL(SIGKILL), .pid = 7 },
	    { AT(1200), SIGTERM_OF(900), .pid = 8 },
	    { AT(1200), SIGTERM_OF(900), .pid = 8 } },
	  "FF..",
	  FAIL(BY_TIME) },
	{ "only a process failed that is several ranks",
	  3,
	  { { AT(0), FAULT(SIGSEGV), .pid = 7 }, { AT(0), FAULT(SIGSEGV), .pid = 7 }, { ALIVE } },
	  "FF.",
	  FAIL(ONLY) },
	{ "two processes of one instant are a tie",
	  2,
	  { { AT(0), FAULT(SIGSEGV), .pid = 7 }, { AT(0), FAULT(SIGSEGV), .pid = 8 } },
	  "FF",
	  FAIL(TIE) },
	{ "without the kernel's word exit 143 is still an answer to SIGTERM",
	  2,
	  { { AT(0), .liveness = CW_LIVE_EXITED, .exit_code = 143 },
	    { AT(50), .liveness = CW_LIVE_EXITED, .exit_code = 1 } },
	  ".F",
	  FAIL(BY_CAUSE) },
};

static void check(const struct cascade *c)
{
	bool is_first[MAX_DEATHS];
	struct cw_postmortem_first f;
	uint32_t n = 0;

	cw_postmortem_order(c->v, c->n, is_first, &f);
	cr_expect_eq(f.outcome, c->outcome, "%s: outcome %d", c->name, f.outcome);
	if (!c->first)
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		cr_expect_eq(is_first[i], c->first[i] == 'F', "%s: rank %u", c->name, i);
		n += is_first[i];
	}
	cr_expect_eq(f.n_first, n, "%s", c->name);
	if (c->outcome == CW_POSTMORTEM_FAILED)
		cr_expect_eq(f.reason, c->reason, "%s: by %s", c->name,
			     cw_first_reason_name(f.reason));
}

Test(postmortem_first, cascades_are_told_apart)
{
	for (size_t i = 0; i < sizeof(cascades) / sizeof(*cascades); i++)
		check(&cascades[i]);
}

/* A list in another order means the same deaths. */
Test(postmortem_first, order_of_the_list_does_not_matter)
{
	for (size_t i = 0; i < sizeof(cascades) / sizeof(*cascades); i++) {
		struct cascade c = cascades[i];
		char first[MAX_DEATHS + 1] = "";

		for (uint32_t k = 0; k < c.n; k++) {
			c.v[k] = cascades[i].v[c.n - 1 - k];
			if (c.first)
				first[k] = c.first[c.n - 1 - k];
		}
		if (c.first)
			c.first = first;
		check(&c);
	}
}

Test(postmortem_first, none_at_all)
{
	struct cw_postmortem_first f;

	cw_postmortem_order(NULL, 0, NULL, &f);
	cr_expect_eq(f.outcome, CW_POSTMORTEM_HEALTHY);
	cr_expect_eq(f.n_first, 0);
}

Test(postmortem_first, margin_is_to_the_next_that_time_tells_apart)
{
	const struct cw_postmortem_death v[] = { { AT(0), EXITED(1) },
						 { AT(40), SIGTERM_OF(900) },
						 { AT(2500), SIGTERM_OF(900) } };
	bool is_first[3];
	struct cw_postmortem_first f;

	cw_postmortem_order(v, 3, is_first, &f);
	cr_expect_eq(f.n_together, 2);
	cr_expect_eq(f.margin_ns, 2500 * MS);
}

Test(postmortem_first, ends_are_said_in_words)
{
	const struct {
		struct cw_postmortem_death d;
		const char *says;
	} rows[] = {
		{ { EXITED(7) }, "exited with status 7" },
		{ { SIGNAL(SIGABRT) }, "was killed by SIGABRT" },
		{ { SIGNAL(SIGRTMIN + 3) }, "was killed by signal" },
		{ { OOM }, "was killed by the OOM killer" },
		{ { .liveness = CW_LIVE_GONE }, "ended; the kernel did not report how" },
		{ { ALIVE }, "has not ended" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cw_postmortem_format_end(&rows[i].d, text, sizeof(text));
		cr_expect_eq(strncmp(text, rows[i].says, strlen(rows[i].says)), 0, "%s", text);
	}
}
