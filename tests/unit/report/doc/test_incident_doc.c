/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/incident_doc.h"

#include "report/frames.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "model/cause.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_facts.h"
#include "tests/support/report/report_fixture.h"
#include "tests/support/snapshot/said_text.h"

static const char *text_at(const json_t *doc, const char *key)
{
	const char *text = json_string_value(json_object_get(doc, key));

	cr_assert_not_null(text, "no text at \"%s\"", key);
	return text;
}

static json_t *incident(void)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	doc = cw_incident_doc(snap, &v, &fixture_info);
	free(v.victims);
	cw_snapshot_free(snap);
	cr_assert_not_null(doc);
	return doc;
}

static const json_t *culprit_of(const json_t *doc)
{
	return json_array_get(json_object_get(doc, "culprits"), 0);
}

/* What reports show of the place of a culprit's process; static. */
static const char *place_of(const json_t *culprit)
{
	static char text[CW_DOC_PLACE_BYTES];
	struct cw_incident_process who;
	struct cw_arena arena = { 0 };

	cr_assert_eq(cw_incident_facts_read_process(culprit, &arena, &who), 0);
	(void)cw_doc_place(&who, text, sizeof(text));
	cw_arena_fini(&arena);
	return text;
}

Test(incident_doc, names_ranks_as_people_do)
{
	json_t *doc = incident();
	const json_t *culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	const json_t *victims = json_object_get(doc, "victims");

	cr_assert_str_eq(text_at(doc, "schema"), "collwatch.incident/1");
	cr_assert_str_eq(text_at(doc, "class"), "never_entered");
	cr_assert_str_eq(text_at(doc, "detail"), "outside_nccl");
	cr_assert_str_eq(text_at(doc, "confidence"), "certain");
	cr_assert_eq(json_integer_value(json_object_get(culprit, "rank")), 3);
	cr_assert_eq(json_integer_value(json_object_get(culprit, "pid")), 803);
	cr_assert_str_eq(text_at(culprit, "host"), "node-a");
	cr_assert_eq(json_integer_value(json_object_get(victims, "count")), 7);
	cr_assert_str_eq(text_at(victims, "ranks"), "0-2,4-7");
	json_decref(doc);
}

Test(incident_doc, says_where_and_who_stands_on_which_side)
{
	json_t *doc = incident();
	const json_t *where = json_object_get(doc, "where");
	const json_t *sides = json_object_get(where, "sides");
	const json_t *op = json_object_get(json_array_get(sides, 0), "op");

	cr_assert_str_eq(text_at(where, "comm"), "0xfeedface12345678");
	cr_assert_str_eq(text_at(where, "comm_name"), "tp_group");
	cr_assert_eq(json_integer_value(json_object_get(where, "coll_seq")), 42);
	cr_assert_str_eq(text_at(op, "kind"), "all_reduce");
	cr_assert_str_eq(text_at(op, "dtype"), "bf16");
	cr_assert_eq(json_integer_value(json_object_get(op, "count")), 1048576);
	cr_assert_str_eq(text_at(op, "redop"), "sum");
	cr_assert(json_is_null(json_object_get(op, "root")));
	cr_assert(json_is_null(json_object_get(op, "peer")));
	cr_assert_str_eq(text_at(json_array_get(sides, 1), "ranks"), "3");
	cr_assert(json_is_null(json_object_get(json_array_get(sides, 1), "op")));
	json_decref(doc);
}

