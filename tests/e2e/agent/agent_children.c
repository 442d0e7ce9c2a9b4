/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More habits of programs, while other threads are inside NCCL: short children in every way
 * there is, and other surroundings. Each mode prints its view; with the agent the output
 * must be the same.
 */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/agent/agent_program.h"

#define ROUNDS 40
#define STARTERS 4

extern char **environ;

static int is_over;

static void *keep_reducing(void *arg)
{
	void *p = (void *)(uintptr_t)buffer;

	for (unsigned i = 1; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
		must(nccl.all_reduce(p, p, COUNT, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
		     "all_reduce");
		if (i % 16 == 0)
			must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "synchronise");
	}
	return arg;
}

/* Calls that NCCL answers without a lock that another thread of the parent may hold. */
_Noreturn static void in_child(void)
{
	int ranks = 0;

	if (nccl.group_start() != ncclSuccess || nccl.group_end() != ncclSuccess)
		_exit(1);
	_exit(!comm || (nccl.count(comm, &ranks) == ncclSuccess && ranks == 1) ? 7 : 2);
}

static int status_of(pid_t pid)
{
	int status = 0;

	must(pid > 0 && waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void count(int ended[4], int way, int status, int wanted)
{
	must(status == wanted, "a child's exit status");
	ended[way]++;
}

static void make_children(int ended[4])
{
	char name[] = "true";
	char *argv[] = { name, NULL };
	pid_t pid = fork();

	if (pid == 0)
		in_child();
	count(ended, 0, status_of(pid), 7);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		in_child();
	count(ended, 1, status_of(pid), 7);
	pid = vfork();
	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	count(ended, 2, status_of(pid), 0);
	must(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "posix_spawn");
	count(ended, 3, status_of(pid), 0);
}

static void mode_storm(void)
{
	int ended[4] = { 0 };
	pthread_t thread;

	set_up(1, 0, NULL);
	must(pthread_create(&thread, NULL, keep_reducing, NULL) == 0, "thread");
	for (int i = 0; i < ROUNDS; i++)
		make_children(ended);
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	(void)pthread_join(thread, NULL);
	/* NOLINTNEXTLINE(cert-env33-c): this tries the habits of programs */
	must(WEXITSTATUS(system("exit 3")) == 3, "system");
	printf("forked %d, cloned %d, vforked %d, spawned %d\n", ended[0], ended[1], ended[2],
	       ended[3]);
}

static pthread_barrier_t at_once;

static void *first_call(void *arg)
{
	(void)pthread_barrier_wait(&at_once);
	must(nccl.group_start() == ncclSuccess && nccl.group_end() == ncclSuccess, "group");
	return arg;
}

/* The first calls of a process, by several threads, while it forks. */
static void mode_first_calls(void)
{
	pthread_t threads[STARTERS];
	int ended = 0;
	pid_t pid;

	must(pthread_barrier_init(&at_once, NULL, STARTERS + 1) == 0, "barrier");
	for (int i = 0; i < STARTERS; i++)
		must(pthread_create(&threads[i], NULL, first_call, NULL) == 0, "thread");
	(void)pthread_barrier_wait(&at_once);
	for (int i = 0; i < 8; i++) {
		pid = fork();
		if (pid == 0)
			in_child();
		ended += status_of(pid) == 7;
	}
	for (int i = 0; i < STARTERS; i++)
		(void)pthread_join(threads[i], NULL);
	set_up(1, 0, NULL);
	work(2);
	printf("children %d\n", ended);
}

static void print_surroundings(void)
{
	printf("locale %s, %.2f\n", setlocale(LC_ALL, NULL), 1234.5);
	for (char **e = environ; e && *e; e++) {
		if (strncmp(*e, "OWN_", 4) == 0)
			puts(*e);
	}
}

/* Locale and environment are the program's: before its first call, and at all times after. */
static void mode_surroundings(void)
{
	static char own[] = "OWN_THIRD=3";
	char name[32];

	must(setlocale(LC_ALL, "") != NULL, "setlocale");
	must(setenv("OWN_FIRST", "1", 1) == 0, "setenv");
	set_up(1, 0, NULL);
	work(2);
	print_surroundings();
	for (int i = 0; i < 1000; i++) { /* the table moves, more than once */
		(void)snprintf(name, sizeof(name), "TO_GO_%d", i);
		must(setenv(name, "x", 1) == 0, "setenv");
		if (i % 100 == 0)
			work(1);
	}
	must(clearenv() == 0 && putenv(own) == 0, "environment");
	must(setlocale(LC_ALL, "C") != NULL, "setlocale");
	work(2);
	print_surroundings();
}

const struct mode children[] = {
	{ "storm", mode_storm },
	{ "first-calls", mode_first_calls },
	{ "surroundings", mode_surroundings },
	{ NULL, NULL },
};
