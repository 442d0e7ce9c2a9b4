/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores descriptors in the service manager while the daemon restarts (systemd's file descriptor
 * store). For each process we store its flight record and its pidfd, which will report its end. If
 * a rank dies while no daemon runs, the next daemon still reports the rank's last ops. If a stopped
 * or wedged rank cannot reconnect, the next daemon watches it again at once.
 *
 * The name of the two descriptors is the identity of the process: "rank.1.PID.START.UID.GID". The 1
 * is the version of the name. If a name has another version, we remove its descriptors from the
 * store. Once we know how the process ended, we store only the record. Its name then has the suffix
 * ".LIVENESS.CODE.SIGNAL.ENDED" (ENDED in ns of CLOCK_MONOTONIC).
 *
 * Without a service manager these functions do nothing. Loop thread only. If the manager does not
 * read its socket, they wait for it, as sd_notify.h explains.
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
	bool is_dead; /* true if the process has ended; end and ended_ns then tell how and when */
	struct cw_ending end;
	int64_t ended_ns;
	int record_fd, pidfd; /* -1 = the manager has not passed this descriptor */
};

/* Parses a name strictly, and sets both descriptors to -1. Returns 0, -EINVAL or -ERANGE. */
int cw_fdstore_parse(const char *name, struct cw_fdstore_entry *ret);
/* Closes the descriptors of all n entries, and frees the list. */
void cw_fdstore_free(struct cw_fdstore_entry *list, size_t n);

/*
 * Takes the descriptors that the service manager passed when the daemon started. Call this only
 * once. Closes descriptors that are not ours. Removes entries from the store if their names do not
 * parse. Returns 0 or -ENOMEM. Free the list with cw_fdstore_free().
 */
int cw_fdstore_take(const struct cw_clock *clock, struct cw_fdstore_entry **ret, size_t *ret_n);
/* Like cw_fdstore_take(), but takes the given list instead, and owns all its contents. */
int cw_fdstore_group(struct cw_passed_fd *passed, size_t n_passed, const struct cw_clock *clock,
		     struct cw_fdstore_entry **ret, size_t *ret_n);

/*
 * Stores p's present state, and removes the state stored before. Costs little if nothing has
 * changed. Returns 0, or -errno if p is not stored. If the manager was busy, the next call tries
 * again.
 */
int cw_fdstore_put(struct cw_process *p, const struct cw_clock *clock);
/* Removes p from the store. */
void cw_fdstore_remove(struct cw_process *p, const struct cw_clock *clock);
/* Removes from the store an entry that we cannot use. */
void cw_fdstore_give_up(const struct cw_fdstore_entry *entry, const struct cw_clock *clock);
