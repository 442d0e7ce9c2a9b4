/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write() and ftruncate() without their signals. The kernel raises SIGXFSZ when a file grows beyond
 * the program's limit (ulimit -f), and SIGPIPE when a pipe has no reader. Either signal kills a
 * program that does not expect it. cw_write() and cw_ftruncate() only fail with EFBIG or EPIPE.
 * They restore the signal mask and leave the pending signals unchanged.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

ssize_t cw_write(int fd, const void *from, size_t bytes);
int cw_ftruncate(int fd, off_t bytes);
