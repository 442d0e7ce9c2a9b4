/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's "secure heap" for private keys, set up to be neither swapped, dumped nor inherited by
 * children, which read hostile programs under other users' ids. It covers keys on elliptic curves;
 * RSA keeps copies elsewhere.
 */
#pragma once

#include "common/err.h"

/*
 * Call once in the life of a process, before reading the first key; later calls do nothing. 0, or
 * -errno with err set: the caller must then read no private key.
 */
int cw_secret_heap_open(struct cw_err *err);
