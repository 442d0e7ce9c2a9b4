/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of baselines: per rank, one file for its collectives and one for its operators.
 * Blocks on the disk.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"

struct baseline_listed {
	int32_t rank, world_size; /* -1 = unknown */
	enum cw_baseline_file_part part;
	char path[PATH_MAX];
};

struct baseline_listing {
	struct baseline_listed *files; /* by rank, collectives first */
	uint32_t n;
};

/* True if the directory contains baselines. */
bool baseline_dir_has(const char *dir);
/* Removes its baselines, and the directory if it is then empty. */
void baseline_dir_remove(const char *dir);

/*
 * 0, or -errno and err names the file: -ENOENT no baseline there, -EBADMSG a file is not one,
 * -EEXIST two belong to one rank. Zeroes l first; the caller releases it in any case.
 */
int baseline_dir_list(const char *dir, struct baseline_listing *l, struct cw_err *err);
void baseline_listing_fini(struct baseline_listing *l);
/* For qsort(3). */
int baseline_listed_compare(const void *x, const void *y);
