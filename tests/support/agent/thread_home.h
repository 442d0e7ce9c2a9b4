/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct thread_at_home {
	const void *table; /* must be first, like an object's pointer to its virtual table */
	pthread_t thread;
	uint32_t tid;
	/* descriptors: the thread writes to `up` when it runs, and ends when it can read `down` */
	int up, down;
};

extern const void *const home_table[];
int home_start(struct thread_at_home *t); /* result of pthread_create() */
