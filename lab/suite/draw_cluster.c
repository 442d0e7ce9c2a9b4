/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws faults of daemons while a job runs. They do not change the right answer. Each fault ends
 * before the other nodes would give up the node (a silent node after 10 s, leader/election.h).
 * After lost digests, later ones arrive.
 */
#include "lab/suite/builder.h"

#define MAX_QUIET_S 8u

static uint32_t a_node(struct builder *d)
{
	return builder_pick(d, 0, (d->n_ranks - 1) / d->per_node);
}

static void node_away(struct builder *d)
{
	static const char *const how[] = { "killed", "cut", "stalled" };

	builder_put(d, "node %u at %us %s for %us\n", a_node(d), builder_pick(d, 3, 40),
		    BUILDER_ONE(d, how), builder_pick(d, 1, MAX_QUIET_S));
}

static void leader_away(struct builder *d)
{
	static const char *const how[] = { "killed", "silent", "cut", "stalled" };

	builder_put(d, "leader at %us %s for %us\n", builder_pick(d, 3, 40), BUILDER_ONE(d, how),
		    builder_pick(d, 1, MAX_QUIET_S));
}

static void leader_anew(struct builder *d)
{
	builder_put(d, "leader at %us anew\n", builder_pick(d, 3, 40));
}

static void halves(struct builder *d)
{
	uint32_t last = a_node(d);

	builder_put(d, "node 0-%u at %us cut from %u- for %us\n", last, builder_pick(d, 3, 40),
		    last + 1, builder_pick(d, 1, MAX_QUIET_S));
}

static void digests(struct builder *d)
{
	uint32_t from = builder_pick(d, 3, 40), lasts = builder_pick(d, 5, 90);

	switch (builder_pick(d, 0, 2)) {
	case 0:
		builder_put(d, "digests at %us late %ums every %u for %us\n", from,
			    builder_pick(d, 100, 3000), builder_pick(d, 2, 9), lasts);
		break;
	case 1:
		builder_put(d, "digests at %us lost every %u for %us\n", from,
			    builder_pick(d, 3, 9), lasts);
		break;
	default:
		builder_put(d, "digests at %us twice every %u for %us\n", from,
			    builder_pick(d, 1, 9), lasts);
		break;
	}
}

static void clocks(struct builder *d)
{
	builder_put(d, "machine %u %s %us\n", a_node(d), builder_chance(d, 50) ? "ahead" : "behind",
		    builder_pick(d, 1, 800));
	builder_put(d, "machine %u %s %u\n", a_node(d), builder_chance(d, 50) ? "fast" : "slow",
		    builder_pick(d, 1, 300));
}

static void newer_version(struct builder *d)
{
	builder_put(d, "machine %s%u newer\n", builder_chance(d, 50) ? "not " : "", a_node(d));
}

void draw_cluster(struct builder *d)
{
	static void (*const things[])(struct builder *) = { node_away,    leader_away, leader_anew,
							    halves,       digests,     clocks,
							    newer_version };

	/*
	 * A scenario that loses a node may have these faults. With the other faults, a daemon might
	 * forget the lost node and never hear of it again.
	 */
	static void (*const harmless[])(struct builder *) = { digests, clocks, newer_version };

	if (d->n_ranks <= d->per_node)
		return;
	if (d->loses_node)
		BUILDER_ONE(d, harmless)(d);
	else
		BUILDER_ONE(d, things)(d);
}
