/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service manager as far as the descriptor store goes: a datagram socket at $NOTIFY_SOCKET, and
 * what came through it, kept the way systemd keeps it (the newest first).
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
	unsigned stored, removed; /* messages */
};

/* Sets $NOTIFY_SOCKET. */
void fake_manager_start(struct fake_manager *m);
void fake_manager_stop(struct fake_manager *m);
/* Takes in what was sent. */
void fake_manager_read(struct fake_manager *m);
/* As the next daemon gets it at its start: what systemd passes goes through cw_fdstore_group(). */
void fake_manager_pass(struct fake_manager *m, struct cw_fdstore_entry **ret, size_t *ret_n);
