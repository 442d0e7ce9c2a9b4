/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of the proxies against NVIDIA's. tests/real/real_nccl_links.py stopped jobs on NCCL
 * 2.29.7, and their bundles have the counts of each connection. In the model, the counts at a
 * standstill do not depend on the order of events. So each count must be equal.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "lab/proxies/proxy_model.h"

#define NO_RANK UINT32_MAX
/* With this many rounds without a move, nothing moves any more: a part moves with chance 0.8. */
#define QUIET 200u
/* The kernel's buffers of a sound socket take all steps that a sender may have open. */
#define AMPLE_ROOM 64u

/* The counts of both ends of a connection. An end with op n_ops has finished all ops. */
struct recorded_link {
	uint32_t from, to;
	struct {
		uint32_t op, posted, ready, handed, done;
	} out;
	struct {
		uint32_t op, posted, received, given, done;
	} in;
};

struct recorded {
	char name[64];
	uint32_t n, n_ops, n_rounds, slices, depth;
	enum proxy_kind kind;
	enum proxy_way way;
	uint32_t order[8]; /* of a tree; the ranks of a ring have their numbers in the ring */
	/* The fault. link: index into links; the link stops with the recorded counts. */
	uint32_t link, unlaunched, stopped;
	struct recorded_link links[8];
};

