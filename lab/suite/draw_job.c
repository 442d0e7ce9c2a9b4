/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws jobs: sizes, comms and a training step. Either each comm has its own stream, or all share
 * one. All ranks make the same calls, so without a fault no rank can hang.
 */
#include <stdio.h>
#include <string.h>

#include "lab/suite/builder.h"

static bool is_flat(const struct builder *d)
{
	return d->layout == SUITE_DP || d->layout == SUITE_ZERO;
}

void draw_sizes(struct builder *d)
{
	static const uint32_t sizes[] = { 4, 4, 8 };
	uint32_t nodes;

	d->layout = builder_pick(d, SUITE_DP, SUITE_ZERO);
	d->main_size = d->layout == SUITE_3D ? 4 : BUILDER_ONE(d, sizes);
	if (is_flat(d))
		d->n_ranks = d->main_size = builder_pick(d, 4, builder_chance(d, 10) ? 48 : 20);
	else if (d->layout == SUITE_3D)
		d->n_ranks = 8 * builder_pick(d, 2, 4);
	else
		d->n_ranks = d->main_size * builder_pick(d, 2, 4);
	nodes = builder_pick(d, 2, d->n_ranks >= 16 ? 6 : 3);
	d->per_node = (d->n_ranks + nodes - 1) / nodes;
	d->culprit = builder_pick(d, 0, d->n_ranks - 1);
	d->kind = builder_kind(d);
	d->is_noisy = builder_chance(d, 30);
	d->is_graph = builder_chance(d, 20);
	d->at_s = d->is_noisy ? builder_pick(d, 75, 95) : builder_pick(d, 5, 20);
}

/*
 * Returns the largest number of devices per process. A job has at least three processes, and no
 * process spans two nodes.
 */
static uint32_t most_devices(const struct builder *d)
{
	uint32_t n = d->has_devices ? 8 : 1;

	while (d->n_ranks % n || d->per_node % n || d->n_ranks / n < 3)
		n--;
	return n;
}

const char *draw_process(const struct builder *d)
{
	static char ranks[24];
	uint32_t first = d->culprit - d->culprit % d->per_process;

	if (d->per_process == 1)
		(void)snprintf(ranks, sizeof(ranks), "%u", d->culprit);
	else
		(void)snprintf(ranks, sizeof(ranks), "%u-%u", first, first + d->per_process - 1);
	return ranks;
}

void draw_head(struct builder *d, const char *what, uint32_t run_s)
{
	d->per_process = most_devices(d);
	builder_put(d, "scenario \"%s: %s, %s\"\nlayout %s\nranks %u per-node %u",
		    suite_layout_name(d->layout), what, d->kind, suite_layout_name(d->layout),
		    d->n_ranks, d->per_node);
	if (d->per_process > 1)
		builder_put(d, " per-process %u", d->per_process);
	builder_put(d, "\nseed %u\nrun %us\n", builder_pick(d, 0, 1u << 30),
		    run_s + (d->is_noisy ? 90 : 0));
}

void draw_comms(struct builder *d)
{
	if (is_flat(d))
		builder_put(d, "comm main all\ncomm outer all\n");
	else
		builder_put(d, "comms main size %u\n", d->main_size);
	if (builder_chance(d, 10))
		builder_put(d, "lazy main\n");
	if (d->layout == SUITE_3D)
		builder_put(d, "comms outer size 2 stride 4\ncomms pipe size rest stride 8\n");
	else if (!is_flat(d))
		builder_put(d, "comms outer size rest stride %u\n", d->main_size);
}

