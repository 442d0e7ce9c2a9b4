/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash, made safe for a daemon: out of memory does not call exit(-1). After HASH_ADD the caller
 * checks that the element's hh.tbl is not NULL (cw_htable_added()).
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((void)(elt))
#include <uthash.h>

#define cw_htable_added(elt) ((elt)->hh.tbl != NULL)
