/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the first thread of a process while it waits for a lock. Such a thread waits, without a
 * timeout, for a mutex that another thread of the process owns. No other process can end this wait.
 * We report it as a deadlock if three conditions are true: we know the owner of the mutex, the
 * owner sleeps, and no thread except helpers (daemon/process/host_activity.h) has run for a while.
 * The owner then waits for an event that does not come, or for the first thread.
 *
 * Other waits have no owner, so daemon/process/host_activity.c inspects all threads for them. The
 * interpreter's lock does not name its owner, either. Its owner is one of the threads that do not
 * wait for it.
 *
 * The name of the mutex's owner is in the process's memory, which the loop never reads. A child
 * reads it (cw_lock_wait_read()), at most once per CW_LOCK_WAIT_ASK_NS. We report facts only. Loop
 * thread only, except for the functions that the child calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/host_wait.h"

/* Time that a wait must last before a child reads the owner. */
#define CW_LOCK_WAIT_ASK_NS INT64_C(10000000000)
/*
 * If no thread has run for this long, the process counts as still. This is half of the time before
 * an alert.
 */
#define CW_LOCK_WAIT_STILL_NS INT64_C(30000000000)

struct cw_lock_wait {
	struct cw_host_lock on; /* address 0 = the thread waits for no lock */
	int64_t since_ns;       /* start of the wait; all times here are on the awake clock */
	int64_t asked_ns;       /* time at which a child last read the owner; 0 = never */
	/*
	 * Time since when no thread except helpers has run; 0 = we have not inspected the threads
	 * yet.
	 */
	int64_t still_ns;
	uint64_t runs; /* hash of how often each of these threads got a CPU */
	pid_t owner;   /* owner's tid in the process's own pid namespace; 0 = unknown */
};

/*
 * Notes the lock that the first thread waits for at the end of a quiet window; address 0 = none. If
 * the thread is just running, its wait for the interpreter's lock continues.
 */
void cw_lock_wait_note(struct cw_lock_wait *w, struct cw_host_lock lock, int64_t now_ns);
/* Notes the hash of the numbers of runs, over all threads except helpers. */
void cw_lock_wait_note_runs(struct cw_lock_wait *w, uint64_t runs, int64_t now_ns);
/* True if it is time to read the owner. */
bool cw_lock_wait_must_ask(const struct cw_lock_wait *w, int64_t now_ns);
/* Notes the owner of the mutex at this address, which the child has read. owner: 0 = unknown. */
void cw_lock_wait_answer(struct cw_lock_wait *w, uint64_t address, pid_t owner);
/*
 * True if the owner is known and no thread has run for CW_LOCK_WAIT_STILL_NS. The caller must also
 * check that the owner sleeps.
 */
bool cw_lock_wait_stands(const struct cw_lock_wait *w, int64_t now_ns);
/* True if no thread has run for CW_LOCK_WAIT_STILL_NS, whether or not there is a mutex. */
bool cw_lock_wait_is_still(const struct cw_lock_wait *w, int64_t now_ns);

/*
 * Returns the owner of a mutex from its first four words, in glibc's layout. 0 = it has no owner,
 * or is not a mutex. Depends only on its arguments.
 */
pid_t cw_lock_wait_owner(const uint32_t words[4], bool is_inherited);
/*
 * Reads the owner of a mutex from another process's memory; 0 = unknown. Blocks while that process
 * changes its mappings, so call it in a child.
 */
pid_t cw_lock_wait_read(pid_t pid, uint64_t address, bool is_inherited);