Test(incident_doc, names_the_nodes_and_the_connection_of_a_collective_without_end)
{
	struct cw_snapshot *snap = fixture_snapshot();
	const char *sender_host, *receiver_host, *first, *node;
	int sender, receiver, channel, confirmed;
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	v.verdict_class = CW_CLASS_IN_COLLECTIVE;
	v.detail = CW_DETAIL_CONNECTION;
	v.link = (struct cw_link){ .is_set = true,
				   .sender = 3,
				   .receiver = 4,
				   .channel = 1,
				   .side = CW_LINK_SIDE_RECEIVER,
				   .steps = 48,
				   .confirmed = 8 };
	doc = cw_incident_doc(snap, &v, &fixture_info);
	cr_assert_eq(json_unpack(doc, "{s:{s:[s,s], s:{s:i, s:s, s:i, s:s, s:i, s:s, s:i}}}",
				 "where", "nodes", &node, &receiver_host, "link", "sender", &sender,
				 "sender_host", &sender_host, "receiver", &receiver,
				 "receiver_host", &receiver_host, "channel", &channel, "first",
				 &first, "confirmed", &confirmed),
		     0);
	cr_assert_str_eq(node, "node-a");
	cr_assert_eq(sender, 3);
	cr_assert_str_eq(sender_host, "node-a");
	cr_assert_eq(receiver, 4);
	cr_assert_str_eq(receiver_host, "node-b");
	cr_assert_eq(channel, 1);
	cr_assert_str_eq(first, "receiver");
	cr_assert_eq(confirmed, 8);
	cr_assert_null(
		json_object_get(json_object_get(json_object_get(doc, "where"), "link"), "step_s"));
	json_decref(doc);
	free(v.victims);
	cw_snapshot_free(snap);
}

Test(incident_doc, says_from_where_a_call_was_issued)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *doc, *stack, *first, *second;
	struct cw_verdict v;

	fixture_verdict(&v);
	cr_assert_eq(cw_snapshot_add_stack(snap, "libtorch.so+0x1\n/x/train.py:7 in step",
					   &v.sides[0].op.stack),
		     0);
	v.sides[1].has_op = true;
	v.sides[1].op.stack = 2; /* no rank's stack */
	doc = cw_incident_doc(snap, &v, &fixture_info);
	cr_assert_not_null(doc);
	v.sides[0].op.stack = 0;
	v.sides[1] = (struct cw_side){ .ranks = v.sides[1].ranks, .n_ranks = 1 };
	cr_assert_eq(json_unpack(doc, "{s:{s:[{s:o}, {s:o}]}}", "where", "sides", "op", &first,
				 "op", &second),
		     0);
	stack = json_object_get(first, "stack");
	cr_expect_eq(json_array_size(stack), 2);
	cr_expect_str_eq(json_string_value(json_array_get(stack, 1)), "/x/train.py:7 in step");
	cr_expect_null(json_object_get(second, "stack"));
	json_decref(doc);
	free(v.victims);
	cw_snapshot_free(snap);
}

Test(incident_doc, says_where_the_culprit_sits_once)
{
	json_t *doc = incident();
	json_t *evidence = json_pack(
		"[{s:s,s:i},{s:s,s:i,s:{s:[{s:b,s:[{s:s,s:s,s:i},{s:s,s:s,s:i}]}]}}]", "host",
		"node-b", "pid", 803, "host", "node-a", "pid", 803, "python", "threads", "current",
		1, "frames", "file", "/usr/lib/python3.11/queue.py", "function", "get", "line", 171,
		"file", "/home/u/train.py", "function", "next_batch", "line", 88);

	cr_assert_not_null(evidence);
	for (int i = 0; i < 2; i++)
		doc = fixture_add_evidence(doc, evidence);
	cr_assert_str_eq(text_at(culprit_of(doc), "sits_in"), "next_batch (train.py:88)");
	cr_assert_not_null(strstr(text_at(doc, "summary"),
				  " is stuck in next_batch (train.py:88) and never "));
	cr_assert_null(strstr(strstr(text_at(doc, "summary"), "stuck in") + 1, "stuck in"));
	json_decref(evidence);
	json_decref(doc);
}

Test(incident_doc, says_that_a_culprit_is_stopped_once_and_whatever_it_sits_in)
{
	json_t *doc = incident();
	json_t *evidence = json_pack("[{s:s,s:i,s:{s:s}}]", "host", "node-a", "pid", 803, "proc",
				     "state", "T");
	const char *said;

	cr_assert_not_null(evidence);
	for (int i = 0; i < 2; i++)
		doc = fixture_add_evidence(doc, evidence);
	said = strstr(text_at(doc, "summary"), " Rank 3 is stopped by a signal.");
	cr_assert_not_null(said, "%s", text_at(doc, "summary"));
	cr_assert_null(strstr(said + strlen(" Rank 3 is stopped"), "is stopped"));
	cr_assert(json_is_true(json_object_get(culprit_of(doc), "stopped")));
	json_decref(evidence);
	json_decref(doc);
}

