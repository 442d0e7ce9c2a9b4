/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out who has the locks that first threads of ranks wait for (daemon/process/lock_wait.h): a
 * child of the fork server reads it, one at a time. Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "loop/fork_server.h"

struct cw_lock_owners;
struct cw_process;
struct event_base;

#define CW_LOCK_OWNERS_MS 1000u

/* One of the fork server's jobs. */
int cw_lock_owner_child(int fd);

/*
 * table: where processes are found again when the child has answered. All borrowed. 0 or -ENOMEM.
 */
int cw_lock_owners_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_process **table, struct cw_lock_owners **ret);
/* Takes NULL; returns NULL. */
struct cw_lock_owners *cw_lock_owners_free(struct cw_lock_owners *o);
/* The process was looked at: asks about it if that is due, and nobody else is asked about. */
void cw_lock_owners_look(struct cw_lock_owners *o, struct cw_process *p, int64_t awake_ns);
