/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel state of a process's threads: where in the kernel each thread sleeps, and for how long it
 * has not run. A BPF iterator reads it (bpf/thread_facts.bpf.c). This evidence is optional. It is
 * missing on a machine without BTF, in a daemon without the rights, and in a build without BPF.
 * cw_kernel_threads_new() then explains the reason in one sentence.
 *
 * The loop thread owns the BPF program, and a child with the capabilities reads. A read visits the
 * threads of one process; before Linux 6.1 it visits those of the whole machine. It does not delay
 * any of these threads.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

struct cw_kernel_threads;

/* Longest text of one process: 256 threads of 8 frames. We cut longer texts. */
#define CW_KERNEL_THREADS_MAX_BYTES (128u << 10)
#define CW_KERNEL_STACK_MAX_FRAMES 24u

/* Returns 0, or -errno with the reason in err. The daemon then has no such evidence. */
int cw_kernel_threads_new(struct cw_kernel_threads **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_kernel_threads *cw_kernel_threads_free(struct cw_kernel_threads *k);

/*
 * Returns the descriptor of the program for reads of pid's threads, borrowed; -1 = k is NULL.
 * Before Linux 6.1 the program reads the threads of one pid only, the last one.
 */
int cw_kernel_threads_program(struct cw_kernel_threads *k, pid_t pid);
/* True if a program for another pid would spoil a read that has not ended. */
bool cw_kernel_threads_is_exclusive(const struct cw_kernel_threads *k);

/*
 * Fills buf with the text of all threads of pid, and appends a NUL. Returns the length of the text
 * or -errno. 0 = there is no such process. Needs CAP_BPF and CAP_PERFMON.
 */
ssize_t cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len);

/*
 * Finds a thread in a text of cw_kernel_threads_read(); text may be NULL. Returns the symbols of
 * its kernel stack, innermost first, as a new reference; NULL = none. *ret_off_cpu_ns: the time
 * since it last ran; -1 = unknown, or it runs now. Depends only on its arguments.
 */
json_t *cw_kernel_threads_find(const char *text, pid_t tid, int64_t *ret_off_cpu_ns);

/*
 * Extracts the symbols from a text with one frame per line, "[<0>] name+0x1/0x2 [module]". The
 * "[<0>]" may be missing. Returns a new reference; NULL = none.
 */
json_t *cw_kernel_stack_parse(const char *text, size_t len);
