/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of tests/data/flight_recorder/make.py, and possible defects of dumps. */
#include "import/flight_recorder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/verdict.h"
#include "tests/support/snapshot/said_text.h"

#define SECOND INT64_C(1000000000)

static struct cw_fr_set set;
static struct cw_snapshot *snap;
static struct cw_verdict verdict;

static void fini(void)
{
	cw_verdict_fini(&verdict);
	snap = cw_snapshot_free(snap);
	cw_fr_set_fini(&set);
}

TestSuite(flight_recorder, .fini = fini);

static char *read_file(const char *dir, const char *name, size_t *ret_size)
{
	char path[512], *data = malloc(1 << 16);
	FILE *f;

	snprintf(path, sizeof(path), "%s/flight_recorder/%s/%s", CW_TEST_DATA, dir, name);
	f = fopen(path, "rb");
	cr_assert_not_null(f, "%s", path);
	*ret_size = fread(data, 1, 1 << 16, f);
	fclose(f);
	return data;
}

static const char *file_of(const char *dir, int rank)
{
	static char name[64];
	bool is_torchs = strncmp(dir, "torch/", 6) == 0, is_json = strcmp(dir, "quiet_rank") == 0;

	snprintf(name, sizeof(name), "%srank_%d%s", is_torchs || is_json ? "" : "nccl_trace_", rank,
		 is_json ? ".json" : "");
	return name;
}

/* bytes: of the file, -1 = all. */
static void add(const char *dir, int rank, long bytes)
{
	size_t size;
	char *data = read_file(dir, file_of(dir, rank), &size);

	cr_assert_eq(
		cw_fr_set_add(&set, file_of(dir, rank), data, bytes < 0 ? size : (size_t)bytes, 0),
		0);
	free(data);
}

static void judge(void)
{
	cr_assert_eq(cw_fr_snapshot_best(&set, &snap), 0);
	cr_assert_eq(cw_verdict_compute(snap, &verdict), 0);
}

static void judge_directory(const char *dir)
{
	for (int rank = 0; rank < 4; rank++)
		add(dir, rank, -1);
	judge();
}

/* The dumps of torch 2.13 itself for a hang of three ranks: tests/compare/run --dumps. */
static void judge_dumps_of_torch(const char *dir)
{
	for (int rank = 0; rank < 3; rank++)
		add(dir, rank, -1);
	judge();
}

static bool has_note(const char *text)
{
	for (uint32_t i = 0; i < snap->n_notes; i++)
		if (strstr(snap->notes[i], text))
			return true;
	return false;
}

static void assert_culprit(unsigned verdict_class, const char *detail, int rank)
{
	cr_assert_eq(verdict.verdict_class, verdict_class, "%s", said_text(&verdict.said));
	cr_assert_str_eq(cw_detail_name(verdict.detail), detail);
	cr_assert_eq(verdict.n_culprits, 1, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->ranks[verdict.culprits[0].rank].rank, rank, "%s",
		     said_text(&verdict.said));
}

static void assert_says(const char *text)
{
	cr_assert(strstr(said_text(&verdict.said), text), "%s", said_text(&verdict.said));
}

/* Ranks 0 and 1 are the two ends of a message, and one of them is stuck. */
static void assert_pair(const char *text)
{
	cr_assert_eq(verdict.verdict_class, CW_CLASS_IN_COLLECTIVE, "%s", said_text(&verdict.said));
	cr_assert_str_eq(cw_detail_name(verdict.detail), "pair");
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
	cr_assert_eq(verdict.n_culprits, 2);
	for (uint32_t i = 0; i < 2; i++)
		cr_assert_eq(snap->ranks[verdict.culprits[i].rank].rank, (int)i);
	assert_says(text);
}

/* Written that long after the last thing they hold. */
static void judge_written_after(const char *dir, int ranks, int64_t after_ns)
{
	int64_t newest_ns = 0;

	for (int rank = 0; rank < ranks; rank++)
		add(dir, rank, -1);
	for (uint32_t i = 0; i < set.n_sources; i++)
		if (set.sources[i].dump.newest_ns > newest_ns)
			newest_ns = set.sources[i].dump.newest_ns;
	for (uint32_t i = 0; i < set.n_sources; i++)
		set.sources[i].file_ns = newest_ns + after_ns;
	judge();
}

Test(flight_recorder, names_the_rank_that_never_entered)
{
	judge_written_after("never_entered", 4, 600 * SECOND);
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
	cr_assert_eq(verdict.coll_seq, 5);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_eq(verdict.n_victims, 3);
}

Test(flight_recorder, names_the_odd_one_out_of_a_mismatch)
{
	judge_directory("wrong_count");
	assert_culprit(CW_CLASS_MISMATCH, "count", 1);
	cr_assert_eq(verdict.coll_seq, 2);
}

/* Two groups are named "7": rank 1's partner is rank 0, and rank 1 itself waits for rank 3. */
Test(flight_recorder, follows_point_to_point_through_groups_of_one_name)
{
	judge_directory("no_send");
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 3);
	cr_assert_eq(snap->n_comms, 5);
}

Test(flight_recorder, odd_but_complete_dumps_are_healthy)
{
	judge_directory("all_well");
	cr_assert_eq(verdict.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&verdict.said));
	cr_assert(has_note("\"all_shuffle\""));
	cr_assert(has_note("\"moon\""));
}

/*
 * The dumps of torch 2.13 for a hang in a replayed graph, and for one where no rank waits in NCCL.
 */
Test(flight_recorder, says_how_long_recorders_without_an_open_call_were_silent)
{
	static const char *const dirs[] = { "torch/graph.block-in-data-loader",
					    "torch/ddp.block-everywhere" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		judge_written_after(dirs[i], 3, 92 * SECOND);
		cr_assert_eq(verdict.verdict_class, CW_CLASS_HEALTHY, "%s",
			     said_text(&verdict.said));
		cr_assert(has_note("had completed 92 s before the dumps were written"));
		cr_assert(has_note("a replayed CUDA graph"));
		fini();
	}
}

Test(flight_recorder, a_running_jobs_dumps_are_not_called_silent)
{
	judge_written_after("all_well", 4, 2 * SECOND);
	cr_assert(!has_note("before the dumps were written"));
}

Test(flight_recorder, an_open_call_is_no_silence)
{
	judge_written_after("never_entered", 4, 92 * SECOND);
	cr_assert_eq(verdict.verdict_class, CW_CLASS_NEVER_ENTERED, "%s", said_text(&verdict.said));
	cr_assert(!has_note("before the dumps were written"));
}

Test(flight_recorder, of_an_entry_that_cannot_be_read_it_is_not_said_that_it_has_completed)
{
	static const char text[] =
		"{\"version\":\"2.9\",\"entries\":[{},{\"process_group\":[\"0\",\"\"],"
		"\"profiling_name\":\"nccl:all_reduce\",\"collective_seq_id\":1,"
		"\"state\":\"completed\",\"time_created_ns\":1700000000000000000}]}";

	cr_assert_eq(
		cw_fr_set_add(&set, "rank_0", text, sizeof(text) - 1, INT64_C(1700000060) * SECOND),
		0);
	judge();
	cr_assert(has_note("1 entry could not be read"));
	cr_assert(!has_note("before the dumps were written"));
}

Test(flight_recorder, a_rank_that_lists_nothing_is_not_in_the_call)
{
	judge_directory("quiet_rank");
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 3);
	cr_assert_eq(verdict.coll_seq, 10);
	cr_assert(has_note("the time of the dumps is not known"));
}

Test(flight_recorder, names_who_left_no_dump_and_is_not_sure)
{
	for (int rank = 0; rank < 4; rank++)
		if (rank != 2)
			add("never_entered", rank, -1);
	judge();
	assert_culprit(CW_CLASS_UNKNOWN, "not_visible", 2);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
	cr_assert_not_null(strstr(said_text(&verdict.said), "left no recording"), "%s",
			   said_text(&verdict.said));
	cr_assert_eq(snap->ranks_expected, 4);
	cr_assert_eq(snap->n_ranks, 4);
	cr_assert(has_note("no usable dump of rank 2"));
}

Test(flight_recorder, any_truncation_is_a_note_and_nothing_worse)
{
	size_t size;
	char *data = read_file("wrong_count", file_of("wrong_count", 1), &size);

	for (size_t n = 0; n < size; n++) {
		char *copy = malloc(n + !n);

		memcpy(copy, data, n);
		cr_assert_eq(cw_fr_set_add(&set, "nccl_trace_rank_1", copy, n, 0), 0);
		cr_assert_eq(set.n_sources, 0, "%zu bytes", n);
		cr_assert_eq(cw_fr_snapshot_best(&set, &snap), -ENODATA);
		cr_assert_eq(set.n_notes, 1);
		free(copy);
		cw_fr_set_fini(&set);
	}
	free(data);
}

