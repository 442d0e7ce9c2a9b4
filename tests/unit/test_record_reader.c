/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/record_reader.h"
#include "tests/lib/record_writer.h"

static struct cw_test_record *rec;

static void setup(void)
{
	rec = cw_test_record_new();
}

static void teardown(void)
{
	rec = cw_test_record_free(rec);
}

TestSuite(record_reader, .init = setup, .fini = teardown);

static void record_closep(struct cw_record **r)
{
	cw_record_close(*r);
}

static int open_record(bool require_seals, struct cw_record **ret)
{
	struct cw_err err = { "" };
	int r = cw_record_open(cw_test_record_dup(rec), require_seals, ret, &err);

	if (r < 0)
		cr_expect_neq(err.text[0], '\0', "an error comes with a text");
	return r;
}

static struct cw_record *must_open(void)
{
	struct cw_record *r = NULL;

	cr_assert_eq(open_record(true, &r), 0);
	return r;
}

static const struct cw_record_comm *first_comm(struct cw_record *r)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(r, &n);
	cr_assert_gt(n, 0u);
	return comms;
}

Test(record_reader, reads_header_and_comms)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	const struct cw_record_comm *comms;
	size_t n;

	cw_test_record_comm(rec, 0x1111, 8, 3);
	cw_test_record_comm(rec, 0x2222, 4, 1);
	rec->comms[0].state = CW_COMM_FREE;
	r = must_open();
	comms = cw_record_comms(r, &n);
	cr_assert_eq(n, 1u);
	cr_expect_eq(comms[0].index, 1u);
	cr_expect_eq(comms[0].entry.comm_id, 0x2222u);
	cr_expect_eq(comms[0].entry.comm_rank, 1);
	cr_expect_str_eq(cw_record_header(r)->job_label, "test:job");
	cr_expect_geq(cw_record_fd(r), 0);
}

Test(record_reader, refresh_sees_what_changed)
{
	_cleanup_(record_closep) struct cw_record *r = must_open();
	size_t n;

	cw_record_comms(r, &n);
	cr_expect_eq(n, 0u);
	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	rec->header->rank_label = 17;
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(first_comm(r)->entry.coll_entered, 1u);
	cr_expect_eq(cw_record_header(r)->rank_label, 17);
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	cr_expect_eq(first_comm(r)->entry.coll_entered, 1u, "as of the last refresh");
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(first_comm(r)->entry.coll_entered, 2u);
}

Test(record_reader, demands_seals_of_processes_but_not_of_files)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	_cleanup_(freep) char *copy = malloc(rec->bytes);
	char path[] = "/tmp/cw-record-XXXXXX";
	int fd = mkstemp(path), memfd, pipes[2];

	cr_assert_geq(fd, 0);
	unlink(path);
	memcpy(copy, rec->header, rec->bytes);
	cr_assert_eq(write(fd, copy, rec->bytes), (ssize_t)rec->bytes);
	cr_expect_eq(cw_record_open(dup(fd), true, &r, NULL), -EPERM, "a file");
	cr_expect_eq(cw_record_open(fd, false, &r, NULL), 0);

	memfd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_eq(write(memfd, copy, rec->bytes), (ssize_t)rec->bytes);
	cr_assert_eq(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	cr_expect_eq(cw_record_open(memfd, true, &r, NULL), -EPERM, "still writable by anybody");

	cr_assert_eq(pipe(pipes), 0);
	cr_expect_eq(cw_record_open(pipes[0], false, &r, NULL), -EPERM, "would block");
	close(pipes[1]);
	cr_expect_lt(cw_record_open(-1, true, &r, NULL), 0);
}

static void spoil_magic(void)
{
	rec->header->magic++;
}

static void spoil_version(void)
{
	rec->header->version = CW_RECORD_VERSION + 1; /* and readable_from is 0 */
}

static void spoil_readable_from(void)
{
	rec->header->version = CW_RECORD_VERSION + 2;
	rec->header->readable_from = CW_RECORD_VERSION + 1;
}

