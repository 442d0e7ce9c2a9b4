/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owners of the locks that ranks' first threads wait for (daemon/process/lock_wait.h). A
 * child of the fork server reads the lock, one lock at a time. Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "loop/fork_server.h"

struct cw_lock_owners;
struct cw_process;
struct event_base;

#define CW_LOCK_OWNERS_MS 1000u

/* The entry point of the child. The fork server calls it. */
int cw_lock_owner_child(int fd);

/*
 * Borrows all arguments. We use table to find the process again when the child has answered. 0 or
 * -ENOMEM.
 */
int cw_lock_owners_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_process **table, struct cw_lock_owners **ret);
/* Takes NULL; returns NULL. */
struct cw_lock_owners *cw_lock_owners_free(struct cw_lock_owners *o);
/*
 * Call it after each reading of p. Asks for the owner of p's lock if that is due and no other
 * question is open.
 */
void cw_lock_owners_look(struct cw_lock_owners *o, struct cw_process *p, int64_t awake_ns);
