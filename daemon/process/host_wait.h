/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In what the first thread of a process sleeps: enum cw_host_wait, as far as the kernel shows it.
 * /proc/PID/syscall names the call and its arguments, the process's table of descriptors what one
 * of these is. Of a process into which this one may not look nothing is known (that needs the right
 * to trace it).
 *
 * Told are calls that others may end: those that wait for a socket, a terminal or a pipe, for one
 * of several of them, for a time, and futexes as semaphores and conditions wait on them. That is
 * how a rank without work looks, of a server as of an interactive session. What programs in Python
 * call locks wait on semaphores, too, so that who waits for one of these is not told from who waits
 * for a queue; who waits for the interpreter itself is, by where the word lies
 * (agent/python/interpreter.h). A mutex is none of them: who waits for one waits for another thread
 * of the process, and whether that is so for good is found out elsewhere
 * (daemon/process/lock_wait.h). Nor can anybody from outside wake a process all of whose threads
 * wait for words of its own, without a time (daemon/process/headway.c).
 *
 * Any thread; the reads do not block, and take no lock of the process's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where an interpreter keeps its lock, in its process's memory; no bytes = nowhere known. */
struct cw_host_interpreter {
	uint64_t address, bytes;
};

/*
 * As mutexes wait: without a time, for one word. Or for the interpreter's lock: with a time, again
 * and again, to ask who has it to let it go.
 */
struct cw_host_lock {
	uint64_t address;    /* of the word, or of the interpreter; 0 = it waits for none */
	bool is_inherited;   /* the kernel knows the owner by the word: priority inheritance */
	bool is_interpreter; /* the interpreter's: no word says who has it */
	bool is_unsettled;   /* it ran when it was looked at: in what it waits next is not known */
};

/* A word that a thread waits for, of whatever glibc makes of it. */
struct cw_host_futex {
	uint64_t address;  /* 0 = it waits for none */
	bool is_private;   /* no other process can wake it */
	bool has_timeout;  /* it wakes up by itself */
	bool is_unsettled; /* it ran when it was looked at: in what it waits next is not known */
};

/*
 * proc_fd: of /proc/PID. last: what was seen the last time, which stays while the thread happens to
 * run: one that waits with a time wakes up now and then. CW_HOST_WAIT_UNKNOWN, _QUEUE, _SOCKET or
 * _TTY. *ret_lock: the mutex it waits for, or the interpreter.
 */
unsigned cw_host_wait_look(int proc_fd, const struct cw_host_interpreter *interpreter,
			   unsigned last, struct cw_host_lock *ret_lock);

/* In what one of its threads waits. 0 or -errno: not to be known. */
int cw_host_wait_thread(int proc_fd, pid_t tid, struct cw_host_futex *ret);

/* Pure: the descriptor that the line of /proc/PID/syscall waits on; -1 = on none, or not known. */
int cw_host_wait_fd(const char *line);
/* Pure: whether that line is a call that waits for several things, for a time or for a condition.
 */
bool cw_host_wait_is_for_any(const char *line);
/* Pure: the mutex that a line of it waits for. */
struct cw_host_lock cw_host_wait_lock(const char *line);
/* Pure: the word that it waits for, whatever that is. */
struct cw_host_futex cw_host_wait_futex(const char *line);
/* Pure: whether that word is one of the interpreter's. */
bool cw_host_wait_is_interpreter(const struct cw_host_interpreter *interpreter,
				 const struct cw_host_futex *futex);
/* Pure: what a link of /proc/PID/fd says of it. */
unsigned cw_host_wait_of(const char *link);
