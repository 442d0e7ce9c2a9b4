/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of NCCL's kernel, which works on one channel: here one host thread. Layouts come from
 * NCCL's own headers, which we compile against.
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

/* Prints on stderr what is not emulated and ends the process, like a fault of a kernel. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * One wait of a kernel for another party. It spins shortly and then sleeps longer and longer: a
 * waiting GPU costs the host nothing, so this must cost next to nothing either.
 */
class Wait
{
      public:
	explicit Wait(Block &b) : block(b)
	{
	}
	/* Call it while the condition is false. Returns false if the kernel must abort. */
	bool again();
	/* Data has arrived: the next wait is a new one. */
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