static void spoil_old_version(void)
{
	rec->header->version = CW_RECORD_VERSION_MIN - 1;
}

static void spoil_state(void)
{
	rec->header->state = 0;
}

static void spoil_total(void)
{
	rec->header->total_bytes = rec->bytes + 1;
}

static void spoil_header_bytes(void)
{
	rec->header->header_bytes = 64;
}

static void spoil_offset(void)
{
	rec->header->sections[1].offset = UINT64_MAX - 63;
}

static void spoil_alignment(void)
{
	rec->header->sections[4].offset += 8;
}

static void spoil_count(void)
{
	rec->header->sections[1].count = UINT32_MAX;
}

static void spoil_product(void)
{
	rec->header->sections[1].count = UINT32_MAX;
	rec->header->sections[1].entry_bytes = UINT32_MAX;
}

static void spoil_overlap(void)
{
	rec->header->sections[1].offset = rec->header->sections[0].offset + 64;
}

static void spoil_duplicate(void)
{
	rec->header->sections[1].type = CW_REC_SECTION_COMMS;
}

static void spoil_section_in_header(void)
{
	rec->header->sections[0].offset = 0;
}

static void spoil_comms_used(void)
{
	rec->header->comms_used = CW_REC_COMMS + 1;
}

Test(record_reader, refuses_inconsistent_records)
{
	static const struct {
		void (*spoil)(void);
		int r;
		const char *name;
	} cases[] = {
		{ spoil_magic, -EBADMSG, "magic" },
		{ spoil_version, -ENOTSUP, "version" },
		{ spoil_readable_from, -ENOTSUP, "readable_from" },
		{ spoil_old_version, -ENOTSUP, "old version" },
		{ spoil_state, -EBADMSG, "state" },
		{ spoil_total, -EBADMSG, "total" },
		{ spoil_header_bytes, -EBADMSG, "header_bytes" },
		{ spoil_offset, -EBADMSG, "offset" },
		{ spoil_alignment, -EBADMSG, "alignment" },
		{ spoil_count, -EBADMSG, "count" },
		{ spoil_product, -EBADMSG, "product" },
		{ spoil_overlap, -EBADMSG, "overlap" },
		{ spoil_duplicate, -EBADMSG, "duplicate" },
		{ spoil_section_in_header, -EBADMSG, "section in header" },
		{ spoil_comms_used, -EBADMSG, "comms_used" },
	};
	struct cw_rec_header good = *rec->header;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(record_closep) struct cw_record *at_start = NULL, *later = NULL;

		*rec->header = good;
		later = must_open();
		cases[i].spoil();
		cr_expect_eq(open_record(true, &at_start), cases[i].r, "%s", cases[i].name);
		cr_expect_eq(cw_record_refresh(later), -EBADMSG, "%s, later", cases[i].name);
		cr_expect_eq(cw_record_header(later)->magic, CW_RECORD_MAGIC, "previous contents");
	}
}

Test(record_reader, refuses_files_of_the_wrong_size)
{
	struct cw_record *r = NULL;
	int fd = memfd_create("x", MFD_CLOEXEC);

	cr_expect_eq(cw_record_open(dup(fd), false, &r, NULL), -EBADMSG);
	cr_assert_eq(ftruncate(fd, 4095), 0);
	cr_expect_eq(cw_record_open(dup(fd), false, &r, NULL), -EBADMSG);
	cr_assert_eq(ftruncate(fd, 2 * CW_RECORD_MAX_BYTES + 1), 0);
	cr_expect_eq(cw_record_open(fd, false, &r, NULL), -EFBIG);
}

/*
 * tests/data/record/version-1 is what collwatch 0.1.0 wrote (tests/fuzz/make_seeds.c, "hung"): two
 * comms, 60 ops, of which the device did the first 15. It is never made anew: a reader of version 2
 * has to read it, one of version 3 may refuse.
 */