static struct recorded cases[] = {
	{ .name = "a cut connection",
	  .n = 8,
	  .n_ops = 1,
	  .n_rounds = 1,
	  .slices = 2,
	  .depth = 4,
	  .kind = PROXY_ALL_REDUCE,
	  .link = 6u,
	  .unlaunched = NO_RANK,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 0, 15, 11, 11, 11 }, { 0, 15, 11, 11, 11 } },
		{ 1, 2, { 0, 17, 13, 13, 13 }, { 0, 17, 13, 13, 13 } },
		{ 2, 3, { 0, 19, 15, 15, 15 }, { 0, 19, 15, 15, 15 } },
		{ 3, 4, { 0, 21, 17, 17, 17 }, { 0, 21, 17, 17, 17 } },
		{ 4, 5, { 0, 23, 19, 19, 19 }, { 0, 23, 19, 19, 19 } },
		{ 5, 6, { 0, 25, 21, 21, 21 }, { 0, 13, 13, 13, 9 } },
		{ 6, 7, { 0, 11, 11, 11, 7 }, { 0, 11, 7, 7, 7 } },
		{ 7, 0, { 0, 13, 9, 9, 9 }, { 0, 13, 9, 9, 9 } },
	  } },
	{ .name = "packets between two nodes are lost",
	  .n = 5,
	  .n_ops = 1,
	  .n_rounds = 1,
	  .slices = 2,
	  .depth = 4,
	  .kind = PROXY_ALL_REDUCE,
	  .link = 0u,
	  .unlaunched = NO_RANK,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 0, 16, 12, 12, 12 }, { 0, 6, 2, 2, 2 } },
		{ 1, 2, { 0, 8, 4, 4, 4 }, { 0, 8, 4, 4, 4 } },
		{ 2, 3, { 0, 10, 6, 6, 6 }, { 0, 10, 6, 6, 6 } },
		{ 3, 4, { 0, 12, 8, 8, 8 }, { 0, 12, 8, 8, 8 } },
		{ 4, 0, { 0, 14, 10, 10, 10 }, { 0, 14, 10, 10, 10 } },
	  } },
	{ .name = "a stalled connection, with the protocol LL",
	  .n = 4,
	  .n_ops = 1,
	  .n_rounds = 1,
	  .slices = 1,
	  .depth = 8,
	  .kind = PROXY_ALL_REDUCE,
	  .link = 1u,
	  .unlaunched = NO_RANK,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 0, 6, 3, 3, 3 }, { 0, 6, 3, 3, 3 } },
		{ 1, 2, { 0, 6, 4, 4, 0 }, { 0, 6, 0, 0, 0 } },
		{ 2, 3, { 0, 6, 1, 1, 1 }, { 0, 6, 1, 1, 1 } },
		{ 3, 0, { 0, 6, 2, 2, 2 }, { 0, 6, 2, 2, 2 } },
	  } },
	{ .name = "a connection stalls in a reduce_scatter before an all_gather",
	  .n = 4,
	  .n_ops = 2,
	  .n_rounds = 1,
	  .slices = 2,
	  .depth = 4,
	  .kind = PROXY_ALL_GATHER,
	  .link = 2u,
	  .unlaunched = NO_RANK,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 1, 6, 2, 2, 2 }, { 1, 6, 2, 2, 2 } },
		{ 1, 2, { 1, 6, 4, 4, 4 }, { 1, 4, 4, 4, 0 } },
		{ 2, 3, { 0, 6, 6, 6, 4 }, { 0, 6, 4, 4, 4 } },
		{ 3, 0, { 1, 4, 0, 0, 0 }, { 1, 4, 0, 0, 0 } },
	  } },
	{ .name = "a kernel is never launched",
	  .n = 8,
	  .n_ops = 1,
	  .n_rounds = 4,
	  .slices = 2,
	  .depth = 4,
	  .kind = PROXY_ALL_REDUCE,
	  .link = NO_RANK,
	  .unlaunched = 7u,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 0, 6, 2, 2, 2 }, { 0, 6, 2, 2, 2 } },
		{ 1, 2, { 0, 8, 4, 4, 4 }, { 0, 8, 4, 4, 4 } },
		{ 2, 3, { 0, 10, 6, 6, 6 }, { 0, 10, 6, 6, 6 } },
		{ 3, 4, { 0, 12, 8, 8, 8 }, { 0, 12, 8, 8, 8 } },
		{ 4, 5, { 0, 14, 10, 10, 10 }, { 0, 14, 10, 10, 10 } },
		{ 5, 6, { 0, 16, 12, 12, 12 }, { 0, 16, 12, 12, 12 } },
		{ 6, 7, { 0, 18, 14, 14, 14 }, { 0, 4, 4, 4, 0 } },
		{ 7, 0, { 0, 4, 0, 0, 0 }, { 0, 4, 0, 0, 0 } },
	  } },
	{ .name = "a GPU stops in the middle of a kernel",
	  .n = 4,
	  .n_ops = 1,
	  .n_rounds = 1,
	  .slices = 2,
	  .depth = 4,
	  .kind = PROXY_ALL_REDUCE,
	  .link = NO_RANK,
	  .unlaunched = NO_RANK,
	  .stopped = 1u,
	  .links = {
		{ 0, 1, { 0, 12, 11, 11, 11 }, { 0, 7, 7, 7, 3 } },
		{ 1, 2, { 0, 9, 5, 5, 5 }, { 0, 9, 5, 5, 5 } },
		{ 2, 3, { 0, 11, 7, 7, 7 }, { 0, 11, 7, 7, 7 } },
		{ 3, 0, { 0, 12, 9, 9, 9 }, { 0, 12, 9, 9, 9 } },
	  } },
	{ .name = "a connection of a tree stalls on the way down",
	  .n = 5,
	  .n_ops = 1,
	  .n_rounds = 44,
	  .slices = 1,
	  .depth = 8,
	  .kind = PROXY_ALL_REDUCE,
	  .way = PROXY_TREE,
	  .order = { 1, 2, 3, 4, 0 },
	  .link = 1u,
	  .unlaunched = NO_RANK,
	  .stopped = NO_RANK,
	  .links = {
		{ 0, 1, { 1, 0, 0, 0, 0 }, { 0, 39, 39, 39, 31 } },
		{ 1, 0, { 0, 31, 31, 31, 23 }, { 0, 31, 23, 23, 23 } },
		{ 3, 0, { 1, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0 } },
		{ 0, 3, { 0, 31, 23, 23, 23 }, { 0, 31, 23, 23, 23 } },
		{ 2, 3, { 1, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0 } },
		{ 3, 2, { 0, 31, 23, 23, 23 }, { 0, 31, 23, 23, 23 } },
		{ 4, 3, { 1, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0 } },
		{ 3, 4, { 0, 31, 23, 23, 23 }, { 0, 31, 23, 23, 23 } },
	  } },
};

