/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record says beside progress: ops in the order of the bulk ring, for those who count them;
 * tensors with NaN or infinity; times of the device. All written while we read: a copy counts when
 * its number was the same before and after.
 */
#include <math.h>

#include "record/record_internal.h"

/* An op that has not returned holds the ones behind it up, until so many have come after it. */
#define PATIENCE_OPS 4096u
/* No op takes longer; a device's clock that says so was set, or is not one. */
#define MAX_DEVICE_NS (86400ull * 1000000000u)

int cw_record_each_returned(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			    cw_record_op_fn fn, void *user)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_RING];
	struct cw_rec_op chunk[CW_RECORD_CHUNK];
	uint64_t end = rec->header.ring_ticket, lost = 0;
	int r = 0;

	if (s->count == 0)
		end = 0;
	if (end < *cursor)
		*cursor = end; /* no agent counts backwards: nothing of it is believed */
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

			if (is_there && (chunk[i].flags & CW_OPF_RETURNED))
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

size_t cw_record_fed_bad(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max)
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
