/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up OpenSSL's "secure heap" for private keys. The kernel neither swaps nor dumps it, and
 * children do not inherit it, because they read hostile programs under other users' ids. It covers
 * keys on elliptic curves; RSA keeps copies elsewhere.
 */
#pragma once

#include "common/err.h"

/*
 * Call this once per process, before reading the first key. Later calls do nothing. Returns 0, or
 * -errno with err set. After an error the caller must read no private key.
 */
int cw_secret_heap_open(struct cw_err *err);
