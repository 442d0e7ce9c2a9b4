/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/nccl/device/block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sched.h>

namespace lab
{

/* A few checks while the other side is probably active, then we yield the processor. */
constexpr unsigned int SPIN_ROUNDS = 64;
constexpr unsigned int YIELD_ROUNDS = 64;
/* From 20 us up to 2 ms: a hung kernel checks 500 times a second. */
constexpr long SLEEP_FIRST_NS = 20000;
constexpr unsigned int SLEEP_DOUBLINGS = 7;
/* Number of sleeps before the next longer one. */
constexpr unsigned int SLEEP_ROUNDS = 16;

void die(const char *format, ...)
{
	va_list ap;

	fputs("emulated device: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

bool Wait::again()
{
	unsigned int slept;
	timespec ts = { 0, SLEEP_FIRST_NS };

	if (block.is_aborted)
		return false;
	if (block.comm->abortFlag && *block.comm->abortFlag) {
		block.is_aborted = true;
		return false;
	}
	rounds++;
	if (rounds <= SPIN_ROUNDS)
		return true;
	if (rounds <= SPIN_ROUNDS + YIELD_ROUNDS) {
		sched_yield();
		return true;
	}
	slept = (rounds - SPIN_ROUNDS - YIELD_ROUNDS) / SLEEP_ROUNDS;
	ts.tv_nsec <<= slept < SLEEP_DOUBLINGS ? slept : SLEEP_DOUBLINGS;
	nanosleep(&ts, nullptr);
	return true;
}

} // namespace lab
