/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks of one process. The child copies the stacks (daemon/evidence/stack_take.h), lets
 * the process run on, confines itself, and unwinds the copy (daemon/evidence/unwinder.h). The
 * daemon does not trust the child's output.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Maximum size of a child's output. It must fit into one message together with the other parts. */
#define CW_STACK_MAX_OUTPUT (160u << 10)

struct cw_stack_target {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid; /* user that must own the process; the unwinder runs as this user */
	gid_t gid;
};

/*
 * Takes the stacks, and writes JSON to out_fd, one object per line. Each thread has a line, which
 * we write as soon as we have unwound the thread. The last line has "end": true. Returns an exit
 * status. Blocks, and confines the process, so call this only in a child.
 */
int cw_stack_child(int out_fd, const struct cw_stack_target *target);

/*
 * Makes the "native" part of collwatch.evidence/1 from the child's output, as a new reference;
 * NULL = out of memory. is_whole: the child ended by itself. Drops lines that do not have the
 * expected fields. Depends only on its arguments.
 */
json_t *cw_stack_output_read(const char *output, size_t len, bool is_whole);
