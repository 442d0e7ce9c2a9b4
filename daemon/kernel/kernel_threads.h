/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side of a process's threads, taken with a BPF iterator (bpf/thread_facts.bpf.c):
 * where in the kernel each sleeps and since when it has not run. Optional: a machine without BTF, a
 * daemon without the rights or a build without BPF has none, and one sentence why.
 *
 * Loop thread only. Reading visits the threads of one process (before Linux 6.1: of the machine),
 * and none of them waits for it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

struct cw_kernel_threads;

/* Text of one process: 256 threads of 8 frames; what is longer is cut. */
#define CW_KERNEL_THREADS_MAX_BYTES (128u << 10)
#define CW_KERNEL_STACK_MAX_FRAMES 24u

/* 0, or -errno with err saying why there is no such evidence on this machine. */
int cw_kernel_threads_new(struct cw_kernel_threads **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_kernel_threads *cw_kernel_threads_free(struct cw_kernel_threads *k);

/*
 * Fills buf with the text of all threads of pid, NUL-terminated; returns its length (0: no such
 * process) or -errno; -ENOTSUP for a NULL k.
 */
ssize_t cw_kernel_threads_read(struct cw_kernel_threads *k, pid_t pid, char *buf, size_t len);

/*
 * What that text says about a thread: since when it has not run (-1 = not known, or it runs) and
 * the symbols of its kernel stack, innermost first (new reference; NULL = none). text may be NULL.
 * Pure.
 */
json_t *cw_kernel_threads_find(const char *text, pid_t tid, int64_t *ret_off_cpu_ns);

/* The symbols of a text with one frame a line, "[<0>] name+0x1/0x2 [module]" or without the first.
 */
json_t *cw_kernel_stack_parse(const char *text, size_t len);
