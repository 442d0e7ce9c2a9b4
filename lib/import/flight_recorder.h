/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the Flight Recorder dumps of a job, one per rank, into one snapshot for the engine.
 *
 * The snapshot's notes report missing, damaged and strange files. Only a directory without any
 * readable dump is an error. Facts that no dump contains (reduction operator, root, liveness) are
 * unknown for all ranks alike, so the engine compares nothing by them.
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
 * A dump of 2,000 entries with Python's stacks is a few MiB. With C++ stacks too, it exceeds a
 * hundred. Reading a dump of 255 MiB took 755 MiB of memory and about a second.
 */
#define CW_FR_MAX_FILE (256u << 20)

struct cw_fr_source {
	int32_t rank;
	int32_t named_rank; /* the number after "rank" in its name; CW_FR_NONE = none */
	int64_t file_ns;    /* last modification of the file, wall time; 0 = unknown */
	struct cw_fr_dump dump;
	const struct cw_fr_group *front; /* private to cw_fr_snapshot() */
};

/* A set of dumps. A zeroed set is empty. */
struct cw_fr_set {
	struct cw_fr_source *sources; /* ascending by rank once read */
	uint32_t n_sources, room;
	char **notes;
	uint32_t n_notes;
};

/*
 * Adds the contents of one file. The rank is the number after "global_rank" in the name. Without
 * that, it is the number at the end of the name without extension, then the number after "rank",
 * then the rank in the dump. Damage becomes a note, not an error. Returns 0, -ENOMEM or -E2BIG
 * (too many).
 *
 * If several files end with the same number, and their numbers after "rank" are all different, the
 * latter are the ranks. cw_fr_snapshot() decides that.
 */
int cw_fr_set_add(struct cw_fr_set *set, const char *file_name, const void *data, size_t size,
		  int64_t file_ns);
void cw_fr_set_fini(struct cw_fr_set *set);
/* Adds a line to the report, made printable. Lines beyond 64 are dropped. Returns 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int cw_fr_set_note(struct cw_fr_set *set, const char *fmt,
							 ...);

/*
 * Merges the set into a snapshot. by_order applies if the dumps do not show which calls the device
 * has reached. We then assume that each rank's device is at the rank's oldest pending call, and
 * that calls on other groups are behind it. This is true if the program waits for its calls one by
 * one. It may be false for asynchronous calls. May be called again for the same set.
 * Returns 0 or -errno; -ENODATA: the set contains no dump.
 */
int cw_fr_snapshot(struct cw_fr_set *set, bool by_order, struct cw_snapshot **ret);

/*
 * Returns the more informative snapshot. We assume an order of the calls only if otherwise no rank
 * is missing anywhere, and if the order shows a cycle.
 */
int cw_fr_snapshot_best(struct cw_fr_set *set, struct cw_snapshot **ret);

/*
 * Reads all files of a directory into a snapshot. watch may be NULL. Returns 0 or -errno: -ENODATA
 * if there is no dump, -ENOENT …; err explains it.
 */
int cw_flight_recorder_read(const char *dir, const struct cw_import_watch *watch,
			    struct cw_snapshot **ret, struct cw_err *err);
