/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rolling hash over random histories: equal where the calls are equal to NCCL, different
 * wherever one field of one call differs.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/hooks/wrap.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "model/signature.h"
#include "tests/support/agent/agent_fake_nccl.h"

#define HISTORIES 300
#define CALLS 24

struct call {
	uint8_t kind;
	uint8_t dtype, redop;
	int root;
	size_t count;
	bool begins_group; /* until the next call that begins one, or ends it */
	bool ends_group;
};

static uint64_t state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static ncclResult_t fake_reduce(const void *s, void *r, size_t n, int dt, int op, int root,
				ncclComm_t c, cudaStream_t st)
{
	return ncclSuccess;
}

static ncclResult_t fake_gather(const void *s, void *r, size_t n, int dt, ncclComm_t c,
				cudaStream_t st)
{
	return ncclSuccess;
}

static ncclResult_t fake_rooted(const void *s, void *r, size_t n, int dt, int root, ncclComm_t c,
				cudaStream_t st)
{
	return ncclSuccess;
}

static ncclResult_t fake_config(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				cudaStream_t st, const ncclCollConfig_t *config)
{
	return ncclSuccess;
}

static ncclResult_t fake_scatter(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				 cudaStream_t st)
{
	return ncclSuccess;
}

static void add_functions(void)
{
	fake.ncclReduce = fake_reduce;
	fake.ncclAllGather = fake_gather;
	fake.ncclReduceScatter = fake_scatter;
	fake.ncclAlltoAll = fake_gather;
	fake.ncclGather = fake.ncclScatter = fake_rooted;
	fake.ncclAllReduceConfig = fake_config;
}

/* Values that no two ranks share: addresses, in place or not, streams. */
static void *anywhere(void)
{
	return (void *)(uintptr_t)(below(4) << 12);
}

static void issue_reduction(ncclComm_t comm, const struct call *c, void *s, void *r,
			    cudaStream_t st)
{
	if (c->kind == CW_OP_REDUCE)
		(void)cw_impl_ncclReduce(&fake, NULL, s, r, c->count, c->dtype, c->redop, c->root,
					 comm, st);
	else if (c->kind == CW_OP_REDUCE_SCATTER)
		(void)cw_impl_ncclReduceScatter(&fake, NULL, s, r, c->count, c->dtype, c->redop,
						comm, st);
	else if (below(2))
		(void)cw_impl_ncclAllReduceConfig(&fake, NULL, s, r, c->count, c->dtype, c->redop,
						  comm, st, NULL);
	else
		(void)cw_impl_ncclAllReduce(&fake, NULL, s, r, c->count, c->dtype, c->redop, comm,
					    st);
}

static void issue(ncclComm_t comm, const struct call *c)
{
	void *s = anywhere(), *r = anywhere();
	cudaStream_t st = (cudaStream_t)anywhere();

	if (below(4) == 0) /* matched with its peer, never part of the history */
		send_to(comm, (int)below(4), c->count);
	switch (c->kind) {
	case CW_OP_ALL_GATHER:
		(void)cw_impl_ncclAllGather(&fake, NULL, s, r, c->count, c->dtype, comm, st);
		break;
	case CW_OP_ALL_TO_ALL:
		(void)cw_impl_ncclAlltoAll(&fake, NULL, s, r, c->count, c->dtype, comm, st);
		break;
	case CW_OP_GATHER:
		(void)cw_impl_ncclGather(&fake, NULL, s, r, c->count, c->dtype, c->root, comm, st);
		break;
	case CW_OP_SCATTER:
		(void)cw_impl_ncclScatter(&fake, NULL, s, r, c->count, c->dtype, c->root, comm, st);
		break;
	case CW_OP_BROADCAST:
		if (below(2))
			(void)cw_impl_ncclBcast(&fake, NULL, r, c->count, c->dtype, c->root, comm,
						st);
		else
			(void)cw_impl_ncclBroadcast(&fake, NULL, s, r, c->count, c->dtype, c->root,
						    comm, st);
		break;
	default:
		issue_reduction(comm, c, s, r, st);
		break;
	}
}

static uint64_t hash_of(const struct call *calls)
{
	static ncclComm_t comm;
	struct cw_rec_comm *rc;
	bool is_open = false;
	uint64_t before;

	if (!comm)
		comm = init(1);
	rc = entry(comm);
	rc->hash = CW_HASH_INIT;
	before = rc->coll_returned;
	for (unsigned i = 0; i < CALLS; i++) {
		if (calls[i].begins_group && !is_open) {
			start();
			is_open = true;
		}
		issue(comm, &calls[i]);
		if (calls[i].ends_group && is_open) {
			(void)end();
			is_open = false;
		}
	}
	if (is_open)
		(void)end();
	cr_assert_eq(rc->coll_returned - before, CALLS);
	return rc->hash;
}

static const uint8_t kinds[] = { CW_OP_ALL_REDUCE, CW_OP_REDUCE,    CW_OP_REDUCE_SCATTER,
				 CW_OP_ALL_GATHER, CW_OP_BROADCAST, CW_OP_ALL_TO_ALL,
				 CW_OP_GATHER,     CW_OP_SCATTER };

