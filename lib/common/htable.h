/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash, made safe for a daemon: it does not call exit(-1) if we are out of memory. After HASH_ADD
 * the caller checks with cw_htable_added() that the element's hh.tbl is not NULL.
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((void)(elt))
#include <uthash.h>

#define cw_htable_added(elt) ((elt)->hh.tbl != NULL)
