/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same flight records, once as a daemon samples them and a leader gets them on the wire, once
 * as files: both must come to the same incident.
 */
#include "import/record_files.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/verdict.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "digest/digest.h"
#include "digest/window.h"
#include "leader/snapshot_build.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "report/doc/incident_doc.h"
#include "tests/support/record/record_writer.h"

#define RANKS 4
/* As of records, which do not tell their host. */
#define NODE ""
#define BEGIN_NS (400 * CW_NS_PER_S)
#define END_NS (460 * CW_NS_PER_S)
#define WALL_NS (INT64_C(1700000000) * CW_NS_PER_S)

/* A rank's record, and the daemon's copy of it. */
static struct rank {
	struct cw_test_record *writer;
	int world, pair;
	struct cw_record *record;
	struct cw_sampler sampler;
	struct cw_nonfinite_input nonfinite_input;
} ranks[RANKS];

static int64_t now_ns;

static void set_up(void)
{
	now_ns = BEGIN_NS;
	for (int i = 0; i < RANKS; i++) {
		struct rank *r = &ranks[i];
		struct cw_rec_header *h;

		r->writer = cw_test_record_new();
		h = r->writer->header;
		h->rank_label = i;
		h->world_size_label = RANKS;
		h->pid = (uint32_t)(100 + i);
		h->created_ns = 5 * CW_NS_PER_S;
		h->created_wall_ns = WALL_NS + 5 * CW_NS_PER_S;
		h->beat_ns = END_NS;
		r->world = cw_test_record_comm(r->writer, 0x11, RANKS, i);
		r->pair = cw_test_record_comm(r->writer, 0x20 + (unsigned)i / 2, 2, i % 2);
		cr_assert_eq(cw_record_open(cw_test_record_dup(r->writer), true, &r->record, NULL),
			     0);
		cw_sampler_init(&r->sampler);
	}
}

static void tear_down(void)
{
	for (int i = 0; i < RANKS; i++) {
		cw_sampler_fini(&ranks[i].sampler);
		cw_record_close(ranks[i].record);
		cw_test_record_free(ranks[i].writer);
	}
}

TestSuite(record_files, .init = set_up, .fini = tear_down);

/* The rank enters a collective, and it completes. */
static void step(int rank, int comm, uint64_t count)
{
	struct cw_test_record *w = ranks[rank].writer;
	uint64_t op;

	w->now_ns = now_ns;
	op = cw_test_record_collective(w, comm, CW_OP_ALL_REDUCE, count);
	cw_test_record_return(w, comm, op, 0);
	cw_test_record_progress(w, comm, op, op);
}

/* … and it does not: the rank's stream has come to it. */
static void hang(int rank, int comm, unsigned kind, uint64_t count)
{
	struct cw_test_record *w = ranks[rank].writer;
	uint64_t op;

	w->now_ns = now_ns;
	op = cw_test_record_collective(w, comm, kind, count);
	cw_test_record_return(w, comm, op, 0);
	cw_test_record_progress(w, comm, op, op - 1);
}

static void train(unsigned steps)
{
	for (unsigned s = 0; s < steps; s++) {
		for (int i = 0; i < RANKS; i++) {
			step(i, ranks[i].pair, 100);
			step(i, ranks[i].world, 5000 + s % 3);
		}
		now_ns += CW_NS_PER_S / 10;
	}
}

static int64_t clock_ns(void *user)
{
	return *(int64_t *)user;
}

static json_t *incident_of(const struct cw_snapshot *snap)
{
	static const struct cw_incident_info info = { .id = "x", .leader = "l" };
	struct cw_verdict v = { 0 };
	json_t *doc;

	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	doc = cw_incident_doc(snap, &v, &info);
	cr_assert_not_null(doc);
	cw_verdict_fini(&v);
	return doc;
}

static struct cw_message *over_the_wire(const struct cw_message *msg)
{
	struct cw_message *decoded = NULL;
	uint8_t *frame;
	size_t len;

	cr_assert_eq(cw_message_encode(msg, &frame, &len), 0);
	cr_assert_eq(cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES,
				       &decoded),
		     0);
	free(frame);
	return decoded;
}

/* As seen by a daemon that samples when something has happened, and at the end. */
static void sample(int64_t at_ns)
{
	for (int i = 0; i < RANKS; i++) {
		cr_assert_eq(cw_sampler_sample(&ranks[i].sampler, ranks[i].record, at_ns), 0);
		(void)cw_nonfinite_input_find(&ranks[i].nonfinite_input, ranks[i].record, at_ns);
	}
}