Test(incident_doc, a_culprit_has_the_cpus_that_its_evidence_states)
{
	json_t *doc = incident();
	json_t *evidence = json_pack("[{s:s,s:i,s:{s:s}}]", "host", "node-a", "pid", 803, "proc",
				     "cpus", "0-3,8");

	cr_expect_str_eq(place_of(culprit_of(doc)), "");
	doc = fixture_add_evidence(doc, evidence);
	cr_expect_str_eq(text_at(culprit_of(doc), "cpus"), "0-3,8");
	cr_expect_str_eq(place_of(culprit_of(doc)), ", CPUs 0-3,8");
	json_decref(evidence);
	json_decref(doc);
}

Test(incident_doc, native_frames_tell_the_caller_of_the_c_library)
{
	json_t *doc = incident();
	json_t *evidence =
		json_pack("[{s:s,s:i,s:{s:[{s:i,s:[{s:s,s:s},{s:s,s:s,s:s,s:i}]}]}}]", "host",
			  "node-a", "pid", 803, "native", "threads", "tid", 803, "frames", "symbol",
			  "read", "module", "/usr/lib/libc.so.6", "symbol", "data_loader_next",
			  "module", "/opt/train", "file", "train.c", "line", 12);

	cr_assert_not_null(evidence);
	doc = fixture_add_evidence(doc, evidence);
	cr_assert_not_null(strstr(text_at(doc, "summary"),
				  " is stuck in data_loader_next (train.c:12) and never "));
	json_decref(evidence);
	json_decref(doc);
}

Test(incident_doc, states_what_was_not_seen)
{
	json_t *doc = incident();
	const json_t *coverage = json_object_get(doc, "coverage");

	cr_assert_eq(json_integer_value(json_object_get(coverage, "ranks_expected")), 10);
	cr_assert_eq(json_integer_value(json_object_get(coverage, "ranks_seen")), 8);
	cr_assert_str_eq(text_at(coverage, "missing"), "8-9");
	cr_assert_eq(json_array_size(json_object_get(coverage, "notes")), 1);
	json_decref(doc);
}

Test(incident_doc, has_the_smallest_time_out_of_the_ranks_where_one_is_known)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_verdict v;
	json_t *doc;
	const json_t *timeout;

	fixture_verdict(&v);
	doc = cw_incident_doc(snap, &v, &fixture_info);
	cr_expect_null(json_object_get(doc, "job_timeout"));
	json_decref(doc);
	snap->ranks[1].job_timeout_ns = INT64_C(1800000000000);
	snap->ranks[2].job_timeout_ns = INT64_C(600000000000);
	snap->ranks[2].flags |= CW_RANKF_TIMEOUT_ASSUMED;
	doc = cw_incident_doc(snap, &v, &fixture_info);
	timeout = json_object_get(doc, "job_timeout");
	cr_expect_eq(json_number_value(json_object_get(timeout, "seconds")), 600);
	cr_expect(json_is_true(json_object_get(timeout, "assumed")));
	cr_expect_null(json_object_get(timeout, "set_by"));
	json_decref(doc);
	snap->ranks[1].job_timeout_ns = INT64_C(300000000000);
	snap->ranks[1].job_timeout_source = "--distributed-timeout-minutes 5 in its arguments";
	doc = cw_incident_doc(snap, &v, &fixture_info);
	timeout = json_object_get(doc, "job_timeout");
	cr_expect_eq(json_number_value(json_object_get(timeout, "seconds")), 300);
	cr_expect_str_eq(text_at(timeout, "set_by"), snap->ranks[1].job_timeout_source);
	json_decref(doc);
	cw_snapshot_free(snap);
}

Test(incident_doc, proposes_the_policy_of_a_server_in_its_summary_too)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_incident_info info = fixture_info;
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	doc = cw_incident_doc(snap, &v, &info);
	cr_expect_null(json_object_get(doc, "proposed_policy"));
	cr_expect_str_eq(text_at(doc, "summary"), said_text(&v.said));
	json_decref(doc);
	info.proposes_serving = true;
	doc = cw_incident_doc(snap, &v, &info);
	cr_expect_str_eq(text_at(doc, "proposed_policy"), "serving");
	cr_expect_eq(strstr(text_at(doc, "summary"), said_text(&v.said)), text_at(doc, "summary"));
	cr_expect_not_null(strstr(text_at(doc, "summary"), " set COLLWATCH_POLICY=serving in "));
	json_decref(doc);
	cw_snapshot_free(snap);
}

