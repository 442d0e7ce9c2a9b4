/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps descriptors across a restart of the daemon, in the service manager (systemd's file
 * descriptor store). For each process we store its flight record, and the pidfd that will report
 * its end. If a rank dies while no daemon runs, the next daemon still reports its last ops. If a
 * rank cannot reconnect by itself (stopped, wedged), the next daemon watches it again at once.
 *
 * We store the two descriptors under the identity of the process: "rank.1.PID.START.UID.GID". Once
 * we know how the process ended, we store the record alone, with ".LIVENESS.CODE.SIGNAL.ENDED"
 * appended (ENDED in ns of CLOCK_MONOTONIC). The 1 is the version of the name. We give up names of
 * other versions, because they are not ours.
 *
 * Without a service manager these functions do nothing. Loop thread only. If the manager does not
 * read, they wait for it as sd_notify.h says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/kernel/liveness.h"

struct cw_clock;
struct cw_passed_fd;
struct cw_process;

#define CW_FDSTORE_NAME_BYTES 160

/* One process restored from the store. */
struct cw_fdstore_entry {
	char name[CW_FDSTORE_NAME_BYTES];
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t start_ticks;
	bool is_dead; /* if true, end and ended_ns are known */
	struct cw_ending end;
	int64_t ended_ns;
	int record_fd, pidfd; /* -1 = the manager did not pass it */
};

/* Parses a name strictly. 0, -EINVAL or -ERANGE. Sets the descriptors to -1. */
int cw_fdstore_parse(const char *name, struct cw_fdstore_entry *ret);
/* Closes the descriptors and frees the list. */
void cw_fdstore_free(struct cw_fdstore_entry *list, size_t n);

/*
 * Takes the descriptors that the service manager passed at start. Call it once. Closes descriptors
 * of other kinds, and gives up names that do not parse. 0 or -ENOMEM. Free the list with
 * cw_fdstore_free().
 */
int cw_fdstore_take(const struct cw_clock *clock, struct cw_fdstore_entry **ret, size_t *ret_n);
/* Like cw_fdstore_take(), but from a given list. Takes the list with all its contents. */
int cw_fdstore_group(struct cw_passed_fd *passed, size_t n_passed, const struct cw_clock *clock,
		     struct cw_fdstore_entry **ret, size_t *ret_n);

/*
 * Stores p's present state and drops the state stored before. Cheap if nothing changed. 0, or
 * -errno if p is not stored. If the manager was busy, the next call tries again.
 */
int cw_fdstore_put(struct cw_process *p, const struct cw_clock *clock);
/* Removes p from the store. */
void cw_fdstore_remove(struct cw_process *p, const struct cw_clock *clock);
/* Removes an entry that we cannot use. */
void cw_fdstore_give_up(const struct cw_fdstore_entry *entry, const struct cw_clock *clock);
