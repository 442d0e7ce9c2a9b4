/* SPDX-License-Identifier: Apache-2.0 */
/* Readable records, and the parts that we read of other versions. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "tests/support/record/record_fixture.h"

TestSuite(record_open, .init = record_setup, .fini = record_teardown);

Test(record_open, demands_seals_of_processes_but_not_of_files)
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

Test(record_open, refuses_inconsistent_records)
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
		later = record_must_open();
		cases[i].spoil();
		cr_expect_eq(record_try_open(true, &at_start), cases[i].r, "%s", cases[i].name);
		cr_expect_eq(cw_record_refresh(later), -EBADMSG, "%s, later", cases[i].name);
		cr_expect_eq(cw_record_header(later)->magic, CW_RECORD_MAGIC, "previous contents");
	}
}

/* Sixteen thousand graphs fit where the ring of calls was, and each reading goes through them all.
 */
Test(record_open, refuses_a_table_longer_than_an_agent_writes)
{
	_cleanup_(record_closep) struct cw_record *reader = NULL;
	struct cw_rec_section *ring = &rec->header->sections[1];
	uint32_t bytes = ring->count * ring->entry_bytes;

	for (unsigned i = 0; i < CW_REC_SECTION__MAX; i++)
		if (rec->header->sections[i].type == CW_REC_SECTION_REPLAYS)
			rec->header->sections[i].type = 0;
	rec->header->has |= CW_REC_HAS_REPLAYS;
	ring->type = CW_REC_SECTION_REPLAYS;
	ring->entry_bytes = sizeof(struct cw_rec_replay);
	ring->count = bytes / ring->entry_bytes;
	cr_assert_gt(ring->count, 16000u);
	cr_expect_eq(record_try_open(true, &reader), -EBADMSG);
}

Test(record_open, refuses_files_of_the_wrong_size)
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
 * tests/data/record/version-1 comes from collwatch 0.1.0 (tests/fuzz/make_seeds.c, "hung"): two
 * comms, 60 ops, and the device did the first 15. It is never made anew: a reader of version 2 has
 * to read it, and a reader of version 3 may refuse.
 */
Test(record_open, reads_a_record_of_version_1)
{
	int fd = open(CW_TEST_DATA "/record/version-1", O_RDONLY | O_CLOEXEC);
	struct cw_record *r = NULL;
	struct cw_record_state state;
	const struct cw_record_comm *comms;
	struct cw_record_op ops[64];
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

Test(record_open, reads_what_it_knows_of_a_newer_version_that_permits_it)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;

	rec->header->version = CW_RECORD_VERSION + 7;
	rec->header->readable_from = CW_RECORD_VERSION;
	cw_test_record_comm(rec, 0xaaaa, 4, 2);
	cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 3);
	r = record_must_open();
	cr_expect_eq(record_first_comm(r)->entry.coll_entered, 1u);
}

Test(record_open, models_of_devices_end_and_stay_on_a_line)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	char(*models)[CW_REC_MODEL_BYTES] = rec->header->device_models;
	const struct cw_rec_header *h;

	strcpy(models[0], "NVIDIA H100 80GB HBM3");
	memset(models[2], 'x', sizeof(models[2])); /* a text without an end */
	strcpy(models[7], "a\x1b[2J\n\xff");
	r = record_must_open();
	h = cw_record_header(r);
	cr_expect_str_eq(cw_record_device_model(h, 0), "NVIDIA H100 80GB HBM3");
	cr_expect_str_eq(cw_record_device_model(h, 1), "");
	cr_expect_eq(strlen(cw_record_device_model(h, 2)), CW_REC_MODEL_BYTES - 1);
	cr_expect_str_eq(cw_record_device_model(h, 7), "a?[2J??");
	cr_expect_str_eq(cw_record_device_model(h, -1), "", "not known on which it is");
	cr_expect_str_eq(cw_record_device_model(h, CW_REC_DEVICES), "");
}

Test(record_open, skips_what_later_versions_append)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[8];
	uint64_t lost;
	size_t n;

	/* comm entries with 64 bytes more, and a section unknown to this version */
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
	r = record_must_open();
	cr_expect_not_null(cw_record_comms(r, &n));
	cr_assert_eq(n, 2u);
	cr_expect_eq(record_first_comm(r)[1].entry.comm_id, 0xaaaau);
	cr_expect_eq(cw_record_window(r, &record_first_comm(r)[1], ops, 8, &n, &lost), 0);
	cr_expect_eq(n, 1u);
}

Test(record_open, ignores_a_section_with_entries_too_small)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n = 9;

	rec->header->sections[0].entry_bytes = sizeof(struct cw_rec_comm) - 64;
	r = record_must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 0u);
}

Test(record_open, reads_memory_as_it_reads_a_file)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n;

	cw_test_record_comm(rec, 0x11, 8, 3);
	cr_assert_eq(cw_record_open_memory(rec->header, rec->bytes, &r, NULL), 0);
	cr_assert_eq(cw_record_fd(r), -1);
	cr_assert_eq(cw_record_comms(r, &n)->entry.comm_id, 0x11);
	cw_test_record_comm(rec, 0x12, 8, 3);
	cr_assert_eq(cw_record_refresh(r), 0);
	(void)cw_record_comms(r, &n);
	cr_assert_eq(n, 2);
}

Test(record_open, refuses_memory_that_is_less_than_it_says)
{
	struct cw_record *r = NULL;

	cr_expect_eq(cw_record_open_memory(rec->header, 100, &r, NULL), -EBADMSG);
	cr_expect_eq(cw_record_open_memory(rec->header, rec->bytes - 1, &r, NULL), -EBADMSG);
	cr_expect_null(r);
}
