/* SPDX-License-Identifier: Apache-2.0 */
/* Draws jobs that make progress. In some, a rank comes late to every call. */
#include <stdio.h>
#include <string.h>

#include "lab/suite/builder.h"

struct step {
	uint32_t work_ms, compute_ms;
	bool has_outer, has_pipe;
};

static bool is_flat(const struct builder *d)
{
	return d->main_size == d->n_ranks;
}

static struct step draw_own_step(struct builder *d)
{
	return (struct step){ .work_ms = builder_pick(d, 40, 200),
			      .compute_ms = builder_chance(d, 50) ? builder_pick(d, 10, 80) : 0,
			      .has_outer = !is_flat(d) && builder_chance(d, 60),
			      .has_pipe = d->layout == SUITE_3D && builder_chance(d, 60) };
}

/*
 * True if the call has a root. In such a call, buffers absorb the delay of a late rank. At most the
 * root has to wait.
 */
static bool has_root(const struct builder *d)
{
	return !strcmp(d->kind, "broadcast") || !strcmp(d->kind, "reduce") ||
	       !strcmp(d->kind, "gather") || !strcmp(d->kind, "scatter");
}

/* Writes the program. `extra` has the statements before the call, at the head of the step. */
static void put_program(struct builder *d, const struct step *s, const char *extra)
{
	builder_put(d, "program\nloop\nwork %ums\n%s", s->work_ms, extra);
	if (s->has_pipe)
		builder_put(d, "recv pipe 512 from prev\nsync\n");
	builder_put(d, "%s main %u\n", d->kind, 1u << builder_pick(d, 4, 14));
	if (s->compute_ms)
		builder_put(d, "compute %ums\n", s->compute_ms);
	if (s->has_pipe)
		builder_put(d, "send pipe 512 to next\n");
	builder_put(d, "sync\n");
	/*
	 * With this call, all ranks wait for each other in each step, under any rule of completion.
	 */
	if (has_root(d))
		builder_put(d, "all_reduce meeting 16\nsync\n");
	if (s->has_outer)
		builder_put(d, "all_reduce outer %u\nsync\n", 1u << builder_pick(d, 4, 14));
	builder_put(d, "end\nend\n");
}

static void begin(struct builder *d, const char *what, uint32_t run_s)
{
	d->is_noisy = false;
	draw_head(d, what, run_s);
	draw_comms(d);
	/*
	 * The comm `meeting` has the members of `main`. With it, the calls are not in the windows
	 * of `main`.
	 */
	if (has_root(d))
		builder_put(d, "comms meeting size %u\n", d->main_size);
}

/* Returns a delay that matters: half of a step's usual time, and more. */
static uint32_t much_ms(struct builder *d, const struct step *s)
{
	return (s->work_ms + s->compute_ms) / 2 + builder_pick(d, 60, 300);
}

void draw_slow(struct builder *d)
{
	struct step s = draw_own_step(d);
	uint32_t other = (d->culprit + d->n_ranks / 2) % d->n_ranks;
	bool has_two = is_flat(d) && d->n_ranks >= 8 && builder_chance(d, 20);
	char extra[128] = "";

	begin(d, "comes late", 90);
	if (builder_chance(d, 30)) {
		(void)snprintf(extra, sizeof(extra), "only %u\nwork %ums\nend\n", d->culprit,
			       much_ms(d, &s));
		has_two = false;
	}
	put_program(d, &s, extra);
	if (!extra[0] && has_two)
		builder_put(d, "fault %u,%u at %us slow %ums\n", d->culprit, other, d->at_s % 20,
			    much_ms(d, &s));
	else if (!extra[0])
		builder_put(d, "fault %u at %us slow %ums\n", d->culprit, d->at_s % 20,
			    much_ms(d, &s));
	if (has_two)
		builder_put(d, "expect slow %u,%u\n", d->culprit, other);
	else
		builder_put(d, "expect slow %u\n", d->culprit);
}

/* ---- no rank comes late, or only ranks that do not matter ---- */

static void alike(struct builder *d)
{
	struct step s = draw_own_step(d);

	begin(d, "equally late", 90);
	put_program(d, &s, "");
	if (builder_chance(d, 50))
		builder_put(d, "fault all at 2s slow %ums\n", builder_pick(d, 10, 500));
}

static void by_turns(struct builder *d)
{
	struct step s = draw_own_step(d);
	char extra[512] = "";
	size_t n = 0;

	/*
	 * With these calls, each of the four late ranks would be the only late one in some
	 * communicator.
	 */
	s.has_outer = s.has_pipe = false;
	begin(d, "late by turns", 90);
	for (uint32_t i = 0; i < 4; i++)
		n += (size_t)snprintf(&extra[n], sizeof(extra) - n,
				      "every %u\nonly %u\nwork %ums\nend\nend\n", 3 + i,
				      d->main_size / 4 * i, builder_pick(d, 100, 400));
	put_program(d, &s, extra);
}

static void got_over_it(struct builder *d)
{
	struct step s = draw_own_step(d);

	begin(d, "was late", 130);
	put_program(d, &s, "");
	builder_put(d, "fault %u at 5s slow %ums for %us\n", d->culprit, much_ms(d, &s),
		    builder_pick(d, 5, 15));
}

static void a_little(struct builder *d)
{
	struct step s = draw_own_step(d);

	s.work_ms += 200;
	begin(d, "hardly late", 90);
	put_program(d, &s, "");
	builder_put(d, "fault %u at 5s slow %ums\n", d->culprit, builder_pick(d, 1, 8));
}

/* The hosts are far ahead of the devices, so a host with late calls delays no rank. */
static void ahead(struct builder *d)
{
	uint32_t compute = builder_pick(d, 40, 120);

	begin(d, "behind a host that is ahead", 90);
	builder_put(d, "program %u\nloop\nwork %ums\ncompute %ums\n%s main 4096\nend\nend\n",
		    d->culprit, builder_pick(d, 2, 6), compute, d->kind);
	builder_put(d, "program\nloop\nwork 1ms\ncompute %ums\n%s main 4096\nend\nend\n", compute,
		    d->kind);
}

void draw_nobody_slow(struct builder *d)
{
	static void (*const shapes[])(struct builder *) = { alike, by_turns, got_over_it, a_little,
							    ahead };

	BUILDER_ONE(d, shapes)(d);
	builder_put(d, "expect slow nobody\n");
}
