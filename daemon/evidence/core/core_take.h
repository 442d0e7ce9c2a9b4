/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a process that a signal killed, from its core file. A child finds the file by the
 * core pattern (core_pattern.h). It accepts only files of the process's user. Then it confines
 * itself like the unwinder, and only then parses the file. The daemon does not trust its output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/evidence/capture.h"

/* Native and Python parts, and facts about the file. */
#define CW_CORE_MAX_OUTPUT (240u << 10)

/*
 * Reads the core file, and writes JSON to out_fd, one object per line: facts about the file, the
 * native stacks in the form of cw_stack_child(), the Python part. Returns an exit status. Blocks,
 * and confines the process, so call this only in a child.
 */
int cw_core_take(int out_fd, const struct cw_capture_ended *target);

/*
 * Makes the parts from the child's output. is_whole: the child ended by itself. Drops what does not
 * have the expected fields.
 */
void cw_core_read(const char *output, size_t len, bool is_whole,
		  struct cw_capture_ended_parts *ret);

/* Job of the fork server. */
int cw_core_child(int fd);
/* For the captures of this daemon. */
extern const struct cw_capture_core cw_core_captures;
