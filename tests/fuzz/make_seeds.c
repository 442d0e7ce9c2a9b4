/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the seeds of the binary targets into the directories DIR/wire and DIR/record: one frame of
 * each message, and records small enough for a fuzzer to get through.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/op.h"
#include "proto/codec.h"
#include "tests/lib/messages.h"
#include "tests/lib/record_writer.h"

static bool write_file(const char *dir, const char *area, const char *name, const void *data,
		       size_t len)
{
	char path[512];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, area);
	(void)mkdir(path, 0755); /* may exist; opening the file tells */
	(void)snprintf(path, sizeof(path), "%s/%s/%s", dir, area, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0) {
		perror(path);
		return false;
	}
	n = write(fd, data, len);
	return close(fd) == 0 && n == (ssize_t)len;
}

static bool write_messages(const char *dir)
{
	bool ok = true;

	for (unsigned type = 1; type < CW_MSG__MAX; type++) {
		uint8_t *buf;
		size_t len;

		if (cw_message_encode(cw_sample_message(type), &buf, &len) < 0)
			return false;
		ok = write_file(dir, "wire", cw_message_name(type), buf, len) && ok;
		free(buf);
	}
	return ok;
}

/* Sections cut to a few entries and moved together. */
static size_t compact(const struct cw_test_record *rec, char *out)
{
	static const uint32_t counts[] = { 2, 64, 1, 8, 8 };
	struct cw_rec_header h = *rec->header;
	size_t at = sizeof(h);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t bytes = (size_t)h.sections[i].entry_bytes * counts[i];

		memcpy(out + at, (const char *)rec->header + h.sections[i].offset, bytes);
		h.sections[i].offset = at;
		h.sections[i].count = counts[i];
		at = (at + bytes + 63) & ~(size_t)63;
	}
	h.total_bytes = at;
	memcpy(out, &h, sizeof(h));
	return at;
}

static void play(struct cw_test_record *rec, int ops, bool is_hung)
{
	for (int c = 0; c < 2; c++)
		cw_test_record_comm(rec, 0x1234 + (uint64_t)c, 8, 3);
	for (int i = 0; i < ops; i++) {
		int comm = i % 5 == 0;
		uint64_t op = comm ? cw_test_record_p2p(rec, comm, CW_OP_SEND, i % 8, 16)
				   : cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 16);

		cw_test_record_return(rec, comm, op, 0);
		if (!is_hung || i < ops / 4)
			cw_test_record_progress(rec, comm, op, op);
	}
}

static bool write_records(const char *dir)
{
	static const struct {
		const char *name;
		int ops;
		bool is_hung;
	} seeds[] = { { "empty", 0, false }, { "done", 20, false }, { "hung", 60, true } };
	bool ok = true;

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		struct cw_test_record *rec = cw_test_record_new();
		char *out = calloc(1, rec->bytes);

		if (!out)
			return false;
		play(rec, seeds[i].ops, seeds[i].is_hung);
		ok = write_file(dir, "record", seeds[i].name, out, compact(rec, out)) && ok;
		free(out);
		cw_test_record_free(rec);
	}
	return ok;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: make_seeds DIR\n");
		return 1;
	}
	return write_messages(argv[1]) && write_records(argv[1]) ? 0 : 1;
}
