/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where OpenSSL keeps private keys: its "secure heap", made to be neither swapped, dumped nor
 * inherited by children, which read hostile programs under other users' ids. It covers keys on
 * elliptic curves; RSA keeps copies elsewhere.
 */
#pragma once

#include "common/err.h"

/*
 * Once in the life of a process, before the first key is read; later calls do nothing. 0, or -errno
 * with err set: then no private key must be read.
 */
int cw_secret_heap_open(struct cw_err *err);
