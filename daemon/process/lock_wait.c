/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/lock_wait.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/uio.h>

/* Indexes of the words in glibc's struct __pthread_mutex_s: lock, count, owner, users. */
#define WORD_LOCK 0
#define WORD_OWNER 2
#define WORD_USERS 3
/* Value of the lock word if a thread owns the mutex and at least one more thread waits for it. */
#define LOCK_CONTENDED 2u
/*
 * Largest plausible number of owners and waiters, and largest tid. With larger values it is not a
 * mutex.
 */
#define MAX_USERS 65536u
#define MAX_TID (1 << 22)

void cw_lock_wait_note(struct cw_lock_wait *w, struct cw_host_lock lock, int64_t now_ns)
{
	if (lock.is_unsettled && w->on.is_interpreter)
		return;
	if (lock.address == w->on.address && lock.is_inherited == w->on.is_inherited &&
	    lock.is_interpreter == w->on.is_interpreter)
		return;
	*w = (struct cw_lock_wait){ .on = lock, .since_ns = now_ns };
}

void cw_lock_wait_note_runs(struct cw_lock_wait *w, uint64_t runs, int64_t now_ns)
{
	if (w->still_ns && runs == w->runs)
		return;
	w->still_ns = now_ns;
	w->runs = runs;
}

bool cw_lock_wait_must_ask(const struct cw_lock_wait *w, int64_t now_ns)
{
	return w->on.address && !w->on.is_interpreter && !w->owner &&
	       now_ns - w->since_ns >= CW_LOCK_WAIT_ASK_NS &&
	       (!w->asked_ns || now_ns - w->asked_ns >= CW_LOCK_WAIT_ASK_NS);
}

void cw_lock_wait_answer(struct cw_lock_wait *w, uint64_t address, pid_t owner)
{
	if (address && address == w->on.address)
		w->owner = owner;
}

bool cw_lock_wait_stands(const struct cw_lock_wait *w, int64_t now_ns)
{
	return w->on.address && w->owner && cw_lock_wait_is_still(w, now_ns);
}

bool cw_lock_wait_is_still(const struct cw_lock_wait *w, int64_t now_ns)
{
	return w->still_ns && now_ns - w->still_ns >= CW_LOCK_WAIT_STILL_NS;
}

pid_t cw_lock_wait_owner(const uint32_t words[4], bool is_inherited)
{
	uint32_t tid = is_inherited ? words[WORD_LOCK] & FUTEX_TID_MASK : words[WORD_OWNER];

	if (!is_inherited && (words[WORD_LOCK] != LOCK_CONTENDED || !words[WORD_USERS] ||
			      words[WORD_USERS] > MAX_USERS))
		return 0;
	return tid && tid <= MAX_TID ? (pid_t)tid : 0;
}

pid_t cw_lock_wait_read(pid_t pid, uint64_t address, bool is_inherited)
{
	uint32_t words[4];
	struct iovec local = { .iov_base = words, .iov_len = sizeof(words) };
	/* The address belongs to the other process. Do not dereference it. */
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = sizeof(words) };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(words))
		return 0;
	return cw_lock_wait_owner(words, is_inherited);
}