Test(record_reader, reads_a_record_of_version_1)
{
	int fd = open(CW_TEST_DATA "/record/version-1", O_RDONLY | O_CLOEXEC);
	struct cw_record *r = NULL;
	struct cw_record_state state;
	const struct cw_record_comm *comms;
	struct cw_op ops[64];
	struct cw_err err;
	uint64_t lost;
	size_t n;

	cr_assert_eq(cw_record_open(fd, false, &r, &err), 0, "%s", err.text);
	cr_expect_eq(cw_record_header(r)->version, 1u);
	cr_expect_str_eq(cw_record_header(r)->job_label, "test:job");
	comms = cw_record_comms(r, &n);
	cr_assert_eq(n, 2u);
	cr_expect_eq(comms[0].entry.comm_id, 0x1234u);
	cr_expect_eq(comms[0].entry.nranks, 8u);
	cr_expect_eq(comms[0].entry.comm_rank, 3);
	cr_expect_eq(comms[0].entry.coll_entered, 48u);
	cr_expect_eq(comms[0].entry.coll_returned, 48u);
	cr_expect_eq(comms[1].entry.p2p_total[0], 12u);
	cr_assert_eq(cw_record_window(r, &comms[0], ops, 64, &n, &lost), 0);
	cr_assert_eq(n, 48u);
	cr_expect_eq(ops[47].kind, CW_OP_ALL_REDUCE);
	cr_expect_eq(ops[47].coll_seq, 48u);
	cr_expect_eq(ops[47].count, 16u);
	cr_assert_eq(cw_record_state(r, &comms[0], &state), 0);
	cr_expect(state.completed_known);
	cr_expect_eq(state.coll_completed, 12u);
	cr_expect_eq(state.pending.coll_seq, 13u);
	cw_record_close(r);
}

Test(record_reader, reads_what_it_knows_of_a_newer_version_that_permits_it)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;

	rec->header->version = CW_RECORD_VERSION + 7;
	rec->header->readable_from = CW_RECORD_VERSION;
	cw_test_record_comm(rec, 0xaaaa, 4, 2);
	cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 3);
	r = must_open();
	cr_expect_eq(first_comm(r)->entry.coll_entered, 1u);
}

Test(record_reader, skips_what_later_versions_append)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[8];
	uint64_t lost;
	size_t n;

	/* comm entries with 64 bytes more, and a section nobody knows yet */
	rec->header->sections[0].entry_bytes += 64;
	rec->header->sections[0].count = 8;
	rec->header->sections[4].count /= 2;
	rec->header->sections[6].count /= 2;
	rec->header->sections[9] = (struct cw_rec_section){
		.type = 999, .entry_bytes = 64, .count = 1, .offset = rec->bytes - 64
	};
	cw_test_record_comm(rec, 0xaaaa, 4, 2);
	cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 3);
	memcpy((char *)rec->comms + sizeof(struct cw_rec_comm) + 64, rec->comms,
	       sizeof(struct cw_rec_comm));
	((struct cw_rec_comm *)((char *)rec->comms + sizeof(struct cw_rec_comm) + 64))
		->ops[0]
		.comm = 1;
	rec->header->comms_used = 2;
	r = must_open();
	cr_expect_not_null(cw_record_comms(r, &n));
	cr_assert_eq(n, 2u);
	cr_expect_eq(first_comm(r)[1].entry.comm_id, 0xaaaau);
	cr_expect_eq(cw_record_window(r, &first_comm(r)[1], ops, 8, &n, &lost), 0);
	cr_expect_eq(n, 1u);
}

Test(record_reader, ignores_a_section_with_entries_too_small)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n = 9;

	rec->header->sections[0].entry_bytes = sizeof(struct cw_rec_comm) - 64;
	r = must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 0u);
}

