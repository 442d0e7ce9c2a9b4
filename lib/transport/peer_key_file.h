/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key that all daemons of a cluster share, from a file: 32 to 64 random bytes in hex, as
 * `collwatch init-cluster` writes it. The key has a page of its own that no child inherits, because
 * the daemon's children read hostile programs under other users' ids. If the kernel permits, the
 * page is neither swapped nor dumped.
 *
 * Reads one file; otherwise it does not block.
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

/* Loads the key. Errors are those of cw_secret_file_check() or of reading, with err set. */
int cw_peer_key_load(const char *file, struct cw_peer_key **ret, struct cw_err *err);
/* Wipes the key. Takes NULL; returns NULL. */
struct cw_peer_key *cw_peer_key_free(struct cw_peer_key *key);
