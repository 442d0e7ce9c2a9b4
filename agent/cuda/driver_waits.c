/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/driver_waits.h"

#include "agent/record/record.h"

int cw_driver_wait_enter(void)
{
	struct cw_rec_wait *waits = cw_record.header->waits;
	uint32_t tid = cw_tid();

	for (int i = 0; i < CW_REC_WAITS; i++) {
		uint32_t seen = CW_LOAD(waits[i].tid);

		/*
		 * We also reuse an older entry of this thread: the thread left that wait without a
		 * return from it.
		 */
		if (seen != tid &&
		    (seen || !__atomic_compare_exchange_n(&waits[i].tid, &seen, tid, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			continue;
		__atomic_store_n(&waits[i].since_ns, cw_now_ns(), __ATOMIC_RELEASE);
		return i;
	}
	return -1;
}

void cw_driver_wait_leave(int place)
{
	struct cw_rec_wait *waits = cw_record.header->waits;

	if (place < 0)
		return;
	__atomic_store_n(&waits[place].since_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&waits[place].tid, 0, __ATOMIC_RELEASE);
}

uint64_t cw_driver_wait_since(uint32_t tid)
{
	const struct cw_rec_wait *waits = cw_record.header->waits;

	for (unsigned i = 0; i < CW_REC_WAITS; i++)
		if (CW_LOAD(waits[i].tid) == tid)
			return __atomic_load_n(&waits[i].since_ns, __ATOMIC_ACQUIRE);
	return 0;
}
