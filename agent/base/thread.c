/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#define STACK_BYTES (256u * 1024)

int cw_thread_start(void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	(void)sigfillset(&all);
	if (pthread_attr_init(&attr) != 0)
		return -ENOMEM;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, run, arg);
	if (r == EINVAL) {
		/*
		 * If pthread_create() fails, the application's thread-local data needs more room
		 * than STACK_BYTES.
		 */
		(void)pthread_attr_setstacksize(&attr, 8u << 20);
		r = pthread_create(&thread, &attr, run, arg);
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return -r;
}
