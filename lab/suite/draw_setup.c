/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws differences between ranks: NCCL versions, variables, and the size that ranks pass for a
 * comm.
 */
#include <string.h>

#include "lab/suite/builder.h"

static uint32_t other_minor(struct builder *d)
{
	return builder_pick(d, 18, 27);
}

void draw_difference(struct builder *d)
{
	uint32_t who = builder_pick(d, 0, d->n_ranks - 1);

	switch (builder_pick(d, 0, 3)) {
	case 0:
		builder_put(d, "nccl %u 2.%u.%u\n", who, other_minor(d), builder_pick(d, 1, 7));
		break;
	case 1:
		builder_put(d, "environment %u %u\n", who, builder_pick(d, 0, 9));
		break;
	case 2:
		builder_put(d, "environment all own\n");
		break;
	default:
		builder_put(d, "nccl odd 2.%u.3\n", other_minor(d));
		break;
	}
}

static void begin(struct builder *d, const char *what)
{
	d->is_noisy = false;
	d->has_devices = false; /* ranks of one process have the same version and variables */
	/* Only flat jobs have odd sizes. In these, `main` has all ranks. */
	d->n_ranks += d->n_ranks % 2;
	if (d->layout == SUITE_DP || d->layout == SUITE_ZERO)
		d->main_size = d->n_ranks;
	draw_head(d, what, 420);
	draw_comms(d);
}

/*
 * Returns the answer for a call with a root. There data pass from member to member, and all members
 * but the one whose device stops may finish. The difference between members is the answer only if
 * no member finishes.
 */
static const char *or_unfinished(const struct builder *d)
{
	static const char *const rooted[] = { "gather", "scatter", "reduce", "broadcast" };

	for (size_t i = 0; i < sizeof(rooted) / sizeof(*rooted); i++)
		if (!strcmp(d->kind, rooted[i]))
			return " or in_collective nobody";
	return "";
}

/* The first call of the culprit's comm does not end. */
static void first_call(struct builder *d)
{
	uint32_t first = d->culprit / d->main_size * d->main_size;

	begin(d, "differs from the start");
	builder_put(d, "program\nloop\nwork %ums\n%s main %u\nsync\nend\nend\n",
		    builder_pick(d, 20, 200), d->kind, 1u << builder_pick(d, 4, 16));
	builder_put(d, "fault %u at 0s on main %s wedge\n", builder_pick(d, first, d->culprit),
		    d->kind);
	switch (builder_pick(d, 0, 2)) {
	case 0:
		builder_put(d, "nccl %u 2.%u.%u\nexpect mismatch version %u", d->culprit,
			    other_minor(d), builder_pick(d, 1, 7), d->culprit);
		break;
	case 1:
		builder_put(d, "environment %u %u\nexpect mismatch environment %u", d->culprit,
			    builder_pick(d, 0, 9), d->culprit);
		break;
	default:
		builder_put(d, "nccl odd 2.%u.3\nexpect mismatch version %u-%u", other_minor(d),
			    first, first + d->main_size - 1);
		break;
	}
	builder_put(d, "%s\n", or_unfinished(d));
}

static void put_making(struct builder *d)
{
	builder_put(d,
		    "comm late all by init\nprogram\nloop %u\nwork %ums\n%s main\nsync\nend\n"
		    "init late\nloop\nwork 50ms\n%s late\nsync\nend\nend\n",
		    builder_pick(d, 1, 100), builder_pick(d, 10, 60), d->kind, d->kind);
}

void draw_differs_in_setup(struct builder *d)
{
	if (builder_chance(d, 50)) {
		first_call(d);
		return;
	}
	begin(d, "differs in the making");
	put_making(d);
	switch (builder_pick(d, 0, 2)) {
	case 0:
		builder_put(d, "told %u late %u\nexpect mismatch membership %u\n", d->culprit,
			    builder_chance(d, 50) ? d->n_ranks - 1 : d->n_ranks + 1, d->culprit);
		return;
	case 1:
		builder_put(d, "nccl %u 2.%u.2\nexpect mismatch version %u\n", d->culprit,
			    other_minor(d), d->culprit);
		break;
	default:
		builder_put(d, "environment %u 8\nexpect mismatch environment %u\n", d->culprit,
			    d->culprit);
		break;
	}
	builder_put(d, "fault %u at 0s on late init wedge\n", builder_pick(d, 0, d->n_ranks - 1));
}

void draw_all_in_making(struct builder *d)
{
	begin(d, "a making that does not end");
	put_making(d);
	builder_put(d, "fault %u at 0s on late init wedge\nexpect init_stuck nobody\n", d->culprit);
}
