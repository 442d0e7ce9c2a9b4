/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/device_times.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/cuda/cuda_driver.h"
#include "agent/cuda/kernels.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/signature.h"

#define SAMPLE_NS 10000000u
#define SKIP_MAX 8

CW_HOT_DATA bool cw_times_is_on;

static uint64_t next_ns; /* earliest time of the next sample */
/*
 * Number of ops to skip after next_ns. Without skips we would sample only the first op of each
 * burst.
 */
static uint32_t skip;
static uint64_t samples;
/* Number of the newest sample in each entry; 0 = never used. */
static uint64_t taken[CW_REC_TIMES];

void cw_times_comm_ready(void *context, uint64_t pages)
{
	const char *value = getenv("COLLWATCH_PROGRESS");

	if (!value || strcmp(value, "timed") != 0)
		return;
	cw_kernels_load(context, pages);
	if (!cw_kernels_of(context)) {
		cw_log("no kernels for this device: no times of it");
		return;
	}
	(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_DEVICE_TIME, __ATOMIC_RELAXED);
	__atomic_store_n(&cw_times_is_on, true, __ATOMIC_RELEASE);
}

/* Returns the device's address of a word in an entry of cw_record.times. */
static uint64_t word_address(const struct cw_kernels *k, uint32_t index, size_t offset)
{
	return k->pages +
	       (uint64_t)((const char *)&cw_record.times[index] -
			  (const char *)cw_record.device_pages) +
	       offset;
}

static bool stamp(const struct cw_op_call *call, uint32_t index, size_t offset)
{
	void *context = __atomic_load_n(&cw_comms[call->comm].context, __ATOMIC_ACQUIRE);
	struct cw_kernels *k = context ? cw_kernels_of(context) : NULL;
	bool pushed, ok = false;
	uint64_t where;

	if (!k || !cw_cuda_push(context, &pushed))
		return false;
	where = word_address(k, index, offset);
	if (cw_kernels_may_launch(call->stream))
		ok = cw_kernels_launch(k, k->stamp, 1, 1, call->stream, &where);
	cw_cuda_pop(pushed);
	return ok;
}

/*
 * Finds a free entry: both kernels of its last sample have written their words. A kernel that still
 * waits in a stream would write into the next sample. If two threads compete, only one gets the
 * entry.
 */
static struct cw_rec_time *free_entry(uint64_t now_ns, uint32_t *ret_index)
{
	uint64_t due = CW_LOAD(next_ns), number;
	uint32_t left = CW_LOAD(skip);
	struct cw_rec_time *t;

	if (now_ns < due)
		return NULL;
	if (left) {
		CW_STORE(skip, left - 1);
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&next_ns, &due, now_ns + SAMPLE_NS, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	number = CW_LOAD(samples) + 1;
	*ret_index = (uint32_t)(number % CW_REC_TIMES);
	t = &cw_record.times[*ret_index];
	/*
	 * Advance even if the entry is not free. If the second kernel of its sample never launched,
	 * the entry stays busy for good.
	 */
	CW_STORE(samples, number);
	if (CW_LOAD(taken[*ret_index]) && !__atomic_load_n(&t->end_ns, __ATOMIC_ACQUIRE))
		return NULL;
	CW_STORE(taken[*ret_index], number);
	CW_STORE(skip, (uint32_t)(cw_hash_mix64(number) % SKIP_MAX));
	return t;
}

uint32_t cw_times_begin(const struct cw_op_call *call, uint64_t enter_ns)
{
	int saved_errno = errno;
	struct cw_rec_time *t;
	uint32_t index = 0;
	bool ok;

	if (!call->seq || (call->flags & (CW_OPF_GROUPED | CW_OPF_CAPTURED)))
		return 0;
	t = free_entry(enter_ns, &index);
	if (!t)
		return 0;
	__atomic_store_n(&t->publish, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	CW_STORE(t->op_index, call->op_index);
	CW_STORE(t->enter_ns, enter_ns);
	CW_STORE(t->bytes, call->bytes);
	CW_STORE(t->comm, (uint32_t)call->comm);
	CW_STORE(t->comm_generation, cw_record.comms[call->comm].generation);
	CW_STORE(t->kind, call->kind);
	CW_STORE(t->begin_ns, (uint64_t)0);
	CW_STORE(t->end_ns, (uint64_t)0);
	ok = stamp(call, index, offsetof(struct cw_rec_time, begin_ns));
	errno = saved_errno;
	return ok ? index + 1 : 0;
}

/* Ends a sample. We do not publish a failed call, but its entry has to become free again. */
void cw_times_end(const struct cw_op_call *call, uint32_t entry, bool is_good)
{
	struct cw_rec_time *t = &cw_record.times[entry - 1];
	int saved_errno = errno;

	if (stamp(call, entry - 1, offsetof(struct cw_rec_time, end_ns)) && is_good)
		__atomic_store_n(&t->publish, CW_LOAD(taken[entry - 1]), __ATOMIC_RELEASE);
	errno = saved_errno;
}