Test(flight_recorder, empty_and_damaged_dumps_are_named)
{
	add("never_entered", 0, -1);
	add("never_entered", 1, 0);
	add("never_entered", 2, 700);
	judge();
	cr_assert(has_note("nccl_trace_rank_1 cannot be used: empty"));
	cr_assert(has_note("nccl_trace_rank_2 cannot be used: offset"));
	cr_assert(has_note("no usable dump of ranks 1-3"));
}

static void add_text(const char *name, const char *json)
{
	cr_assert_eq(cw_fr_set_add(&set, name, json, strlen(json), 0), 0);
}

Test(flight_recorder, a_pickle_that_wants_to_run_something_is_refused_by_name)
{
	add("never_entered", 0, -1);
	add_text("rank_7", "\x80\2cos\nsystem\nU\4true\x85R.");
	judge();
	cr_assert(has_note("rank_7 cannot be used: offset 2: GLOBAL"));
}

Test(flight_recorder, the_dump_itself_may_tell_the_rank)
{
	add_text("whatever.json", "{\"version\": \"2.10\", \"rank\": 6, \"entries\": []}");
	add_text("nobody.json", "{\"version\": \"2.10\", \"entries\": []}");
	add_text("notes.txt", "rank 5 was restarted");
	judge();
	cr_assert_eq(snap->n_ranks, 1);
	cr_assert_eq(snap->ranks[0].rank, 6);
	cr_assert(has_note("nobody.json: neither"));
}

Test(flight_recorder, the_name_of_the_file_tells_the_rank)
{
	static const char *const names[] = {
		"_dump_3",         "nccl_trace_rank_3",        "3",
		"rank3.json",      "trace_3.pickle",           "job7_rank-3.pt2",
		"rank_3_20260102", "rank_3_1763770000.pkl",    "frank_rank_3",
		"dump.rank_3",     "fr_noderank0_3",           "local_rank1_global_rank3",
		"rank_3_142501",   "global_rank3_local_rank1",
	};
	static const char dump[] = "{\"version\":\"2.9\",\"entries\":[]}";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cr_assert_eq(cw_fr_set_add(&set, names[i], dump, sizeof(dump) - 1, 0), 0);
		cr_assert_eq(set.n_sources, i + 1, "%s", names[i]);
		cr_assert_eq(set.sources[i].rank, 3, "%s: %d", names[i], set.sources[i].rank);
	}
	cr_assert_eq(cw_fr_set_add(&set, "rank_of_nobody.json", dump, sizeof(dump) - 1, 0), 0);
	cr_assert_eq(set.n_notes, 1);
}

static const char dump_of_rank_2[] = "{\"version\":\"2.9\",\"rank\":2,\"entries\":[]}";

Test(flight_recorder, a_dump_that_contradicts_its_name_is_said_and_the_name_believed)
{
	add_text("rank_3", dump_of_rank_2);
	add_text("nccl_trace_rank_2", dump_of_rank_2);
	judge();
	cr_assert_eq(snap->n_ranks, 2);
	cr_assert_eq(snap->ranks[1].rank, 3);
	cr_assert(has_note("rank_3: the dump says rank 2, but we use rank 3"));
	cr_assert_not(has_note("nccl_trace_rank_2"));
}

/* Of dumps whose calls have no times, and in either order. */
Test(flight_recorder, of_two_dumps_of_a_rank_the_newer_file_counts)
{
	static const char empty[] = "{\"version\":\"2.9\",\"entries\":[]}";

	for (int is_first = 0; is_first < 2; is_first++) {
		const char *a = is_first ? empty : dump_of_rank_2;
		const char *b = is_first ? dump_of_rank_2 : empty;

		cr_assert_eq(cw_fr_set_add(&set, "a_2", a, strlen(a), 1 + is_first), 0);
		cr_assert_eq(cw_fr_set_add(&set, "b_2", b, strlen(b), 2 - is_first), 0);
		judge();
		cr_assert_eq(set.n_sources, 1);
		cr_assert_eq(set.sources[0].dump.rank, CW_FR_NONE, "%d", is_first);
		cr_assert(has_note("more than one dump of rank 2: the newest is used"));
		fini();
	}
}

Test(flight_recorder, what_should_be_a_dump_and_is_none_is_named_but_no_log)
{
	static const char *const logs[] = { "rank_3.log", "rank_3.txt", "README" };
	static const char text[] = "cos\nsystem\n(S'true'\ntR.";

	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++)
		cr_assert_eq(cw_fr_set_add(&set, logs[i], text, sizeof(text) - 1, 0), 0);
	cr_assert_eq(set.n_notes, 0, "%s", set.notes[0]);
	cr_assert_eq(cw_fr_set_add(&set, "_dump_3", text, sizeof(text) - 1, 0), 0);
	cr_assert_eq(set.n_notes, 1, "a pickle of protocol 0");
	cr_assert_not_null(strstr(set.notes[0], "GLOBAL: would import or call something: refused"),
			   "%s", set.notes[0]);
	cr_assert_eq(cw_fr_set_add(&set, "_dump_4", "\0\0\0\0", 4, 0), 0);
	cr_assert_eq(set.n_notes, 2, "a file system lost its contents");
	cr_assert_eq(cw_fr_set_add(&set, "rank_5", "# Notes\n\nText.\n", 15, 0), 0);
	cr_assert_eq(set.n_notes, 3);
	cr_assert_not_null(strstr(set.notes[2], "it is text, neither a pickle nor JSON"), "%s",
			   set.notes[2]);
}

Test(flight_recorder, json_that_would_take_gigabytes_is_refused_before_it_is_read)
{
	static const char head[] = "{\"version\":\"2.9\",\"entries\":[";
	size_t n = 4000000, size = sizeof(head) - 1 + 3 * n;
	char *data = malloc(size);

	cr_assert_not_null(data);
	memcpy(data, head, sizeof(head) - 1);
	for (size_t i = 0; i < n; i++)
		memcpy(data + sizeof(head) - 1 + 3 * i, "{},", 3);
	data[size - 1] = ']';
	cr_assert_eq(cw_fr_set_add(&set, "rank_0.json", data, size, 0), 0);
	free(data);
	cr_assert_eq(set.n_notes, 1);
	cr_assert_not_null(strstr(set.notes[0], "too much memory"), "%s", set.notes[0]);
}

Test(flight_recorder, a_version_older_than_those_known_is_refused_and_a_newer_one_is_said)
{
	add_text("r0.json", "{\"version\": \"2.1\", \"entries\": []}");
	add_text("r1.json", "{\"version\": \"2.11\", \"entries\": []}");
	judge();
	cr_assert(has_note("r0.json cannot be used: dump version 2.1: older than 2.2"));
	cr_assert(has_note("dump version 2.11 is newer than 2.10, the newest known here"));
}

Test(flight_recorder, versions_that_differ_are_said)
{
	add_text("r0.json", "{\"version\": \"2.3\", \"entries\": []}");
	add_text("r1.json", "{\"version\": \"2.10\", \"entries\": []}");
	add_text("r2.json", "{\"version\": \"3.0\", \"entries\": []}");
	add_text("r3.json", "{\"version\": \"2.10\"}");
	judge();
	cr_assert(has_note("rank 0 has 2.3, rank 1 2.10"));
	cr_assert(has_note("only 2.x"));
	cr_assert(has_note("rank 3 has no calls"));
}

/* One rank, group of two, entries as given. */
static void add_rank(int rank, const char *ranks, const char *entries)
{
	char text[4096], name[16];

	snprintf(name, sizeof(name), "r%d.json", rank);
	snprintf(text, sizeof(text),
		 "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":%s}},\"entries\":[%s]}",
		 ranks, entries);
	add_text(name, text);
}

#define ENTRY(name, coll, p2p, state, is_p2p)                                                      \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:" name                         \
	"\",\"collective_seq_id\":" coll ",\"p2p_seq_id\":" p2p ",\"state\":\"" state              \
	"\",\"is_p2p\":" is_p2p ",\"time_created_ns\":1700000000000000000,"                        \
	"\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"],"                                      \
	"\"output_sizes\":[[8]],\"output_dtypes\":[\"Float\"]}"

Test(flight_recorder, a_coalesced_batch_has_the_state_of_its_end)
{
	add_rank(0, "\"[0, 1]\"",
		 ENTRY("send 0->1", "3", "1", "scheduled", "true") "," ENTRY(
			 "recv 0<-1", "3", "1", "scheduled",
			 "true") "," ENTRY("coalesced", "3", "1", "completed", "true"));
	add_rank(1, "\"[0, 1]\"", "");
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&verdict.said));
	fini();

	add_rank(0, "\"[0, 1]\"",
		 ENTRY("send 0->1", "3", "1", "scheduled", "true") "," ENTRY(
			 "recv 0<-1", "3", "1", "scheduled",
			 "true") "," ENTRY("coalesced", "3", "1", "started", "true"));
	add_rank(1, "\"[0, 1]\"", "");
	judge();
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "outside_nccl", 1);
}

