/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/connection_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "record/record_layout.h"

/* cw_record_connections() returns at most this many. */
#define ROWS (2 * CW_REC_CONNECTIONS)

static bool is_same_op(const struct cw_record_connection *a, const struct cw_record_connection *b)
{
	return a->op_index == b->op_index && a->replay == b->replay && a->steps == b->steps &&
	       a->posted <= b->posted && a->ready <= b->ready && a->handed <= b->handed &&
	       a->done <= b->done;
}

/*
 * Finds the sample of the connection in the previous reading. A busy connection keeps its slot, so
 * the search begins behind the last hit and usually ends there.
 */
static const struct cw_connection_sample *find(const struct cw_connection_samples *s,
					       const struct cw_record_connection *row, size_t *at)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t k = (*at + i) % s->n;
		const struct cw_record_connection *c = &s->v[k].now;

		if (c->comm == row->comm && c->pid == row->pid && c->rank == row->rank &&
		    c->peer == row->peer && c->channel == row->channel &&
		    c->is_send == row->is_send && c->is_p2p == row->is_p2p) {
			*at = k + 1;
			return &s->v[k];
		}
	}
	return NULL;
}

static uint32_t held_steps(const struct cw_record_connection *c)
{
	return (c->is_detailed ? c->ready : c->handed) - c->done;
}

static struct cw_connection_sample next_of(const struct cw_connection_sample *before,
					   const struct cw_record_connection *row, int64_t taken_ns,
					   int64_t now_ns)
{
	struct cw_connection_sample next = { .now = *row,
					     .first_ns = now_ns,
					     .same_since_ns = now_ns,
					     .first_done = row->done,
					     .first_bytes = row->bytes };

	if (!before || !is_same_op(&before->now, row) || now_ns < taken_ns)
		return next;
	next.first_ns = before->first_ns;
	next.first_done = before->first_done;
	next.first_bytes = before->first_bytes;
	next.held_step_ns = before->held_step_ns;
	/* The number of steps lies between those of both readings. */
	if (row->is_send)
		next.held_step_ns += ((uint64_t)held_steps(&before->now) + held_steps(row)) *
				     (uint64_t)(now_ns - taken_ns) / 2;
	if (before->now.posted == row->posted && before->now.ready == row->ready &&
	    before->now.handed == row->handed && before->now.done == row->done)
		next.same_since_ns = before->same_since_ns;
	return next;
}

int cw_connection_samples_take(struct cw_connection_samples *s, const struct cw_record *record,
			       int64_t now_ns)
{
	struct cw_record_connections_omitted omitted;
	struct cw_connection_sample *next;
	size_t n, at = 0;
	int r;

	if (!s->v)
		s->v = calloc(ROWS, sizeof(*s->v));
	if (!s->spare)
		s->spare = calloc(ROWS, sizeof(*s->spare));
	if (!s->rows)
		s->rows = calloc(ROWS, sizeof(*s->rows));
	if (!s->v || !s->spare || !s->rows)
		return -ENOMEM;
	r = cw_record_connections(record, s->rows, ROWS, &n, &omitted);
	if (r < 0)
		return r;
	next = s->spare;
	s->n_foreign = 0;
	for (size_t i = 0; i < n; i++) {
		next[i] = next_of(find(s, &s->rows[i], &at), &s->rows[i], s->taken_ns, now_ns);
		s->n_foreign += s->rows[i].pid != 0;
	}
	s->spare = s->v;
	s->v = next;
	s->n = n;
	s->lost = omitted.lost + omitted.torn + omitted.impossible;
	s->taken_ns = now_ns;
	return 0;
}

void cw_connection_samples_clear(struct cw_connection_samples *s)
{
	s->n = s->n_foreign = 0;
	s->lost = 0;
}

void cw_connection_samples_fini(struct cw_connection_samples *s)
{
	free(s->v);
	free(s->spare);
	free(s->rows);
	*s = (struct cw_connection_samples){ 0 };
}

uint64_t cw_connection_sample_held_ns(const struct cw_connection_sample *c)
{
	uint32_t done = c->now.done - c->first_done;

	return c->held_step_ns / (done ? done : 1);
}

uint64_t cw_connection_sample_bytes_per_s(const struct cw_connection_sample *c, int64_t taken_ns)
{
	uint64_t bytes = c->now.bytes - c->first_bytes;
	int64_t ns = taken_ns - c->first_ns;

	if (ns <= 0 || c->now.bytes < c->first_bytes)
		return 0;
	return (uint64_t)((double)bytes * (double)CW_NS_PER_S / (double)ns);
}
