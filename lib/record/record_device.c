/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the parts of a record that do not show progress: ops in the order of the bulk ring (for
 * statistics), tensors with NaN or infinity, and device times. The rank writes these parts while we
 * read. Each entry has a number. We accept a copy of an entry if the number was the same before and
 * after the read.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "record/record_internal.h"

/*
 * A walk over the ring waits at an op that has not returned. Once this many ops follow it, the walk
 * skips the op.
 */
#define PATIENCE_OPS 4096u
/*
 * No op takes longer than a day. A larger difference means that the clock was set, or that the
 * field holds no time.
 */
#define MAX_DEVICE_NS (86400ull * 1000000000u)
_Static_assert(CW_RECORD_CHUNK >= CW_REC_COMM_OPS, "a chunk holds a comm's ring");

/* Calls fn for each op that has all wanted flags and none of the unwanted ones. */
static int each_op(const struct cw_record *rec, unsigned wanted, unsigned unwanted,
		   uint64_t *cursor, uint64_t *ret_lost, cw_record_op_fn fn, void *user)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_RING];
	struct cw_rec_op chunk[CW_RECORD_CHUNK];
	uint64_t end = rec->header.ring_ticket, lost = 0;
	int r = 0;

	if (s->count == 0)
		end = 0;
	if (end < *cursor)
		*cursor = end; /* no agent counts backwards: trust none of the ring */
	if (end - *cursor > s->count) {
		lost = end - *cursor - s->count;
		*cursor = end - s->count;
	}
	while (*cursor < end) {
		uint32_t first = (uint32_t)(*cursor % s->count);
		uint64_t n = end - *cursor;

		if (n > CW_RECORD_CHUNK)
			n = CW_RECORD_CHUNK;
		if (n > s->count - first)
			n = s->count - first;
		r = cw_record_read_slots(rec, s->offset, s->entry_bytes, s->count, first,
					 (uint32_t)n, chunk);
		for (uint64_t i = 0; r == 0 && i < n; i++, ++*cursor) {
			bool is_there = chunk[i].publish == *cursor + 1;

			if (is_there && (chunk[i].flags & (wanted | unwanted)) == wanted)
				fn(&chunk[i], user);
			else if (end - *cursor > PATIENCE_OPS)
				lost++;
			else
				goto out;
		}
		if (r < 0)
			break;
	}
out:
	*ret_lost = lost;
	return r;
}

int cw_record_each_returned(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			    cw_record_op_fn fn, void *user)
{
	return each_op(rec, CW_OPF_RETURNED, 0, cursor, ret_lost, fn, user);
}

int cw_record_each_settled(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			   cw_record_op_fn fn, void *user)
{
	return each_op(rec, CW_OPF_RETURNED, CW_OPF_QUEUED, cursor, ret_lost, fn, user);
}

bool cw_record_read_published(const struct cw_record *rec, uint64_t offset, void *copy, size_t len)
{
	uint64_t before, after;

	return cw_record_pread(rec, &before, sizeof(before), offset) == 0 && before != 0 &&
	       cw_record_pread(rec, copy, len, offset) == 0 &&
	       cw_record_pread(rec, &after, sizeof(after), offset) == 0 && before == after;
}

static double finite_or_zero(double v)
{
	return isfinite(v) ? v : 0;
}

size_t cw_record_nonfinite_inputs(const struct cw_record *rec, struct cw_rec_summary ret[],
				  size_t max)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_SUMMARIES];
	size_t n = 0;

	if (!(rec->header.has & CW_REC_HAS_SUMMARIES))
		return 0;
	for (uint32_t i = 0; i < CW_REC_SUMMARY_FIRSTS && i < s->count && n < max; i++) {
		struct cw_rec_summary *to = &ret[n];

		if (!cw_record_read_published(rec, s->offset + (uint64_t)i * s->entry_bytes, to,
					      sizeof(*to)) ||
		    to->nans + to->infs == 0)
			continue;
		to->abs_max = finite_or_zero(to->abs_max);
		to->abs_min_nonzero = finite_or_zero(to->abs_min_nonzero);
		to->mean = finite_or_zero(to->mean);
		to->l2 = finite_or_zero(to->l2);
		n++;
	}
	return n;
}

