/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in a page: of one process closely, and of all ranks as prefix trees. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A collwatch.evidence/1: Python first, then native, what is not the program's own folded away. */
void html_put_evidence(FILE *out, const json_t *evidence);

/* A collwatch.stacks/1; nothing for NULL or another document. 0 or -ENOMEM: not all of it. */
int html_put_stack_tree(FILE *out, const json_t *stacks);
