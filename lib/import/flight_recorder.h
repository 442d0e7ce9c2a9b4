/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Flight Recorder dumps of a job, one per rank, as one snapshot for the engine.
 *
 * The snapshot's notes report missing, damaged and strange files; only a directory without any
 * readable dump is an error. Facts that no dump contains (reduction operator, root, liveness) are
 * absent for all ranks alike, so that the engine compares nothing by them.
 *
 * One thread; reading files blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "import/fr_dump.h"
#include "import/import_watch.h"
#include "model/snapshot.h"

/*
 * A dump with Python's stacks of 2,000 entries is a few MiB, with those of C++ too over a
 * hundred; reading one of 255 MiB took 755 MiB of memory and about a second.
 */
#define CW_FR_MAX_FILE (256u << 20)

struct cw_fr_source {
	int32_t rank;
	int32_t named_rank; /* the number after "rank" in its name; CW_FR_NONE = none */
	int64_t file_ns;    /* last modification of the file, wall time; 0 = unknown */
	struct cw_fr_dump dump;
	const struct cw_fr_group *front; /* private to cw_fr_snapshot() */
};

/* A zeroed set is empty. */
struct cw_fr_set {
	struct cw_fr_source *sources; /* ascending by rank once read */
	uint32_t n_sources, room;
	char **notes;
	uint32_t n_notes;
};

/*
 * Adds the contents of one file. The rank is the number after "global_rank" in the name, else the
 * number at the name's end without extension, else the number after "rank", else the dump's own.
 * Damage becomes a note, not an error: 0, -ENOMEM or -E2BIG (too many).
 *
 * If several files end with one number and their numbers after "rank" are all different, these are
 * the ranks: cw_fr_snapshot() decides that.
 */
int cw_fr_set_add(struct cw_fr_set *set, const char *file_name, const void *data, size_t size,
		  int64_t file_ns);
void cw_fr_set_fini(struct cw_fr_set *set);
/* Adds a line to the report, made printable; further lines than 64 are dropped. 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int cw_fr_set_note(struct cw_fr_set *set, const char *fmt,
							 ...);

/*
 * by_order: applies if the dumps do not show which calls the device has reached. We then assume
 * that it is at each rank's oldest pending call, and that calls on other groups are behind it. This
 * is true if the program waits for its calls one by one; it may be false for asynchronous calls.
 * The function may be called again for the same set. -ENODATA: it contains no dump.
 */
int cw_fr_snapshot(struct cw_fr_set *set, bool by_order, struct cw_snapshot **ret);

/*
 * The more informative of both snapshots: by order only if otherwise no rank is missing anywhere,
 * and the order shows a cycle.
 */
int cw_fr_snapshot_best(struct cw_fr_set *set, struct cw_snapshot **ret);

/*
 * Reads all files of a directory into a snapshot; watch may be NULL. -ENODATA no dump there,
 * -ENOENT …; err explains it.
 */
int cw_flight_recorder_read(const char *dir, const struct cw_import_watch *watch,
			    struct cw_snapshot **ret, struct cw_err *err);