Test(incident_doc, says_in_which_pod_a_culprit_is_where_that_is_known)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_snap_rank *rank;
	const json_t *culprit;
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	doc = cw_incident_doc(snap, &v, &fixture_info);
	culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	cr_expect_null(json_object_get(culprit, "pod"));
	cr_expect_null(json_object_get(culprit, "own_pid"));
	cr_expect_str_eq(place_of(culprit), "");
	json_decref(doc);
	rank = &snap->ranks[v.culprits[0].rank];
	rank->pod = "train-3";
	rank->pod_namespace = "ml";
	rank->container = "trainer";
	rank->own_pid = 17;
	doc = cw_incident_doc(snap, &v, &fixture_info);
	culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	cr_expect_str_eq(text_at(culprit, "pod"), "train-3");
	cr_expect_str_eq(text_at(culprit, "pod_namespace"), "ml");
	cr_expect_str_eq(text_at(culprit, "container"), "trainer");
	cr_expect_eq(json_integer_value(json_object_get(culprit, "own_pid")), 17);
	cr_expect_str_eq(place_of(culprit), ", pod ml/train-3, container trainer, pid 17 there");
	json_decref(doc);
	cw_snapshot_free(snap);
}

/* Advice decides by these members. */
Test(incident_doc, says_what_a_culprit_waits_for_or_who_ended_it)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_snap_rank *rank;
	const json_t *culprit;
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	rank = &snap->ranks[v.culprits[0].rank];
	rank->liveness = CW_LIVE_ALIVE;
	rank->host_wait = CW_HOST_WAIT_SOCKET;
	rank->end_by = CW_END_BY_PROCESS; /* of a living one: nonsense of its node */
	rank->term_signal = 9;
	rank->cause_kind = CW_CAUSE_FROZEN;
	doc = cw_incident_doc(snap, &v, &fixture_info);
	culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	cr_expect_str_eq(text_at(culprit, "host_wait"), "socket");
	cr_expect_null(json_object_get(culprit, "end_by"));
	cr_expect_null(json_object_get(culprit, "term_signal"));
	cr_expect_str_eq(text_at(culprit, "cause_kind"), "frozen");
	cr_expect_null(json_object_get(culprit, "cause_by"));
	json_decref(doc);
	rank->liveness = CW_LIVE_KILLED;
	rank->cause_kind = CW_CAUSE_KILLED;
	rank->cause_by = CW_END_BY_PROCESS;
	doc = cw_incident_doc(snap, &v, &fixture_info);
	culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	cr_expect_null(json_object_get(culprit, "host_wait"));
	cr_expect_str_eq(text_at(culprit, "end_by"), "process");
	cr_expect_eq(json_integer_value(json_object_get(culprit, "term_signal")), 9);
	cr_expect_str_eq(text_at(culprit, "cause_kind"), "killed");
	cr_expect_str_eq(text_at(culprit, "cause_by"), "process");
	json_decref(doc);
	/* Of a newer version. */
	rank->end_by = CW_END_BY__MAX;
	doc = cw_incident_doc(snap, &v, &fixture_info);
	culprit = json_array_get(json_object_get(doc, "culprits"), 0);
	cr_expect_null(json_object_get(culprit, "end_by"));
	json_decref(doc);
	free(v.victims);
	cw_snapshot_free(snap);
}

Test(incident_doc, a_chain_is_not_a_cycle)
{
	json_t *doc = incident();
	const json_t *chain = json_object_get(doc, "chain");

	cr_assert_eq(json_array_size(chain), 2);
	cr_assert_eq(json_array_size(json_object_get(doc, "cycle")), 0);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(chain, 1), "waits_for")), 3);
	json_decref(doc);
}

Test(incident_doc, unknown_times_are_null)
{
	json_t *doc = incident();
	const json_t *times = json_object_get(doc, "times");

	cr_assert(json_is_string(json_object_get(times, "confirmed")));
	cr_assert(json_is_null(json_object_get(times, "resolved")));
	json_decref(doc);
}

