/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/durations.h"

#define FIRST_NS_LOG2 6u /* 2^6 ns: the clocks are too coarse for shorter durations */
#define PER_DOUBLING_LOG2 2u

/*
 * Returns the class of a duration. Class 0 holds all durations below 2^6 ns. Every other class is
 * the highest bit of the duration and the two bits below it.
 */
static unsigned class_of(uint64_t ns)
{
	unsigned log2, c;

	if (ns < UINT64_C(1) << FIRST_NS_LOG2)
		return 0;
	log2 = 63u - (unsigned)__builtin_clzll(ns);
	c = 1 + ((log2 - FIRST_NS_LOG2) << PER_DOUBLING_LOG2) +
	    (unsigned)((ns >> (log2 - PER_DOUBLING_LOG2)) & ((1u << PER_DOUBLING_LOG2) - 1));
	return c < CW_DURATIONS_CLASSES ? c : CW_DURATIONS_CLASSES - 1;
}

static uint64_t middle_of(unsigned c)
{
	unsigned log2 = FIRST_NS_LOG2 + ((c - 1) >> PER_DOUBLING_LOG2);
	uint64_t width = UINT64_C(1) << (log2 - PER_DOUBLING_LOG2);

	if (c == 0)
		return UINT64_C(1) << (FIRST_NS_LOG2 - 1);
	return (UINT64_C(1) << log2) + ((c - 1) & ((1u << PER_DOUBLING_LOG2) - 1)) * width +
	       width / 2;
}

static void count(uint32_t *at, uint32_t n)
{
	*at = n < UINT32_MAX - *at ? *at + n : UINT32_MAX;
}

void cw_durations_add(struct cw_durations *d, uint64_t ns)
{
	count(&d->counts[class_of(ns)], 1);
	d->n++;
	if (ns > d->max_ns)
		d->max_ns = ns;
}

void cw_durations_join(struct cw_durations *d, const struct cw_durations *from)
{
	for (unsigned c = 0; c < CW_DURATIONS_CLASSES; c++)
		count(&d->counts[c], from->counts[c]);
	d->n += from->n;
	if (from->max_ns > d->max_ns)
		d->max_ns = from->max_ns;
}

uint64_t cw_durations_quantile_ns(const struct cw_durations *d, unsigned percent)
{
	uint64_t all = 0, sum = 0;

	for (unsigned c = 0; c < CW_DURATIONS_CLASSES; c++)
		all += d->counts[c];
	for (unsigned c = 0; c + 1 < CW_DURATIONS_CLASSES && all; c++) {
		sum += d->counts[c];
		if (sum && sum * 100 >= all * percent)
			return middle_of(c) < d->max_ns ? middle_of(c) : d->max_ns;
	}
	return d->max_ns;
}
