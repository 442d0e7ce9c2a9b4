/* SPDX-License-Identifier: Apache-2.0 */
/* What all users of BPF programs in the daemon have in common. Loop thread only. */
#pragma once

#include <stdint.h>

#include "common/err.h"

/*
 * Routes libbpf's messages into our log, looks whether programs can be loaded here at all, and
 * finds the inode of the daemon's pid namespace (0 = the initial one). 0, or -errno with err set.
 */
int cw_kernel_bpf_prepare(uint32_t *ret_pid_ns, struct cw_err *err);

/* Why loading or attaching failed with -errno r. Static. */
const char *cw_kernel_bpf_reason(int r);
