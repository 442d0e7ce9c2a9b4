/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that grow. Beyond the program's limit of a file's size (ulimit -f) the kernel raises
 * SIGXFSZ, which ends a program that does not expect it; of a pipe that nobody reads any more,
 * SIGPIPE. These fail with EFBIG and EPIPE only; signal mask and pending signals are as before.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

ssize_t cw_write(int fd, const void *from, size_t bytes);
int cw_ftruncate(int fd, off_t bytes);
