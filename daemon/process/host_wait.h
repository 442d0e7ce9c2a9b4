/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the wait of a process's first thread (enum cw_host_wait), as far as the kernel shows
 * it. /proc/PID/syscall has the call and its arguments. The descriptor table tells which kind of
 * file a descriptor is. Both reads need the right to trace the process. Without this right the wait
 * is unknown.
 *
 * We report waits that another process may end. These are waits for a socket, a terminal or a pipe,
 * waits for several of them (poll), and waits with a time limit. A futex counts, too, if it looks
 * like that of a semaphore or condition. An idle rank of a server or of an interactive session has
 * such waits.
 *
 * A Python lock is a semaphore, so waiting for it looks like waiting for a queue. We can tell the
 * interpreter lock apart by the address of its futex word (agent/python/interpreter.h).
 *
 * A thread that waits for a mutex depends on another thread of the process.
 * daemon/process/lock_wait.h finds out whether that wait can end. If all threads of a process wait
 * without a timeout for futex words of this process, no other process can wake it, either
 * (daemon/process/host_activity.c).
 *
 * Any thread. The reads do not block, and take no lock of the process's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The memory range of the interpreter's lock in its process. bytes: 0 = unknown. */
struct cw_host_interpreter {
	uint64_t address, bytes;
};

/*
 * The lock that a thread waits for. A thread that waits for a mutex waits for one futex word,
 * without a timeout. A thread that waits for the interpreter's lock waits with a timeout, again and
 * again. At each timeout it asks the owner to release the lock.
 */
struct cw_host_lock {
	/* Address of the mutex's futex word, or of the interpreter's lock; 0 = no lock. */
	uint64_t address;
	/* True for a mutex with priority inheritance, whose word has the owner for the kernel. */
	bool is_inherited;
	bool is_interpreter; /* true for the interpreter's lock, in which no word names the owner */
	bool is_unsettled;   /* true if the thread was running, so that its next wait is unknown */
	bool is_late;        /* true if the answer of the kernel has not come yet */
};

/* A futex word that a thread waits for. It may belong to any kind of glibc's locks. */
struct cw_host_futex {
	uint64_t address;  /* address of the word; 0 = the thread waits for no futex */
	bool is_private;   /* true if no other process can wake the thread */
	bool has_timeout;  /* true if the thread wakes up by itself */
	bool is_unsettled; /* true if the thread was running, so that its next wait is unknown */
};

/*
 * Classifies the wait of the process's first thread. proc_fd: a descriptor of /proc/PID. last: the
 * previous result. If the thread is just running, we return the previous result, because a wait
 * with a timeout wakes up now and then. Returns CW_HOST_WAIT_UNKNOWN, _QUEUE, _SOCKET or _TTY.
 * *ret_lock: the mutex or interpreter lock that the thread waits for.
 */
unsigned cw_host_wait_look(int proc_fd, const struct cw_host_interpreter *interpreter,
			   unsigned last, struct cw_host_lock *ret_lock);

/* Finds the futex that thread tid waits for. Returns 0, or -errno if it is unknown. */
int cw_host_wait_thread(int proc_fd, pid_t tid, struct cw_host_futex *ret);

/*
 * Returns the descriptor that the thread waits for, from a line of /proc/PID/syscall. -1 = none, or
 * unknown. Depends only on the line, like the functions below.
 */
int cw_host_wait_fd(const char *line);
/* True if the line is a wait for several descriptors, for a time, or for a condition. */
bool cw_host_wait_is_for_any(const char *line);
/* Returns the mutex that the thread of this line waits for; address 0 = none. */
struct cw_host_lock cw_host_wait_lock(const char *line);
/* Returns the futex that the thread of this line waits for, of any kind; address 0 = none. */
struct cw_host_futex cw_host_wait_futex(const char *line);
/* True if the futex word is inside the interpreter's lock. */
bool cw_host_wait_is_interpreter(const struct cw_host_interpreter *interpreter,
				 const struct cw_host_futex *futex);
/* Classifies the target of a link in /proc/PID/fd, as an enum cw_host_wait. */
unsigned cw_host_wait_of(const char *link);
