/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/waits.h"

#define S INT64_C(1000000000)

static const int64_t lengths_ns[WAITS_LENGTHS] = { 60 * S,   120 * S,  300 * S,  600 * S,
						   1800 * S, 3600 * S, 7200 * S, 14400 * S };

int64_t cw_waits_length_ns(unsigned i)
{
	return lengths_ns[i];
}

void cw_waits_add(struct waits *waits, int64_t timeout_ns, const struct outcome_wait *wait)
{
	struct waits_count *counts = !timeout_ns              ? waits->none
				     : timeout_ns <= 3600 * S ? waits->known
							      : waits->longer;
	unsigned i = WAITS_LENGTHS - 1;

	while (i && wait->length_ns < lengths_ns[i])
		i--;
	counts[i].n++;
	counts[i].false_pages += wait->pages;
	counts[i].notices += wait->notices;
	counts[i].n_paged += wait->pages > 0;
	counts[i].n_often_noticed += wait->notices > 1;
}

static void add(struct waits_count *to, const struct waits_count *c)
{
	to->n += c->n;
	to->false_pages += c->false_pages;
	to->notices += c->notices;
	to->n_paged += c->n_paged;
	to->n_often_noticed += c->n_often_noticed;
}

struct waits_count cw_waits_sum(const struct waits_count *counts)
{
	struct waits_count sum = { 0 };

	for (unsigned i = 0; i < WAITS_LENGTHS; i++)
		add(&sum, &counts[i]);
	return sum;
}

struct waits_count cw_waits_total(const struct waits *waits)
{
	struct waits_count sum = cw_waits_sum(waits->known);
	struct waits_count longer = cw_waits_sum(waits->longer), none = cw_waits_sum(waits->none);

	add(&sum, &longer);
	add(&sum, &none);
	return sum;
}
