/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the slots of network connections while NCCL's threads change them. We accept a copy of a
 * slot if its sequence number was the same even number before and after. The record is hostile, so
 * we also check that the counts of a slot can follow from one another.
 */
#include "record/record_internal.h"

#include <string.h>

/*
 * We read a changing slot at most this often. A healthy connection changes its slot every few
 * microseconds, and a copy takes less than one.
 */
#define TRIES 4
#define CHUNK 32u
/* No NCCL has more channels (MAXCHANNELS in its src/include/device.h). */
#define MOST_CHANNELS 64

struct chunk {
	struct cw_rec_connection before[CHUNK], copy[CHUNK], after[CHUNK];
};

static int read_chunk(const struct cw_record *rec, uint32_t first, uint32_t n, struct chunk *chunk)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_CONNECTIONS];
	size_t bytes = sizeof(chunk->copy[0]);
	int r = cw_record_read_table(rec, s, first, n, bytes, chunk->before);

	if (r == 0)
		r = cw_record_read_table(rec, s, first, n, bytes, chunk->copy);
	if (r == 0)
		r = cw_record_read_table(rec, s, first, n, bytes, chunk->after);
	return r;
}

static bool is_whole(const struct chunk *chunk, uint32_t i)
{
	return chunk->before[i].sequence % 2 == 0 &&
	       chunk->before[i].sequence == chunk->copy[i].sequence &&
	       chunk->before[i].sequence == chunk->after[i].sequence;
}

static const struct cw_record_comm *comm_of(const struct cw_record *rec, uint32_t index)
{
	for (size_t i = 0; i < rec->n_comms; i++) {
		if (rec->comms[i].index == index)
			return &rec->comms[i];
	}
	return NULL;
}

/*
 * Each step passes the counts in their order, so no count exceeds the one before it. An op has no
 * more steps than the slot says.
 */
static bool are_counts_possible(const struct cw_rec_connection *c)
{
	bool has_ready =
		!(c->flags & CW_REC_CONNECTION_SEND) || (c->flags & CW_REC_CONNECTION_DETAILED);
	uint32_t ready = has_ready ? c->counts[CW_REC_STEP_READY] : c->counts[CW_REC_STEP_HANDED];

	return c->counts[CW_REC_STEP_DONE] <= c->counts[CW_REC_STEP_HANDED] &&
	       c->counts[CW_REC_STEP_HANDED] <= ready && ready <= c->counts[CW_REC_STEP_POSTED] &&
	       c->counts[CW_REC_STEP_POSTED] <= c->steps;
}

static bool is_possible(const struct cw_record *rec, const struct cw_rec_connection *c)
{
	const struct cw_record_comm *comm = NULL;

	if (c->channel >= MOST_CHANNELS || c->peer < 0 || c->rank < 0 || !c->open_ops ||
	    c->newest_ns > INT64_MAX || !are_counts_possible(c))
		return false;
	if (!c->comm_plus_1 || c->pid)
		return c->comm_plus_1 <= CW_REC_COMMS;
	comm = comm_of(rec, c->comm_plus_1 - 1u);
	return comm && (uint32_t)c->peer < comm->entry.nranks &&
	       (comm->entry.comm_rank < 0 || comm->entry.comm_rank == c->rank);
}

/*
 * Returns the newest op_index of the communicator whose low bits are those of the slot; 0 =
 * unknown.
 */
static uint64_t op_index_of(const struct cw_record *rec, const struct cw_rec_connection *c)
{
	const struct cw_record_comm *comm =
		c->comm_plus_1 && !c->pid ? comm_of(rec, c->comm_plus_1 - 1u) : NULL;
	uint64_t newest = comm ? comm->entry.op_index : 0;
	uint32_t behind = (uint32_t)newest - c->op;

	if (!c->op)
		return 0;
	/* The op may be newer than the last refresh, so we have only its low bits. */
	if (!comm || behind > newest || behind > UINT32_MAX / 2)
		return c->op;
	return newest - behind;
}

static struct cw_record_connection convert(const struct cw_record *rec,
					   const struct cw_rec_connection *c)
{
	return (struct cw_record_connection){
		.comm = c->comm_plus_1 - 1,
		.pid = c->pid,
		.rank = c->rank,
		.peer = c->peer,
		.channel = c->channel,
		.is_send = c->flags & CW_REC_CONNECTION_SEND,
		.is_p2p = c->flags & CW_REC_CONNECTION_P2P,
		.is_detailed = c->flags & CW_REC_CONNECTION_DETAILED,
		.op_index = op_index_of(rec, c),
		.replay = c->replay,
		.open_ops = c->open_ops,
		.steps = c->steps,
		.posted = c->counts[CW_REC_STEP_POSTED],
		.ready = c->counts[CW_REC_STEP_READY],
		.handed = c->counts[CW_REC_STEP_HANDED],
		.done = c->counts[CW_REC_STEP_DONE],
		.newest_mono_ns = (int64_t)c->newest_ns,
		.bytes = c->bytes,
	};
}

/* Reads one chunk until we have a whole copy of each slot, or until TRIES reads have failed. */
static int read_whole(const struct cw_record *rec, uint32_t first, uint32_t n,
		      struct cw_rec_connection *slots, bool *is_read)
{
	struct chunk chunk;
	bool is_missing = true;
	int r = 0;

	memset(is_read, 0, n * sizeof(*is_read));
	for (unsigned try = 0; try < TRIES && is_missing && r == 0; try++) {
		r = read_chunk(rec, first, n, &chunk);
		is_missing = false;
		for (uint32_t i = 0; i < n && r == 0; i++) {
			if (is_read[i])
				continue;
			is_read[i] = is_whole(&chunk, i);
			is_missing = is_missing || !is_read[i];
			slots[i] = chunk.copy[i];
		}
	}
	return r;
}

int cw_record_connections(const struct cw_record *rec, struct cw_record_connection *ret, size_t max,
			  size_t *ret_n, struct cw_record_connections_omitted *ret_omitted)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_CONNECTIONS];
	struct cw_record_connections_omitted omitted = {
		.lost = rec->header.drops[CW_REC_DROP_CONNECTIONS]
	};
	struct cw_rec_connection slots[CHUNK];
	bool is_read[CHUNK];
	size_t n = 0;

	for (uint32_t first = 0; first < s->count; first += CHUNK) {
		uint32_t here = s->count - first < CHUNK ? s->count - first : CHUNK;
		int r = read_whole(rec, first, here, slots, is_read);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < here; i++) {
			if (!is_read[i])
				omitted.torn++;
			else if (!(slots[i].flags & CW_REC_CONNECTION_USED))
				continue;
			else if (!is_possible(rec, &slots[i]))
				omitted.impossible++;
			else if (n < max)
				ret[n++] = convert(rec, &slots[i]);
		}
	}
	*ret_n = n;
	*ret_omitted = omitted;
	return 0;
}
