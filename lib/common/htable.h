/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash, made safe for a daemon: it does not call exit(-1) if we are out of memory. After HASH_ADD
 * the caller checks with cw_htable_added() that the element's hh.tbl is not NULL.
 *
 * Each use of a table would expand uthash's hash function in place, which has 89 statements. Here
 * each use calls one function instead.
 */
#pragma once

#include <stddef.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((void)(elt))
#define HASH_FUNCTION(key, len, ret_hash) ((ret_hash) = cw_htable_hash(key, len))
#include <uthash.h>

#define cw_htable_added(elt) ((elt)->hh.tbl != NULL)

/* Returns Jenkins' hash of the `len` bytes of `key`, as uthash computes it. Pure. */
unsigned cw_htable_hash(const void *key, size_t len);