Test(record_reader, text_comes_out_terminated_and_printable)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_rec_comm *c;

	cw_test_record_comm(rec, 1, 8, 3);
	c = &rec->comms[0];
	memset(c->name, 'A', sizeof(c->name));
	memcpy(c->last_error, "a\nb\x1b[0m\xff", 9);
	memset(rec->header->job_label, 0x80, sizeof(rec->header->job_label));
	r = must_open();
	cr_expect_eq(strlen(first_comm(r)->entry.name), sizeof(c->name) - 1);
	cr_expect_str_eq(first_comm(r)->entry.last_error, "a?b?[0m?");
	cr_expect_eq(strlen(cw_record_header(r)->job_label), sizeof(rec->header->job_label) - 1);
	cr_expect_eq(cw_record_header(r)->job_label[0], '?');
}

Test(record_reader, an_entry_that_is_being_changed_keeps_its_last_stable_contents)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n;

	cw_test_record_comm(rec, 0x1111, 8, 3);
	cw_test_record_comm(rec, 0x2222, 8, 3);
	rec->comms[1].seqlock = 3;
	r = must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 1u, "never seen stable");
	rec->comms[0].seqlock++;
	rec->comms[0].comm_id = 0x3333;
	rec->comms[1].seqlock++;
	cr_assert_eq(cw_record_refresh(r), 0);
	cw_record_comms(r, &n);
	cr_expect_eq(n, 2u);
	cr_expect_eq(first_comm(r)[0].entry.comm_id, 0x1111u);
	cr_expect_eq(first_comm(r)[1].entry.comm_id, 0x2222u);
	rec->comms[0].seqlock++;
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(first_comm(r)[0].entry.comm_id, 0x3333u);
}

Test(record_reader, comm_ranks_out_of_range_are_unknown)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 8);
	cw_test_record_comm(rec, 2, 8, -5);
	cw_test_record_comm(rec, 3, 8, 7);
	rec->comms[2].state = CW_COMM__MAX;
	r = must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 2u, "a state nobody knows is not used");
	cr_expect_eq(first_comm(r)[0].entry.comm_rank, -1);
	cr_expect_eq(first_comm(r)[1].entry.comm_rank, -1);
}

Test(record_reader, windows_reach_from_the_comms_ring_into_the_bulk_ring)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[200];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_comm(rec, 2, 8, 3);
	for (unsigned i = 1; i <= 100; i++) {
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, i);
		cw_test_record_collective(rec, 1, CW_OP_BROADCAST, i);
	}
	r = must_open();
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 32, &n, &lost), 0);
	cr_expect_eq(n, 32u);
	cr_expect_eq(lost, 68u);
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 200, &n, &lost), 0);
	cr_expect_eq(n, 100u);
	cr_expect_eq(lost, 0u);
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(ops[i].coll_seq, i + 1);
		cr_expect_eq(ops[i].kind, CW_OP_ALL_REDUCE);
		cr_expect_eq(ops[i].count, i + 1);
	}
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 7, &n, &lost), 0);
	cr_expect_eq(n, 7u);
	cr_expect_eq(ops[0].coll_seq, 94u);
	cr_expect_eq(lost, 93u);
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 0, &n, &lost), 0);
	cr_expect_eq(n, 0u);
	cr_expect_eq(lost, 100u);
}

Test(record_reader, a_slow_comms_window_survives_a_busy_one)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[64];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_comm(rec, 2, 8, 3);
	for (unsigned i = 0; i < 40; i++)
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	for (unsigned i = 0; i < 2 * CW_REC_RING_OPS; i++)
		cw_test_record_p2p(rec, 1, CW_OP_SEND, 1, 1);
	r = must_open();
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 64, &n, &lost), 0);
	cr_expect_eq(n, 32u);
	cr_expect_eq(lost, 8u);
	cr_expect_eq(ops[0].coll_seq, 9u);
}

