/* SPDX-License-Identifier: Apache-2.0 */
/* A node's view of its ranks when memory runs out: a digest, a sample, a window are whole or none.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "digest/digest.h"
#include "digest/window.h"
#include "proto/codec.h"
#include "record/record_reader.h"
#include "tests/support/memory/no_memory.h"
#include "tests/support/record/record_writer.h"

#define NOW_NS (1000 * CW_NS_PER_S)
#define RANKS 3
#define OPS 40u

/* Ranks that have called, and one call that is not over. */
static struct cw_test_record *writers[RANKS];

static void set_up(void)
{
	for (int i = 0; i < RANKS; i++) {
		struct cw_test_record *w = cw_test_record_new();
		int comm = cw_test_record_comm(w, 0x11, RANKS, i);
		int pair = cw_test_record_comm(w, 0x12, 2, i % 2);
		uint64_t op;

		memcpy(w->comms[comm].name, "dp", sizeof("dp"));
		memcpy(w->comms[pair].last_error, "system error", sizeof("system error"));
		w->header->rank_label = i;
		w->header->world_size_label = RANKS;
		w->now_ns = NOW_NS - 20 * CW_NS_PER_S;
		for (unsigned k = 0; k < OPS; k++) {
			op = cw_test_record_collective(w, comm, CW_OP_ALL_REDUCE, 1000);
			cw_test_record_return(w, comm, op, 0);
			cw_test_record_progress(w, comm, op, op);
		}
		op = cw_test_record_p2p(w, pair, CW_OP_SEND, 1 - i % 2, 7);
		cw_test_record_return(w, pair, op, 0);
		(void)cw_test_record_collective(w, comm, CW_OP_ALL_REDUCE, 1000);
		writers[i] = w;
	}
}

static void tear_down(void)
{
	for (int i = 0; i < RANKS; i++)
		cw_test_record_free(writers[i]);
}

TestSuite(digest_no_memory, .init = set_up, .fini = tear_down);

struct fake {
	struct cw_record *record;
	struct cw_sampler sampler;
	struct cw_nonfinite_input nonfinite_input;
	struct cw_digest_rank rank;
};

static struct fake fakes[RANKS];

static int open_and_sample(struct fake *f, int i)
{
	struct cw_err err = { "" };
	int r;

	*f = (struct fake){ .rank = { .now_ns = NOW_NS,
				      .pid = 100 + i,
				      .start_ticks = 1,
				      .liveness = CW_LIVE_ALIVE,
				      .command = "python3 train.py" } };
	cw_sampler_init(&f->sampler);
	r = cw_record_open(cw_test_record_dup(writers[i]), true, &f->record, &err);
	if (r == 0)
		r = cw_sampler_sample(&f->sampler, f->record, NOW_NS - CW_NS_PER_S);
	f->rank.record = f->record;
	f->rank.sampler = &f->sampler;
	f->rank.nonfinite_input = &f->nonfinite_input;
	return r;
}

static void let_go(struct fake *f)
{
	cw_sampler_fini(&f->sampler);
	cw_record_close(f->record);
	*f = (struct fake){ 0 };
}

static void expect_sampled(const struct fake *f)
{
	const struct cw_record_comm *comms;
	const struct cw_track *t;
	size_t n;

	comms = cw_record_comms(f->record, &n);
	cr_assert_eq(n, 2);
	t = cw_sampler_find(&f->sampler, &comms[0]);
	cr_assert_not_null(t);
	cr_assert_eq(t->last.coll_entered, OPS + 1);
}

static void sample(void *userdata)
{
	struct fake *f = &fakes[0];
	int r;

	no_memory_begin();
	r = open_and_sample(f, 0);
	no_memory_end();
	if (r != 0) {
		cr_assert(no_memory_happened());
		cr_assert_eq(r, -ENOMEM);
		if (f->record) {
			cr_assert(!f->sampler.is_ok);
			cr_assert_eq(cw_sampler_sample(&f->sampler, f->record, NOW_NS), 0);
		} else {
			cr_assert_eq(open_and_sample(f, 0), 0);
		}
	}
	expect_sampled(f);
	let_go(f);
}

Test(digest_no_memory, a_record_that_was_not_sampled_is_the_next_time)
{
	no_memory_walk("sample", sample, NULL);
}

