/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash for a daemon: if memory runs out, uthash does not call exit(-1). After HASH_ADD the caller
 * must check cw_htable_added(). It is false if memory ran out, and the element is then not in the
 * table.
 *
 * uthash would expand its hash function, 89 statements, at each use of a table. Here each use calls
 * one function instead.
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