Test(record_reader, ops_carry_kind_specific_fields)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[4];
	uint64_t lost, op;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	rec->now_ns = 5000;
	op = cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 12);
	rec->now_ns = 6000;
	cw_test_record_return(rec, 0, op, 0);
	cw_test_record_p2p(rec, 0, CW_OP_RECV, 5, 10);
	cw_test_record_progress(rec, 0, 1, 1);
	r = must_open();
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 4, &n, &lost), 0);
	cr_assert_eq(n, 2u);
	cr_expect_eq(ops[0].root, 0);
	cr_expect_eq(ops[0].peer, CW_PEER_NONE);
	cr_expect_eq(ops[0].coll_seq, 1u);
	cr_expect_eq(ops[0].p2p_seq, 0u);
	cr_expect_eq(ops[0].enter_ns, 5000);
	cr_expect_eq(ops[0].return_ns, 6000);
	cr_expect_eq(ops[0].progress, CW_PROGRESS_COMPLETED);
	cr_expect_eq(ops[1].root, CW_PEER_NONE);
	cr_expect_eq(ops[1].peer, 5);
	cr_expect_eq(ops[1].coll_seq, 0u);
	cr_expect_eq(ops[1].p2p_seq, 1u);
	cr_expect_eq(ops[1].return_ns, 0);
	cr_expect_eq(ops[1].progress, CW_PROGRESS_UNKNOWN, "not back: maybe not enqueued");
}

Test(record_reader, times_of_the_cycle_counter_are_converted)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[4];
	uint64_t lost;
	size_t n;

	rec->header->clock = CW_REC_CLOCK_TSC;
	rec->header->tsc_base = 1000000;
	rec->header->tsc_base_ns = 500;
	rec->header->tsc_mult = 1u << 31; /* 2 GHz: half a nanosecond per tick */
	rec->header->tsc_shift = 32;
	cw_test_record_comm(rec, 1, 8, 3);
	rec->now_ns = 3000000;
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	r = must_open();
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 4, &n, &lost), 0);
	cr_expect_eq(ops[0].enter_ns, 1000500);
}

Test(record_reader, slots_that_lie_wrong_are_left_out)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_op ops[16];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	for (int i = 0; i < 8; i++)
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	memset(rec->ring, 0, sizeof(rec->ring[0]) * CW_REC_RING_OPS);
	rec->comms[0].ops[0].publish = 0;
	rec->comms[0].ops[1].publish = 7;                /* of another slot */
	rec->comms[0].ops[2].comm = 9;                   /* of another comm */
	rec->comms[0].ops[3].comm_generation = 9;        /* of the entry's earlier life */
	rec->comms[0].ops[5].op_index = 5;               /* twice the same */
	rec->comms[0].ops[7].publish += CW_REC_COMM_OPS; /* a lap ahead is fine */
	r = must_open();
	cr_assert_eq(cw_record_window(r, first_comm(r), ops, 16, &n, &lost), 0);
	cr_assert_eq(n, 3u);
	cr_expect_eq(ops[0].op_index, 5u);
	cr_expect_eq(ops[1].op_index, 7u);
	cr_expect_eq(ops[2].op_index, 8u);
	cr_expect_eq(lost, 4u);
}

Test(record_reader, peers_are_counted_per_direction)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_rec_p2p_peer peers[4];
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_p2p(rec, 0, CW_OP_SEND, 5, 10);
	cw_test_record_p2p(rec, 0, CW_OP_SEND, 5, 10);
	cw_test_record_p2p(rec, 0, CW_OP_RECV, 2, 10);
	r = must_open();
	cr_assert_eq(cw_record_p2p(r, first_comm(r), peers, 4, &n), 0);
	cr_assert_eq(n, 2u);
	cr_expect_eq(peers[0].peer_plus_1, 6u);
	cr_expect_eq(peers[0].count[0], 2u);
	cr_expect_eq(peers[1].peer_plus_1, 3u);
	cr_expect_eq(peers[1].count[1], 1u);
	cr_assert_eq(cw_record_p2p(r, first_comm(r), peers, 1, &n), 0);
	cr_expect_eq(n, 1u);
	rec->p2p[0].comm_generation++;
	cr_assert_eq(cw_record_p2p(r, first_comm(r), peers, 4, &n), 0);
	cr_expect_eq(n, 0u, "the block belongs to another comm by now");
}
