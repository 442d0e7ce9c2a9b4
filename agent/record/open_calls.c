/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/open_calls.h"

#include <stdbool.h>
#include <string.h>

#include "agent/base/state.h"
#include "agent/record/record.h"
#include "record/inside.h"

/* A call counts after this time. A call that waits for no other rank returns far sooner. */
#define OPEN_FOR_NS UINT64_C(2000000000)
/*
 * The most time that one step adds to an open call. If steps are further apart, the process may
 * have been stopped, and we must not count that time.
 */
#define STEP_MAX_NS UINT64_C(1100000000)

#define MAX_CALLS 16u

static struct {
	struct cw_rec_wait calls[MAX_CALLS];
	uint64_t open_ns[MAX_CALLS]; /* how long each call has been open */
	uint64_t step_ns;            /* time of the last step */
	size_t n;
} last;

/* Copies an op. Returns false if a thread is writing to the slot, or if the slot was never used. */
static bool copy_op(const struct cw_rec_op *from, struct cw_rec_op *to)
{
	const uint64_t *words = (const uint64_t *)from;
	uint64_t copy[sizeof(*to) / sizeof(uint64_t)];
	uint64_t publish = __atomic_load_n(&from->publish, __ATOMIC_ACQUIRE);

	if (!publish)
		return false;
	for (unsigned i = 0; i < sizeof(copy) / sizeof(copy[0]); i++)
		copy[i] = CW_LOAD(words[i]);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (CW_LOAD(from->publish) != publish)
		return false;
	memcpy(to, copy, sizeof(copy));
	return true;
}

static size_t copy_ops(const struct cw_rec_comm *rc, struct cw_rec_op *ops)
{
	uint16_t generation = (uint16_t)CW_LOAD(rc->generation);
	size_t n = 0;

	for (unsigned i = 0; i < CW_REC_COMM_OPS; i++)
		if (copy_op(&rc->ops[i], &ops[n]) && ops[n].comm_generation == generation)
			n++;
	return n;
}

static size_t find_calls(struct cw_rec_wait *calls)
{
	static struct cw_rec_op ops[CW_REC_COMM_OPS];
	uint32_t used = CW_LOAD(cw_record.header->comms_used);
	size_t n = 0;

	for (uint32_t i = 0; i < used && i < CW_REC_COMMS; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[i];

		if (CW_LOAD(rc->state) != CW_COMM_FREE &&
		    cw_rec_may_be_inside(CW_LOAD(rc->flags), CW_LOAD(rc->op_index),
					 CW_LOAD(rc->op_returned)))
			n = cw_rec_inside_add(ops, copy_ops(rc, ops), calls, n, MAX_CALLS);
	}
	return n;
}

static uint64_t open_before_ns(const struct cw_rec_wait *call, uint64_t dt_ns)
{
	for (size_t i = 0; i < last.n; i++)
		if (last.calls[i].tid == call->tid && last.calls[i].since_ns == call->since_ns)
			return last.open_ns[i] + dt_ns;
	return 0;
}

void cw_open_calls_step(void)
{
	struct cw_rec_wait calls[MAX_CALLS];
	uint64_t open_ns[MAX_CALLS], now_ns = cw_now_ns(), dt_ns = now_ns - last.step_ns;
	size_t n = find_calls(calls);

	for (size_t i = 0; i < n; i++)
		open_ns[i] = open_before_ns(&calls[i], dt_ns < STEP_MAX_NS ? dt_ns : STEP_MAX_NS);
	memcpy(last.calls, calls, n * sizeof(calls[0]));
	memcpy(last.open_ns, open_ns, n * sizeof(open_ns[0]));
	last.step_ns = now_ns;
	last.n = n;
}

uint64_t cw_open_calls_has(uint32_t tid)
{
	for (size_t i = 0; i < last.n; i++)
		if (last.calls[i].tid == tid && last.open_ns[i] >= OPEN_FOR_NS)
			return last.calls[i].since_ns;
	return 0;
}
