/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of nine ranks on three nodes that end, and their leader's post-mortem. Time is the
 * network's; nodes send digests once a second.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "model/cause.h"
#include "model/facts.h"
#include "report/json_util.h"
#include "tests/support/cluster/leader_fixture.h"

TestSuite(postmortem, .init = leader_setup, .fini = leader_teardown);

#define MS CW_NS_PER_MS

/* How each rank ends, and when after `ends_ns`. */
struct end {
	int64_t after_ns; /* -1 = it lives */
	uint32_t liveness;
	int code; /* exit status or signal */
	uint32_t by;
	int32_t sender;
	uint32_t flags;
	struct cw_cause_facts cause;
	const char *command; /* of the cause; NULL = none */
};

static struct end ends[CLUSTER_MAX_RANKS];
static int64_t ends_ns;
static bool are_unborn; /* the ranks have no communicator yet */

static void end_rank(const struct cluster *cl, unsigned rank, struct cw_msg_rank *r)
{
	const struct end *e = &ends[rank];

	if (are_unborn) {
		r->n_members = 0;
		r->started_age_ns = (uint64_t)(cl->now_ns - ends_ns) + 5 * CW_NS_PER_S;
	}
	if (!ends_ns || e->after_ns < 0 || cl->now_ns < ends_ns + e->after_ns)
		return;
	r->liveness = e->liveness;
	r->exit_code = e->liveness == CW_LIVE_EXITED ? e->code : 0;
	r->term_signal = e->liveness == CW_LIVE_KILLED ? e->code : 0;
	r->ended_age_ns = cl->now_ns - ends_ns - e->after_ns;
	r->end_by = e->by;
	r->end_sender = e->sender;
	r->flags |= e->flags;
	r->flags &= ~(uint32_t)CW_RANKF_BEATING;
	r->cause_facts = e->cause;
	r->cause_command = e->command ? e->command : "";
}

static void all_end(struct end e)
{
	for (unsigned i = 0; i < CLUSTER_MAX_RANKS; i++)
		ends[i] = e;
	c.end = end_rank;
	ends_ns = c.now_ns;
}

static struct end exits(int64_t after_ns, int code)
{
	return (struct end){ after_ns, CW_LIVE_EXITED, code, CW_END_BY_NOBODY, 0, 0, { 0 }, NULL };
}

static struct end gets(int64_t after_ns, int sig, int32_t sender)
{
	return (struct end){ after_ns, CW_LIVE_KILLED,    sig,   CW_END_BY_PROCESS,
			     sender,   CW_RANKF_SHUTDOWN, { 0 }, NULL };
}

static struct end aborts(int64_t after_ns)
{
	return (struct end){
		after_ns, CW_LIVE_KILLED, SIGABRT, CW_END_BY_ITSELF, 0, 0, { 0 }, NULL
	};
}

static const json_t *only_postmortem(void)
{
	cr_assert_eq(c.net->n_postmortems, 1, "%u post-mortems", c.net->n_postmortems);
	return c.net->postmortems[0].doc;
}

static const char *text(const json_t *doc, const char *key)
{
	return cw_json_str(doc, key, "");
}

static void expect_culprits(const json_t *doc, const char *expected)
{
	const json_t *list = json_object_get(doc, "culprits"), *one;
	char set[128] = "";
	size_t i;

	json_array_foreach (list, i, one)
		(void)snprintf(set + strlen(set), sizeof(set) - strlen(set), "%s%lld", i ? "," : "",
			       (long long)cw_json_int(one, "rank", -1));
	cr_expect_str_eq(set, expected, "%s: %s", set, text(doc, "summary"));
}

static double after_s(const json_t *doc, json_int_t rank)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(doc, "ends"), i, one)
		if (cw_json_int(one, "rank", -1) == rank)
			return json_number_value(json_object_get(one, "after_s"));
	return -1;
}

Test(postmortem, job_that_ends_well_has_none)
{
	all_end(exits(0, 0));
	cluster_run(&c, 60);
	cr_expect_eq(c.net->n_postmortems, 0);
	cr_expect_eq(c.n_alerts, 0);
}

