/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading memory of this process that may not be there: it fails instead of faulting. One system
 * call each, which takes no lock of ours; async-signal-safe; errno is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cw_own_read(uint64_t from, void *to, size_t len);

/*
 * Reads the len bytes that end before `end`, or as many of them as lie there behind a hole, to the
 * end of the buffer. How many; 0 = not even the last `least`. least <= len.
 */
size_t cw_own_read_before(uint64_t end, void *buf, size_t len, size_t least);

#define CW_OWN_READ_MANY 40

/* Reads len bytes from each of n <= CW_OWN_READ_MANY places, one behind the other. */
bool cw_own_read_many(const uint64_t from[], unsigned n, void *to, size_t len);
