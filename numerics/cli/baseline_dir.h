/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of baselines, the files that record a run for comparison. Each rank has one file for
 * its collectives and one for its operators. All functions block on the disk.
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
	/* sorted by rank; the two files of one rank: collectives first */
	struct baseline_listed *files;
	uint32_t n;
};

/* True if the directory contains baselines. */
bool baseline_dir_has(const char *dir);
/* Removes the directory's baselines, and the directory if it is then empty. */
void baseline_dir_remove(const char *dir);

/*
 * Lists the baselines of a directory in *l, which it zeroes first. Returns 0, or -errno with the
 * file's name in err. -ENOENT: there is no baseline. -EBADMSG: a file is not a baseline. -EEXIST:
 * two files belong to one rank. The caller calls baseline_listing_fini() in any case.
 */
int baseline_dir_list(const char *dir, struct baseline_listing *l, struct cw_err *err);
void baseline_listing_fini(struct baseline_listing *l);
/* Compares two listed files, for qsort(3). */
int baseline_listed_compare(const void *x, const void *y);
