/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the seeds of the binary targets into the directories DIR/wire, DIR/record, DIR/baseline
 * and DIR/leader: one frame of each message, records small enough for a fuzzer to get through, and
 * the messages of two nodes to the leader of a job that hangs.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/facts.h"
#include "model/op.h"
#include "numerics/collect/baseline_file.h"
#include "proto/codec.h"
#include "tests/support/messages/messages.h"
#include "tests/support/record/record_writer.h"

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
	/* As the writer has them: communicators, ring, …, modules, stacks, frames, connections. */
	static const uint32_t counts[] = { 2, 64, 1, 8, 8, 2, 4, 16, 4, 2, 2, 4, 4 };
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

/* Two call stacks; the ops come from them in turn. */
static void add_stacks(struct cw_test_record *rec)
{
	rec->header->has |= CW_REC_HAS_STACKS;
	(void)snprintf(rec->modules[1].name, sizeof(rec->modules[1].name), "/usr/lib/libfoo.so");
	for (unsigned i = 0; i < 4; i++) {
		rec->frames[i].publish = i + 1;
		rec->frames[i].line = 10 * i;
		(void)snprintf(rec->frames[i].file, sizeof(rec->frames[i].file), "/u/%u.py", i);
		(void)snprintf(rec->frames[i].function, sizeof(rec->frames[i].function), "f%u", i);
	}
	for (uint16_t i = 0; i < 2; i++)
		rec->stacks[i] = (struct cw_rec_stack){ .publish = i + 7u,
							.n_python = 3,
							.n_native = 1,
							.flags = CW_REC_STACK_CUT,
							.python = { 1, 2, (uint16_t)(i + 3) },
							.native = { { .module = 1 } } };
	for (unsigned i = 0; i < CW_REC_COMM_OPS; i++)
		rec->comms[0].ops[i].stack_id = i % 2 + 1;
}

/* A sender, a receiver, and an op of another process. */
static void add_connections(struct cw_test_record *rec)
{
	struct cw_rec_connection c = { .rank = 3,
				       .peer = 4,
				       .op = 2,
				       .steps = 8,
				       .counts = { 4, 3, 2, 1 },
				       .comm_plus_1 = 1,
				       .flags = CW_REC_CONNECTION_USED | CW_REC_CONNECTION_SEND |
						CW_REC_CONNECTION_DETAILED,
				       .open_ops = 2 };

	rec->connections[0] = c;
	c.flags &= ~CW_REC_CONNECTION_SEND;
	rec->connections[1] = c;
	c.pid = 4711;
	rec->connections[2] = c;
}

static bool write_records(const char *dir)
{
	static const struct {
		const char *name;
		int ops;
		bool is_hung, has_stacks, has_connections;
	} seeds[] = { { "empty", 0, false },
		      { "done", 20, false },
		      { "hung", 60, true },
		      { "stacks", 20, false, true },
		      { "connections", 20, true, false, true } };
	bool ok = true;

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		struct cw_test_record *rec = cw_test_record_new();
		char *out = calloc(1, rec->bytes);

		if (!out)
			return false;
		play(rec, seeds[i].ops, seeds[i].is_hung);
		if (seeds[i].has_stacks)
			add_stacks(rec);
		if (seeds[i].has_connections)
			add_connections(rec);
		ok = write_file(dir, "record", seeds[i].name, out, compact(rec, out)) && ok;
		free(out);
		cw_test_record_free(rec);
	}
	return ok;
}

/* ---- baselines ---- */

static bool write_baseline(const char *dir, const char *name, unsigned steps, bool is_finished)
{
	static const uint64_t counters[CW_BASELINE_COUNTERS] = { 1, 2, 3 };
	struct cw_baseline_head head = { .rank = 1, .world_size = 4, .pid = 77 };
	struct cw_baseline_comm comm = { .id = 7, .nranks = 4, .comm_rank = 1, .name = "dp" };
	struct cw_baseline_writer *w;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/baseline/%s", dir, name);
	(void)unlink(path);
	if (cw_baseline_writer_new(path, &head, &w) < 0 || cw_baseline_writer_comm(w, &comm) < 0)
		return false;
	for (unsigned i = 0; i < steps * 3; i++) {
		struct cw_baseline_row row = { .unit = CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_IN,
					       .kind = i % 3 == 2 ? CW_OP_SEND : CW_OP_ALL_REDUCE,
					       .dtype = CW_DTYPE_BF16,
					       .seq = i % 3 == 2 ? i / 3 + 1 : i - i / 3 + 1,
					       .step_plus_1 = steps > 9 ? i / 3 + 1 : 0,
					       .root_or_peer = i % 3 == 2 ? 0 : -1 };

		row.site = (uint16_t)cw_baseline_writer_site(w, i % 3 ? "a.py:1 in f" : "x");
		cw_baseline_row_set_count(&row, 100);
		for (enum cw_baseline_value v = 0; v < CW_BASELINE_VALUES; v++)
			cw_baseline_row_set_value(&row, CW_BASELINE_IN, v, 0.5 + i * 0.01);
		(void)cw_baseline_writer_row(w, &row);
	}
	return cw_baseline_writer_free(w, is_finished ? counters : NULL) == 0;
}

static bool write_baselines(const char *dir)
{
	return write_baseline(dir, "empty", 0, true) && write_baseline(dir, "steps", 12, true) &&
	       write_baseline(dir, "unfinished", 4, false);
}

/* ---- the leader: [who, seconds, frame]… as fuzz_leader.c reads it ---- */

#define PEERS 2u
#define ANSWERS 0x80u

enum hang { HANG_NEVER_ENTERED, HANG_COUNT, HANG_KILLED };

