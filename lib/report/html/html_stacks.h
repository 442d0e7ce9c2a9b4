/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in a page: the stacks of one process in detail, and those of all ranks as prefix trees. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Writes a collwatch.evidence/1, Python frames first and then native ones. Frames outside the
 * program's own code are folded.
 */
void html_put_evidence(FILE *out, const json_t *evidence);

/*
 * Writes a collwatch.stacks/1, and nothing for NULL or another document. Returns 0, or -ENOMEM if
 * the output is incomplete.
 */
int html_put_stack_tree(FILE *out, const json_t *stacks);
