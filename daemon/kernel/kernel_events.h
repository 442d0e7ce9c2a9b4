/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own account of how a process of this node ended, or which process stopped it. BPF
 * programs (bpf/process_facts.bpf.c) note it for the processes that we watch. This evidence is
 * optional. It is missing on a machine without BTF, in a daemon without the rights, and in a build
 * without BPF. cw_kernel_events_new() then explains the reason in one sentence, and the daemon
 * relies on /proc and pidfds.
 *
 * Loop thread only. Nothing blocks; loading takes some ms.
 */
#pragma once

#include <sys/types.h>

#include "bpf/process_facts.h"
#include "common/err.h"

struct cw_kernel_events;

/* 0, or -errno; err then says why this machine has no such evidence. */
int cw_kernel_events_new(struct cw_kernel_events **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Leaves nothing in the kernel. */
struct cw_kernel_events *cw_kernel_events_free(struct cw_kernel_events *k);

/*
 * Starts to note events of this process. Afterwards the caller must check that the process is still
 * alive: before the call, the pid may have passed to another process. In all functions here, k may
 * be NULL.
 */
void cw_kernel_events_watch(struct cw_kernel_events *k, pid_t pid);
void cw_kernel_events_forget(struct cw_kernel_events *k, pid_t pid);

/*
 * Reads the notes so far. -ENOENT: we do not watch the process. -EAGAIN: the notes kept changing.
 */
int cw_kernel_events_read(const struct cw_kernel_events *k, pid_t pid,
			  struct cw_facts_process *ret);
