/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the key that all daemons of a cluster share. The file has 32 to 64 random bytes in hex, as
 * `collwatch init-cluster` writes it. In memory the key has its own page, which no child inherits:
 * the daemon's children read hostile programs under other users' ids. If the kernel permits, this
 * page is neither swapped nor dumped.
 *
 * Reads one file; otherwise nothing here blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CW_PEER_KEY_MIN_BYTES 32u
#define CW_PEER_KEY_MAX_BYTES 64u

struct cw_peer_key {
	size_t len;
	uint8_t bytes[CW_PEER_KEY_MAX_BYTES];
};

/*
 * Loads the key from the file. Returns 0, or -errno with err set. The errors are those of
 * cw_secret_file_check() and of reading the file.
 */
int cw_peer_key_load(const char *file, struct cw_peer_key **ret, struct cw_err *err);
/* Wipes the key. Takes NULL; returns NULL. */
struct cw_peer_key *cw_peer_key_free(struct cw_peer_key *key);