static void draw(struct call *calls)
{
	for (unsigned i = 0; i < CALLS; i++)
		calls[i] = (struct call){
			.kind = kinds[below(sizeof(kinds))],
			.dtype = (uint8_t)below(CW_DTYPE__MAX),
			.redop = (uint8_t)below(NCCL_BUILTIN_REDOPS),
			.root = (int)below(4),
			.count = 1 + below(1u << 20),
			.begins_group = below(4) == 0,
			.ends_group = below(3) == 0,
		};
}

static bool is_bytewise(const struct call *c)
{
	return c->kind == CW_OP_ALL_GATHER || c->kind == CW_OP_BROADCAST ||
	       c->kind == CW_OP_ALL_TO_ALL || c->kind == CW_OP_GATHER || c->kind == CW_OP_SCATTER;
}

static bool has_root(const struct call *c)
{
	return c->kind == CW_OP_REDUCE || c->kind == CW_OP_BROADCAST || c->kind == CW_OP_GATHER ||
	       c->kind == CW_OP_SCATTER;
}

/* Another value of one field that its kind has. */
static void change_one(struct call *c)
{
	uint8_t kind = c->kind;

	switch (below(5)) {
	case 0:
		while (c->kind == kind)
			c->kind = kinds[below(sizeof(kinds))];
		break;
	case 1:
		if (!is_bytewise(c)) {
			c->dtype = (uint8_t)((c->dtype + 1 + below(CW_DTYPE__MAX - 1)) %
					     CW_DTYPE__MAX);
			break;
		}
		c->count++;
		break;
	case 2:
		if (!is_bytewise(c)) {
			c->redop = (uint8_t)((c->redop + 1 + below(NCCL_BUILTIN_REDOPS - 1)) %
					     NCCL_BUILTIN_REDOPS);
			break;
		}
		c->count++;
		break;
	case 3:
		if (has_root(c)) {
			c->root = (c->root + 1 + (int)below(3)) % 4;
			break;
		}
		c->count++;
		break;
	default:
		c->count += 1 + below(1000);
	}
}

Test(agent_history, tells_histories_apart_that_differ_in_one_field, .init = add_functions)
{
	struct call one[CALLS], other[CALLS];

	for (unsigned i = 0; i < HISTORIES; i++) {
		unsigned at = below(CALLS);

		draw(one);
		cr_assert_eq(hash_of(one), hash_of(one), "history %u", i);
		memcpy(other, one, sizeof(one));
		change_one(&other[at]);
		cr_assert_neq(hash_of(one), hash_of(other), "history %u, call %u", i, at);
	}
}

/* The same bytes under another type; a user's operator under another handle. */
static void change_to_the_same(struct call *c)
{
	if (is_bytewise(c)) {
		c->count = (c->count + 7) / 8 * 8;
		c->dtype = CW_DTYPE_INT8;
	} else {
		c->redop = (uint8_t)(NCCL_BUILTIN_REDOPS + 1);
	}
}

Test(agent_history, takes_for_equal_what_nccl_treats_alike, .init = add_functions)
{
	struct call one[CALLS], other[CALLS];

	for (unsigned i = 0; i < HISTORIES; i++) {
		struct call *c = &one[below(CALLS)];

		draw(one);
		change_to_the_same(c);
		memcpy(other, one, sizeof(one));
		c = &other[c - one];
		if (is_bytewise(c)) {
			c->count /= 8;
			c->dtype = CW_DTYPE_INT64;
		} else {
			c->redop += 1 + (uint8_t)below(100);
		}
		cr_assert_eq(hash_of(one), hash_of(other), "history %u", i);
	}
}

Test(agent_history, does_not_look_at_the_order_inside_a_group, .init = add_functions)
{
	struct call one[CALLS], other[CALLS];

	for (unsigned i = 0; i < HISTORIES; i++) {
		draw(one);
		memcpy(other, one, sizeof(one));
		for (unsigned n = 0; n < CALLS; n++) {
			one[n].begins_group = other[n].begins_group = n == 0;
			one[n].ends_group = other[n].ends_group = false;
		}
		for (unsigned n = 0; n < CALLS; n++) {
			unsigned with = below(CALLS);
			struct call swap = other[n];

			other[n] = other[with];
			other[with] = swap;
		}
		for (unsigned n = 0; n < CALLS; n++)
			other[n].begins_group = n == 0;
		cr_assert_eq(hash_of(one), hash_of(other), "history %u", i);
	}
}

Test(agent_history, sees_two_calls_change_places, .init = add_functions)
{
	struct call one[CALLS], other[CALLS];

	for (unsigned i = 0; i < HISTORIES; i++) {
		unsigned at = below(CALLS - 1);

		draw(one);
		for (unsigned n = 0; n < CALLS; n++)
			one[n].begins_group = one[n].ends_group = false;
		one[at + 1].kind = one[at].kind;
		one[at + 1].count = one[at].count + 8;
		one[at + 1].dtype = one[at].dtype;
		memcpy(other, one, sizeof(one));
		other[at] = one[at + 1];
		other[at + 1] = one[at];
		cr_assert_neq(hash_of(one), hash_of(other), "history %u, call %u", i, at);
	}
}
