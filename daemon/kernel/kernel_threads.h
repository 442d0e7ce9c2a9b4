/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel state of a process's threads, read by a BPF iterator (bpf/thread_facts.bpf.c): where in
 * the kernel each thread sleeps, and since when it has not run. This evidence is optional. It is
 * missing on a machine without BTF, in a daemon without the rights, and in a build without BPF.
 * cw_kernel_threads_new() then explains the reason in one sentence.
 *
 * Loop thread only. A read visits the threads of one process (before Linux 6.1: of the machine),
 * and no thread waits for it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

struct cw_kernel_threads;

/* The limit of one process's text: 256 threads of 8 frames. We cut longer text. */
#define CW_KERNEL_THREADS_MAX_BYTES (128u << 10)
#define CW_KERNEL_STACK_MAX_FRAMES 24u

/* 0, or -errno; err then says why this machine has no such evidence. */
int cw_kernel_threads_new(struct cw_kernel_threads **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_kernel_threads *cw_kernel_threads_free(struct cw_kernel_threads *k);

/*
 * Fills buf with the text of all threads of pid, NUL-terminated. Returns its length (0: no such
 * process) or -errno; -ENOTSUP if k is NULL.
 */
ssize_t cw_kernel_threads_read(struct cw_kernel_threads *k, pid_t pid, char *buf, size_t len);

/*
 * Finds a thread in the text of cw_kernel_threads_read(). Returns the symbols of its kernel stack,
 * innermost first (new reference; NULL = none). *ret_off_cpu_ns: for how long it has not run; -1 =
 * unknown, or it runs. text may be NULL. Pure.
 */
json_t *cw_kernel_threads_find(const char *text, pid_t tid, int64_t *ret_off_cpu_ns);

/*
 * Parses the symbols of a text with one frame per line, "[<0>] name+0x1/0x2 [module]". The "[<0>]"
 * is optional.
 */
json_t *cw_kernel_stack_parse(const char *text, size_t len);
