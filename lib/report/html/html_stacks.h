/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in a page: of one process in detail, and of all ranks as prefix trees. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * A collwatch.evidence/1: Python first, then native; frames outside the program's own code
 * are folded.
 */
void html_put_evidence(FILE *out, const json_t *evidence);

/*
 * A collwatch.stacks/1; nothing for NULL or another document. 0 or -ENOMEM: output is incomplete.
 */
int html_put_stack_tree(FILE *out, const json_t *stacks);
