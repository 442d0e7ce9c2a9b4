/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells from the kernel's own notes how a process of this node ended, or which process stopped it.
 * BPF programs (bpf/process_facts.bpf.c) write these notes for the processes that we watch. This
 * evidence is optional. It is missing on a machine without BTF, in a daemon without the rights, and
 * in a build without BPF. cw_kernel_events_new() then explains the reason in one sentence, and the
 * daemon relies on /proc and pidfds.
 *
 * Loop thread only. Nothing blocks; loading takes some ms.
 */
#pragma once

#include <sys/types.h>

#include "bpf/process_facts.h"
#include "common/err.h"

struct cw_kernel_events;

/* Returns 0, or -errno with the reason in err. The daemon then has no such evidence. */
int cw_kernel_events_new(struct cw_kernel_events **ret, struct cw_err *err);
/* Removes the BPF programs from the kernel. Takes NULL; returns NULL. */
struct cw_kernel_events *cw_kernel_events_free(struct cw_kernel_events *k);

/*
 * Starts to note events of this process. The caller must then check that its process is still
 * alive. The pid may have passed to another process before the call. All functions here accept
 * k = NULL.
 */
void cw_kernel_events_watch(struct cw_kernel_events *k, pid_t pid);
void cw_kernel_events_forget(struct cw_kernel_events *k, pid_t pid);

/*
 * Reads the notes so far. Returns 0 or -errno. -ENOENT: we do not watch the process. -EAGAIN: the
 * notes changed at each try.
 */
int cw_kernel_events_read(const struct cw_kernel_events *k, pid_t pid,
			  struct cw_facts_process *ret);
