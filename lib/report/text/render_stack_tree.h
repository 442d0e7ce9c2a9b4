/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a collwatch.stacks/1: the positions of all ranks, branches with the fewest ranks first. */
#pragma once

#include <jansson.h>

#include "report/text.h"

enum { /* the parts that we omit by default */
       /* Frames of interpreters and libraries, and more than a few lines of a tree. */
       CW_SHOW_ALL_FRAMES = 1 << 0,
       CW_SHOW_ALL_THREADS = 1 << 1, /* threads other than main threads */
};

/*
 * what: CW_SHOW_*. Prints nothing if stacks is NULL or another document. The document may be
 * hostile. No line exceeds the width if the width is 80 or more.
 */
void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, unsigned what);
