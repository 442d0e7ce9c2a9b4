/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of the lock that a rank's first thread waits for (daemon/process/lock_wait.h). A
 * child of the fork server reads one lock at a time. Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "loop/fork_server.h"

struct cw_lock_owners;
struct cw_process;
struct event_base;

#define CW_LOCK_OWNERS_MS 1000u

/* The main function of the child, which the fork server calls. */
int cw_lock_owner_child(int fd);

/*
 * Borrows all arguments. table: the node's processes, in which we find the process again after the
 * child's answer. Returns 0 or -ENOMEM.
 */
int cw_lock_owners_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_process **table, struct cw_lock_owners **ret);
/* Takes NULL; returns NULL. */
struct cw_lock_owners *cw_lock_owners_free(struct cw_lock_owners *o);
/*
 * Call this after each time that the daemon has read the state of p. Starts to read the owner of
 * p's lock, if it is time for this and no other lock is being read.
 */
void cw_lock_owners_look(struct cw_lock_owners *o, struct cw_process *p, int64_t awake_ns);
