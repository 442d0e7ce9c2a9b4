/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of this process that may be unmapped. The functions fail instead of faulting. Each
 * of them makes one system call and takes no lock of ours. They are async-signal-safe and keep
 * errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads len bytes. Returns false if some of them are not readable. */
bool cw_own_read(uint64_t from, void *to, size_t len);

/*
 * Reads the len bytes before address `end` to the end of the buffer. If unmapped memory interrupts
 * them, reads fewer bytes, but still up to `end`. Returns the number of bytes read, at least
 * `least`; 0 if even the last `least` bytes are not readable. The caller ensures least <= len.
 */
size_t cw_own_read_before(uint64_t end, void *buf, size_t len, size_t least);

#define CW_OWN_READ_MANY 40

/*
 * Reads len bytes from each of n <= CW_OWN_READ_MANY addresses and stores them back to back.
 * Returns false if some of them are not readable.
 */
bool cw_own_read_many(const uint64_t from[], unsigned n, void *to, size_t len);
