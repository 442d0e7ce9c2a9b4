/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager keeps for us over a restart (systemd's file descriptor store): of every
 * process its flight record, and the pidfd that tells how it ends. So a rank that dies while no
 * daemon is there has its last ops told by the next one, and one that cannot come back by itself
 * (stopped, wedged) is watched again at once.
 *
 * Each pair is kept under a name that says whose it is, "rank.1.PID.START.UID.GID"; of a process
 * whose end is known the record alone, with ".LIVENESS.CODE.SIGNAL.ENDED" behind (ns of
 * CLOCK_MONOTONIC). The 1 is the version of the name: others are not ours and are given up.
 *
 * Without a service manager nothing of this does anything. Loop thread only; waits for a manager
 * that does not read as sd_notify.h says.
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

/* One process as it came back. */
struct cw_fdstore_entry {
	char name[CW_FDSTORE_NAME_BYTES];
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t start_ticks;
	bool is_dead; /* end and ended_ns are known */
	struct cw_ending end;
	int64_t ended_ns;
	int record_fd, pidfd; /* -1 = did not come */
};

/* Strict. 0, -EINVAL or -ERANGE; the descriptors are set to -1. */
int cw_fdstore_parse(const char *name, struct cw_fdstore_entry *ret);
/* Closes the descriptors and frees the list. */
void cw_fdstore_free(struct cw_fdstore_entry *list, size_t n);

/*
 * Takes what the service manager passed at start; once. What is not of these kinds is closed, and
 * given up where its name says nothing. 0 or -ENOMEM; cw_fdstore_free().
 */
int cw_fdstore_take(const struct cw_clock *clock, struct cw_fdstore_entry **ret, size_t *ret_n);
/* The same from a list, which it takes with all that is in it. */
int cw_fdstore_group(struct cw_passed_fd *passed, size_t n_passed, const struct cw_clock *clock,
		     struct cw_fdstore_entry **ret, size_t *ret_n);

/*
 * Has p kept as it is now, instead of how it was kept before. Cheap when nothing changed; a manager
 * that was busy is asked again when this is called again. 0, or -errno: it was not to be had.
 */
int cw_fdstore_put(struct cw_process *p, const struct cw_clock *clock);
/* p is needed no more. */
void cw_fdstore_remove(struct cw_process *p, const struct cw_clock *clock);
/* What came under that name is of no use. */
void cw_fdstore_give_up(const struct cw_fdstore_entry *entry, const struct cw_clock *clock);
