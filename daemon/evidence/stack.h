/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks of one process: takes (daemon/evidence/stack_take.h), lets go, confines itself and
 * unwinds from the copy (daemon/evidence/unwinder.h). The work of one capture child, and the
 * reading of what it wrote, which is not trusted.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a child may write: with the other parts it has to fit into one message. */
#define CW_STACK_MAX_OUTPUT (160u << 10)

struct cw_stack_target {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid; /* whose the process must be, and what the unwinder becomes */
	gid_t gid;
};

/*
 * Writes JSON to out_fd, one object a line: one per thread, as it is unwound, and a last one with
 * "end": true. Returns the exit status. Blocks; a child only (it confines the process).
 */
int cw_stack_child(int out_fd, const struct cw_stack_target *target);

/*
 * The native part of collwatch.evidence/1 from what the child wrote; is_whole: it ended by itself.
 * Lines that do not have the expected shape are dropped. New reference; NULL = out of memory. Pure.
 */
json_t *cw_stack_output_read(const char *output, size_t len, bool is_whole);
