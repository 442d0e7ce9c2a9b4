/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a service manager that keeps descriptors for a daemon: a datagram socket at
 * $NOTIFY_SOCKET, and the descriptors received through it, in systemd's order (newest first).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/process/fdstore.h"

#define FAKE_MANAGER_MAX 32

struct fake_manager {
	int sock;
	char path[64];
	struct {
		int fd;
		char name[CW_FDSTORE_NAME_BYTES];
	} kept[FAKE_MANAGER_MAX];
	size_t n;
	unsigned stored, removed; /* numbers of messages of these kinds */
};

/* Starts the fake manager and sets $NOTIFY_SOCKET. */
void fake_manager_start(struct fake_manager *m);
void fake_manager_stop(struct fake_manager *m);
/* Reads the messages that the daemon has sent. */
void fake_manager_read(struct fake_manager *m);
/*
 * Passes the descriptors to the next daemon at its start, through cw_fdstore_group(), as systemd
 * does.
 */
void fake_manager_pass(struct fake_manager *m, struct cw_fdstore_entry **ret, size_t *ret_n);
