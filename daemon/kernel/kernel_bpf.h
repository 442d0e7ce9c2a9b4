/* SPDX-License-Identifier: Apache-2.0 */
/* Code that all BPF users in the daemon share. Loop thread only. */
#pragma once

#include <stdint.h>

#include "common/err.h"

/*
 * Routes libbpf's messages into our log, and checks that this machine can load programs at all.
 * Finds the inode of the daemon's pid namespace; 0 = the initial one. 0, or -errno with err set.
 */
int cw_kernel_bpf_prepare(uint32_t *ret_pid_ns, struct cw_err *err);

/* Explains an error r (-errno) of loading or attaching. The text is static. */
const char *cw_kernel_bpf_reason(int r);
