/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of baselines: one file of each rank, and one of its operators. Blocks on the disk. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"

struct baseline_listed {
	int32_t rank, world_size; /* -1 = not known */
	enum cw_baseline_file_part part;
	char path[PATH_MAX];
};

struct baseline_listing {
	struct baseline_listed *files; /* by rank, collectives first */
	uint32_t n;
};

/* A directory holds baselines. */
bool baseline_dir_has(const char *dir);
/* Its baselines, and the directory if nothing else is in it. */
void baseline_dir_remove(const char *dir);

/*
 * 0, or -errno with err naming the file: -ENOENT none is there, -EBADMSG one is none, -EEXIST two
 * are of one rank. Release it whatever comes of it; l is zeroed before.
 */
int baseline_dir_list(const char *dir, struct baseline_listing *l, struct cw_err *err);
void baseline_listing_fini(struct baseline_listing *l);
/* For qsort(3). */
int baseline_listed_compare(const void *x, const void *y);