Test(postmortem, cancelled_job_has_none)
{
	all_end(gets(0, SIGTERM, 900));
	ends[4] = gets(300 * MS, SIGTERM, 901);
	ends[7] = exits(2000 * MS, 1);
	ends[7].by = CW_END_BY_PROCESS; /* it handled the signal */
	cluster_run(&c, 60);
	cr_expect_eq(c.net->n_postmortems, 0);
	cr_expect_eq(c.n_alerts, 0);
}

/* Node 1 has ranks 3-5: rank 4 exits, its launcher ends the others, the other nodes abort. */
static void cascade(void)
{
	all_end(aborts(1300 * MS));
	ends[4] = exits(0, 1);
	ends[3] = gets(60 * MS, SIGTERM, 900);
	ends[5] = gets(80 * MS, SIGTERM, 900);
}

Test(postmortem, cascade_names_who_was_first)
{
	const json_t *doc;

	cascade();
	cluster_run(&c, 20);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "schema"), "collwatch.incident/1");
	cr_expect_str_eq(text(doc, "severity"), "failed");
	cr_expect_str_eq(text(doc, "class"), "process_dead");
	cr_expect_str_eq(text(doc, "detail"), "exited");
	expect_culprits(doc, "4");
	cr_expect_str_eq(text(json_object_get(doc, "first"), "by"), "cause");
	cr_expect_eq(json_array_size(json_object_get(doc, "ends")), 9);
	cr_expect_float_eq(after_s(doc, 3), 0.06, 0.02);
	cr_expect_float_eq(after_s(doc, 0), 1.3, 0.3, "%f", after_s(doc, 0));
	cr_expect(c.net->postmortems[0].may_alert);
	cr_expect_eq(c.n_alerts, 0, "it raises no page of its own");
	cluster_run(&c, 300);
	cr_expect_eq(c.net->n_postmortems, 1, "and is written once");
}

/* Its launcher did that for a reason, as one does to the rest of a try that has failed unseen. */
Test(postmortem, who_was_asked_to_end_is_no_certain_cause)
{
	const json_t *doc;

	all_end(exits(40000 * MS, 1));
	ends[0] = gets(0, SIGTERM, 900);
	cluster_run(&c, 120);
	doc = only_postmortem();
	expect_culprits(doc, "0");
	cr_expect_str_eq(text(doc, "confidence"), "likely", "%s", text(doc, "summary"));
}

Test(postmortem, failures_a_second_apart_are_ordered_across_nodes)
{
	const json_t *doc;

	all_end(exits(1000 * MS, 1));
	ends[8] = exits(0, 3);
	cluster_run(&c, 20);
	doc = only_postmortem();
	expect_culprits(doc, "8");
	cr_expect_str_eq(text(json_object_get(doc, "first"), "by"), "time");
	cr_expect_str_eq(text(doc, "confidence"), "certain");
}

Test(postmortem, late_digests_do_not_change_the_order)
{
	c.net->digest_faults =
		(struct network_digests){ .late_every = 3, .late_ns = 1500 * CW_NS_PER_MS };
	cluster_run(&c, 10);
	all_end(exits(1200 * MS, 1));
	ends[8] = exits(0, 3);
	cluster_run(&c, 25);
	cr_assert_eq(c.net->n_postmortems, 1);
	if (!strcmp(text(json_object_get(only_postmortem(), "first"), "by"), "time"))
		expect_culprits(only_postmortem(), "8");
	else
		cr_expect_str_eq(text(json_object_get(only_postmortem(), "first"), "by"), "tie");
}

Test(postmortem, watchdog_of_the_job_does_not_make_silence)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 8); /* less than our patience */
	cr_assert_eq(c.n_alerts, 0);
	all_end(aborts(0));
	ends[4] = gets(700 * MS, SIGTERM, 900);
	cluster_run(&c, 20);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "never_entered");
	expect_culprits(doc, "4");
	cr_expect_geq(
		json_number_value(json_object_get(json_object_get(doc, "waited_for"), "for_s")),
		7.0);
	cr_expect_eq(json_array_size(json_object_get(doc, "open")), 1);
	cr_expect_eq(c.n_alerts, 0);
}

