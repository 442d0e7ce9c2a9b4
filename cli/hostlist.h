/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands Slurm's notation for many hosts: "gpu[001-500,777],login1". Brackets hold numbers and
 * ranges of numbers, padded to the width of the first number of the range. A name may have several
 * brackets. Pure except for memory.
 */
#pragma once

#include "common/err.h"

/*
 * Expands the text to at most max names, in the order of the text. *ret is an array that ends with
 * NULL; release it with cw_hostlist_free(). Returns 0 or -errno. -EINVAL: err describes the error
 * and its position. -E2BIG: there are more than max names.
 */
int cw_hostlist_expand(const char *text, unsigned max, char ***ret, unsigned *ret_n,
		       struct cw_err *err);
/* Accepts NULL and returns NULL. */
char **cw_hostlist_free(char **names);