static json_t *incident_of_daemons(void)
{
	int64_t at_ns = END_NS;
	const struct cw_clock clock = { clock_ns, clock_ns, &at_ns, NULL };
	uint64_t ids[] = { 0x11, 0x20, 0x21 };
	const struct cw_msg_window_request request = { .comm_ids = ids,
						       .n_comm_ids = 3,
						       .max_ops = CW_RECORD_FILES_WINDOW };
	struct cw_message windows = { .type = CW_MSG_WINDOW_REPLY };
	struct cw_message digest_msg = { .type = CW_MSG_DIGEST };
	struct cw_digest_rank v[RANKS];
	struct cw_rank_ref refs[RANKS];
	struct cw_job_digests digests;
	struct cw_job_id id;
	struct cw_job *job;
	struct cw_digest_source source = {
		.node = NODE, .job = &id, .ranks = v, .n_ranks = RANKS, .is_sent = true
	};
	struct cw_build build = { .digests = &digests,
				  .refs = refs,
				  .n_refs = RANKS,
				  .thresholds = cw_thresholds_default(),
				  .now_ns = at_ns,
				  .wall_ns = WALL_NS + at_ns };
	struct cw_message *msg, *reply;
	struct cw_snapshot *snap;
	struct cw_digest digest;
	bool is_urgent;
	json_t *doc;

	for (int i = 0; i < RANKS; i++) {
		refs[i] = (struct cw_rank_ref){ .rank = (uint32_t)i };
		v[i] = (struct cw_digest_rank){ .record = ranks[i].record,
						.sampler = &ranks[i].sampler,
						.nonfinite_input = &ranks[i].nonfinite_input,
						.now_ns = at_ns,
						.pid = 100 + i,
						.start_ticks = 1000 };
	}
	cr_assert_eq(cw_job_id_make(0, "test:job", &id), 0);
	cr_assert_eq(cw_digest_make(&source, &digest), 0);
	digest_msg.digest = digest.msg;
	msg = over_the_wire(&digest_msg);
	cw_digest_fini(&digest);
	cr_assert_eq(cw_window_collect(v, RANKS, &request, &windows.window_reply), 0);
	reply = over_the_wire(&windows);
	cw_window_fini(&windows.window_reply);

	cr_assert_eq(cw_job_digests_init(&digests, &msg->digest), 0);
	cr_assert_eq(cw_job_digests_put(&digests, NODE, &msg, &clock, &is_urgent), 0);
	cr_assert_eq(cw_job_new(1, at_ns, &job), 0);
	cr_assert_eq(cw_job_window_add(job, NODE, &reply->window_reply, CW_WINDOW_LAST, at_ns), 0);
	(void)cw_message_free(reply);
	build.job = job;
	cr_assert_eq(cw_snapshot_build(&build, &snap), 0);
	doc = incident_of(snap);
	(void)cw_snapshot_free(snap);
	(void)cw_job_free(job);
	cw_job_digests_fini(&digests);
	return doc;
}

static struct cw_snapshot *snapshot_of_files(void)
{
	char text[RANKS][64], *paths[RANKS];
	struct cw_snapshot *snap;
	struct cw_err err;

	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "/proc/self/fd/%d", ranks[i].writer->fd);
		paths[i] = text[i];
	}
	cr_assert_eq(cw_record_files_read(paths, RANKS, NULL, &snap, &err), 0, "%s", err.text);
	return snap;
}

static json_t *incident_of_files(void)
{
	struct cw_snapshot *snap = snapshot_of_files();
	json_t *doc = incident_of(snap);

	(void)cw_snapshot_free(snap);
	return doc;
}

/* Removes its source and time, and the fields that follow from them. */
static void forget_source(json_t *doc)
{
	(void)json_object_del(doc, "times");
	(void)json_object_del(doc, "notes");
	(void)json_object_del(json_object_get(doc, "coverage"), "notes");
}

static void assert_both_say(const char *verdict_class)
{
	json_t *live = incident_of_daemons(), *past = incident_of_files();
	char *live_text, *past_text;

	forget_source(live);
	forget_source(past);
	live_text = json_dumps(live, JSON_INDENT(1) | JSON_SORT_KEYS);
	past_text = json_dumps(past, JSON_INDENT(1) | JSON_SORT_KEYS);
	cr_assert_str_eq(json_string_value(json_object_get(live, "class")), verdict_class, "%s",
			 live_text);
	cr_assert_str_eq(live_text, past_text);
	free(live_text);
	free(past_text);
	json_decref(live);
	json_decref(past);
}

