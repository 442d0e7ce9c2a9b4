/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of NCCL's kernel, which works on one channel: here one host thread. Layouts are those of
 * NCCL's own headers, against which this is compiled.
 */
#pragma once

#include "collectives.h"
#include "device.h"

#include <cstdint>

namespace lab
{

struct Block {
	const ncclDevKernelArgs *args;
	ncclKernelComm *comm;
	ncclDevChannel *channel;
	int channel_id;
	bool is_aborted;
};

/* Says on stderr what is not emulated and ends the process, as a fault of a kernel would. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * One wait of a kernel for somebody else. It spins shortly and then sleeps longer and longer: the
 * waiting of a GPU costs the host nothing, so this must cost it next to nothing either.
 */
class Wait
{
      public:
	explicit Wait(Block &b) : block(b)
	{
	}
	/* To be called while the condition is false. Returns false when the kernel shall abort. */
	bool again();
	/* Something has come: what is waited for next is another thing. */
	void reset()
	{
		rounds = 0;
	}

      private:
	Block &block;
	unsigned int rounds = 0;
};

static inline uint64_t load_acquire(const volatile uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void store_release(volatile uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

} // namespace lab