Test(incident_doc, survives_indices_that_point_nowhere_and_text_that_is_not_utf8)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_verdict v;
	json_t *doc;

	fixture_verdict(&v);
	v.culprits[0].rank = 77;
	v.chain[0].waits_for = CW_SNAP_NONE;
	v.chain[1].comm = CW_SNAP_NONE;
	v.comm = CW_SNAP_NONE;
	v.said = fixture_said("caf\xe9");
	doc = cw_incident_doc(snap, &v, &fixture_info);
	cr_assert_not_null(doc);
	cr_assert(json_is_null(json_object_get(doc, "where")));
	cr_assert_str_eq(text_at(doc, "summary"), "caf?");
	json_decref(doc);
	free(v.victims);
	cw_snapshot_free(snap);
}

Test(incident_doc, healthy_counts_what_everybody_completed)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *doc;

	snap->comms[0].members[6].coll_completed = 40;
	doc = cw_healthy_doc(snap, INT64_C(20500000000));
	cr_assert_str_eq(text_at(doc, "schema"), "collwatch.healthy/1");
	cr_assert_eq(json_integer_value(json_object_get(doc, "ranks")), 8);
	cr_assert_eq(json_integer_value(json_object_get(doc, "nodes")), 2);
	cr_assert_eq(json_integer_value(json_object_get(doc, "collectives")), 40);
	cr_assert_float_eq(json_real_value(json_object_get(doc, "watched_s")), 20.5, 1e-6);
	json_decref(doc);
	cw_snapshot_free(snap);
}

Test(incident_doc, tells_the_kernels_word_on_a_culprit)
{
	static const char text[] =
		"[{\"schema\":\"collwatch.evidence/1\",\"host\":\"node-a\",\"pid\":803,\"proc\":{"
		"\"threads\":[{\"tid\":803,\"state\":\"D\",\"syscall\":\"fsync\",\"off_cpu_s\":41."
		"2,\"kernel_stack\":["
		"\"folio_wait_bit\",\"ext4_sync_file\"],\"waits_for\":{\"fd\":5,\"path\":"
		"\"/ckpt/last.pt\",\"device\":\"8:1\",\"fs\":\"ext4\",\"source\":\"/dev/"
		"sda1\"}}]}}]";
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *evidence = json_loads(text, 0, NULL), *doc;
	struct cw_verdict v;

	fixture_verdict(&v);
	doc = cw_incident_doc(snap, &v, &fixture_info);
	doc = fixture_add_evidence(doc, evidence);
	cr_assert_str_eq(
		json_string_value(json_object_get(
			json_array_get(json_object_get(doc, "culprits"), 0), "kernel")),
		"sleeps uninterruptibly (state D) in fsync(); has not run for 41 s; in the kernel "
		"in folio_wait_bit ← ext4_sync_file; waits for ext4 on device 8:1 (/dev/sda1): "
		"/ckpt/last.pt");
	json_decref(doc);
	json_decref(evidence);
	free(v.victims);
	cw_snapshot_free(snap);
}

Test(incident_doc, tells_of_a_stuck_culprit_what_is_known_without_bpf)
{
	static const char text[] =
		"{\"pid\":803,\"proc\":{\"threads\":[{\"tid\":803,\"state\":\"D\",\"syscall\":"
		"\"write\",\"wchan\":\"percpu_rwsem_wait\",\"off_cpu_s\":null,"
		"\"kernel_stack\":null,\"waits_for\":null}]}}";
	json_t *evidence = json_loads(text, 0, NULL);
	json_t *thread =
		json_array_get(json_object_get(json_object_get(evidence, "proc"), "threads"), 0);
	char buf[256];

	cr_assert_str_eq(cw_evidence_kernel(evidence, buf, sizeof(buf)),
			 "sleeps uninterruptibly (state D) in write(); in the kernel in "
			 "percpu_rwsem_wait");
	cr_assert_eq(json_object_set_new(thread, "state", json_string("S")), 0);
	cr_assert_str_eq(cw_evidence_kernel(evidence, buf, sizeof(buf)), "");
	cr_assert_str_eq(cw_evidence_kernel(NULL, buf, sizeof(buf)), "");
	json_decref(evidence);
}
