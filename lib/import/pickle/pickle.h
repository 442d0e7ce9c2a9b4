/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Python pickles of protocol 2 to 5 that contain only plain data: dict, list, tuple, str,
 * bytes, int, float, bool, None. A pickle is a program for a small machine that may import modules
 * and call functions. Our machine has no such instructions. It refuses a pickle that needs them,
 * and names the instruction.
 *
 * The input is hostile, so we check every length against the remaining input. CW_PICKLE_MAX_MEMORY
 * bounds memory, CW_PICKLE_MAX_MARKS marks, CW_VALUE_MAX_HEIGHT nesting. Takes time linear in the
 * input. One thread; no blocking.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "import/pickle/value.h"
#include "model/arena.h"

/*
 * The maximum memory of the values. A dump of 2,000 entries with stacks has a few MiB, and takes
 * about ten times that as values.
 */
#define CW_PICKLE_MAX_MEMORY ((size_t)1 << 30)
/* The maximum number of containers that are open at once. */
#define CW_PICKLE_MAX_MARKS 64

/*
 * Reads one pickle. The value lies in `arena` and its texts in `data`, so both must outlive it. We
 * ignore bytes after the pickle's end. err names the instruction and its offset. Errors: -EPERM: an
 * instruction that imports, calls or is not plain data; -ENODATA: the pickle is cut short;
 * -EBADMSG: not a pickle, or inconsistent; -E2BIG: beyond a limit.
 */
int cw_pickle_read(const void *data, size_t size, struct cw_arena *arena,
		   const struct cw_value **ret, struct cw_err *err);