/* It sees only itself, and leads: it does not know which ranks waited for it. */
Test(postmortem, is_not_written_anew_by_who_is_cut_off_when_all_is_over)
{
	unsigned apart = network_leader(c.net) == 0 ? 1 : 0;

	cascade();
	cluster_run(&c, 20);
	(void)only_postmortem();
	for (unsigned other = 0; other < 3; other++)
		if (other != apart)
			cluster_cut(&c, apart, other);
	cluster_run(&c, 30);
	(void)only_postmortem();
}

/* Daemons that get no processor for long, up to the end of the job. */
static void end_unseen(bool is_over_before)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 2);
	for (unsigned n = 0; n < 3; n++)
		cluster_freeze(&c, n);
	cluster_run(&c, 4);
	if (is_over_before)
		cluster_heal(&c);
	cluster_run(&c, 5);
	all_end(aborts(0));
	ends[4] = gets(700 * MS, SIGTERM, 900);
	cluster_run(&c, 1);
	for (unsigned n = 0; n < 3; n++)
		cluster_thaw(&c, n);
	cluster_run(&c, 20);
}

static bool has_note(const json_t *doc, const char *part)
{
	const json_t *note;
	size_t i;

	json_array_foreach (json_object_get(doc, "end_notes"), i, note)
		if (strstr(json_string_value(note), part))
			return true;
	return false;
}

/* How the job stood then has passed. */
Test(postmortem, what_was_seen_long_before_is_not_what_it_died_of)
{
	const json_t *doc;

	end_unseen(true);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "process_dead", "%s", text(doc, "summary"));
	cr_expect_null(json_object_get(doc, "waited_for"));
	cr_expect(has_note(doc, "did not see the job just before"));
}

/* The calls that were waited in then were open when all died: nothing has passed. */
Test(postmortem, wait_that_was_not_over_at_the_end_is_what_it_died_of)
{
	const json_t *doc;

	end_unseen(false);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "never_entered", "%s", text(doc, "summary"));
	expect_culprits(doc, "4");
	cr_expect(json_is_object(json_object_get(doc, "waited_for")));
}

Test(postmortem, fault_after_a_short_wait_is_the_rank_s_own)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 2);
	all_end(gets(1500 * MS, SIGTERM, 900));
	ends[0] = (struct end){ 0, CW_LIVE_KILLED, SIGSEGV, CW_END_BY_KERNEL, 0, 0, { 0 }, NULL };
	cluster_run(&c, 20);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "process_dead");
	expect_culprits(doc, "0");
}

Test(postmortem, job_that_dies_after_an_alerted_death_closes_it_by_the_same_id)
{
	cluster_fault(&c, FAULT_KILLED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_run(&c, 5);
	all_end(aborts(0));
	ends[4].after_ns = -1; /* it is dead already */
	cluster_run(&c, 60);
	cr_expect_eq(c.n_alerts, 1, "no second message");
	expect_culprits(only_postmortem(), "4");
	cr_expect_str_eq(c.net->postmortems[0].id, c.alerts[0].id);
	cr_expect_not(c.net->postmortems[0].may_alert);
}

Test(postmortem, without_the_kernel_s_word_it_says_so)
{
	const json_t *note;
	bool has_note = false;
	size_t i;

	cascade();
	for (unsigned r = 0; r < CLUSTER_MAX_RANKS; r++)
		ends[r].by = CW_END_BY_UNKNOWN;
	cluster_run(&c, 20);
	expect_culprits(only_postmortem(), "4");
	json_array_foreach (json_object_get(only_postmortem(), "end_notes"), i, note)
		has_note = has_note || strstr(json_string_value(note), "no kernel evidence");
	cr_expect(has_note);
}

Test(postmortem, sender_outside_of_the_namespace_is_said_to_be_that)
{
	const json_t *note;
	bool has_note = false;
	size_t i;

	cascade();
	ends[4] = gets(0, SIGKILL, 0);
	ends[4].by = CW_END_BY_OUTSIDE;
	cluster_run(&c, 20);
	expect_culprits(only_postmortem(), "4");
	json_array_foreach (json_object_get(only_postmortem(), "end_notes"), i, note)
		has_note = has_note || strstr(json_string_value(note), "pid namespace");
	cr_expect(has_note);
}

Test(postmortem, new_leader_says_the_same_under_the_same_id)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	cascade();
	cluster_run(&c, 8);
	cr_assert_eq(c.net->n_postmortems, 1);
	cluster_kill(&c, (unsigned)leader);
	cluster_run(&c, 40);
	for (unsigned i = 1; i < c.net->n_postmortems; i++) {
		cr_expect_str_eq(c.net->postmortems[i].id, c.net->postmortems[0].id);
		cr_expect_neq(c.net->postmortems[i].node, c.net->postmortems[0].node);
	}
}

