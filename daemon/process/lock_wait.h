/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first thread that waits, without a time, for a mutex that another thread of the process has: a
 * wait that nobody from outside can end. It is known for one once the mutex's owner is known and
 * asleep, and no thread but helpers (daemon/process/headway.h) has run for a while: who holds it
 * waits for something that does not come, or for the first thread.
 * Other waits have no owner: there all threads are looked at (daemon/process/headway.c). Nor can it
 * be read who has the interpreter's lock: it is one of those that do not wait for it.
 *
 * Who the owner is stands in the process's memory, which is not read by a loop: a child does
 * (cw_lock_wait_read()), at most once in CW_LOCK_WAIT_ASK_NS of a wait. Facts only. Loop thread
 * only but for what the child calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/host_wait.h"

/* It is asked who has the lock once it was waited for so long. */
#define CW_LOCK_WAIT_ASK_NS INT64_C(10000000000)
/* Nobody has run for so long: half of what a page waits for. */
#define CW_LOCK_WAIT_STILL_NS INT64_C(30000000000)

struct cw_lock_wait {
	struct cw_host_lock on; /* address 0 = it waits for none */
	int64_t since_ns;       /* all: awake */
	int64_t asked_ns;       /* 0 = not yet */
	int64_t still_ns;       /* since when nobody but helpers has run; 0 = not looked at yet */
	uint64_t runs;          /* what the scheduler has counted of all of them, as one number */
	pid_t owner; /* by its number in the process's own pid namespace; 0 = not known */
};

/*
 * What its first thread waits for at the end of a quiet window; address 0 = for no lock. Who waits
 * for the interpreter still does if it happened to run just then.
 */
void cw_lock_wait_note(struct cw_lock_wait *w, struct cw_host_lock lock, int64_t now_ns);
/* What all threads but helpers have run. */
void cw_lock_wait_note_runs(struct cw_lock_wait *w, uint64_t runs, int64_t now_ns);
/* Who has it is to be found out, if it can be. */
bool cw_lock_wait_must_ask(const struct cw_lock_wait *w, int64_t now_ns);
/* The answer for that address: its owner, 0 = not known. */
void cw_lock_wait_answer(struct cw_lock_wait *w, uint64_t address, pid_t owner);
/* It has stood for long, and nobody has run; whether the owner sleeps, the caller looks. */
bool cw_lock_wait_stands(const struct cw_lock_wait *w, int64_t now_ns);
/* Nobody has run, whether there is a mutex or not. */
bool cw_lock_wait_is_still(const struct cw_lock_wait *w, int64_t now_ns);

/* Pure: who has the mutex with these first words, as glibc lays it out; 0 = none, or no mutex. */
pid_t cw_lock_wait_owner(const uint32_t words[4], bool is_inherited);
/* Reads it from another process; blocks while that one changes its mappings. 0: not to be known. */
pid_t cw_lock_wait_read(pid_t pid, uint64_t address, bool is_inherited);
