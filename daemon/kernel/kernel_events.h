/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own word on how a process of this node ended or who stopped it: BPF programs
 * (bpf/process_facts.bpf.c) note it for the processes named here. Optional: a machine without BTF,
 * a daemon without the rights or a build without BPF leaves the daemon with what /proc and pidfds
 * say, and one sentence why.
 *
 * Loop thread only. Nothing blocks; loading takes some ms.
 */
#pragma once

#include <sys/types.h>

#include "bpf/process_facts.h"
#include "common/err.h"

struct cw_kernel_events;

/* 0, or -errno with err saying why there is no such evidence on this machine. */
int cw_kernel_events_new(struct cw_kernel_events **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Nothing of it stays in the kernel. */
struct cw_kernel_events *cw_kernel_events_free(struct cw_kernel_events *k);

/*
 * From now on this process is noted. The caller must see it alive afterwards: before that, the pid
 * may have become somebody else's. k may be NULL in all of these.
 */
void cw_kernel_events_watch(struct cw_kernel_events *k, pid_t pid);
void cw_kernel_events_forget(struct cw_kernel_events *k, pid_t pid);

/* What was noted so far. -ENOENT: not watched; -EAGAIN: it was changing all the time. */
int cw_kernel_events_read(const struct cw_kernel_events *k, pid_t pid,
			  struct cw_facts_process *ret);
