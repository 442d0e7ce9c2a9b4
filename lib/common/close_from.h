/* SPDX-License-Identifier: Apache-2.0 */
/* Closes inherited descriptors in a forked child. Allocates nothing. */
#pragma once

#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9; glibc 2.34; the same on all architectures */
#endif

/*
 * Closes every descriptor from first on. If close_range() is missing (Linux before 5.9) or a
 * sandbox forbids it, we read /proc/self/fd instead. Returns 0 or -errno. After an error some
 * descriptors may still be open.
 */
int cw_close_from(int first);
