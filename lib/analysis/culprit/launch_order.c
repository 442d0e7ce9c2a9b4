/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch order of NCCL 2.19 and later. ncclTaskCollSorterInsert() (src/include/comm.h) sorts
 * calls by size class, the largest class first. It puts a call in front of the calls of its class.
 * There are four classes between two powers of two, and one class for all sizes below 1 KiB.
 * ncclPrepareTasks() (src/enqueue.cc) then launches calls of one function, operator and type
 * together. These sets follow each other in the order of their first calls.
 */
#include "analysis/culprit/launch_order.h"

#include "analysis/align/position.h"
#include "model/signature.h"

/* The maximum length of a group to which we give a number. */
#define MAX_CALLS 64u
#define UNIT_LOG2 10
#define MAX_LOG2 30

struct launch {
	uint64_t signature, function;
	unsigned size_class;
};

static uint64_t traffic_of(const struct cw_op *op, uint32_t nranks)
{
	uint64_t bytes = op->bytes < UINT64_C(1) << MAX_LOG2 ? op->bytes : UINT64_C(1) << MAX_LOG2;

	switch (op->kind) {
	case CW_OP_ALL_REDUCE:
		return 2 * bytes;
	case CW_OP_ALL_GATHER:
	case CW_OP_REDUCE_SCATTER:
		return nranks * bytes;
	default:
		return bytes;
	}
}

/*
 * Returns the size class. Class 0 is for sizes below one unit (1 KiB). Above that there are four
 * classes per doubling, and a larger class has more bytes.
 */
static unsigned size_class_of(uint64_t traffic)
{
	uint64_t units = traffic >> UNIT_LOG2;
	unsigned log2;

	if (units > UINT64_C(1) << (MAX_LOG2 - UNIT_LOG2))
		units = UINT64_C(1) << (MAX_LOG2 - UNIT_LOG2);
	if (units < 4)
		return (unsigned)units;
	log2 = 63 - (unsigned)__builtin_clzll(units);
	return 4 * (log2 - 1) + (unsigned)(units >> (log2 - 2) & 3);
}

/* Inserts the call in front of the calls of its size class. */
static void insert(struct launch *v, uint32_t n, const struct launch *call)
{
	uint32_t at = 0;

	while (at < n && v[at].size_class > call->size_class)
		at++;
	for (uint32_t i = n; i > at; i--)
		v[i] = v[i - 1];
	v[at] = *call;
}

/*
 * Hashes the calls in launch order: all calls of one function follow the first call of that
 * function.
 */
static uint64_t number_of(const struct launch *v, uint32_t n)
{
	uint64_t number = CW_HASH_INIT;

	for (uint32_t i = 0; i < n; i++) {
		bool is_first = true;

		for (uint32_t k = 0; k < i; k++)
			is_first = is_first && v[k].function != v[i].function;
		for (uint32_t k = i; is_first && k < n; k++)
			if (v[k].function == v[i].function)
				number = cw_hash_step(number, v[k].signature);
	}
	return number ? number : 1;
}

uint64_t launch_order_of(const struct cw_snap_comm *c, const struct cw_snap_member *m, uint64_t seq)
{
	struct launch calls[MAX_CALLS];
	uint64_t group = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_window && !group; i++)
		if (m->window[i].coll_seq == seq && (m->window[i].flags & CW_OPF_GROUPED))
			group = m->window[i].group_id;
	for (uint32_t i = 0; group && i < m->n_window; i++) {
		const struct cw_op *op = &m->window[i];
		uint64_t function = (uint64_t)op->kind << 16;

		if (op->group_id != group || !position_is_step(op))
			continue;
		if (n == MAX_CALLS)
			return 0;
		/*
		 * NCCL moves bytes of any type alike, so the functions of bytewise calls differ
		 * by kind alone.
		 */
		if (!cw_signature_is_bytewise(op->kind))
			function |= (uint64_t)op->dtype << 8 | op->redop;
		insert(calls, n++,
		       &(struct launch){ .signature = cw_signature(op->kind, op->dtype, op->redop,
								   op->root, op->count, op->bytes),
					 .function = function,
					 .size_class = size_class_of(traffic_of(op, c->nranks)) });
	}
	return n > 1 ? number_of(calls, n) : 0;
}