enum cw_rec_stop cw_record_stopped(const struct cw_record *rec, struct cw_rec_summary *ret)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_SUMMARIES];
	uint32_t why = 0, by = 0;

	*ret = (struct cw_rec_summary){ .publish = 0 };
	if (cw_record_pread(rec, &why, sizeof(why), offsetof(struct cw_rec_header, stopped_at)) <
		    0 ||
	    why == CW_REC_STOP_NONE || why >= CW_REC_STOP__MAX)
		return CW_REC_STOP_NONE;
	if (cw_record_pread(rec, &by, sizeof(by), offsetof(struct cw_rec_header, stopped_by)) ==
		    0 &&
	    by > 0 && by <= s->count &&
	    !cw_record_read_published(rec, s->offset + (uint64_t)(by - 1) * s->entry_bytes, ret,
				      sizeof(*ret)))
		*ret = (struct cw_rec_summary){ .publish = 0 };
	return (enum cw_rec_stop)why;
}

static double magnitude_or_zero(double v)
{
	return isfinite(v) && v > 0 ? v : 0;
}

static bool is_sound(const struct cw_rec_summary *s)
{
	return s->elements <= s->offered && s->nans <= s->elements && s->infs <= s->elements &&
	       s->zeros <= s->elements && s->nans + s->infs + s->zeros <= s->elements;
}

static void take_summary(const unsigned char *before, const unsigned char *after,
			 struct cw_rec_summary *to, size_t *n)
{
	memcpy(to, before, sizeof(*to));
	/*
	 * The device sets `publish` to 0 before it writes an entry, and to a new number at the end.
	 */
	if (!to->publish || memcmp(before, after, sizeof(*to)) != 0 || !is_sound(to))
		return;
	to->abs_max = magnitude_or_zero(to->abs_max);
	to->abs_min_nonzero = magnitude_or_zero(to->abs_min_nonzero);
	++*n;
}

/*
 * A caller that polls a running process has little time, so one read fetches many entries. A second
 * read of the same entries shows those that changed.
 */
size_t cw_record_summaries(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_SUMMARIES];
	unsigned char before[CW_REC_SUMMARIES * sizeof(*ret)], after[sizeof(before)];
	uint32_t stride = s->entry_bytes, at_once;
	size_t n = 0;

	if (!(rec->header.has & CW_REC_HAS_SUMMARIES) || s->count == 0 || stride > sizeof(before))
		return 0;
	at_once = (uint32_t)sizeof(before) / stride;
	for (uint32_t first = 0; first < s->count && n < max; first += at_once) {
		uint32_t left = s->count - first, here = left < at_once ? left : at_once;
		uint64_t offset = s->offset + (uint64_t)first * stride;
		size_t len = (size_t)here * stride;

		if (cw_record_pread(rec, before, len, offset) < 0 ||
		    cw_record_pread(rec, after, len, offset) < 0)
			break;
		for (uint32_t i = 0; i < here && n < max; i++)
			take_summary(before + (size_t)i * stride, after + (size_t)i * stride,
				     &ret[n], &n);
	}
	return n;
}

int cw_record_each_kept(const struct cw_record *rec, cw_record_op_fn fn, void *user)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_RING];
	struct cw_rec_op chunk[CW_RECORD_CHUNK];
	size_t n;
	int r;

	for (uint32_t at = 0; at < s->count; at += CW_RECORD_CHUNK) {
		uint32_t left = s->count - at;

		n = left < CW_RECORD_CHUNK ? left : CW_RECORD_CHUNK;
		r = cw_record_read_slots(rec, s->offset, s->entry_bytes, s->count, at, (uint32_t)n,
					 chunk);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			if (chunk[i].publish)
				fn(&chunk[i], user);
	}
	for (size_t c = 0; c < rec->n_comms; c++) {
		r = cw_record_read_comm_ring(rec, &rec->comms[c], chunk, &n);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			fn(&chunk[i], user);
	}
	return 0;
}

void cw_record_each_time(const struct cw_record *rec, uint64_t *cursor, cw_record_time_fn fn,
			 void *user)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_TIMES];
	uint64_t newest = *cursor;

	if (!(rec->header.has & CW_REC_HAS_DEVICE_TIME))
		return;
	for (uint32_t i = 0; i < CW_REC_TIMES && i < s->count; i++) {
		struct cw_rec_time t;

		if (!cw_record_read_published(rec, s->offset + (uint64_t)i * s->entry_bytes, &t,
					      sizeof(t)) ||
		    t.publish <= *cursor || !t.begin_ns || t.end_ns < t.begin_ns ||
		    t.end_ns - t.begin_ns > MAX_DEVICE_NS)
			continue;
		if (t.publish > newest)
			newest = t.publish;
		fn(&t, user);
	}
	*cursor = newest;
}