struct script {
	uint8_t bytes[32768];
	size_t len;
};

static bool say(struct script *s, unsigned who, unsigned seconds, const struct cw_message *msg)
{
	uint8_t *frame;
	size_t len;

	if (cw_message_encode(msg, &frame, &len) < 0 || s->len + len + 2 > sizeof(s->bytes))
		return false;
	s->bytes[s->len] = (uint8_t)who;
	s->bytes[s->len + 1] = (uint8_t)seconds;
	memcpy(s->bytes + s->len + 2, frame, len);
	s->len += len + 2;
	free(frame);
	return true;
}

static struct cw_msg_op op_of(unsigned who, enum hang hang, int64_t age_ns, uint64_t seq)
{
	return (struct cw_msg_op){
		.kind = CW_OP_ALL_REDUCE,
		.dtype = 7,
		.root = CW_PEER_NONE,
		.peer = CW_PEER_NONE,
		.progress = CW_PROGRESS_REACHED,
		.flags = CW_OPF_RETURNED,
		.count = hang == HANG_COUNT && who ? 8 : 16,
		.coll_seq = seq,
		.op_index = seq,
		.enter_age_ns = age_ns,
		.return_age_ns = age_ns,
	};
}

static bool say_digest(struct script *s, unsigned who, enum hang hang, uint64_t number,
		       int64_t age_ns, unsigned seconds)
{
	bool is_in = who == 0 || hang == HANG_COUNT, is_dead = who && hang == HANG_KILLED;
	struct cw_msg_op op = op_of(who, hang, age_ns, 40 + is_in);
	struct cw_msg_member member = {
		.comm_id = 7,
		.name = "world",
		.last_error = "",
		.nranks = PEERS,
		.comm_rank = (int32_t)who,
		.state = 2,
		.known = 0xf,
		.coll_entered = 40 + is_in,
		.coll_returned = 40 + is_in,
		.coll_reached = 40 + is_in,
		.coll_completed = 40,
		.op_index = 40 + is_in,
		.pending_count = is_in,
		.pending = is_in ? &op : NULL,
		.last = &op,
		.progress_age_ns = age_ns,
		.interval_ns = 100000000,
	};
	struct cw_msg_rank rank = {
		.rank = (int32_t)who,
		.world_size = PEERS,
		.local_rank = -1,
		.rank_source = "RANK",
		.pid = (int32_t)(100 + who),
		.start_ticks = 5,
		.uid = 1000,
		.liveness = is_dead ? CW_LIVE_KILLED : CW_LIVE_ALIVE,
		.term_signal = is_dead ? 9 : 0,
		.flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
		.host_activity_age_ns = age_ns,
		.command = "train",
		.host_activity_by = "cpu",
		.cause_command = "",
		.cause_group = "",
		.nonfinite_input = "",
		.members = &member,
		.n_members = 1,
	};
	struct cw_message msg = { .type = CW_MSG_DIGEST,
				  .digest = { .job_hash = 3,
					      .label = "job",
					      .uid = 1000,
					      .node = "b",
					      .epoch = 1,
					      .number = number,
					      .policy = "training",
					      .ranks = &rank,
					      .n_ranks = 1 } };

	return say(s, who, seconds, &msg);
}

static bool say_windows(struct script *s, unsigned who, enum hang hang, int64_t age_ns)
{
	struct cw_msg_op ops[2] = { op_of(who, HANG_NEVER_ENTERED, age_ns + 100000000, 40),
				    op_of(who, hang, age_ns, 41) };
	struct cw_msg_window window = { .comm_id = 7,
					.pid = (int32_t)(100 + who),
					.start_ticks = 5,
					.comm_rank = (int32_t)who,
					.ops = ops,
					.n_ops = who == 0 || hang == HANG_COUNT ? 2 : 1,
					.lost = 39 };
	struct cw_message msg = { .type = CW_MSG_WINDOW_REPLY,
				  .window_reply = {
					  .job_hash = 3, .windows = &window, .n_windows = 1 } };

	return say(s, who | ANSWERS, who, &msg);
}

static bool say_evidence(struct script *s, unsigned who)
{
	struct cw_message msg = {
		.type = CW_MSG_EVIDENCE_REPLY,
		.evidence_reply = { .pid = (int32_t)(100 + who),
				    .start_ticks = 5,
				    .json = "{\"schema\":\"collwatch.evidence/1\",\"host\":\"c\","
					    "\"pid\":101,\"stack\":[]}" },
	};

	return say(s, who | ANSWERS, who, &msg);
}

static bool write_scripts(const char *dir)
{
	static const char *const hangs[] = { "never-entered", "count", "killed" };
	static struct script s;
	bool ok = true;

	for (unsigned h = 0; h < sizeof(hangs) / sizeof(hangs[0]) && ok; h++) {
		s.len = 0;
		for (unsigned i = 0; i < 8 && ok; i++) {
			int64_t age_ns = INT64_C(5000000000) * i;

			for (unsigned who = 0; who < PEERS && ok; who++)
				ok = say_digest(&s, who, h, i + 1, age_ns, who ? 3 : 0);
			for (unsigned who = 0; who < PEERS && ok; who++)
				ok = say_windows(&s, who, h, age_ns) && say_evidence(&s, who);
		}
		ok = ok && write_file(dir, "leader", hangs[h], s.bytes, s.len);
	}
	return ok;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: make_seeds DIR\n");
		return 1;
	}
	return write_messages(argv[1]) && write_records(argv[1]) && write_baselines(argv[1]) &&
			       write_scripts(argv[1])
		       ? 0
		       : 1;
}