/* Writes a call or some work that all ranks do between the calls that matter. */
static void put_filler(struct builder *d, uint32_t stream)
{
	uint32_t count = 1u << builder_pick(d, 4, 18);

	switch (builder_pick(d, 0, 6)) {
	case 0:
		builder_put(d, "group\nall_reduce main %u\nall_gather main %u\nend\n", count,
			    count / 2);
		break;
	case 1:
		builder_put(d,
			    "group\nsend outer %u to ring-next on %u\nrecv outer %u from ring-prev "
			    "on %u\nend\n",
			    count, stream, count, stream);
		break;
	case 2:
		builder_put(d, "reduce_scatter outer %u fp32 on %u\n", count, stream);
		break;
	case 3:
		builder_put(d, "work %ums\n", builder_pick(d, 5, 200));
		break;
	case 4:
		builder_put(d, "compute %ums on %u\n", builder_pick(d, 10, 300),
			    builder_pick(d, 0, 3));
		break;
	case 5:
		builder_put(d, "broadcast outer %u root 1 on %u\n", count, stream);
		break;
	default:
		builder_put(d, "all_reduce outer 0\n"); /* an empty call does not count */
		break;
	}
}

static void put_own(struct builder *d, uint32_t other)
{
	if (d->layout == SUITE_3D)
		builder_put(d, "recv pipe %u from prev\n", other);
	if (d->layout == SUITE_EP)
		builder_put(d, "all_to_all main %u\n", other);
	if (d->layout == SUITE_ZERO)
		builder_put(d, "all_gather main %u\n", other);
}

/* Writes the other contents of the graph besides the call. */
static void put_rest_of_graph(struct builder *d, uint32_t count)
{
	if (builder_chance(d, 50))
		builder_put(d, "group\nall_reduce main %u\nall_gather main %u\nend\n", count + 8,
			    count / 2);
	if (builder_chance(d, 50))
		builder_put(d, "reduce_scatter outer %u fp32\n", count);
	builder_put(d, "end\n");
}

void draw_step(struct builder *d)
{
	uint32_t count = 1u << builder_pick(d, 6, 16), other = count + 64;
	uint32_t stream = builder_chance(d, 40) ? 1 : 0;

	builder_put(d, "work %ums\n", builder_pick(d, 40, 200));
	put_own(d, other);
	for (uint32_t n = builder_pick(d, 0, 2); n; n--)
		put_filler(d, stream);
	if (d->is_graph)
		builder_put(d, "graph\n");
	builder_put(d, "%s main %u\n", d->kind, count);
	builder_put(d, "compute %ums\n", builder_pick(d, 40, 250));
	if (d->is_graph)
		put_rest_of_graph(d, count);
	if (d->layout == SUITE_3D)
		builder_put(d, "send pipe %u to next\n", other);
	for (uint32_t n = builder_pick(d, 0, 2); n; n--)
		put_filler(d, stream);
	builder_put(d, "all_reduce main fp32 %u\n", other);
	if (!is_flat(d))
		builder_put(d, "all_reduce outer %u on %u\n", other, stream);
	builder_put(d, "%s\n", builder_chance(d, 80) ? "sync" : "wait");
}

/* Writes a harmless fault that ends before the real one begins. */
static void put_noise(struct builder *d)
{
	uint32_t who = builder_pick(d, 0, d->n_ranks - 1), at = builder_pick(d, 5, 12);

	switch (builder_pick(d, 0, 5)) {
	case 0:
		builder_put(d, "fault %u at %us on main io for %us\n", who, at,
			    builder_pick(d, 5, 40));
		break;
	case 1:
		builder_put(d, "fault %u at %us slow %ums for 40s\n", who, at,
			    builder_pick(d, 20, 3000));
		break;
	case 2:
		builder_put(d, "node 1 at %us goodbye for %us\n", at, builder_pick(d, 3, 20));
		break;
	case 3:
		builder_put(d, "fault %u at %us on main block for %us\n", who, at,
			    builder_pick(d, 5, 30));
		break;
	case 4:
		builder_put(d, "daemons at %us restart for %us\n", at, builder_pick(d, 2, 20));
		break;
	default:
		builder_put(d, "fault all at %us on main child for %us\n", at,
			    builder_pick(d, 5, 20));
		break;
	}
}

void draw_job(struct builder *d, const char *what, uint32_t run_s)
{
	draw_head(d, what, run_s);
	draw_comms(d);
	builder_put(d, "program\nloop\n");
	draw_step(d);
	builder_put(d, "end\nend\n");
	if (builder_chance(d, 10))
		draw_difference(d);
	if (d->is_noisy)
		put_noise(d);
}
