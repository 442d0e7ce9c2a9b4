/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first thread waits, without a timeout, for a mutex of another thread of the process. No
 * outsider can end this wait. We report it if three things hold. We know the mutex's owner, the
 * owner sleeps, and no thread but helpers (daemon/process/host_activity.h) has run for a while. The
 * owner then waits for an event that does not come, or for the first thread.
 *
 * Other waits have no owner, so daemon/process/host_activity.c inspects all threads. The
 * interpreter's lock does not name its owner, either. The owner is one of the threads that do not
 * wait for it.
 *
 * The mutex's owner is in the process's memory, which the loop never reads. A child reads it
 * (cw_lock_wait_read()), at most once in CW_LOCK_WAIT_ASK_NS of a wait. We report facts only. Loop
 * thread only, except for the functions that the child calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/host_wait.h"

/* We ask for the owner when the wait has lasted this long. */
#define CW_LOCK_WAIT_ASK_NS INT64_C(10000000000)
/* The threads count as still if none has run for this long, half of the wait before a page. */
#define CW_LOCK_WAIT_STILL_NS INT64_C(30000000000)

struct cw_lock_wait {
	struct cw_host_lock on; /* address 0 = no lock */
	int64_t since_ns;       /* awake clock, like all times here */
	int64_t asked_ns;       /* time of the last question; 0 = not asked yet */
	/* Since when no thread except helpers has run; 0 = not inspected yet. */
	int64_t still_ns;
	uint64_t runs; /* hash of the scheduler's run counts of these threads */
	pid_t owner;   /* tid in the process's own pid namespace; 0 = unknown */
};

/*
 * Notes the lock that the first thread waits for at the end of a quiet window; address 0 = no lock.
 * If the thread happened to run just then, a wait for the interpreter goes on.
 */
void cw_lock_wait_note(struct cw_lock_wait *w, struct cw_host_lock lock, int64_t now_ns);
/* Notes the hash of the run counts of all threads except helpers. */
void cw_lock_wait_note_runs(struct cw_lock_wait *w, uint64_t runs, int64_t now_ns);
/* True if it is time to ask for the owner. */
bool cw_lock_wait_must_ask(const struct cw_lock_wait *w, int64_t now_ns);
/* Takes the child's answer for the mutex at that address. owner 0 = unknown. */
void cw_lock_wait_answer(struct cw_lock_wait *w, uint64_t address, pid_t owner);
/*
 * True if the owner is known and no thread has run for CW_LOCK_WAIT_STILL_NS. The caller checks
 * that the owner sleeps.
 */
bool cw_lock_wait_stands(const struct cw_lock_wait *w, int64_t now_ns);
/* True if no thread has run for CW_LOCK_WAIT_STILL_NS, with or without a mutex. */
bool cw_lock_wait_is_still(const struct cw_lock_wait *w, int64_t now_ns);

/*
 * Returns the owner of a mutex with these first words, in glibc's layout. 0 = no owner, or not a
 * mutex. Pure.
 */
pid_t cw_lock_wait_owner(const uint32_t words[4], bool is_inherited);
/*
 * Reads the owner from another process's memory; 0 = unknown. Blocks while that process changes its
 * mappings.
 */
pid_t cw_lock_wait_read(pid_t pid, uint64_t address, bool is_inherited);
