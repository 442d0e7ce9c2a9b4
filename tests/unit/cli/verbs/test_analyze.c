/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that read recordings, from their arguments to their output and exit code. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/verdict.h"
#include "cli/verb.h"
#include "common/clock.h"
#include "import/flight_recorder.h"
#include "import/record_files.h"
#include "report/bundle.h"
#include "report/doc/incident_doc.h"
#include "report/doc/snapshot_doc.h"
#include "tests/support/record/record_writer.h"

#define RANKS 4
#define FR(name) CW_TEST_DATA "/flight_recorder/" name

static char dir[] = "/tmp/test_analyze.XXXXXX";
static char *out, *complaints;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
}

static void teardown(void)
{
	char command[128];

	free(out);
	free(complaints);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(analyze, .init = setup, .fini = teardown);

/* Runs a verb; its output is then in `out` and `complaints`. */
static int run(int (*verb)(int argc, char **argv), const char *const *args)
{
	FILE *real_out = stdout, *real_err = stderr;
	char *argv[16] = { (char *)"collwatch test" };
	size_t out_len, err_len;
	int argc = 1, status;

	free(out);
	free(complaints);
	while (args[argc - 1]) {
		argv[argc] = (char *)args[argc - 1];
		argc++;
	}
	stdout = open_memstream(&out, &out_len);
	stderr = open_memstream(&complaints, &err_len);
	status = verb(argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = real_out;
	stderr = real_err;
	return status;
}

#define ANALYZE(...) run(cw_verb_analyze, (const char *const[]){ __VA_ARGS__, NULL })
#define RECORD(...) run(cw_verb_record, (const char *const[]){ "show", __VA_ARGS__, NULL })

static void assert_says(const char *text)
{
	cr_assert_not_null(strstr(out, text), "\"%s\" not in:\n%s", text, out);
}

static const char *path_of(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* ---- Flight Recorder ---- */

Test(analyze, a_hang_in_dumps_exits_2_and_names_the_rank)
{
	cr_assert_eq(ANALYZE("--flight-recorder", FR("never_entered")), CW_EXIT_HANG);
	assert_says("rank 2 never reached all_reduce #5");
}

Test(analyze, dumps_of_a_healthy_job_exit_0)
{
	cr_assert_eq(ANALYZE("--flight-recorder", FR("all_well")), CW_EXIT_OK);
	assert_says("no rank is blocked");
}

Test(analyze, without_dumps_it_cannot_say)
{
	cr_assert_eq(ANALYZE("--flight-recorder", dir), CW_EXIT_NO_DATA);
	cr_assert_not_null(strstr(complaints, "no Flight Recorder dump"));
	cr_assert_eq(ANALYZE("--flight-recorder", path_of("nothing")), CW_EXIT_ERROR);
	cr_assert_not_null(strstr(complaints, "No such file"));
}

static void copy(const char *from, const char *to, size_t most)
{
	char data[8192];
	FILE *f = fopen(from, "rb"), *t = fopen(path_of(to), "wb");
	size_t n;

	cr_assert(f && t, "%s", from);
	n = fread(data, 1, most < sizeof(data) ? most : sizeof(data), f);
	cr_assert_eq(fwrite(data, 1, n, t), n);
	fclose(f);
	fclose(t);
}

/* Two ranks of one group; the entries of rank 0 are given, rank 1 has completed the first five. */
static int analyze_entries(const char *entries)
{
	static const char done[] =
		"{\"process_group\":[\"4\",\"\"],\"profiling_name\":\"nccl:all_reduce\","
		"\"collective_seq_id\":5,\"state\":\"completed\"}";

	for (int rank = 0; rank < 2; rank++) {
		char name[8];
		FILE *f;

		snprintf(name, sizeof(name), "rank_%d", rank);
		f = fopen(path_of(name), "w");
		cr_assert_not_null(f);
		fprintf(f,
			"{\"version\":\"2.9\",\"pg_config\":{\"4\":{\"ranks\":[0,1]}},"
			"\"entries\":[%s]}",
			rank == 0 ? entries : done);
		fclose(f);
	}
	return ANALYZE("--flight-recorder", dir);
}

#define CALL(name, seq, more)                                                                      \
	"{\"process_group\":[\"4\",\"\"],\"profiling_name\":\"nccl:" name                          \
	"\",\"collective_seq_id\":" seq ",\"p2p_seq_id\":0" more "}"

Test(analyze, dumps_exit_0_only_where_no_call_is_open_or_may_be)
{
	static const struct {
		const char *entries, *says;
	} rows[] = {
		/* dumped before rank 1 went on */
		{ CALL("all_reduce", "1", ""), "1 call had not completed" },
		{ CALL("swap 0->1", "5", ",\"is_p2p\":true"), "1 call had not completed" },
		{ CALL("all_reduce", "6", ",\"is_p2p\":true"), "1 entry could not be read" },
		{ CALL("all_reduce", "null", ""), "1 entry could not be read" },
		{ "{\"process_group\":null,\"collective_seq_id\":6},{}",
		  "2 entries could not be read, so calls may be open" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cr_assert_eq(analyze_entries(rows[i].entries), CW_EXIT_NO_DATA, "%zu: %s", i, out);
		assert_says(rows[i].says);
	}
	cr_assert_eq(analyze_entries(CALL("all_reduce", "5", ",\"state\":\"completed\"")),
		     CW_EXIT_OK, "%s", out);
}

static void put_dump(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void assert_does_not_say(const char *text)
{
	cr_assert_null(strstr(out, text), "\"%s\" in:\n%s", text, out);
}

#define GROUP "\"version\":\"2.4\",\"pg_config\":{\"0\":{\"name\":\"0\",\"ranks\":\"[0, 1, 2]\"}}"

/* A recorder that is off, or a job that has not come to its first call. */
Test(analyze, dumps_without_a_call_are_not_enough_data)
{
	static const char *const texts[] = { "{" GROUP ",\"entries\":[]}", "{" GROUP "}",
					     "{\"version\":\"2.4\"}" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		put_dump("rank_0.json", texts[i]);
		put_dump("rank_1.json", texts[i]);
		put_dump("rank_2.json", texts[i]);
		cr_expect_eq(ANALYZE("--flight-recorder", dir), CW_EXIT_NO_DATA, "%zu", i);
		assert_says("the dumps of 3 ranks have no calls");
		assert_does_not_say("no rank is blocked");
		cr_expect_eq(ANALYZE("--json", "--flight-recorder", dir), CW_EXIT_NO_DATA);
		assert_says("the dumps of 3 ranks have no calls");
	}
}

/* Dumps name neither a machine nor a process, and are of the past. */
Test(analyze, of_dumps_it_says_no_host_no_pid_and_nothing_of_now)
{
	cr_assert_eq(ANALYZE("--flight-recorder", FR("never_entered")), CW_EXIT_HANG);
	assert_does_not_say("dumps, pid");
	assert_does_not_say("pid 0");
	assert_does_not_say("(dumps)");
	assert_does_not_say("take them while it still hangs");
	assert_does_not_say("the only node reports");
	assert_says("The recordings have no stack of this rank.");
}

Test(analyze, a_dump_without_a_call_is_no_missing_dump)
{
	static const char open_call[] =
		"{" GROUP ",\"entries\":[{\"process_group\":[\"0\",\"\"],\"profiling_name\":"
		"\"nccl:all_reduce\",\"collective_seq_id\":5,\"state\":\"started\"}]}";

	put_dump("rank_0.json", open_call);
	put_dump("rank_1.json", open_call);
	put_dump("rank_2.json", "{" GROUP "}");
	cr_assert_eq(ANALYZE("--flight-recorder", dir), CW_EXIT_HANG, "%s", out);
	assert_does_not_say("left no recording");
	assert_does_not_say("not visible and may be missing");
	assert_says("its recording has no call, and other ranks wait");
}

/* One dump of four: too little to speak of a job. */
Test(analyze, a_quarter_of_a_job_is_not_enough_data)
{
	copy(FR("never_entered/nccl_trace_rank_0"), "rank_0", SIZE_MAX);
	copy(FR("never_entered/nccl_trace_rank_1"), "rank_1", 100);
	cr_assert_eq(ANALYZE("--flight-recorder", dir), CW_EXIT_NO_DATA);
	assert_says("rank_1 cannot be used");
	assert_says("1 of 4 ranks; missing: 1-3");
}

static void assert_schema(const char *schema)
{
	json_error_t error;
	json_t *doc = json_loads(out, 0, &error);

	cr_assert_not_null(doc, "%s", error.text);
	cr_assert_str_eq(json_string_value(json_object_get(doc, "schema")), schema);
	json_decref(doc);
}

Test(analyze, json_is_one_document)
{
	cr_assert_eq(ANALYZE("--json", "--flight-recorder", FR("never_entered")), CW_EXIT_HANG);
	assert_schema("collwatch.incident/1");
	cr_assert_eq(ANALYZE("--json", "--flight-recorder", FR("all_well")), CW_EXIT_OK);
	assert_schema("collwatch.healthy/1");
}

/* ---- bundles ---- */

static void write_bundle(const char *verdict_class)
{
	struct cw_incident_info info = { .id = "20231114-1", .confidence = CW_CONFIDENCE_LIKELY };
	struct cw_bundle bundle = { 0 };
	struct cw_snapshot *snap;
	struct cw_verdict v;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(cw_flight_recorder_read(FR("never_entered"), NULL, &snap, NULL), 0);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	bundle.incident = cw_incident_doc(snap, &v, &info);
	bundle.snapshot = cw_snapshot_doc(snap);
	if (verdict_class)
		json_object_set_new(bundle.incident, "class", json_string(verdict_class));
	cr_assert_eq(cw_bundle_write(fd, "bundle", &bundle, NULL), 0);
	close(fd);
	cw_bundle_fini(&bundle);
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
}

Test(analyze, replays_the_decision_of_a_bundle)
{
	write_bundle(NULL);
	cr_assert_eq(ANALYZE(path_of("bundle")), CW_EXIT_HANG);
	assert_says("rank 2 never reached");
	assert_says("20231114-1");
	cr_assert_not_null(strstr(complaints, "the same verdict"), "%s", complaints);
}

Test(analyze, says_when_the_bundle_was_decided_otherwise)
{
	write_bundle("deadlock");
	cr_assert_eq(ANALYZE(path_of("bundle")), CW_EXIT_HANG);
	cr_assert_not_null(strstr(complaints, "the verdict differs from that in the bundle"), "%s",
			   complaints);
}

Test(analyze, a_bundle_without_a_snapshot_is_not_enough)
{
	write_bundle(NULL);
	cr_assert_eq(unlink(path_of("bundle/snapshot.json")), 0);
	cr_assert_eq(ANALYZE(path_of("bundle")), CW_EXIT_NO_DATA);
	cr_assert_eq(unlink(path_of("bundle/incident.json")), 0);
	cr_assert_eq(ANALYZE(path_of("bundle")), CW_EXIT_ERROR);
}

/* ---- flight records ---- */

static struct cw_test_record *make_record(int rank, int calls)
{
	struct cw_test_record *rec = cw_test_record_new();
	int comm = cw_test_record_comm(rec, 0xc0ffee, RANKS, rank);

	rec->header->rank_label = rank;
	rec->header->world_size_label = RANKS;
	rec->header->created_wall_ns = UINT64_C(1700000000000000000);
	rec->header->created_ns = (uint64_t)rec->now_ns;
	for (int i = 1; i <= calls; i++) {
		uint64_t op;

		rec->now_ns += CW_NS_PER_MS;
		op = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 1024);
		cw_test_record_return(rec, comm, op, 0);
		cw_test_record_progress(rec, comm, op, i <= 4 ? op : op - 1);
	}
	rec->header->beat_ns = (uint64_t)(rec->now_ns + 120 * CW_NS_PER_S);
	return rec;
}

static const char *write_record(const struct cw_test_record *rec, const char *name)
{
	const char *path = path_of(name);
	char *data = malloc(rec->bytes);
	FILE *f = fopen(path, "wb");

	cr_assert_eq(pread(rec->fd, data, rec->bytes, 0), (ssize_t)rec->bytes);
	cr_assert_eq(fwrite(data, 1, rec->bytes, f), rec->bytes);
	fclose(f);
	free(data);
	return path;
}

static const char *make_file(int rank, int calls)
{
	struct cw_test_record *rec = make_record(rank, calls);
	char name[16];
	const char *path;

	snprintf(name, sizeof(name), "rank%d", rank);
	path = write_record(rec, name);
	cw_test_record_free(rec);
	return path;
}

Test(analyze, records_of_dead_processes_give_a_verdict)
{
	const char *a = make_file(0, 5), *b = make_file(1, 5), *c = make_file(2, 4),
		   *d = make_file(3, 5);

	cr_assert_eq(ANALYZE(a, b, c, d), CW_EXIT_HANG, "%s", complaints);
	assert_says("never reached all_reduce #5");
	assert_says("rank 2 (pid ");
	assert_says("4 of 4 ranks");
	/* without rank 2's own record we can name no culprit, but the job hangs */
	cr_assert_eq(ANALYZE(a, b, d), CW_EXIT_HANG);
	assert_says("missing: 2");
	cr_assert_eq(ANALYZE(a), CW_EXIT_NO_DATA);
}

Test(analyze, records_without_anybody_waiting_are_healthy)
{
	const char *a = make_file(0, 4), *b = make_file(1, 4), *c = make_file(2, 4),
		   *d = make_file(3, 4);

	cr_assert_eq(ANALYZE(d, c, b, a), CW_EXIT_OK, "%s", complaints);
}

Test(analyze, what_is_no_record_is_named)
{
	const char *a = make_file(0, 4);

	copy(FR("never_entered/nccl_trace_rank_0"), "other", SIZE_MAX);
	cr_assert_eq(ANALYZE(a, path_of("other")), CW_EXIT_ERROR);
	cr_assert_not_null(strstr(complaints, "/other: "), "%s", complaints);
	cr_assert_eq(ANALYZE(a, path_of("nothing")), CW_EXIT_ERROR);
}

/* ---- record show ---- */

Test(analyze, shows_the_record_of_a_file)
{
	const char *path = make_file(2, 5);

	cr_assert_eq(RECORD(path), CW_EXIT_OK, "%s", complaints);
	assert_says("rank 2 of 4  job test:job");
	assert_says("all_reduce #5 fp32 x 1024 sum  (reached)");
	assert_says("5 entered, 5 returned, 4 completed");
	cr_assert_eq(RECORD(path, "--json", "--ops", "2"), CW_EXIT_OK);
	assert_schema("collwatch.record/1");
	assert_says("\"coll_seq\": 4");
	cr_assert_null(strstr(out, "\"coll_seq\": 3"));
}

Test(analyze, shows_how_many_calls_got_no_progress_writes)
{
	struct cw_test_record *rec = make_record(2, 5);
	const char *path;

	rec->header->progress_untracked = 4321;
	path = write_record(rec, "thin");
	cw_test_record_free(rec);
	cr_assert_eq(RECORD(path), CW_EXIT_OK, "%s", complaints);
	assert_says("progress writes were left out for 4321 calls");
	cr_assert_eq(RECORD(path, "--json"), CW_EXIT_OK);
	assert_says("\"progress_untracked\": 4321");
	cr_assert_eq(RECORD(make_file(2, 5)), CW_EXIT_OK);
	cr_assert_null(strstr(out, "left out"));
}

Test(analyze, shows_the_connections_of_a_record)
{
	struct cw_test_record *rec = make_record(2, 5);
	struct cw_rec_connection *c = rec->connections;
	const char *path;

	c[0] = (struct cw_rec_connection){ .rank = 2,
					   .peer = 3,
					   .op = 5,
					   .steps = 16,
					   .counts = { 9, 8, 7, 1 },
					   .comm_plus_1 = 1,
					   .flags = CW_REC_CONNECTION_USED |
						    CW_REC_CONNECTION_SEND |
						    CW_REC_CONNECTION_DETAILED,
					   .open_ops = 1 };
	c[1] = c[0];
	c[1].flags &= ~(CW_REC_CONNECTION_SEND | CW_REC_CONNECTION_DETAILED);
	c[1].peer = 1;
	c[2] = c[0];
	c[2].pid = 4711;
	c[2].comm_plus_1 = 0;
	c[3] = c[0];
	c[3].counts[CW_REC_STEP_DONE] = 17;
	rec->header->drops[CW_REC_DROP_CONNECTIONS] = 12;
	path = write_record(rec, "connections");
	cw_test_record_free(rec);
	cr_assert_eq(RECORD(path), CW_EXIT_OK, "%s", complaints);
	assert_says("3 network connections with an open op");
	assert_says("rank 2 to rank 3, channel 0");
	assert_says("op_index 5: of 16 steps 9 posted, 8 ready, 7 handed to the network, 1 done");
	assert_says("9 posted, 8 received, 7 given to the GPU, 1 done");
	assert_says("for process 4711");
	assert_says("coverage: the steps of 12 ops on a connection found no place");
	assert_says("coverage: 1 connection is impossible, and omitted");
	cr_assert_eq(RECORD(path, "--json"), CW_EXIT_OK);
	assert_says("\"direction\": \"receive\"");
	assert_says("\"connections_lost\": 12");
	assert_says("\"connections_impossible\": 1");
	cr_assert_eq(RECORD(make_file(2, 5)), CW_EXIT_OK);
	cr_assert_null(strstr(out, "onnection"));
}

Test(analyze, shows_the_record_of_a_live_process)
{
	struct cw_test_record *rec = make_record(3, 5);
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	cr_assert_eq(RECORD(pid), CW_EXIT_OK, "%s", complaints);
	assert_says("rank 3 of 4");
	cw_test_record_free(rec);
	cr_assert_eq(RECORD(pid), CW_EXIT_ERROR);
	cr_assert_not_null(strstr(complaints, "has no flight record"), "%s", complaints);
}