/* Communicators come while we watch it: the facts about the others stay. */
static void sample_more(void *userdata)
{
	struct cw_test_record *w = cw_test_record_new();
	struct cw_record *record = NULL;
	struct cw_err err = { "" };
	struct cw_sampler s;
	const struct cw_record_comm *comms;
	size_t n;
	int r;

	(void)cw_test_record_comm(w, 0x21, 2, 0);
	cw_sampler_init(&s);
	cr_assert_eq(cw_record_open(cw_test_record_dup(w), true, &record, &err), 0);
	cr_assert_eq(cw_sampler_sample(&s, record, NOW_NS), 0);
	for (unsigned i = 0; i < 40; i++)
		(void)cw_test_record_comm(w, 0x22 + i, 2, 0);
	no_memory_begin();
	r = cw_sampler_sample(&s, record, NOW_NS + CW_NS_PER_S);
	no_memory_end();
	if (r != 0) {
		cr_assert(no_memory_happened());
		cr_assert_eq(r, -ENOMEM);
		comms = cw_record_comms(record, &n);
		cr_assert_geq(n, 1);
		cr_assert_not_null(cw_sampler_find(&s, &comms[0]));
		cr_assert_eq(cw_sampler_sample(&s, record, NOW_NS + 2 * CW_NS_PER_S), 0);
	}
	comms = cw_record_comms(record, &n);
	cr_assert_eq(n, 41);
	for (size_t i = 0; i < n; i++)
		cr_assert_not_null(cw_sampler_find(&s, &comms[i]));
	cw_sampler_fini(&s);
	cw_record_close(record);
	cw_test_record_free(w);
}

Test(digest_no_memory, what_a_sampler_knows_stays)
{
	no_memory_walk("sample of more communicators", sample_more, NULL);
}

static void all_start(struct cw_digest_rank *v)
{
	for (int i = 0; i < RANKS; i++) {
		cr_assert_eq(open_and_sample(&fakes[i], i), 0);
		v[i] = fakes[i].rank;
	}
}

static void all_stop(void)
{
	for (int i = 0; i < RANKS; i++)
		let_go(&fakes[i]);
}

static void as_sent(const struct cw_digest *digest, uint8_t **ret_bytes, size_t *ret_len)
{
	const struct cw_message msg = { .type = CW_MSG_DIGEST, .digest = digest->msg };

	cr_assert_eq(cw_message_encode(&msg, ret_bytes, ret_len), 0);
}

struct digest_bytes {
	uint8_t *bytes; /* NULL = not known yet */
	size_t len;
};

static void make_digest(void *userdata)
{
	struct digest_bytes *right = userdata, seen;
	struct cw_digest_rank v[RANKS];
	struct cw_job_id job;
	struct cw_digest digest;
	struct cw_digest_source source = { .node = "node-a",
					   .job = &job,
					   .epoch = 7,
					   .number = 3,
					   .ranks = v,
					   .n_ranks = RANKS,
					   .is_sent = true };
	int r;

	all_start(v);
	cr_assert_eq(cw_job_id_make(0, "name:job", &job), 0);
	if (right->bytes)
		no_memory_begin();
	r = cw_digest_make(&source, &digest);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert(no_memory_happened());
		cr_assert_eq(cw_digest_make(&source, &digest), 0);
	}
	cr_assert_eq(digest.msg.n_ranks, RANKS);
	for (int i = 0; i < RANKS; i++) {
		cr_assert_eq(digest.msg.ranks[i].n_members, 2);
		cr_assert_eq(digest.msg.ranks[i].dropped, 0);
		cr_assert_not_null(digest.msg.ranks[i].members[0].pending);
	}
	as_sent(&digest, &seen.bytes, &seen.len);
	if (right->bytes) {
		cr_assert_eq(seen.len, right->len);
		cr_assert_eq(memcmp(seen.bytes, right->bytes, seen.len), 0);
		free(seen.bytes);
	} else {
		*right = seen;
	}
	cw_digest_fini(&digest);
	all_stop();
}

Test(digest_no_memory, a_digest_is_whole_or_none)
{
	struct digest_bytes right = { 0 };

	make_digest(&right);
	no_memory_walk("digest", make_digest, &right);
	free(right.bytes);
}

static void collect_windows(void *userdata)
{
	uint64_t ids[] = { 0x11, 0x12 };
	struct cw_msg_window_request request = { .comm_ids = ids, .n_comm_ids = 2, .max_ops = 64 };
	struct cw_msg_window_reply reply;
	struct cw_digest_rank v[RANKS];
	int r;

	all_start(v);
	no_memory_begin();
	r = cw_window_collect(v, RANKS, &request, &reply);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert(no_memory_happened());
		cr_assert_eq(cw_window_collect(v, RANKS, &request, &reply), 0);
	}
	cr_assert_eq(reply.n_windows, 2 * RANKS);
	for (uint32_t i = 0; i < reply.n_windows; i++)
		if (reply.windows[i].n_ops > 0 || !no_memory_happened())
			cr_assert_eq(reply.windows[i].n_ops,
				     reply.windows[i].comm_id == 0x11 ? OPS + 1 : 1);
	cw_window_fini(&reply);
	all_stop();
}

/* An unreadable window is empty: that says more than none. */
Test(digest_no_memory, so_are_windows)
{
	no_memory_walk("windows", collect_windows, NULL);
}