Test(postmortem, leader_that_is_lost_while_the_job_dies_is_replaced)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	cascade();
	cluster_run(&c, 1.6);
	cluster_kill(&c, (unsigned)leader);
	cluster_run(&c, 60);
	cr_assert_geq(c.net->n_postmortems, 1);
	cr_expect_neq((int)c.net->postmortems[0].node, leader);
}

Test(postmortem, ranks_of_a_silent_node_are_not_known_to_have_ended)
{
	int leader = cluster_leader(&c);
	unsigned lost = leader == 2 ? 1 : 2;
	const json_t *note, *doc;
	bool has_note = false;
	size_t i;

	all_end(exits(1000 * MS, 1));
	ends[leader == 0 ? 3 : 0] = exits(0, 1);
	cluster_freeze(&c, lost);
	cluster_run(&c, 60);
	doc = only_postmortem();
	cr_expect_str_neq(text(doc, "confidence"), "certain");
	json_array_foreach (json_object_get(doc, "end_notes"), i, note)
		has_note = has_note || strstr(json_string_value(note), "does not report");
	cr_expect(has_note);
	cr_expect_eq(cw_json_int(doc, "ranks_ended", 0), 6);
}

Test(postmortem, wrong_data_in_the_last_call_is_not_lost)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_WRONG_REDOP, 7);
	cluster_run(&c, 1.2);
	all_end(exits(0, 0));
	cluster_run(&c, 30);
	cr_assert_eq(c.n_alerts, 0, "the job was quicker");
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "mismatch");
	cr_expect_eq(json_array_size(json_object_get(doc, "wrong_data")), 1);
}

/* The job ends before the leader, which was started again, has found its trouble anew. */
static void alert_and_end(enum cluster_fault fault)
{
	const json_t *doc;

	cluster_fault(&c, fault, 7);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_assert_str_eq(c.alerts[0].verdict_class, "mismatch");
	cluster_restart(&c, (unsigned)cluster_leader(&c));
	all_end(aborts(0));
	cluster_run(&c, 60);
	doc = only_postmortem();
	cr_expect_null(strstr(text(doc, "summary"), "not told before"), "%s", text(doc, "summary"));
	cr_expect_eq(json_array_size(json_object_get(doc, "wrong_data")), 0);
	cr_expect_str_eq(text(doc, "id"), c.alerts[0].id);
	cr_expect_eq(c.n_alerts, 1);
}

Test(postmortem, mismatch_that_was_alerted_is_not_called_untold_after_a_restart)
{
	alert_and_end(FAULT_MISMATCH);
}

Test(postmortem, wrong_data_that_was_alerted_is_not_called_untold_after_a_restart)
{
	alert_and_end(FAULT_WRONG_REDOP);
}

/* A tie and a rank that ended first exclude each other. */
Test(postmortem, watchdogs_that_abort_together_leave_no_rank_that_ended_first)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 8);
	all_end(aborts(20 * MS));
	ends[4] = gets(700 * MS, SIGTERM, 900);
	ends[1] = gets(0, SIGTERM, 900);
	cluster_run(&c, 20);
	doc = only_postmortem();
	cr_assert_str_eq(text(doc, "class"), "never_entered");
	cr_assert_str_eq(text(json_object_get(doc, "first"), "by"), "tie");
	cr_expect_null(strstr(text(doc, "summary"), "ended first"), "%s", text(doc, "summary"));
}

