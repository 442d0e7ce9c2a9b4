/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks of one process. The child takes the stacks (daemon/evidence/stack_take.h), releases
 * the process, confines itself and unwinds from the copy (daemon/evidence/unwinder.h). The daemon
 * reads the child's output and does not trust it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The limit of a child's output. It must fit into one message together with the other parts. */
#define CW_STACK_MAX_OUTPUT (160u << 10)

struct cw_stack_target {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid; /* required owner of the process; the unwinder runs as this user */
	gid_t gid;
};

/*
 * Writes JSON to out_fd, one object per line: one for each thread, as soon as it is unwound, and a
 * last one with "end": true. Returns the exit status. Blocks, and confines the process, so call it
 * in a child only.
 */
int cw_stack_child(int out_fd, const struct cw_stack_target *target);

/*
 * Builds the native part of collwatch.evidence/1 from the child's output. is_whole: the child ended
 * by itself. We drop lines without the expected shape. New reference; NULL = out of memory. Pure.
 */
json_t *cw_stack_output_read(const char *output, size_t len, bool is_whole);
