/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces kernel_threads.c in a build without BPF. */
#include <errno.h>
#include <stddef.h>

#include "daemon/kernel/kernel_threads.h"

int cw_kernel_threads_new(struct cw_kernel_threads **ret, struct cw_err *err)
{
	return cw_err_set(err, EOPNOTSUPP, "built without BPF");
}

struct cw_kernel_threads *cw_kernel_threads_free(struct cw_kernel_threads *k)
{
	return NULL;
}

int cw_kernel_threads_program(struct cw_kernel_threads *k, pid_t pid)
{
	return -1;
}

bool cw_kernel_threads_is_exclusive(const struct cw_kernel_threads *k)
{
	return false;
}

ssize_t cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len)
{
	return -ENOTSUP;
}
