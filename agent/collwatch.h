/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that tell collwatch's agent where they are. Needs no library of collwatch's, when it
 * is built or when it runs: without the agent the calls do nothing. C99 and C++11; on glibc
 * before 2.34 link with -ldl (`pkg-config --libs collwatch`).
 */
#ifndef COLLWATCH_H
#define COLLWATCH_H

#include <dlfcn.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * This rank begins with a step of its work; the step of the last call stands in its record, and in
 * what is said of wrong numbers. Steps are counted as the program does, -1 = it is in none. It
 * counts for all threads and communicators of the process.
 *
 * From any thread, at any time, also before the first communicator, where it is forgotten. Leaves
 * errno alone and cannot fail. The first call looks the agent up with dlsym(); each later one costs
 * a clock's reading, and neither blocks nor allocates. Not from a signal handler.
 */
static inline void collwatch_mark_step(int64_t step)
{
	typedef void (*mark_step_fn)(int64_t);
	/* Two threads that look it up at once find the same. */
	static mark_step_fn mark;
	static int is_looked_up;
	union {
		void *symbol;
		mark_step_fn fn;
	} found;

	if (!__atomic_load_n(&is_looked_up, __ATOMIC_ACQUIRE)) {
		found.symbol = dlsym((void *)0 /* RTLD_DEFAULT */, "collwatch_mark_step");
		__atomic_store_n(&mark, found.fn, __ATOMIC_RELAXED);
		__atomic_store_n(&is_looked_up, 1, __ATOMIC_RELEASE);
	}
	found.fn = __atomic_load_n(&mark, __ATOMIC_RELAXED);
	if (found.fn)
		found.fn(step);
}

#ifdef __cplusplus
}
#endif

#endif
