/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that starts threads, which we build under several names. The code that a thread runs
 * begins like a C++ object, with a pointer to a table.
 */
#include "tests/support/agent/thread_home.h"

#include <sys/syscall.h>
#include <unistd.h>

static void *run(void *arg)
{
	struct thread_at_home *t = arg;
	char c;

	__atomic_store_n(&t->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	(void)!write(t->up, "k", 1);
	(void)!read(t->down, &c, 1);
	return NULL;
}

__attribute__((visibility("default"))) const void *const home_table[] = { run };

__attribute__((visibility("default"))) int home_start(struct thread_at_home *t)
{
	return pthread_create(&t->thread, NULL, run, t);
}
