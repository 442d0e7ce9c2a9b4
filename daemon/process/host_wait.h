/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the wait of a process's first thread (enum cw_host_wait), as far as the kernel shows
 * it. /proc/PID/syscall names the call and its arguments. The descriptor table says which kind of
 * file a descriptor is. Both reads need the right to trace the process; without it the wait is
 * unknown.
 *
 * We report calls that an outsider may end: waits for a socket, a terminal or a pipe, for one of
 * several of them, or for a time. Futexes count, too, if they look like those of semaphores and
 * conditions. An idle rank of a server or of an interactive session looks like this.
 *
 * A Python lock waits on a semaphore, so it looks the same as a queue. But we recognise the
 * interpreter lock, by the address of the word (agent/python/interpreter.h).
 *
 * A mutex is different, because its waiter depends on another thread of the process.
 * daemon/process/lock_wait.h finds out whether that wait can end. If all threads wait without a
 * timeout for words of their own process, no outsider can wake it, either
 * (daemon/process/host_activity.c).
 *
 * Any thread; the reads do not block, and take no lock of the process's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The address range of an interpreter's lock in the memory of its process; bytes 0 = unknown. */
struct cw_host_interpreter {
	uint64_t address, bytes;
};

/*
 * The lock that a thread waits for. A waiter for a mutex waits on one word, without a timeout. A
 * waiter for the interpreter's lock waits with a timeout, again and again, to ask the owner to
 * release it.
 */
struct cw_host_lock {
	uint64_t address; /* of the futex word, or of the interpreter; 0 = no lock */
	/* A mutex with priority inheritance: the kernel knows its owner from the word. */
	bool is_inherited;
	bool is_interpreter; /* the interpreter's lock: no word names its owner */
	bool is_unsettled;   /* the thread was running: we do not know its next wait */
};

/* A futex word that a thread waits for. glibc may use it for any kind of lock. */
struct cw_host_futex {
	uint64_t address;  /* 0 = no futex */
	bool is_private;   /* no other process can wake the thread */
	bool has_timeout;  /* the thread wakes up by itself */
	bool is_unsettled; /* the thread was running: we do not know its next wait */
};

/*
 * Classifies the wait of the first thread. proc_fd is a descriptor of /proc/PID. last is the
 * previous result. We keep it if the thread happens to run, because a wait with a timeout wakes up
 * now and then. Returns CW_HOST_WAIT_UNKNOWN, _QUEUE, _SOCKET or _TTY. *ret_lock: the mutex or the
 * interpreter that the thread waits for.
 */
unsigned cw_host_wait_look(int proc_fd, const struct cw_host_interpreter *interpreter,
			   unsigned last, struct cw_host_lock *ret_lock);

/* Finds the futex that thread tid waits for. 0, or -errno if it is unknown. */
int cw_host_wait_thread(int proc_fd, pid_t tid, struct cw_host_futex *ret);

/* Returns the descriptor that a line of /proc/PID/syscall waits on; -1 = none, or unknown. Pure. */
int cw_host_wait_fd(const char *line);
/* True if the line is a wait for several things, for a time, or for a condition. Pure. */
bool cw_host_wait_is_for_any(const char *line);
/* Returns the mutex that the line waits for. Pure. */
struct cw_host_lock cw_host_wait_lock(const char *line);
/* Returns the futex of any kind that the line waits for. Pure. */
struct cw_host_futex cw_host_wait_futex(const char *line);
/* True if the futex lies inside the interpreter's lock. Pure. */
bool cw_host_wait_is_interpreter(const struct cw_host_interpreter *interpreter,
				 const struct cw_host_futex *futex);
/* Classifies a link of /proc/PID/fd. Pure. */
unsigned cw_host_wait_of(const char *link);
