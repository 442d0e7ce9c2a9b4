/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct thread_at_home {
	const void *table; /* first, as the virtual table of an object is */
	pthread_t thread;
	uint32_t tid;
	int up, down; /* it says that it is there, and waits for the end */
};

extern const void *const home_table[];
int home_start(struct thread_at_home *t); /* as pthread_create() */
