/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/sim/nccl_proxy.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static int n_waiting;
static bool is_started; /* set before the first call */

static void *run(void *arg)
{
	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!n_waiting)
			pthread_cond_wait(&has_work, &lock);
		pthread_mutex_unlock(&lock);
		while (__atomic_load_n(&n_waiting, __ATOMIC_RELAXED))
			sched_yield();
	}
	return NULL;
}

static void start(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (!getenv("SIM_NCCL_PROXY") || pthread_attr_init(&attr))
		return;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	is_started = pthread_create(&thread, &attr, run, NULL) == 0;
	(void)pthread_attr_destroy(&attr);
}

void sim_proxy_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, start);
}

static void add(int n)
{
	if (!is_started)
		return;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&n_waiting, n_waiting + n, __ATOMIC_RELAXED);
	pthread_cond_signal(&has_work);
	pthread_mutex_unlock(&lock);
}

void sim_proxy_begin(void)
{
	add(1);
}

void sim_proxy_end(void)
{
	add(-1);
}
