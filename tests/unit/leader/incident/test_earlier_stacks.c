/* SPDX-License-Identifier: Apache-2.0 */
/* A leader without nodes: the test inspects its requests, and makes the answers by hand. */
#include "leader/incident/earlier_stacks.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "proto/messages.h"

#define S CW_NS_PER_S
#define LIMIT_NS (8 * S)

static int64_t now = 1000 * S;
static struct cw_clock clock_;
static struct cw_leader_effects effects;
static struct cw_job_id job;
static struct cw_snapshot *snap;
static struct cw_earlier_stacks e;

static unsigned n_asked, n_cancelled;
static struct {
	cw_leader_answer_fn fn;
	void *asker;
	uint32_t what, n_targets;
} asked[8];

static int64_t fake_now(void *user)
{
	return now;
}

static int on_ask(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
		  cw_leader_answer_fn fn, void *asker)
{
	cr_assert_lt(n_asked, 8);
	asked[n_asked].fn = fn;
	asked[n_asked].asker = asker;
	asked[n_asked].what = msg->evidence_request.targets[0].what;
	asked[n_asked++].n_targets = msg->evidence_request.n_targets;
	return 0;
}

static void on_cancel(void *user, const void *asker)
{
	n_cancelled++;
}

static void setup(void)
{
	uint32_t index;

	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
	effects = (struct cw_leader_effects){ .ask = on_ask, .cancel = on_cancel };
	cr_assert_eq(cw_job_id_make(7, "job", &job), 0);
	snap = cw_snapshot_new();
	cr_assert_eq(cw_snapshot_add_node(snap, "n", &index), 0);
	for (int32_t i = 0; i < 2; i++) {
		struct cw_snap_rank rank = {
			.rank = i, .pid = 100 + i, .liveness = CW_LIVE_ALIVE, .start_ticks = 9
		};

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	cw_earlier_stacks_init(&e, &(struct cw_earlier_stacks_config){
					   .clock = &clock_, .effects = &effects, .job = &job });
}

static void teardown(void)
{
	cw_earlier_stacks_reset(&e);
	cw_snapshot_free(snap);
}

TestSuite(earlier_stacks, .init = setup, .fini = teardown);

/* Evaluates a wait of this key that began at since_ns, at the age waited_ns. */
static void step(uint64_t key, int64_t since_ns, int64_t waited_ns)
{
	static struct cw_culprit culprit = { .rank = 1 };
	static uint32_t victim = 0;
	const struct cw_verdict v = { .verdict_class = CW_CLASS_NEVER_ENTERED,
				      .culprits = &culprit,
				      .n_culprits = 1,
				      .victims = &victim,
				      .n_victims = 1,
				      .waiting_since_ns = since_ns };
	const struct cw_stall_decision d = { .key = { .seq = key, .is_set = true },
					     .since_ns = since_ns,
					     .limit_ns = LIMIT_NS };

	now = snap->now_ns = since_ns + waited_ns;
	cw_earlier_stacks_step(&e, snap, &v, &d);
}

/* Answers request i: rank 1 is in `line` of the program. status "absent": no Python stack. */
static void answer(unsigned i, int line)
{
	for (int pid = 100; pid < 102; pid++) {
		char json[512];
		struct cw_message reply = { .type = CW_MSG_EVIDENCE_REPLY };

		(void)snprintf(json, sizeof(json),
			       "{\"schema\":\"collwatch.evidence/1\",\"pid\":%d,\"age_s\":0.5,"
			       "\"python\":{\"status\":\"%s\",\"threads\":[%s",
			       pid, line ? "ok" : "absent", line ? "" : "]}}");
		if (line)
			(void)snprintf(json + strlen(json), sizeof(json) - strlen(json),
				       "{\"tid\":%d,\"run_ns\":5000,\"frames\":[{\"file\":\"a.py\","
				       "\"line\":%d,\"function\":\"f\"}]}]}}",
				       pid, pid == 101 ? line : 1);
		reply.evidence_reply = (struct cw_msg_evidence_reply){
			.pid = pid, .start_ticks = 9, .json = json, .remaining = 101 - (uint32_t)pid
		};
		asked[i].fn("n", &reply, asked[i].asker);
	}
}

static void expect_facts(uint32_t n, bool is_changed, double first_s)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts = { 0 };

	cr_assert_eq(cw_earlier_stacks_add(&e, &facts, &arena), 0);
	cr_assert_eq(facts.n_earlier_stacks, n);
	if (!n)
		return;
	cr_expect_eq(facts.earlier_stacks[0].rank, 1, "the suspect comes first");
	cr_expect_eq(facts.earlier_stacks[0].is_changed, is_changed);
	cr_expect_float_eq(facts.earlier_stacks[0].readings[0].waited_s, first_s, 1e-6);
	cr_expect(!facts.earlier_stacks[1].is_changed, "the rank that waits");
}

Test(earlier_stacks, are_read_at_a_quarter_a_half_and_the_whole_limit)
{
	static const double due[] = { 2, 4, 8 };

	for (int64_t ms = 0; ms < 60000; ms += 250) {
		unsigned before = n_asked;

		step(3, 1000 * S, ms * CW_NS_PER_MS);
		if (n_asked == before)
			continue;
		cr_expect_float_eq((double)ms / 1000, due[before], 1e-9);
		answer(before, 10);
	}
	cr_expect_eq(n_asked, 3);
	cr_expect_eq(asked[0].n_targets, 2);
	cr_expect_eq(asked[0].what, CW_EVIDENCE_EARLIER);
	cr_expect(!(CW_EVIDENCE_EARLIER & (CW_EVIDENCE_NATIVE | CW_EVIDENCE_NATIVE_ELSE)),
		  "no process is held");
	expect_facts(2, false, 1.5);
}

Test(earlier_stacks, show_the_change_of_a_slow_rank)
{
	for (unsigned i = 0; i < 3; i++) {
		step(3, 1000 * S, (2 << i) * S);
		answer(i, 10 + (int)i);
	}
	expect_facts(2, true, 1.5);
}

Test(earlier_stacks, of_another_wait_are_dropped)
{
	step(3, 1000 * S, 2 * S);
	answer(0, 10);
	step(4, 1003 * S, 2 * S);
	cr_expect_eq(n_asked, 2);
	cr_expect_eq(n_cancelled, 1);
	answer(1, 11);
	expect_facts(0, false, 0);
}

Test(earlier_stacks, are_at_most_six_in_half_a_minute)
{
	for (uint64_t i = 0; i < 8; i++)
		step(i + 1, 1000 * S + (int64_t)i * 3 * S, 2 * S);
	cr_expect_eq(n_asked, 6);
	step(20, 1031 * S, 2 * S);
	cr_expect_eq(n_asked, 7);
}

Test(earlier_stacks, are_not_asked_for_again_if_there_is_no_interpreter)
{
	step(3, 1000 * S, 2 * S);
	answer(0, 0);
	step(3, 1000 * S, 4 * S);
	step(3, 1000 * S, 8 * S);
	cr_expect_eq(n_asked, 1);
}