/* As torch has it: the entry that ends a batch does not say that it is a point-to-point call. */
Test(flight_recorder, a_batch_ends_with_the_entry_of_its_numbers)
{
	add_rank(0, "\"[0, 1]\"",
		 ENTRY("all_reduce", "3", "0", "completed",
		       "false") "," ENTRY("send 0->1", "3", "1", "scheduled",
					  "true") "," ENTRY("recv 0<-1", "3", "1", "scheduled",
							    "true") "," ENTRY("coalesced", "3", "1",
									      "started", "false"));
	add_rank(1, "\"[0, 1]\"",
		 ENTRY("all_reduce", "3", "0", "completed", "false") "," ENTRY(
			 "send 1->0", "3", "1", "scheduled",
			 "true") "," ENTRY("coalesced", "3", "1", "completed", "false"));
	judge();
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "outside_nccl", 1);
	fini();

	judge_dumps_of_torch("torch/ring.missing-send");
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "not_posted", 1);
}

/* Pairs are matched by order, not by p2p_seq_id: that one counts all peers and both directions. */
Test(flight_recorder, sends_meet_receives_whatever_their_numbers)
{
	add_rank(0, "\"[0, 1]\"", ENTRY("send 0->1", "3", "7", "scheduled", "true"));
	add_rank(1, "\"[0, 1]\"", ENTRY("recv 1<-0", "3", "12", "scheduled", "true"));
	judge();
	cr_assert_neq(verdict.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s",
		      said_text(&verdict.said));
	assert_pair("sending to rank 1 on comm 4 for 10 min; both ranks posted their halves");
}

#define OPEN_OF(group, name, number, state, is_p2p)                                                \
	"{\"process_group\":[\"" group "\",\"\"],\"profiling_name\":\"nccl:" name                  \
	"\",\"collective_seq_id\":" number ",\"p2p_seq_id\":" number ",\"state\":\"" state         \
	"\",\"is_p2p\":" is_p2p ",\"time_created_ns\":1700000000000000000,"                        \
	"\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"],"                                      \
	"\"output_sizes\":[[8]],\"output_dtypes\":[\"Float\"]}"

static void add_calls(const char *name, const char *entries)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]},"
		 "\"5\":{\"ranks\":[1,2]},\"6\":{\"ranks\":[0,1,2]}},\"entries\":[%s]}",
		 entries);
	add_text(name, text);
}

/* The receiver's own order counts: all times are equal. */
Test(flight_recorder, a_message_waits_for_the_rank_that_has_an_older_open_call)
{
	add_calls("rank0", OPEN_OF("4", "send 0->1", "7", "started", "true"));
	add_calls("rank1", OPEN_OF("5", "all_reduce", "9", "started",
				   "false") "," OPEN_OF("4", "recv 1<-0", "7", "started", "true"));
	add_calls("rank2", OPEN_OF("5", "all_reduce", "8", "completed", "false"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
	cr_assert_eq(verdict.n_victims, 2, "%s", said_text(&verdict.said));
	fini();

	/* Rank 1 made the receive first, so the reduction does not hold it up. */
	add_calls("rank0", OPEN_OF("4", "send 0->1", "7", "started", "true"));
	add_calls("rank1", OPEN_OF("4", "recv 1<-0", "7", "started", "true") "," OPEN_OF(
				   "6", "all_reduce", "9", "scheduled", "false"));
	add_calls("rank2", OPEN_OF("6", "all_reduce", "9", "started", "false"));
	judge();
	assert_pair("both ranks posted their halves and wait in no older call");
}

/* The sender has completed its send, so the message is in a buffer, and the receiver is stuck. */
Test(flight_recorder, a_receive_whose_send_has_completed_is_the_fault_of_the_receiver)
{
	add_rank(0, "\"[0, 1]\"", ENTRY("send 0->1", "0", "1", "completed", "true"));
	add_rank(1, "\"[0, 1]\"", ENTRY("recv 1<-0", "0", "1", "started", "true"));
	judge();
	assert_culprit(CW_CLASS_IN_COLLECTIVE, "unfinished", 1);
	assert_says("rank 1 has been receiving from rank 0 on comm 4 for 10 min, although rank 0 "
		    "has completed the send.");
	fini();

	add_rank(0, "\"[0, 1]\"", ENTRY("send 0->1", "0", "1", "started", "true"));
	add_rank(1, "\"[0, 1]\"", ENTRY("recv 1<-0", "0", "1", "completed", "true"));
	judge();
	assert_culprit(CW_CLASS_IN_COLLECTIVE, "unfinished", 0);
	assert_says("although rank 1 has completed the receive.");
}

/* Lists of open calls omit completed calls, so they do not show that a half was never posted. */
Test(flight_recorder, a_half_that_a_list_of_open_calls_lacks_may_have_completed)
{
	add_calls("rank0", OPEN_OF("6", "all_reduce", "9", "started", "false"));
	add_calls("rank1", OPEN_OF("4", "recv 1<-0", "7", "started", "true"));
	add_calls("rank2", OPEN_OF("6", "all_reduce", "9", "started", "false"));
	judge();
	assert_pair("rank 1 has been receiving from rank 0 on comm 4 for 10 min, and rank 0 lists "
		    "no open send to it: rank 0 has completed that send, or never posted it.");
	fini();

	/* A rank that lists no call at all waits for none, so it is named, but never surely. */
	add_calls("rank0", "");
	add_calls("rank1", OPEN_OF("4", "send 1->0", "7", "started", "true"));
	add_calls("rank2", "");
	judge();
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "outside_nccl", 0);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
	assert_says("rank 1 has been sending to rank 0 on comm 4 for 10 min, and rank 0 lists no "
		    "open receive from it: rank 0 has completed that receive, or never posted it.");
}

/* Rank 1 entered the calls that rank 0 completed, but its watchdog noted no end. */
Test(flight_recorder, a_rank_that_notes_ends_late_was_not_dumped_earlier)
{
	add_calls("rank0", OPEN_OF("6", "all_reduce", "8", "completed", "false") "," OPEN_OF(
				   "6", "all_reduce", "9", "started", "false"));
	add_calls(
		"rank1",
		OPEN_OF("6", "all_reduce", "4", "scheduled", "false") "," OPEN_OF(
			"6", "all_reduce", "5", "scheduled",
			"false") "," OPEN_OF("6", "all_reduce", "6", "scheduled",
					     "false") "," OPEN_OF("6", "all_reduce", "7",
								  "scheduled",
								  "false") "," OPEN_OF("6",
										       "all_reduce",
										       "8",
										       "scheduled",
										       "false"));
	add_calls("rank2", OPEN_OF("6", "all_reduce", "8", "completed", "false") "," OPEN_OF(
				   "6", "all_reduce", "9", "started", "false"));
	judge();
	cr_assert_not(has_note("dumps of different moments"));
	cr_assert_eq(verdict.n_culprits, 1, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->ranks[verdict.culprits[0].rank].rank, 1);
}

#define IN_GROUP(group, when)                                                                      \
	"{\"process_group\":[\"" group "\",\"\"],\"profiling_name\":\"nccl:all_reduce\","          \
	"\"collective_seq_id\":7,\"state\":\"scheduled\",\"time_created_ns\":170000000" when       \
	"000000000,\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}"

static void add_two_calls(const char *name, const char *entries)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]},"
		 "\"5\":{\"ranks\":[0,1]}},\"entries\":[%s]}",
		 entries);
	add_text(name, text);
}

