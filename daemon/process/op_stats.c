/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds completed ops to rows by communicator, kind and size. The number of rows is fixed. An op
 * without a row of its own goes to the last row.
 */
#include "daemon/process/op_stats.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

struct sampling {
	struct cw_op_stats *stats;
	struct cw_op_totals *totals;
	const struct cw_record *record;
	const struct cw_record_comm *comms;
	size_t n_comms;
	const struct cw_record_comm *last;
};

/* From a call that only enqueues an op, to a job that waits for a checkpoint. */
const uint64_t cw_op_buckets_ns[CW_OP_BUCKETS - 1] = {
	5000,
	10000,
	25000,
	50000,
	100000,
	250000,
	CW_NS_PER_MS,
	5 * CW_NS_PER_MS,
	25 * CW_NS_PER_MS,
	100 * CW_NS_PER_MS,
	CW_NS_PER_S,
	10 * CW_NS_PER_S,
};

static unsigned bucket_of(uint64_t ns)
{
	unsigned i = 0;

	while (i < CW_OP_BUCKETS - 1 && ns > cw_op_buckets_ns[i])
		i++;
	return i;
}

unsigned cw_op_stats_size_class(uint64_t bytes)
{
	unsigned c = 0;

	for (uint64_t limit = 4096; c < CW_OP_SIZES - 1 && bytes > limit; limit <<= 4)
		c++;
	return c;
}

const char *cw_op_stats_size_name(unsigned size_class)
{
	static const char *const names[CW_OP_SIZES] = { "<= 4 KiB",  "<= 64 KiB",  "<= 1 MiB",
							"<= 16 MiB", "<= 256 MiB", "> 256 MiB" };

	return size_class < CW_OP_SIZES ? names[size_class] : "?";
}

void cw_op_stats_fini(struct cw_op_stats *s)
{
	free(s->rows);
	*s = (struct cw_op_stats){ 0 };
}

static const struct cw_record_comm *comm_of(struct sampling *s, uint32_t index, uint32_t generation)
{
	if (s->last && s->last->index == index && s->last->entry.generation % 65536 == generation)
		return s->last;
	for (size_t i = 0; i < s->n_comms; i++)
		if (s->comms[i].index == index &&
		    s->comms[i].entry.generation % 65536 == generation)
			return s->last = &s->comms[i];
	return NULL;
}

static struct cw_op_row *row_of(struct cw_op_stats *stats, const struct cw_record_comm *comm,
				unsigned kind, unsigned size_class)
{
	uint64_t id = comm->entry.comm_id;
	struct cw_op_row *row;

	if (!stats->rows)
		stats->rows = calloc(CW_OP_STATS_ROWS, sizeof(*stats->rows));
	if (!stats->rows)
		return NULL;
	for (size_t i = 0; i < stats->n_rows; i++) {
		row = &stats->rows[i];
		if (row->comm_id == id && row->kind == kind && row->size_class == size_class)
			return row;
	}
	if (stats->n_rows == CW_OP_STATS_ROWS)
		return &stats->rows[CW_OP_STATS_ROWS - 1];
	row = &stats->rows[stats->n_rows++];
	if (stats->n_rows == CW_OP_STATS_ROWS)
		return row; /* the last row is for all other ops */
	row->comm_id = id;
	row->kind = (uint8_t)kind;
	row->size_class = (uint8_t)size_class;
	row->nranks = comm->entry.nranks;
	memcpy(row->comm_name, comm->entry.name, sizeof(row->comm_name));
	return row;
}

/* Largest values that we add. A record may contain any value, and our sums must not overflow. */
#define MAX_OP_BYTES (UINT64_C(1) << 50)
#define MAX_CALL_NS (UINT64_C(7) * 24 * 3600 * CW_NS_PER_S)
#define MAX_LOST_A_LOOK (UINT64_C(1) << 32)

static uint64_t at_most(uint64_t v, uint64_t most)
{
	return v < most ? v : most;
}

