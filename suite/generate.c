/* SPDX-License-Identifier: Apache-2.0 */
#include "suite/generate.h"

#include <stdarg.h>
#include <stdio.h>

#include "model/signature.h"
#include "suite/generate_private.h"

#define MAX_LINES 1000u

static const char *const kinds[] = { "all_reduce",     "broadcast",  "reduce", "all_gather",
				     "reduce_scatter", "all_to_all", "gather", "scatter" };

uint32_t draw_pick(struct draw *d, uint32_t low, uint32_t high)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	return low + (uint32_t)(cw_hash_mix64(d->state) % (high - low + 1));
}

bool draw_chance(struct draw *d, uint32_t percent)
{
	return draw_pick(d, 0, 99) < percent;
}

const char *draw_kind(struct draw *d)
{
	return DRAW_ONE(d, kinds);
}

static void put_list(struct draw *d, const char *fmt, va_list ap)
{
	int n = vsnprintf(&d->text[d->n], SUITE_DRAWN_BYTES - d->n, fmt, ap);

	if (n > 0 && d->n + (size_t)n < SUITE_DRAWN_BYTES)
		d->n += (size_t)n;
}

void draw_put(struct draw *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_list(d, fmt, ap);
	va_end(ap);
}

void draw_fault(struct draw *d, const char *fmt, ...)
{
	va_list ap;

	draw_put(d, "fault %u at %us on main %s ", d->culprit, d->at_s, d->kind);
	va_start(ap, fmt);
	put_list(d, fmt, ap);
	va_end(ap);
	draw_put(d, "\n");
}

size_t suite_draw(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES])
{
	struct draw d = { .state = cw_hash_mix64(seed) ^ cw_hash_mix64(index + 1), .text = ret };

	draw_sizes(&d);
	if (index % 2)
		draw_control(&d);
	else
		draw_hang(&d, (uint32_t)(index / 2 % DRAW_HANGS));
	draw_put(&d, "end\n");
	return d.n;
}

int suite_generate(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user, struct cw_err *err)
{
	char text[SUITE_DRAWN_BYTES], file[64];
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		size_t len = suite_draw(seed, i, text);

		(void)snprintf(file, sizeof(file), "seed-%llu-%llu", (unsigned long long)seed,
			       (unsigned long long)i);
		r = suite_read_text(text, len, file, MAX_LINES, fn, user, err);
	}
	return r;
}
