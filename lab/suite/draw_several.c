/* SPDX-License-Identifier: Apache-2.0 */
/* Draws groups of ranks that share no communicator. Some of the groups have a fault each. */
#include <string.h>

#include "lab/suite/builder.h"

#define GROUPS_MAX 5u

static const struct trouble {
	const char *action; /* action of a fault on `main` */
	const char *answer;
} troubles[] = {
	{ "block", "never_entered outside_nccl" },
	{ "stop", "never_entered stopped" },
	{ "kill 9", "process_dead killed" },
	{ "change count 17", "mismatch count" },
	{ "stuck", "device_stalled" },
	{ "wedge", "in_collective nobody" },
};

static void put_groups(struct builder *d, uint32_t n_groups, const char *what)
{
	d->is_noisy = false;
	d->has_devices = false; /* two ranks of one process cannot have separate faults */
	d->main_size = builder_pick(d, 3, 6);
	d->n_ranks = d->main_size * n_groups;
	d->per_node = builder_pick(d, 2, d->main_size);
	d->layout = builder_chance(d, 50) ? SUITE_TP_DP : SUITE_EP;
	draw_head(d, what, 840);
	builder_put(d, "comms main size %u\nprogram\nloop\nwork %ums\n", d->main_size,
		    builder_pick(d, 20, 200));
	builder_put(d, "%s main %u\ncompute %ums\nall_gather main 96 fp32\nsync\nend\nend\n",
		    d->kind, 1u << builder_pick(d, 6, 16), builder_pick(d, 10, 100));
}

/*
 * True if `who` is the root of the call in which the others wait, and so gives them work. If such a
 * rank is idle, it may have no work to give, which is no fault.
 */
static bool is_source(const struct builder *d, uint32_t who)
{
	return who % d->main_size == 0 &&
	       (!strcmp(d->kind, "broadcast") || !strcmp(d->kind, "scatter"));
}

static uint32_t someone(struct builder *d, uint32_t group)
{
	return group * d->main_size + builder_pick(d, 0, d->main_size - 1);
}

void draw_several(struct builder *d)
{
	uint32_t n_groups = builder_pick(d, 2, GROUPS_MAX), n = builder_pick(d, 2, n_groups);
	uint32_t first = builder_pick(d, 0, sizeof(troubles) / sizeof(*troubles) - 1);

	put_groups(d, n_groups, "several troubles");
	for (uint32_t i = 0; i < n; i++) {
		const struct trouble *t =
			&troubles[(first + i) % (sizeof(troubles) / sizeof(*troubles))];
		uint32_t who = someone(d, i);

		builder_put(d, "fault %u at %us on main %s %s%s\n", who, builder_pick(d, 5, 40),
			    d->kind, t->action,
			    !strcmp(t->action, "block") && is_source(d, who) ? " in lock" : "");
		builder_put(d, "%s %s", i ? "also" : "expect", t->answer);
		if (t->answer[0] != 'i')
			builder_put(d, " %u", who);
		builder_put(d, "\n");
	}
}

void draw_late_groups(struct builder *d)
{
	static const char *const by[] = { "io", "child", "spin" };
	uint32_t n_groups = builder_pick(d, 2, GROUPS_MAX);

	put_groups(d, n_groups, "late here and there");
	for (uint32_t i = 0; i < n_groups; i++)
		builder_put(d, "fault %u at %us on main %s %s for %us\n", someone(d, i),
			    builder_pick(d, 5, 60), d->kind, BUILDER_ONE(d, by),
			    builder_pick(d, 5, 150));
}
