/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the wait of a process's first thread (enum cw_host_wait), as far as the kernel
 * shows it. /proc/PID/syscall names the call and its arguments; the descriptor table says which
 * kind of file a descriptor is. Both reads need the right to trace the process; without it the
 * wait is unknown.
 *
 * We report calls that an outsider may end: waits for a socket, a terminal or a pipe, for one of
 * several of them, or for a time. Futexes count, too, if semaphores and conditions wait on them
 * that way. An idle rank of a server or of an interactive session looks like this.
 *
 * A Python lock waits on a semaphore, so it looks the same as a queue. We do recognise the
 * interpreter lock, by the address of the word (agent/python/interpreter.h).
 *
 * A mutex is none of these: its waiter depends on another thread of the process.
 * daemon/process/lock_wait.h finds out whether that wait can end. If all threads
 * wait without a timeout for words of their own process, no outsider can wake it,
 * either (daemon/process/host_activity.c).
 *
 * Any thread; the reads do not block, and take no lock of the process's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Address range of an interpreter's lock, in its process's memory; bytes 0 = unknown. */
struct cw_host_interpreter {
	uint64_t address, bytes;
};

/*
 * The lock that a thread waits for. A mutex waits on one word, without a timeout. The interpreter's
 * lock waits with a timeout, again and again, to ask the owner to release it.
 */
struct cw_host_lock {
	uint64_t address;    /* of the word, or of the interpreter; 0 = no lock */
	bool is_inherited;   /* the kernel knows the owner from the word: priority inheritance */
	bool is_interpreter; /* the interpreter's lock: no word names its owner */
	bool is_unsettled;   /* the thread was running: we do not know its next wait */
};

/* A futex word that a thread waits for; glibc may use it for any kind of lock. */
struct cw_host_futex {
	uint64_t address;  /* 0 = no futex */
	bool is_private;   /* no other process can wake it */
	bool has_timeout;  /* it wakes up by itself */
	bool is_unsettled; /* the thread was running: we do not know its next wait */
};

/*
 * proc_fd: of /proc/PID. last: the previous result. We keep it if the thread happens to run,
 * because a wait with a timeout wakes up now and then. Returns CW_HOST_WAIT_UNKNOWN, _QUEUE,
 * _SOCKET or _TTY. *ret_lock: the mutex or the interpreter that the thread waits for.
 */
unsigned cw_host_wait_look(int proc_fd, const struct cw_host_interpreter *interpreter,
			   unsigned last, struct cw_host_lock *ret_lock);

/* The futex that thread tid waits for. 0, or -errno: unknown. */
int cw_host_wait_thread(int proc_fd, pid_t tid, struct cw_host_futex *ret);

/* Pure: the descriptor that a line of /proc/PID/syscall waits on; -1 = none, or unknown. */
int cw_host_wait_fd(const char *line);
/* Pure: true if the line is a wait for several things, for a time, or for a condition. */
bool cw_host_wait_is_for_any(const char *line);
/* Pure: the mutex that the line waits for. */
struct cw_host_lock cw_host_wait_lock(const char *line);
/* Pure: the futex that the line waits for, of any kind. */
struct cw_host_futex cw_host_wait_futex(const char *line);
/* Pure: true if the futex lies inside the interpreter's lock. */
bool cw_host_wait_is_interpreter(const struct cw_host_interpreter *interpreter,
				 const struct cw_host_futex *futex);
/* Pure: classifies a link of /proc/PID/fd. */
unsigned cw_host_wait_of(const char *link);
