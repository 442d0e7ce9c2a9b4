/* SPDX-License-Identifier: Apache-2.0 */
/* A collwatch.stacks/1 as text: the positions of all ranks, with the odd ranks first. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/*
 * Without all_frames, prints only the main threads, a few lines each, and folds interpreter and
 * libraries. Prints nothing for NULL or another document. Accepts hostile documents.
 */
void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, bool all_frames);
