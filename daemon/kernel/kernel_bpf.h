/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all BPF users in the daemon. Loop thread only. */
#pragma once

#include <stdint.h>

#include "common/err.h"

/*
 * Prepares the use of libbpf. Sends libbpf's messages to our log, and checks that this machine can
 * load programs at all. Stores the inode of the daemon's pid namespace in *ret_pid_ns; 0 = the
 * initial one. Returns 0, or -errno with err set.
 */
int cw_kernel_bpf_prepare(uint32_t *ret_pid_ns, struct cw_err *err);

/* Explains r, an -errno of loading or attaching, in a static text. */
const char *cw_kernel_bpf_reason(int r);