/* Each of them is a component of its own while it lives. */
Test(postmortem, job_that_fails_before_its_first_communicator_has_one)
{
	const json_t *doc;

	are_unborn = true;
	all_end(exits(0, 1));
	ends_ns += 5 * CW_NS_PER_S;
	for (unsigned i = 0; i < 9; i++)
		ends[i].after_ns = (8 - (int64_t)i) * 150 * MS;
	cluster_run(&c, 120);
	doc = only_postmortem();
	cr_expect_null(strstr(text(doc, "summary"), "alone failed"), "%s", text(doc, "summary"));
	cr_expect_eq(json_array_size(json_object_get(doc, "ends")), 9);
	cr_expect_eq(cw_json_int(doc, "ranks_ended", 0), 9);
}

Test(postmortem, job_that_is_cancelled_before_its_first_communicator_has_none)
{
	are_unborn = true;
	all_end(gets(0, SIGTERM, 900));
	ends_ns += 5 * CW_NS_PER_S;
	cluster_run(&c, 60);
	cr_expect_eq(c.net->n_postmortems, 0);
	cr_expect_eq(c.n_alerts, 0);
}

/* A wanted end blames no rank; the data that it cut off are worth a line all the same. */
Test(postmortem, wrong_data_of_a_cancelled_job_blame_no_rank_for_its_end)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_WRONG_REDOP, 7);
	cluster_run(&c, 1.2);
	all_end(gets(0, SIGTERM, 900));
	cluster_run(&c, 30);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "mismatch");
	cr_expect_null(json_object_get(doc, "first"));
	expect_culprits(doc, "");
	cr_expect_null(strstr(text(doc, "summary"), "fail"), "%s", text(doc, "summary"));
}

/* The same blame as an alert would have, had a rank been left to wait. */
Test(postmortem, first_that_ended_of_wrong_data_is_not_to_blame_for_them)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_WRONG_REDOP, 7);
	cluster_run(&c, 1.2);
	all_end(gets(500 * MS, SIGTERM, 900));
	ends[3] = exits(0, 1);
	cluster_run(&c, 30);
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "mismatch");
	cr_expect_str_eq(text(doc, "confidence"), "likely");
	expect_culprits(doc, "7");
	cr_expect(strstr(text(doc, "summary"), "After that rank 3 (node-b, pid 1003) exited with "
					       "status 1; rank 3 on node-b was the first to "
					       "fail: "),
		  "%s", text(doc, "summary"));
	cr_expect_null(strstr(text(doc, "summary"), "not told before"), "%s", text(doc, "summary"));
}

Test(postmortem, message_that_was_never_received_is_not_lost)
{
	const json_t *doc;

	cluster_fault(&c, FAULT_LEFT_MESSAGE, 7);
	cluster_run(&c, 20);
	cr_assert_eq(c.n_alerts, 0, "it may still be received");
	all_end(exits(0, 0));
	cluster_run(&c, 30);
	cr_assert_eq(c.n_alerts, 0, "it raises no alert");
	doc = only_postmortem();
	cr_expect_str_eq(text(doc, "class"), "p2p_unmatched");
	cr_assert_eq(json_array_size(json_object_get(doc, "wrong_data")), 1);
	cr_expect(strstr(text(doc, "summary"),
			 "all ranks ended without an error, but sends and receives did not match; "
			 "not told before: rank 6 sent 383 messages to rank 7"),
		  "%s", text(doc, "summary"));
}

Test(postmortem, says_nothing_of_messages_that_a_failure_left_under_way)
{
	cluster_fault(&c, FAULT_LEFT_MESSAGE, 7);
	cluster_run(&c, 2);
	all_end(exits(0, 0));
	ends[4] = exits(0, 1);
	cluster_run(&c, 30);
	cr_expect_eq(json_array_size(json_object_get(only_postmortem(), "wrong_data")), 0);
}

/* Processes choose their own names. */
Test(postmortem, texts_of_others_stay_texts)
{
	char *dump;

	cascade();
	ends[4].cause = (struct cw_cause_facts){ .cause_kind = CW_CAUSE_ASKED,
						 .cause_signal = SIGTERM,
						 .cause_by = CW_END_BY_PROCESS,
						 .cause_pid = 7 };
	ends[4].command = "\x1b[31m\"\\";
	cluster_run(&c, 20);
	dump = json_dumps(only_postmortem(), JSON_COMPACT);
	cr_expect_null(strchr(dump, '\x1b'));
	cr_expect_lt(strlen(dump), 64u << 10);
	free(dump);
}
