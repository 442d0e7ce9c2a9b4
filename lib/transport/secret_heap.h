/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up OpenSSL's "secure heap" for private keys. The kernel neither swaps nor dumps this heap.
 * Children do not inherit it, because they read hostile programs under other users' ids. The heap
 * holds keys on elliptic curves. For RSA keys, OpenSSL also makes copies elsewhere.
 */
#pragma once

#include "common/err.h"

/*
 * Call this before reading the first key. Later calls return the first result. Returns 0, or -errno
 * with err set. After an error the caller must not read a private key.
 */
int cw_secret_heap_open(struct cw_err *err);