/* All ranks have made both calls; without start times, only their order tells. */
Test(flight_recorder, two_communicators_in_different_order_are_a_deadlock)
{
	add_two_calls("r0.json", IN_GROUP("4", "1") "," IN_GROUP("5", "2"));
	add_two_calls("r1.json", IN_GROUP("5", "1") "," IN_GROUP("4", "2"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_DEADLOCK, "%s", said_text(&verdict.said));
	cr_assert_neq(verdict.confidence, CW_CONFIDENCE_CERTAIN);
	cr_assert(has_note("the order of a rank's calls"));
	fini();

	add_two_calls("r0.json", IN_GROUP("4", "1") "," IN_GROUP("5", "2"));
	add_two_calls("r1.json", IN_GROUP("4", "1") "," IN_GROUP("5", "2"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
	cr_assert_not(has_note("the order of a rank's calls"));
}

#define SIZED(name, p2p, state, size)                                                              \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:" name                         \
	"\",\"collective_seq_id\":0,\"p2p_seq_id\":" p2p ",\"state\":\"" state                     \
	"\",\"is_p2p\":true,\"time_created_ns\":1700000000000000000,"                              \
	"\"input_sizes\":[[" size "]],\"input_dtypes\":[\"Float\"],"                               \
	"\"output_sizes\":[[" size "]],\"output_dtypes\":[\"Float\"]}"

/* Only where all calls are there is it known which meets which. */
Test(flight_recorder, sizes_of_a_pair_are_compared_if_the_whole_history_is_there)
{
	add_rank(0, "\"[0, 1]\"",
		 SIZED("send 0->1", "1", "completed", "8") "," SIZED("send 0->1", "2", "started",
								     "64"));
	add_rank(1, "\"[0, 1]\"",
		 SIZED("recv 1<-0", "1", "completed", "8") "," SIZED("recv 1<-0", "2", "started",
								     "32"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.detail, CW_DETAIL_SIZE);
	fini();

	add_rank(0, "\"[0, 1]\"", SIZED("send 0->1", "2", "started", "64"));
	add_rank(1, "\"[0, 1]\"", SIZED("recv 1<-0", "2", "started", "32"));
	judge();
	cr_assert_neq(verdict.detail, CW_DETAIL_SIZE);
}

Test(flight_recorder, hostile_groups_cost_no_more_than_their_bytes)
{
	add_rank(0, "\"[0, 1048577]\"", ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	add_rank(1, "[0, -1]", ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	add_rank(2, "\"[0, 1]\"", ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	add_rank(3, "{}", ENTRY("all_reduce", "-1", "0", "scheduled", "false"));
	judge();
	cr_assert(has_note("does not list the rank"));
	cr_assert(has_note("entry could not be read"));
}

/* The default group has no list of its own; the set is merged twice, plainly and by order. */
Test(flight_recorder, members_that_are_not_listed_can_be_found_again)
{
	static const char dump[] =
		"{\"version\":\"2.9\",\"entries\":[{\"process_group\":[\"0\",\"default_pg\"],"
		"\"profiling_name\":\"nccl:all_reduce\",\"collective_seq_id\":7,"
		"\"time_created_ns\":1700000000000000000}]}";

	add_text("r0.json", dump);
	add_text("r1.json", dump);
	judge();
	cr_assert_eq(snap->n_comms, 1);
	cr_assert_eq(snap->comms[0].nranks, 2);
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
	for (uint32_t i = 0; i < set.n_sources; i++)
		cr_assert_null(set.sources[i].dump.groups[0].ranks);
}

#define OF_ID(id, name, coll, state)                                                               \
	"{\"process_group\":[\"0\",\"default_pg\"],\"pg_id\":" id                                  \
	",\"profiling_name\":\"nccl:" name "\",\"collective_seq_id\":" coll ",\"state\":\"" state  \
	"\",\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"],\"output_sizes\":[[8]],"            \
	"\"output_dtypes\":[\"Float\"]}"

static void add_default_group(int rank, const char *entries)
{
	char text[4096], name[16];

	snprintf(name, sizeof(name), "r%d.json", rank);
	snprintf(text, sizeof(text), "{\"version\":\"2.9\",\"entries\":[%s]}", entries);
	add_text(name, text);
}

#define OF_OLD_GROUP                                                                               \
	OF_ID("0", "broadcast", "1", "completed")                                                  \
	"," OF_ID("0", "all_gather", "2", "completed") "," OF_ID("0", "all_reduce", "3", "started")
#define OF_NEW_GROUP(state)                                                                        \
	OF_ID("1", "all_reduce", "1", "completed") "," OF_ID("1", "all_reduce", "2", state)

/* An abort has left a call open on the old one, and it never ends. */
Test(flight_recorder, a_default_group_that_was_made_anew_is_another_one)
{
	for (int rank = 0; rank < 3; rank++)
		add_default_group(rank, OF_OLD_GROUP "," OF_NEW_GROUP("completed"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->open_calls, 0);
	cr_assert_eq(set.sources[0].dump.n_bad_entries, 0);
	fini();

	add_default_group(0, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	add_default_group(1, OF_OLD_GROUP "," OF_ID("1", "all_reduce", "1", "completed"));
	add_default_group(2, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
	cr_assert_eq(verdict.coll_seq, 2);
}

/* The buffer of rank 2 has lost its calls on the old group. */
Test(flight_recorder, calls_before_and_after_a_group_was_made_anew_are_not_compared)
{
	add_default_group(0, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	add_default_group(1, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	add_default_group(2, OF_NEW_GROUP("started"));
	judge();
	cr_assert_neq(verdict.verdict_class, CW_CLASS_MISMATCH, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->comms[0].members[2].pending->coll_seq, 2);
}

/* Rank 2 may still be in the old group, or in the new one as a process that has made no other. */
Test(flight_recorder, which_of_two_groups_a_rank_means_may_be_unknown)
{
	add_default_group(0, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	add_default_group(1, OF_OLD_GROUP "," OF_NEW_GROUP("started"));
	add_default_group(2, OF_ID("0", "all_reduce", "1", "completed"));
	judge();
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->open_calls, 2);
	cr_assert(has_note("groups were created anew: the calls of 1 member may"));
}

Test(flight_recorder, ids_of_one_group_differ_between_ranks)
{
	add_default_group(0, OF_ID("3", "all_reduce", "7", "started"));
	add_default_group(1, OF_ID("8", "all_reduce", "7", "started"));
	add_default_group(2, OF_ID("2", "all_reduce", "6", "completed"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
}

Test(flight_recorder, a_call_on_an_older_group_after_one_on_a_newer_is_of_neither)
{
	add_default_group(0,
			  OF_NEW_GROUP("completed") "," OF_ID("0", "all_reduce", "3", "started"));
	judge();
	cr_assert_eq(set.sources[0].dump.n_bad_entries, 1);
}

#define HASH "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"

static void expect_label(const char *name, const char *desc, const char *label)
{
	char dump[512];
	int n = snprintf(
		dump, sizeof(dump),
		"{\"version\":\"2.9\",\"pg_config\":{\"%s\":{\"desc\":\"%s\",\"ranks\":[0,1]}},"
		"\"entries\":[{\"process_group\":[\"%s\",\"%s\"],\"profiling_name\":"
		"\"nccl:all_reduce\",\"collective_seq_id\":7,\"state\":\"started\"}]}",
		name, desc, name, desc);

	cr_assert_eq(cw_fr_set_add(&set, "rank_0.json", dump, (size_t)n, 0), 0);
	judge();
	cr_expect_str_eq(snap->comms[0].name, label);
	fini();
}

Test(flight_recorder, calls_groups_as_people_do)
{
	expect_label("4", "mesh_tp", "mesh_tp (4)");
	expect_label(HASH, "mesh_tp", "mesh_tp (0a1b2c3d)");
	expect_label(HASH, "undefined", "group 0a1b2c3d");
	expect_label(HASH, "", "group 0a1b2c3d");
	expect_label("4", "undefined", "4");
}

#define AT(time)                                                                                   \
	"{\"process_group\":[\"4\",\"\"],\"profiling_name\":\"nccl:all_reduce\","                  \
	"\"collective_seq_id\":7,\"timeout_ms\":9223372036854775807,\"time_created_ns\":" time "}"

/* Found by fuzzing: an age was computed from the beginning of time. */
Test(flight_recorder, absurd_times_are_unknown_times)
{
	add_rank(0, "[0,1]", AT("-9223372036854775807"));
	add_rank(1, "[0,1]", AT("9223372036854775807"));
	judge();
	cr_assert_eq(snap->now_ns, 0);
	for (uint32_t i = 0; i < snap->comms[0].nranks; i++)
		cr_assert_eq(snap->comms[0].members[i].pending->enter_ns, 0);
}

Test(flight_recorder, the_age_of_a_wait_comes_from_the_file_where_it_can)
{
	static const char dump[] =
		"{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]}},\"entries\":[" ENTRY(
			"all_reduce", "2", "0", "scheduled", "false") "]}";
	int64_t created_ns = INT64_C(1700000000) * SECOND;

	cr_assert_eq(cw_fr_set_add(&set, "r0.json", dump, sizeof(dump) - 1, created_ns + SECOND),
		     0);
	judge();
	cr_assert_eq(snap->now_ns, created_ns + SECOND);
	cr_assert_not(has_note("the time of the dumps is not known"));
	fini();

	/* copied a year later: the default timeout of ten minutes has passed */
	cr_assert_eq(cw_fr_set_add(&set, "r0.json", dump, sizeof(dump) - 1,
				   created_ns + 365 * 86400 * SECOND),
		     0);
	judge();
	cr_assert_eq(snap->now_ns, created_ns + 600 * SECOND);
	cr_assert(has_note("the time of the dumps is not known"));
}

#define CALL(coll, state, at)                                                                      \
	"{\"process_group\":[\"4\",\"\"],\"profiling_name\":\"nccl:all_reduce\","                  \
	"\"collective_seq_id\":" coll ",\"state\":\"" state "\",\"time_created_ns\":1700000" at    \
	"000000,\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}"

/* One rank of three, its file written at that many ms after the second 1700000000. */
static void add_written(int rank, const char *entry, int64_t file_ms)
{
	add_rank(rank, "[0,1,2]", entry);
	set.sources[set.n_sources - 1].file_ns =
		INT64_C(1700000000) * SECOND + file_ms * INT64_C(1000000);
}

/* A healthy job whose dumps are a minute apart, or whose clocks differ by as much. */
Test(flight_recorder, a_call_is_as_old_as_its_own_dump_says)
{
	add_written(0, CALL("5", "started", "000010"), 12);
	add_written(1, CALL("4", "completed", "000000"), 12);
	add_written(2, CALL("5", "started", "060010"), 60012);
	judge();
	cr_assert_leq(snap->now_ns - verdict.waiting_since_ns, SECOND, "%s",
		      said_text(&verdict.said));
	fini();

	/* So it is where the file server's clock is a little behind. */
	add_written(0, CALL("5", "started", "000010"), 12);
	add_written(1, CALL("4", "completed", "000000"), -3);
	add_written(2, CALL("5", "started", "060010"), 60012);
	judge();
	cr_assert_leq(snap->now_ns - verdict.waiting_since_ns, SECOND, "%s",
		      said_text(&verdict.said));
	fini();

	/* All waiting ranks had waited for minutes. */
	add_written(0, CALL("5", "started", "000010"), 600012);
	add_written(1, CALL("4", "completed", "000000"), 600012);
	add_written(2, CALL("5", "started", "060010"), 660012);
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
}

Test(flight_recorder, who_was_dumped_before_others_made_the_call_is_not_missing)
{
	add_written(0, CALL("5", "started", "200000"), 800000);
	add_written(1, CALL("4", "completed", "000000"), 2000);
	add_written(2, CALL("5", "started", "200000"), 800000);
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
	cr_assert(has_note("1 member of groups was dumped before others made the call"));
	fini();

	/* The same with a receive; its sender may have made the send since. */
	add_written(0, ENTRY("recv 0<-1", "3", "1", "started", "true"), 600000);
	add_written(1, CALL("3", "completed", "000000"), -300000);
	set.sources[1].dump.ops[0].created_ns -= 300 * SECOND;
	set.sources[1].dump.newest_ns -= 300 * SECOND;
	add_written(2, CALL("3", "completed", "000000"), 600000);
	judge();
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
}

/* It was missing then; no later dump shows the reason for the hold-up since. */
Test(flight_recorder, is_not_certain_of_a_rank_that_was_dumped_minutes_before)
{
	add_written(0, CALL("5", "started", "000010"), 500000);
	add_written(1, CALL("4", "completed", "000000"), 100000);
	add_written(2, CALL("5", "started", "000010"), 500000);
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert(has_note("the dump of rank 1 is more than a minute older"));
}

/* Rank 0 left none this time: yesterday's file lies there, of the same numbers. */
Test(flight_recorder, a_dump_of_an_earlier_run_is_compared_with_nothing)
{
	static const char other[] =
		"{\"process_group\":[\"4\",\"\"],\"profiling_name\":\"nccl:all_reduce\","
		"\"collective_seq_id\":5,\"state\":\"started\",\"time_created_ns\":"
		"1699913600000000000,\"input_sizes\":[[7]],\"input_dtypes\":[\"Float\"]}";

	add_written(0, other, -86400000 + 600000);
	add_written(1, CALL("5", "started", "000000"), 600000);
	add_written(2, CALL("5", "started", "000000"), 600000);
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
	cr_assert_leq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
	cr_assert(has_note("the dump of rank 0 was written 23 hours before the oldest call"));
	cr_assert(has_note("no usable dump of rank 0"));
	fini();

	/* Another one's clock that is years ahead makes no dump an old one. */
	add_written(0, CALL("5", "started", "000000"), 600000);
	add_written(1, CALL("4", "completed", "000000"), 600000);
	add_written(2, CALL("5", "started", "000000"), 600000);
	set.sources[2].dump.ops[0].created_ns += 10000 * 86400 * SECOND;
	set.sources[2].dump.newest_ns += 10000 * 86400 * SECOND;
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
}

/* The calls of a healthy job look like this, too, once its dumps were copied. */
Test(flight_recorder, is_not_sure_of_dumps_whose_files_do_not_tell_when_they_were_taken)
{
	static const int64_t ages_ns[] = { 365 * 86400 * SECOND, 7200 * SECOND };

	for (size_t i = 0; i < sizeof(ages_ns) / sizeof(*ages_ns); i++) {
		judge_written_after("never_entered", 4, ages_ns[i]);
		assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
		cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
		cr_assert(has_note("the time of the dumps is not known"));
		fini();
	}
}

/* ---- entries as PyTorch writes them where it takes no times, or does not know a name ---- */

#define BARE(group, op, coll, state)                                                               \
	"{\"process_group\":[\"" group "\",\"x\"],\"profiling_name\":\"nccl:" op                   \
	"\",\"collective_seq_id\":" coll ",\"state\":\"" state                                     \
	"\",\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"],"                                   \
	"\"output_sizes\":[[8]],\"output_dtypes\":[\"Float\"]}"

/* Entries of calls that had not completed only, none with a time. */
Test(flight_recorder, a_wait_of_unknown_age_is_a_wait)
{
	add_rank(0, "[0,1,2]", BARE("4", "all_reduce", "8", "started"));
	add_rank(1, "[0,1,2]", BARE("4", "all_reduce", "8", "started"));
	add_rank(2, "[0,1,2]", BARE("4", "all_reduce", "7", "completed"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
	cr_assert_eq(verdict.waiting_since_ns, 0);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_not_null(
		strstr(said_text(&verdict.said), ". The other 2 ranks are waiting for it."), "%s",
		said_text(&verdict.said));
}

/* Without times, the order of the recorded entries is the order of the calls. */
Test(flight_recorder, an_inversion_of_order_is_seen_without_times)
{
	add_two_calls("r0.json", BARE("4", "all_reduce", "7",
				      "scheduled") "," BARE("5", "all_reduce", "7", "scheduled"));
	add_two_calls("r1.json", BARE("5", "all_reduce", "7",
				      "scheduled") "," BARE("4", "all_reduce", "7", "scheduled"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_DEADLOCK, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 2, "one against one names both: %s",
		     said_text(&verdict.said));
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
}

#define ODD_TYPE(op)                                                                               \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:" op                           \
	"\",\"collective_seq_id\":8,\"state\":\"started\",\"input_sizes\":[[8]],"                  \
	"\"input_dtypes\":[\"QUInt4x2\"],\"output_sizes\":[[8]],\"output_dtypes\":[\"QUInt4x2\"]}"

Test(flight_recorder, of_a_type_nobody_knows_the_kind_of_call_counts)
{
	add_rank(0, "[0,1,2]", ODD_TYPE("all_reduce"));
	add_rank(1, "[0,1,2]", ODD_TYPE("all_reduce"));
	add_rank(2, "[0,1,2]", ODD_TYPE("all_gather"));
	judge();
	assert_culprit(CW_CLASS_MISMATCH, "kind", 2);
	fini();

	/* The kind is unknown, but it differs from the call of the others. */
	add_rank(0, "[0,1,2]", ODD_TYPE("all_reduce"));
	add_rank(1, "[0,1,2]", BARE("4", "all_reduce", "8", "started"));
	add_rank(2, "[0,1,2]", BARE("4", "all_reduce", "8", "started"));
	judge();
	assert_culprit(CW_CLASS_MISMATCH, "dtype", 0);
	cr_assert(strstr(said_text(&verdict.said), "with type other"), "%s",
		  said_text(&verdict.said));
}

Test(flight_recorder, a_receive_from_anybody_waits_for_nobody_in_particular)
{
	add_rank(0, "[0,1]", ENTRY("recvAnySource", "3", "7", "started", "true"));
	add_rank(1, "[0,1]", ENTRY("all_reduce", "3", "0", "completed", "false"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 0);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
}

#define BY_GLOO(backend, coll, retired)                                                            \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"" backend                           \
	":all_reduce\",\"collective_seq_id\":" coll                                                \
	",\"state\":\"scheduled\",\"retired\":" retired                                            \
	",\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}"

/* Gloo's calls have no events: only their retirement shows that they have ended. */
Test(flight_recorder, calls_that_gloo_retired_have_completed)
{
	for (int rank = 0; rank < 3; rank++)
		add_rank(rank, "[0,1,2]",
			 rank == 2
				 ? BY_GLOO("gloo", "5", "true")
				 : BY_GLOO("gloo", "5", "true") "," BY_GLOO("gloo", "6", "false"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 2);
	cr_assert_eq(verdict.coll_seq, 6);
	fini();

	/* A call that NCCL's watchdog retired may have timed out. */
	for (int rank = 0; rank < 3; rank++)
		add_rank(rank, "[0,1,2]", BY_GLOO("nccl", "5", "true"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
}

/* It retires failed calls as well: a call that some ranks never made may have timed out. */
Test(flight_recorder, calls_that_gloo_retired_and_not_all_came_to_may_have_failed)
{
	for (int rank = 0; rank < 3; rank++)
		add_rank(rank, "[0,1,2,3]", BY_GLOO("gloo", "5", "true"));
	add_rank(3, "[0,1,2,3]", BY_GLOO("gloo", "4", "true"));
	judge();
	cr_assert_eq(snap->open_calls, 3);
	fini();

	/*
	 * They gave up two, and wait in the next: the rank that made none of them is the culprit.
	 */
	for (int rank = 0; rank < 3; rank++)
		add_rank(rank, "[0,1,2,3]",
			 BY_GLOO("gloo", "5", "true") "," BY_GLOO("gloo", "6", "true") "," BY_GLOO(
				 "gloo", "7", "false"));
	add_rank(3, "[0,1,2,3]", BY_GLOO("gloo", "4", "true"));
	judge();
	cr_assert_eq(verdict.n_culprits, 1, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->ranks[verdict.culprits[0].rank].rank, 3, "%s", said_text(&verdict.said));
}

/* A user who names files himself puts other numbers at their end. */
Test(flight_recorder, names_that_all_end_alike_are_told_apart_by_what_stands_behind_rank)
{
	static const char *const names[] = { "rank_0_attempt_1.json", "rank_1_attempt_1.json",
					     "rank_2_attempt_1.json" };

	char text[1024];

	for (int rank = 0; rank < 3; rank++) {
		snprintf(text, sizeof(text),
			 "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1,2]}},"
			 "\"entries\":[%s]}",
			 rank == 1 ? ENTRY("all_reduce", "4", "0", "completed", "false")
				   : ENTRY("all_reduce", "5", "0", "scheduled", "false"));
		add_text(names[rank], text);
	}
	judge();
	cr_assert_eq(snap->n_ranks, 3);
	cr_assert_eq(verdict.n_culprits, 1, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->ranks[verdict.culprits[0].rank].rank, 1, "%s", said_text(&verdict.said));
}

/* ---- facts that dumps omit ---- */

/* Dumps of active entries only list members of a launch that has completed, and not its end. */
Test(flight_recorder, members_of_a_launch_without_its_end_have_completed)
{
	for (int rank = 0; rank < 2; rank++)
		add_rank(rank, "\"[0, 1]\"",
			 ENTRY("_all_gather_base", "3", "0", "scheduled", "false") "," ENTRY(
				 "_all_gather_base", "3", "0", "scheduled",
				 "false") "," ENTRY("all_reduce", "4", "0", "scheduled", "false"));
	judge();
	cr_assert_eq(snap->comms[0].members[0].coll_completed, 3);
	cr_assert_eq(snap->comms[0].members[0].pending->coll_seq, 4);
}

Test(flight_recorder, a_number_that_several_calls_have_is_none)
{
	for (int rank = 0; rank < 2; rank++)
		add_rank(rank, "[0,1]",
			 ENTRY("all_reduce", "1", "0", "completed",
			       "false") "," ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	judge();
	cr_assert_eq(set.sources[0].dump.n_bad_entries, 2);
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
}

/* Rank 0's dump is the older one: where it stands now is not known, but it was in a call. */
Test(flight_recorder, an_open_call_counts_where_no_member_shows_it)
{
	add_rank(0, "[0,1]", ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	add_rank(1, "[0,1]", ENTRY("all_reduce", "5", "0", "completed", "false"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&verdict.said));
	cr_assert_eq(snap->open_calls, 1);
}

#define MEMBER(id, coll)                                                                           \
	"{\"record_id\":" id ",\"process_group\":[\"4\",\"x\"],\"profiling_name\":"                \
	"\"nccl:all_gather_into_tensor_coalesced\",\"collective_seq_id\":" coll                    \
	",\"state\":\"scheduled\",\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}"
#define END(coll) BARE("4", "coalesced", coll, "scheduled")

/* Of three members of a launch, rank 1 lists two: the buffer may have lost the first. */
Test(flight_recorder, a_launch_that_may_have_lost_members_differs_from_no_other)
{
	static const struct {
		const char *whole, *rest;
	} cases[] = {
		/* a call of another group came between them */
		{ MEMBER("0", "1") "," MEMBER("2", "1") "," MEMBER("3", "1") "," END("1"),
		  "{\"record_id\":1,\"process_group\":[\"5\",\"x\"],\"profiling_name\":"
		  "\"nccl:broadcast\",\"collective_seq_id\":1,\"state\":\"completed\"}," MEMBER(
			  "2", "1") "," MEMBER("3", "1") "," END("1") },
		/* the recorder was reset, and counts its entries anew */
		{ BARE("4", "all_reduce", "2", "completed") "," MEMBER("1", "3") "," MEMBER(
			  "2", "3") "," MEMBER("3", "3") "," END("3"),
		  MEMBER("0", "3") "," MEMBER("1", "3") "," END("3") },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		add_rank(0, "[0,1,2]", cases[i].whole);
		add_rank(1, "[0,1,2]", cases[i].rest);
		add_rank(2, "[0,1,2]", cases[i].whole);
		judge();
		cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s",
			     said_text(&verdict.said));
		cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
		fini();
	}

	/* Nothing is missing here. */
	add_rank(0, "[0,1,2]", cases[1].whole);
	add_rank(1, "[0,1,2]",
		 BARE("4", "all_reduce", "2",
		      "completed") "," MEMBER("1", "3") "," MEMBER("2", "3") "," END("3"));
	add_rank(2, "[0,1,2]", cases[1].whole);
	judge();
	assert_culprit(CW_CLASS_MISMATCH, "count", 1);
}

Test(flight_recorder, who_has_never_used_a_group_is_not_in_its_calls)
{
	add_rank(0, "\"[0, 1]\"", ENTRY("broadcast", "1", "0", "scheduled", "false"));
	add_text("r1.json", "{\"version\":\"2.9\",\"pg_config\":{},\"entries\":[]}");
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
	fini();

	/* Without the list of groups it may have done with the call. */
	add_rank(0, "\"[0, 1]\"", ENTRY("broadcast", "1", "0", "scheduled", "false"));
	add_text("r1.json", "{\"version\":\"2.9\",\"entries\":[]}");
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s", said_text(&verdict.said));
}

/* Where others have completed it, all had come to it. */
Test(flight_recorder, who_has_not_completed_what_others_have_did_not_finish)
{
	add_rank(0, "[0,1,2]", ENTRY("all_reduce", "5", "0", "scheduled", "false"));
	add_rank(1, "[0,1,2]",
		 ENTRY("all_reduce", "4", "0", "scheduled",
		       "false") "," ENTRY("all_reduce", "5", "0", "scheduled", "false"));
	add_rank(2, "[0,1,2]", ENTRY("all_reduce", "5", "0", "scheduled", "false"));
	judge();
	assert_culprit(CW_CLASS_IN_COLLECTIVE, "unfinished", 1);
	cr_assert_eq(verdict.coll_seq, 4);
	cr_assert_leq(verdict.confidence, CW_CONFIDENCE_LIKELY);
}

/* The buffer has lost the oldest call that is open: pg_status says that it is. */
Test(flight_recorder, an_open_call_that_the_buffer_lost_is_not_complete)
{
	add_text("r0.json",
		 "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]}},"
		 "\"pg_status\":{\"2\":{\"last_enqueued_collective\":9,"
		 "\"last_completed_collective\":4}},\"entries\":[" ENTRY(
			 "all_reduce", "8", "0", "scheduled",
			 "false") "," ENTRY("all_reduce", "9", "0", "scheduled", "false") "]}");
	add_rank(1, "[0,1]", ENTRY("all_reduce", "4", "0", "completed", "false"));
	judge();
	cr_assert_eq(snap->comms[0].members[0].coll_completed, 4);
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
}

#define OF_OTHER_GROUP(id)                                                                         \
	"{\"record_id\":" id                                                                       \
	",\"process_group\":[\"5\",\"\"],\"profiling_name\":\"nccl:broadcast\","                   \
	"\"collective_seq_id\":1,\"state\":\"completed\"}"

/* Rank 1's calls on the group are gone: it may be in the call of the others. */
Test(flight_recorder, whose_calls_the_buffer_lost_is_not_missing)
{
	static const char *const rests[] = { OF_OTHER_GROUP("40"), "" };

	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++) {
		for (int rank = 0; rank < 3; rank++)
			add_rank(rank, "[0,1,2]",
				 rank == 1 ? rests[i]
					   : BARE("4", "all_reduce", "5", "completed") "," BARE(
						     "4", "all_reduce", "6", "started"));
		judge();
		cr_assert_eq(verdict.verdict_class, CW_CLASS_UNKNOWN, "%s",
			     said_text(&verdict.said));
		cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
		fini();
	}

	/* Nothing is lost, and there was no call before. */
	for (int rank = 0; rank < 3; rank++)
		add_rank(rank, "[0,1,2]",
			 rank == 1 ? OF_OTHER_GROUP("0") : BARE("4", "all_reduce", "1", "started"));
	judge();
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
}

Test(flight_recorder, json_without_a_list_is_an_empty_one_where_nothing_is_open)
{
	static const char dump[] = "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0]}},"
				   "\"pg_status\":{\"0\":{\"last_enqueued_collective\":\"3\","
				   "\"last_completed_collective\":\"%c\"}}}";
	char text[256];

	snprintf(text, sizeof(text), dump, '3');
	add_text("r0.json", text);
	cr_assert(set.sources[0].dump.has_entries);
	snprintf(text, sizeof(text), dump, '2');
	add_text("r1.json", text);
	cr_assert_not(set.sources[1].dump.has_entries);
}

Test(flight_recorder, sides_of_one_size_are_a_tie)
{
	add_rank(0, "[0,1]", ENTRY("all_reduce", "1", "0", "scheduled", "false"));
	add_rank(1, "[0,1]", ENTRY("broadcast", "1", "0", "scheduled", "false"));
	judge();
	cr_assert_eq(verdict.verdict_class, CW_CLASS_MISMATCH, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 2);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
}

#define OF_DTYPE(dtype, coll, size)                                                                \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:all_reduce"                    \
	"\",\"collective_seq_id\":" coll ",\"state\":\"scheduled\",\"is_p2p\":false,"              \
	"\"input_sizes\":[[" size "]],\"input_dtypes\":[\"" dtype "\"]}"

/*
 * With the same dtype on all ranks, we can compare sizes for any dtype. NCCL lacks some
 * dtypes of PyTorch.
 */
Test(flight_recorder, a_dtype_that_nccl_has_not_is_compared)
{
	add_rank(0, "[0,1,2]", OF_DTYPE("QUInt4x2", "1", "8"));
	add_rank(1, "[0,1,2]", OF_DTYPE("QUInt4x2", "1", "9"));
	add_rank(2, "[0,1,2]", OF_DTYPE("QUInt4x2", "1", "8"));
	judge();
	assert_culprit(CW_CLASS_MISMATCH, "count", 1);
	fini();

	for (int odd = 0; odd < 2; odd++) {
		add_rank(0, "[0,1,2]", OF_DTYPE("UInt16", "1", "8"));
		add_rank(1, "[0,1,2]",
			 odd ? OF_DTYPE("Half", "1", "8") : OF_DTYPE("Float8_e8m0fnu", "1", "8"));
		add_rank(2, "[0,1,2]", OF_DTYPE("UInt16", "1", "8"));
		judge();
		assert_culprit(CW_CLASS_MISMATCH, "dtype", 1);
		cr_assert(strstr(said_text(&verdict.said), "type uint16"), "%s",
			  said_text(&verdict.said));
		fini();
	}
}

/* Names that look alike once they can be shown, or are cut. */
Test(flight_recorder, groups_are_told_apart_by_their_whole_names)
{
	static const char dump[] =
		"{\"version\":\"2.10\",\"pg_config\":{\"\xe6\x95\xb0\":{\"desc\":\"a\","
		"\"ranks\":\"[0,1,2]\"},\"\xe4\xb8\x93\":{\"desc\":\"b\",\"ranks\":\"[0,1,2]\"}},"
		"\"entries\":[{\"process_group\":[\"\xe6\x95\xb0\",\"a\"],\"profiling_name\":"
		"\"nccl:all_reduce\",\"collective_seq_id\":%d,\"state\":\"%s\",\"input_sizes\":[[8]],"
		"\"input_dtypes\":[\"Float\"]},{\"process_group\":[\"\xe4\xb8\x93\",\"b\"],"
		"\"profiling_name\":\"nccl:all_reduce\",\"collective_seq_id\":9,\"state\":\"completed\","
		"\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}]}";
	char text[1024];

	for (int rank = 0; rank < 3; rank++) {
		char name[16];

		snprintf(name, sizeof(name), "r%d.json", rank);
		snprintf(text, sizeof(text), dump, rank == 1 ? 4 : 5,
			 rank == 1 ? "completed" : "started");
		add_text(name, text);
	}
	judge();
	cr_assert_eq(snap->n_comms, 2);
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
}

/* It is in pg_status, and the buffer has lost it to another group's. */
Test(flight_recorder, a_call_that_is_open_by_status_alone_is_open)
{
	static const char dump[] =
		"{\"version\":\"2.10\",\"pg_config\":{\"ckpt\":{\"desc\":\"ckpt\",\"ranks\":\"[0,1]\"},"
		"\"dp\":{\"desc\":\"dp\",\"ranks\":\"[0,1]\"}},\"pg_status\":{\"7\":{"
		"\"last_enqueued_collective\":%d,\"last_completed_collective\":11},\"8\":{"
		"\"last_enqueued_collective\":900,\"last_completed_collective\":900}},\"entries\":[{"
		"\"pg_id\":8,\"record_id\":5000,\"process_group\":[\"dp\",\"dp\"],\"profiling_name\":"
		"\"nccl:all_reduce\",\"collective_seq_id\":900,\"state\":\"completed\",\"input_sizes\":"
		"[[8]],\"input_dtypes\":[\"Float\"]}]}";
	char text[1024];

	for (int open = 0; open < 2; open++) {
		for (int rank = 0; rank < 2; rank++) {
			snprintf(text, sizeof(text), dump, open && !rank ? 12 : 11);
			add_text(rank ? "r1.json" : "r0.json", text);
		}
		judge();
		cr_assert_eq(snap->open_calls, (uint32_t)open);
		fini();
	}
}

#define TOGETHER(group, kind, n, state)                                                            \
	"{\"record_id\":%d,\"process_group\":[\"" group "\",\"" group                              \
	"\"],\"profiling_name\":\"ncclx:" kind "\",\"collective_seq_id\":" n                       \
	",\"p2p_seq_id\":0,\"is_p2p\":false,\"state\":\"" state                                    \
	"\",\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}"

/* torchcomms' recorder: one number for all calls, from 0 on, sends among them. */
Test(flight_recorder, calls_that_one_number_counts_are_numbered_by_group)
{
	static const char dump[] =
		"{\"version\":\"2.10\",\"pg_config\":{\"a\":{\"desc\":\"a\",\"ranks\":\"[0,1,2]\"},"
		"\"b\":{\"desc\":\"b\",\"ranks\":\"[0,1,2]\"}},\"entries\":[%s]}";
	char entries[3][2048], text[8192];

	for (int is_cut = 0; is_cut < 2; is_cut++) {
		snprintf(entries[0], sizeof(entries[0]),
			 TOGETHER("a", "all_reduce", "0", "completed") "," TOGETHER(
				 "b", "all_reduce", "1",
				 "completed") "," TOGETHER("b", "all_reduce", "2", "started"),
			 is_cut ? 77 : 0, 1, 2);
		/* It made another one before. */
		snprintf(entries[1], sizeof(entries[1]),
			 TOGETHER("a", "all_reduce", "0", "completed") "," TOGETHER(
				 "a", "send 1->2", "1", "completed") "," TOGETHER("b", "all_reduce",
										  "2", "completed"),
			 is_cut ? 77 : 0, 1, 2);
		memcpy(entries[2], entries[0], sizeof(entries[0]));
		for (int rank = 0; rank < 3; rank++) {
			char name[16];

			snprintf(name, sizeof(name), "r%d.json", rank);
			snprintf(text, sizeof(text), dump, entries[rank]);
			add_text(name, text);
		}
		judge();
		if (is_cut)
			cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
		else
			assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
		cr_assert(has_note("one number for the calls of all groups"));
		fini();
	}
}

/* A watchdog of five seconds has ended it: that is longer than the job allows. */
Test(flight_recorder, patience_is_no_longer_than_the_jobs)
{
	static const char dump[] =
		"{\"version\":\"2.10\",\"pg_config\":{\"a\":{\"desc\":\"a\",\"ranks\":\"[0,1]\"}},"
		"\"entries\":[{\"process_group\":[\"a\",\"a\"],\"profiling_name\":\"nccl:all_reduce\","
		"\"collective_seq_id\":%d,\"state\":\"%s\",\"time_created_ns\":1795000000000000000,"
		"\"timeout_ms\":5000,\"input_sizes\":[[8]],\"input_dtypes\":[\"Float\"]}]}";
	char text[512];

	snprintf(text, sizeof(text), dump, 7, "started");
	add_text("r0.json", text);
	snprintf(text, sizeof(text), dump, 6, "completed");
	add_text("r1.json", text);
	judge();
	cr_assert_eq(snap->thresholds.stall_min_ns, 5 * SECOND);
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
}

#define FRAME(file, line, function)                                                                \
	"{\"name\":\"" function "\",\"filename\":\"" file "\",\"line\":" line "}"
#define MADE_AT(op, frames)                                                                        \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:" op                           \
	"\",\"collective_seq_id\":8,\"state\":\"scheduled\",\"input_sizes\":[[8]],"                \
	"\"input_dtypes\":[\"Float\"],\"output_sizes\":[[8]],\"output_dtypes\":[\"Float\"],"       \
	"\"frames\":[" frames "]}"

static const char *stack_of(uint32_t member)
{
	return cw_snapshot_stack(snap, snap->comms[0].members[member].pending);
}

Test(flight_recorder, a_call_has_the_lines_it_was_made_from)
{
	add_rank(0, "[0,1,2]", MADE_AT("all_reduce", FRAME("/t/train.py", "41", "step")));
	add_rank(1, "[0,1,2]", MADE_AT("all_reduce", FRAME("/t/train.py", "41", "step")));
	add_rank(2, "[0,1,2]",
		 MADE_AT("broadcast",
			 FRAME("/t/norm.py", "7", "check") "," FRAME("/t/train.py", "39", "step")));
	judge();
	assert_culprit(CW_CLASS_MISMATCH, "kind", 2);
	cr_assert_str_eq(stack_of(0), "/t/train.py:41 in step");
	cr_assert_str_eq(stack_of(2), "/t/norm.py:7 in check\n/t/train.py:39 in step");
	cr_assert_eq(snap->n_stacks, 2, "the same is there once: %u", snap->n_stacks);
}

Test(flight_recorder, frames_that_are_none_are_omitted)
{
	add_rank(0, "[0,1]",
		 MADE_AT("all_reduce", "7,{},{\"name\":\"a\",\"filename\":\"b\"},"
				       "{\"filename\":\"b\",\"line\":3},\"x\""));
	add_rank(1, "[0,1]",
		 MADE_AT("all_reduce",
			 "{}," FRAME("evil\\n.py", "3", "f\\u001b[2J") "," FRAME("b", "2", "g")));
	judge();
	cr_assert_null(stack_of(0));
	cr_assert_str_eq(stack_of(1), "evil?.py:3 in f?[2J\nb:2 in g");
}

Test(flight_recorder, stacks_of_open_calls_come_before_those_of_others)
{
	enum { MOST = 2 * CW_SNAP_MAX_STACKS };
	char *text = malloc(512 * MOST);
	int n = sprintf(text, "{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]}},"
			      "\"entries\":[");

	for (unsigned i = 1; i < CW_SNAP_MAX_STACKS; i++)
		n += sprintf(text + n,
			     "{\"process_group\":[\"4\",\"x\"],\"profiling_name\":"
			     "\"nccl:all_reduce\",\"collective_seq_id\":%u,\"state\":\"%s\","
			     "\"frames\":[" FRAME("train.py", "%u", "step") "]},",
			     i, i == CW_SNAP_MAX_STACKS - 1 ? "scheduled" : "completed", i);
	sprintf(text + n - 1, "]}");
	add_text("r0.json", text);
	for (char *line = text; (line = strstr(line, "train.py")); line++)
		memcpy(line, "other.py", 8);
	add_text("r1.json", text);
	free(text);
	judge();
	cr_assert_eq(snap->n_stacks, CW_SNAP_MAX_STACKS);
	cr_assert_str_eq(stack_of(0), "train.py:1023 in step");
	cr_assert_str_eq(stack_of(1), "other.py:1023 in step");
}

#define EXCHANGE(state, in, out)                                                                   \
	"{\"process_group\":[\"4\",\"x\"],\"profiling_name\":\"nccl:all_to_all\","                 \
	"\"collective_seq_id\":8,\"state\":\"" state "\",\"input_sizes\":[[" in ",4]],"            \
	"\"input_dtypes\":[\"Float\"],\"output_sizes\":[[" out ",4]],"                             \
	"\"output_dtypes\":[\"Float\"]}"

static void exchange(const char *a, const char *b, const char *c)
{
	add_rank(0, "[0,1,2]", a);
	add_rank(1, "[0,1,2]", b);
	add_rank(2, "[0,1,2]", c);
	judge();
}

/* 2 are missing in all, and rank 1 sends 2 fewer than either of the others. */
Test(flight_recorder, who_sends_less_in_an_exchange_is_named_by_what_is_missing)
{
	exchange(EXCHANGE("started", "8", "15"), EXCHANGE("completed", "6", "0"),
		 EXCHANGE("started", "8", "9"));
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "size", 1);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	fini();

	judge_dumps_of_torch("torch/moe.wrong-splits");
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "size", 1);
}

/* On the way back all expect what they had sent. */
Test(flight_recorder, who_expects_more_in_an_exchange_is_named_by_what_is_missing)
{
	exchange(EXCHANGE("completed", "3", "8"), EXCHANGE("completed", "12", "8"),
		 EXCHANGE("started", "9", "11"));
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "size", 2);
}

Test(flight_recorder, one_that_is_done_has_left_several_short)
{
	exchange(EXCHANGE("started", "7", "10"), EXCHANGE("started", "5", "9"),
		 EXCHANGE("completed", "6", "2"));
	assert_culprit(CW_CLASS_P2P_UNMATCHED, "size", 2);
}

/* It may expect too much, or any of the others have sent it too little. */
Test(flight_recorder, of_an_exchange_that_does_not_add_up_nobody_is_named_where_several_may_be_why)
{
	exchange(EXCHANGE("started", "7", "10"), EXCHANGE("completed", "5", "9"),
		 EXCHANGE("completed", "6", "2"));
	cr_assert_eq(verdict.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_POSSIBLE);
	fini();

	/* Had rank 0 sent 3 more, or rank 2 expected 3 less, it would add up. */
	exchange(EXCHANGE("started", "5", "7"), EXCHANGE("completed", "8", "7"),
		 EXCHANGE("started", "8", "10"));
	cr_assert_eq(verdict.n_culprits, 0, "%s", said_text(&verdict.said));
}

Test(flight_recorder, an_exchange_that_adds_up_has_no_sizes_to_blame)
{
	exchange(EXCHANGE("started", "8", "15"), EXCHANGE("completed", "8", "0"),
		 EXCHANGE("started", "8", "9"));
	cr_assert_neq(verdict.detail, CW_DETAIL_SIZE, "%s", said_text(&verdict.said));
}

/* Two ranks that leave a dump each, or none: a stopped rank and a dead one leave the same. */
Test(flight_recorder, names_the_ranks_of_torchs_own_dumps)
{
	judge_dumps_of_torch("torch/ddp.branch");
	assert_culprit(CW_CLASS_MISMATCH, "count", 1);
	fini();

	judge_dumps_of_torch("torch/ddp.lock-in-c");
	assert_culprit(CW_CLASS_NEVER_ENTERED, "outside_nccl", 1);
	fini();

	add("torch/ddp.stop", 0, -1);
	add("torch/ddp.stop", 2, -1);
	judge();
	assert_culprit(CW_CLASS_UNKNOWN, "not_visible", 1);
}

/* The two missing ranks wait in gloo for the rank that waits here: no dump has that barrier. */
Test(flight_recorder, is_not_sure_of_many_who_may_wait_in_another_backend)
{
	judge_written_after("torch/gloo.skipped-barrier", 3, 92 * SECOND);
	cr_assert_eq(verdict.verdict_class, CW_CLASS_NEVER_ENTERED, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.n_culprits, 2, "%s", said_text(&verdict.said));
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_eq(verdict.n_alternatives, 1);
	cr_assert_eq(verdict.alternatives[0].verdict_class, CW_CLASS_MISMATCH);
	cr_assert(has_note("no calls of other backends (gloo)"));
}