Test(record_files, rank_that_never_came)
{
	train(40);
	for (int i = 0; i < RANKS; i++)
		if (i != 2)
			hang(i, ranks[i].world, CW_OP_ALL_REDUCE, 5000);
	sample(now_ns);
	sample(END_NS);
	assert_both_say("never_entered");
}

Test(record_files, calls_that_do_not_match)
{
	train(40);
	for (int i = 0; i < RANKS; i++)
		hang(i, ranks[i].world, i == 1 ? CW_OP_REDUCE_SCATTER : CW_OP_ALL_REDUCE, 5000);
	sample(now_ns);
	sample(END_NS);
	assert_both_say("mismatch");
}

/* Their histories differ far back, where only checkpoints reach. */
Test(record_files, one_call_more_long_ago)
{
	train(10);
	step(3, ranks[3].world, 77);
	train(60);
	for (int i = 0; i < RANKS - 1; i++)
		hang(i, ranks[i].world, CW_OP_ALL_REDUCE, 5000);
	sample(now_ns);
	sample(END_NS);
	assert_both_say("mismatch");
}

/* All have come, and it does not complete. */
Test(record_files, collective_that_does_not_complete)
{
	train(40);
	for (int i = 0; i < RANKS; i++)
		hang(i, ranks[i].world, CW_OP_ALL_REDUCE, 5000);
	sample(now_ns);
	sample(END_NS);
	assert_both_say("in_collective");
}

Test(record_files, record_of_another_host_is_on_the_same_timeline)
{
	struct cw_snapshot *snap;

	train(3);
	/* Booted an hour later: its clock is an hour behind. */
	for (int i = 2; i < RANKS; i++) {
		ranks[i].writer->header->created_wall_ns += 3600 * CW_NS_PER_S;
		ranks[i].writer->header->beat_ns -= 3600 * CW_NS_PER_S;
	}
	ranks[2].writer->header->beat_ns = 0;
	ranks[3].writer->header->beat_ns = 0;
	snap = snapshot_of_files();
	cr_assert_eq(snap->now_ns, snap->wall_ns);
	cr_assert_gt(snap->ranks[2].sampled_ns - snap->ranks[0].sampled_ns, 3500 * CW_NS_PER_S);
	cr_assert_eq(snap->now_ns, snap->ranks[3].sampled_ns);
	(void)cw_snapshot_free(snap);
}

/* One record of a job of a thousand ranks: its communicator is known, with places for all. */
Test(record_files, one_of_many_is_worth_reading)
{
	char text[64], *paths[] = { text };
	struct cw_snapshot *snap;
	struct cw_err err;
	int comm = cw_test_record_comm(ranks[0].writer, 0x99, 16384, 7);

	step(0, comm, 10);
	(void)snprintf(text, sizeof(text), "/proc/self/fd/%d", ranks[0].writer->fd);
	cr_assert_eq(cw_record_files_read(paths, 1, NULL, &snap, &err), 0, "%s", err.text);
	cr_assert_neq(cw_snapshot_find_comm(snap, 0x99, 0), CW_SNAP_NONE);
	cr_assert_eq(snap->n_ranks, 1);
	cr_assert_str_eq(snap->job, "test:job");
	(void)cw_snapshot_free(snap);
}

Test(record_files, windows_of_all_communicators_are_in_the_snapshot)
{
	struct cw_snapshot *snap;

	train(20);
	snap = snapshot_of_files();
	cr_assert_eq(snap->n_comms, 3);
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++)
			cr_assert_eq(snap->comms[c].members[m].n_window, 20, "%u %u", c, m);
	(void)cw_snapshot_free(snap);
}

Test(record_files, what_a_rank_fed_in_is_told)
{
	struct cw_test_record *w = ranks[1].writer;
	struct cw_snapshot *snap;

	train(2);
	w->header->has |= CW_REC_HAS_SUMMARIES;
	w->summaries[1] =
		(struct cw_rec_summary){ .publish = 9,
					 .op_index = 2,
					 .seq = 2,
					 .comm = (uint32_t)ranks[1].world,
					 .comm_generation = w->comms[ranks[1].world].generation,
					 .kind = CW_OP_ALL_REDUCE,
					 .dtype = CW_DTYPE_FP32,
					 .elements = 256,
					 .nans = 12 };
	snap = snapshot_of_files();
	cr_assert_not_null(snap->ranks[1].nonfinite_input);
	cr_assert_not_null(strstr(snap->ranks[1].nonfinite_input, "rank 1 fed 12 NaN"), "%s",
			   snap->ranks[1].nonfinite_input);
	(void)cw_snapshot_free(snap);
}
