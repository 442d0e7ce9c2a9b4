/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities of the daemon. The loop parses bytes of strangers, so it drops all capabilities
 * before it accepts the first connection. The fork server keeps them for its children
 * (loop/fork_server.h). One of these children lives as long as the daemon, and reads closed files
 * of /proc for the loop (daemon/kernel/closed_files.h). If that child ends or hangs, we start
 * another one.
 *
 * A daemon that has no capabilities keeps reading these files itself. Loop thread only.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"

struct cw_fork_server;
struct cw_rights;
struct event_base;

/*
 * Starts the child that reads closed files, and runs the loop until the child exists. Call this
 * before the loop has other events than those of the fork server, which is borrowed. Returns 0, or
 * -errno with err set.
 */
int cw_rights_new(struct event_base *base, struct cw_fork_server *forks, struct cw_rights **ret,
		  struct cw_err *err);
/* Drops all capabilities. The process cannot gain any later. Returns 0, or -errno with err set. */
int cw_rights_drop(struct cw_rights *rights, struct cw_err *err);
/* Returns whether cw_rights_drop() has dropped capabilities that this process had. */
bool cw_rights_are_dropped(const struct cw_rights *rights);
/* Takes NULL; returns NULL. */
struct cw_rights *cw_rights_free(struct cw_rights *rights);
