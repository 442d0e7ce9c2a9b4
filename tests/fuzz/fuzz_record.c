/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flight record that is hostile from the start, and then changes under the reader: the last eight
 * bytes of the input give the place and the value.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "record/record_reader.h"
#include "tests/fuzz/fuzz.h"

#define MAX_OPS 256
#define MAX_STACKS 4 /* a hundred reads each */

static void check_text(const char *text, size_t size)
{
	FUZZ_CHECK(memchr(text, '\0', size));
	FUZZ_CHECK(!strchr(text, '\n') && !strchr(text, 0x1b));
}

static void check_stack(const struct cw_record *rec, uint32_t number)
{
	static char text[CW_RECORD_STACK_BYTES];

	if (cw_record_stack(rec, number, text, sizeof(text)) < 0)
		FUZZ_CHECK(text[0] == '\0');
	FUZZ_CHECK(memchr(text, '\0', sizeof(text)) && !strchr(text, 0x1b));
	FUZZ_CHECK(!strstr(text, "\n\n") && text[0] != '\n');
}

static void check_window(const struct cw_record *rec, const struct cw_record_op *ops, size_t n,
			 uint64_t lost)
{
	FUZZ_CHECK(n <= MAX_OPS);
	for (size_t i = 0; i < n; i++) {
		FUZZ_CHECK(ops[i].op_index > (i ? ops[i - 1].op_index : lost));
		FUZZ_CHECK(ops[i].progress <= CW_PROGRESS_COMPLETED);
		FUZZ_CHECK(ops[i].root >= CW_PEER_NONE && ops[i].peer >= CW_PEER_NONE);
		if (i < MAX_STACKS)
			check_stack(rec, ops[i].stack);
	}
}

static void on_op(const struct cw_rec_op *op, void *user)
{
	FUZZ_CHECK(op->flags & CW_OPF_RETURNED);
}

static void on_time(const struct cw_rec_time *t, void *user)
{
	FUZZ_CHECK(t->begin_ns <= t->end_ns);
}

static void check_connections(const struct cw_record *rec)
{
	static struct cw_record_connection all[2 * CW_REC_CONNECTIONS];
	struct cw_record_connections_omitted omitted;
	size_t n;

	if (cw_record_connections(rec, all, 2 * CW_REC_CONNECTIONS, &n, &omitted) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		FUZZ_CHECK(all[i].posted <= all[i].steps && all[i].handed <= all[i].posted &&
			   all[i].done <= all[i].handed);
		FUZZ_CHECK(all[i].peer >= 0 && all[i].comm < CW_REC_COMMS);
	}
}

static void check_variables(const struct cw_record *rec)
{
	struct cw_rec_variables found;
	struct cw_nccl_variable v;
	const char *at;

	if (cw_record_nccl_variables(rec, &found) < 0)
		return;
	check_text(found.text, sizeof(found.text));
	for (at = found.text; cw_nccl_variables_next(&at, &v);)
		FUZZ_CHECK(v.name >= found.text && v.value + v.value_len <= at);
}

static void read_everything(struct cw_record *rec)
{
	struct cw_rec_summary bad[CW_REC_SUMMARY_FIRSTS];
	uint64_t cursor = 0;
	static struct cw_record_op ops[MAX_OPS];
	struct cw_p2p_peer peers[CW_REC_P2P_PEERS];
	const struct cw_record_comm *comms;
	struct cw_record_state state;
	size_t n_comms, n;
	uint64_t lost;

	check_text(cw_record_header(rec)->job_label, sizeof(cw_record_header(rec)->job_label));
	comms = cw_record_comms(rec, &n_comms);
	for (size_t i = 0; i < n_comms; i++) {
		check_text(comms[i].entry.name, sizeof(comms[i].entry.name));
		if (cw_record_window(rec, &comms[i], ops, MAX_OPS, &n, &lost) == 0)
			check_window(rec, ops, n, lost);
		if (cw_record_state(rec, &comms[i], &state) == 0 && state.completed_known)
			FUZZ_CHECK(state.coll_completed <= comms[i].entry.coll_entered);
		if (cw_record_p2p(rec, &comms[i], peers, CW_REC_P2P_PEERS, &n) == 0)
			FUZZ_CHECK(n <= CW_REC_P2P_PEERS);
	}
	(void)cw_record_each_returned(rec, &cursor, &lost, on_op, NULL);
	check_connections(rec);
	check_variables(rec);
	cursor = 0;
	cw_record_each_time(rec, &cursor, on_time, NULL);
	FUZZ_CHECK(cw_record_nonfinite_inputs(rec, bad, CW_REC_SUMMARY_FIRSTS) <=
		   CW_REC_SUMMARY_FIRSTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_record *rec = NULL;
	uint32_t where, what;
	int fd;

	if (size < 4096)
		return 0;
	fd = fuzz_file(data, size);
	if (cw_record_open(dup(fd), false, &rec, NULL) < 0)
		return 0;
	read_everything(rec);
	memcpy(&where, data + size - 8, sizeof(where));
	memcpy(&what, data + size - 4, sizeof(what));
	(void)!pwrite(fd, &what, sizeof(what), (off_t)(where % (size - 4)));
	(void)cw_record_refresh(rec);
	read_everything(rec);
	cw_record_close(rec);
	return 0;
}
