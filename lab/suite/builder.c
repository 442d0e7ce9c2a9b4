/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/builder.h"

#include <stdarg.h>
#include <stdio.h>

#include "model/signature.h"

static const char *const kinds[] = { "all_reduce",     "broadcast",  "reduce", "all_gather",
				     "reduce_scatter", "all_to_all", "gather", "scatter" };

struct builder builder_begin(uint64_t seed, uint64_t index, char text[SUITE_DRAWN_BYTES])
{
	return (struct builder){ .state = cw_hash_mix64(seed) ^ cw_hash_mix64(index + 1),
				 .text = text };
}

uint32_t builder_pick(struct builder *d, uint32_t low, uint32_t high)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	return low + (uint32_t)(cw_hash_mix64(d->state) % (high - low + 1));
}

bool builder_chance(struct builder *d, uint32_t percent)
{
	return builder_pick(d, 0, 99) < percent;
}

const char *builder_kind(struct builder *d)
{
	return BUILDER_ONE(d, kinds);
}

const struct draw_wait *draw_wait(struct builder *d)
{
	static const struct draw_wait waits[] = {
		{ "block", "sleep", " in lock", .page_s = DRAW_IDLE_PAGE_S },
		{ "block", "sleep", " in gil", .page_s = DRAW_IDLE_PAGE_S },
		{ "block", "sleep", " in sync", .page_s = DRAW_IDLE_PAGE_S },
		{ "block", "sleep", " in socket", .is_open = true, .page_s = DRAW_IDLE_PAGE_S },
		{ "block", "sleep", " in queue", .is_open = true, .page_s = DRAW_IDLE_PAGE_S },
		{ "block", "sleep", " in tty", .is_person = true, .page_s = DRAW_NO_PAGE },
		{ "io", "io", " in storage still", .page_s = DRAW_STORAGE_PAGE_S },
		{ "io", "io", " in storage moving", .is_working = true, .page_s = DRAW_NO_PAGE },
		{ "spin", "work", "", .is_working = true, .page_s = DRAW_NO_PAGE },
		{ "child", "child", "", .is_working = true, .page_s = DRAW_NO_PAGE },
	};

	return &waits[builder_pick(d, 0, sizeof(waits) / sizeof(*waits) - 1)];
}

__attribute__((format(printf, 2, 0))) static void put_list(struct builder *d, const char *fmt,
							   va_list ap)
{
	int n = vsnprintf(&d->text[d->n], SUITE_DRAWN_BYTES - d->n, fmt, ap);

	if (n > 0 && d->n + (size_t)n < SUITE_DRAWN_BYTES)
		d->n += (size_t)n;
}

void builder_put(struct builder *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_list(d, fmt, ap);
	va_end(ap);
}

void draw_fault(struct builder *d, const char *fmt, ...)
{
	va_list ap;

	builder_put(d, "fault %u at %us on main %s ", d->culprit, d->at_s, d->kind);
	va_start(ap, fmt);
	put_list(d, fmt, ap);
	va_end(ap);
	builder_put(d, "\n");
}
