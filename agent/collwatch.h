/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that tell collwatch's agent which step they are in. To build or run with this
 * header, a program needs no library of collwatch: without the agent the calls do nothing. C99 and
 * C++11. With a glibc before 2.34, link with -ldl (`pkg-config --libs collwatch`).
 */
#ifndef COLLWATCH_H
#define COLLWATCH_H

#include <dlfcn.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Tells the agent that this rank begins a step of its work. The record, and reports about wrong
 * numbers, contain the step of the last call. The program numbers its steps as it likes; -1 = in no
 * step. A step applies to all threads and communicators of the process.
 *
 * Any thread may call this function, but a signal handler must not. A call before the first
 * communicator has no effect. Keeps errno and cannot fail. The first call looks up the agent with
 * dlsym(). Each later call costs one reading of a clock, and neither blocks nor allocates.
 */
static inline void collwatch_mark_step(int64_t step)
{
	typedef void (*mark_step_fn)(int64_t);
	/* If two threads look up the agent at once, both find the same function. */
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