static bool is_counted(unsigned kind)
{
	return cw_op_is_collective(kind) || cw_op_is_p2p(kind);
}

static void add_op(struct cw_op_sums *to, const struct cw_rec_op *op, uint64_t call_ns)
{
	to->ops++;
	to->bytes += at_most(op->bytes, MAX_OP_BYTES);
	to->call_ns += call_ns;
	cw_durations_add(&to->calls, call_ns);
}

static void add_sized_op(struct cw_op_totals *totals, const struct cw_rec_op *op, uint64_t call_ns)
{
	struct cw_op_sized *to = &totals->sized[op->kind][cw_op_stats_size_class(op->bytes)];

	to->bytes += at_most(op->bytes, MAX_OP_BYTES);
	to->call_ns += call_ns;
	to->calls[bucket_of(call_ns)]++;
}

static void on_op(const struct cw_rec_op *op, void *user)
{
	const uint16_t never_ran = CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT;
	struct sampling *s = user;
	const struct cw_record_comm *comm = comm_of(s, op->comm, op->comm_generation);
	struct cw_op_row *row;
	int64_t took;
	uint64_t call_ns;

	if (!comm || !is_counted(op->kind) || (op->flags & never_ran))
		return;
	took = cw_record_time(s->record, op->return_ns) - cw_record_time(s->record, op->enter_ns);
	call_ns = took < 0 ? 0 : at_most((uint64_t)took, MAX_CALL_NS);
	add_op(&s->totals->kinds[op->kind], op, call_ns);
	add_sized_op(s->totals, op, call_ns);
	row = row_of(s->stats, comm, op->kind, cw_op_stats_size_class(op->bytes));
	if (row)
		add_op(&row->sums, op, call_ns);
}

static void add_time(struct cw_op_sums *to, const struct cw_rec_time *t)
{
	uint64_t took = t->end_ns - t->begin_ns;

	to->timed++;
	to->timed_bytes += at_most(t->bytes, MAX_OP_BYTES);
	to->device_ns += took;
	if (took > to->device_max_ns)
		to->device_max_ns = took;
}

static void add_sized_time(struct cw_op_totals *totals, const struct cw_rec_time *t)
{
	struct cw_op_sized *to = &totals->sized[t->kind][cw_op_stats_size_class(t->bytes)];

	to->timed_bytes += at_most(t->bytes, MAX_OP_BYTES);
	to->device_ns += t->end_ns - t->begin_ns;
	to->device[bucket_of(t->end_ns - t->begin_ns)]++;
}

static void on_time(const struct cw_rec_time *t, void *user)
{
	struct sampling *s = user;
	const struct cw_record_comm *comm = comm_of(s, t->comm, t->comm_generation % 65536);
	struct cw_op_row *row;

	if (!comm || !is_counted(t->kind))
		return;
	add_time(&s->totals->kinds[t->kind], t);
	add_sized_time(s->totals, t);
	row = row_of(s->stats, comm, t->kind, cw_op_stats_size_class(t->bytes));
	if (row)
		add_time(&row->sums, t);
}

void cw_op_stats_sample(struct cw_op_stats *stats, const struct cw_record *record, int64_t now_ns,
			struct cw_op_totals *totals)
{
	struct sampling s = { .stats = stats, .totals = totals, .record = record };
	uint64_t lost = 0;

	if (stats->sampled_ns && now_ns - stats->sampled_ns < CW_NS_PER_S)
		return;
	stats->sampled_ns = now_ns;
	s.comms = cw_record_comms(record, &s.n_comms);
	/* Ignore errors of reading, because the record's sampler counts them. */
	(void)cw_record_each_returned(record, &stats->op_cursor, &lost, on_op, &s);
	lost = at_most(lost, MAX_LOST_A_LOOK);
	stats->lost += lost;
	totals->lost += lost;
	cw_record_each_time(record, &stats->time_cursor, on_time, &s);
}
