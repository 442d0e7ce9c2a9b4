/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's way to write the names of many hosts: "gpu[001-500,777],login1". What stands in brackets
 * are numbers and ranges of them, as wide as the first one of a range is written; there may be
 * several in a name. Pure but for memory.
 */
#pragma once

#include "common/err.h"

/*
 * At most max names, in the order of the text. *ret: free each and the array, which ends in a NULL.
 * 0, -EINVAL: err says what is wrong and where; -E2BIG: there are more; -ENOMEM.
 */
int cw_hostlist_expand(const char *text, unsigned max, char ***ret, unsigned *ret_n,
		       struct cw_err *err);
/* Takes NULL; returns NULL. */
char **cw_hostlist_free(char **names);