ParameterizedTestParameters(recorded, the_model_stands_where_nccl_stands)
{
	return cr_make_param_array(struct recorded, cases, sizeof(cases) / sizeof(*cases));
}

static void lay(const struct recorded *r, struct proxy_comm *c)
{
	*c = (struct proxy_comm){ .n = r->n,
				  .n_channels = 1,
				  .n_ops = r->n_ops,
				  .way = r->way,
				  .kind = r->kind,
				  .depth = r->depth };
	for (uint32_t m = 0; m < r->n; m++) {
		c->order[m] = r->way == PROXY_TREE ? r->order[m] : m;
		c->host[m] = m;
	}
	cr_assert_eq(proxy_comm_lay(c, r->n_rounds, r->slices, true, AMPLE_ROOM), 0);
	if (r->unlaunched != NO_RANK)
		c->never_launched[r->unlaunched] = 0;
}

/* Returns the model's link for a recorded one. */
static struct proxy_link *link_of(struct proxy_comm *c, const struct recorded_link *l)
{
	for (uint32_t i = 0; i < c->n_links; i++)
		if (c->links[i].from == l->from && c->links[i].to == l->to)
			return &c->links[i];
	cr_assert(false, "the model has no link %u -> %u", l->from, l->to);
	return NULL;
}

/*
 * Applies the fault as soon as the model has the counts at which NCCL's part stopped. A broken link
 * brings no more data, and its sender sees no more confirmations.
 */
static void strike(const struct recorded *r, struct proxy_comm *c, uint32_t now)
{
	if (r->link != NO_RANK) {
		const struct recorded_link *want = &r->links[r->link];
		struct proxy_link *l = link_of(c, want);

		if (l->in.op == want->in.op && l->in.second == want->in.received &&
		    l->dead_from == UINT32_MAX)
			l->dead_from = now;
		if (l->out.op == want->out.op && l->out.done == want->out.done &&
		    l->deaf_from == UINT32_MAX)
			l->deaf_from = now;
	}
	if (r->stopped != NO_RANK &&
	    c->links[r->stopped].out.second == r->links[r->stopped].out.ready &&
	    c->gpu_dead_from[r->stopped] == UINT32_MAX)
		c->gpu_dead_from[r->stopped] = now;
}

static void must_be_equal(const struct recorded *r, struct proxy_comm *c)
{
	for (uint32_t i = 0; i < c->n_links; i++) {
		const struct recorded_link *want = &r->links[i];
		const struct proxy_end *out = &link_of(c, want)->out;
		const struct proxy_end *in = &link_of(c, want)->in;

		cr_expect(out->op == want->out.op && out->posted == want->out.posted &&
				  out->second == want->out.ready &&
				  out->third == want->out.handed && out->done == want->out.done,
			  "%s: sender of %u -> %u: op %u, %u %u %u %u; NCCL: op %u, %u %u %u %u",
			  r->name, want->from, want->to, out->op, out->posted, out->second,
			  out->third, out->done, want->out.op, want->out.posted, want->out.ready,
			  want->out.handed, want->out.done);
		cr_expect(in->op == want->in.op && in->posted == want->in.posted &&
				  in->second == want->in.received && in->third == want->in.given &&
				  in->done == want->in.done,
			  "%s: receiver of %u -> %u: op %u, %u %u %u %u; NCCL: op %u, %u %u %u %u",
			  r->name, want->from, want->to, in->op, in->posted, in->second, in->third,
			  in->done, want->in.op, want->in.posted, want->in.received, want->in.given,
			  want->in.done);
	}
}

ParameterizedTest(struct recorded *r, recorded, the_model_stands_where_nccl_stands)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct proxy_random random = { seed };
		struct proxy_comm c;
		uint32_t quiet = 0;

		lay(r, &c);
		for (uint32_t now = 1; quiet < QUIET; now++) {
			strike(r, &c, now);
			quiet = proxy_comm_step(&c, &random, now) ? 0 : quiet + 1;
		}
		must_be_equal(r, &c);
		proxy_comm_fini(&c);
	}
}
