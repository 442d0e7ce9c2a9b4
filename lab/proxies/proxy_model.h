/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pure model of one communicator's collective over the network. The model consists of the GPUs,
 * the two proxies of each connection, and the network between the proxies. Time passes in rounds. A
 * fault stops one of these parts.
 *
 * The model knows nothing about the judge (lib/analysis/connections) and shares no code with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PROXY_MAX_RANKS 16u
#define PROXY_MAX_CHANNELS 4u
#define PROXY_MAX_OPS 2u /* successive ops of one communicator */
/* A tree has two edges for each rank except its root, and a ring has one edge for each rank. */
#define PROXY_MAX_LINKS (PROXY_MAX_CHANNELS * 2 * PROXY_MAX_RANKS)

enum proxy_way { PROXY_RING, PROXY_TREE };
enum proxy_kind { PROXY_ALL_REDUCE, PROXY_ALL_GATHER, PROXY_BROADCAST, PROXY_REDUCE };

/*
 * One end of a link: the op that the end works on, and the number of steps that have passed each
 * count.
 */
struct proxy_end {
	uint32_t op; /* n_ops = all ops are done, and the end is free */
	uint32_t posted, second, third, done;
	uint32_t moved; /* round of the last change */
	bool is_absent; /* the call has not given its part of the first op to the proxy */
};

struct proxy_link {
	uint32_t from, to, channel;
	bool is_local;        /* inside a node: it has no proxy, and no daemon reads it */
	struct proxy_end out; /* second: filled by the GPU. third: handed over */
	struct proxy_end in;  /* second: arrived. third: flushed */
	uint32_t n_steps;
	uint32_t room; /* with sockets: steps for which the sender's kernel has room */
	double speed;  /* chance that a step arrives in a round */
	/*
	 * Faults of the link. In these rounds the network transfers nothing (dead_from to dead_to).
	 * From these rounds on, the sender does not see confirmations (deaf_from) or the receiver's
	 * credit (blind_from).
	 */
	uint32_t dead_from, dead_to, deaf_from, blind_from;
	uint64_t waited; /* rounds between filled and confirmed, summed over the steps of the op */
};

/*
 * In a stage, the GPU takes one step from each link of `in` and gives one step to each link of
 * `out`.
 */
struct proxy_stage {
	uint32_t in[3], out[3], n_in, n_out;
};

/*
 * The work of one GPU in one channel. The GPU runs through all stages n_rounds times, and does each
 * stage `slices` times in a row.
 */
struct proxy_work {
	struct proxy_stage *stages;
	uint32_t n_stages, n_rounds, slices;
	uint32_t at_op, at_round, at_stage, at_slice;
};

struct proxy_comm {
	uint32_t n, n_channels, n_ops, n_links;
	enum proxy_way way;
	enum proxy_kind kind;
	uint32_t root;
	bool is_rdma;
	bool splits;                     /* a tree goes up and down at the same time */
	uint32_t depth;                  /* buffers of a connection */
	uint32_t order[PROXY_MAX_RANKS]; /* members along the ring, or over the tree */
	uint32_t host[PROXY_MAX_RANKS];  /* node of each member */
	struct proxy_link links[PROXY_MAX_LINKS];
	/*
	 * Two works for each member and channel, because a tree may go up and down at the same
	 * time.
	 */
	struct proxy_work work[PROXY_MAX_RANKS][PROXY_MAX_CHANNELS][2];
	/*
	 * Faults of members. From round gpu_dead_from on, the GPU does nothing. never_launched is
	 * the op whose kernel the GPU does not start.
	 */
	uint32_t gpu_dead_from[PROXY_MAX_RANKS];
	uint32_t never_launched[PROXY_MAX_RANKS]; /* number of the op; UINT32_MAX = none */
	/* in this round, by work of another communicator */
	bool is_blocked[PROXY_MAX_RANKS];
	bool proxy_is_dead[PROXY_MAX_RANKS];
	uint32_t n_called[PROXY_MAX_RANKS]; /* ops that the member has called */
};

struct proxy_random {
	uint64_t state;
};
uint64_t proxy_random(struct proxy_random *r);
uint32_t proxy_below(struct proxy_random *r, uint32_t n);
bool proxy_chance(struct proxy_random *r, double p);

/*
 * Makes the links of the comm, and gives the GPUs their work. The caller has set n, n_channels,
 * n_ops, way, kind, root, is_rdma, depth, order and host. If `splits` is true, a tree goes up and
 * down at the same time. The op has n_rounds × slices steps on each link, and in a ring this many
 * for each stage. Returns 0 or -ENOMEM.
 */
int proxy_comm_lay(struct proxy_comm *c, uint32_t n_rounds, uint32_t slices, bool splits,
		   uint32_t room);
void proxy_comm_fini(struct proxy_comm *c);

/* Lets one round pass. Returns true if any part moved. */
bool proxy_comm_step(struct proxy_comm *c, struct proxy_random *r, uint32_t now);

/* Returns the number of ops that the member's GPU has finished. */
uint32_t proxy_comm_finished(const struct proxy_comm *c, uint32_t member);
