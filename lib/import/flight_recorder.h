/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the Flight Recorder dumps of a job, one per rank, into one snapshot for the engine.
 *
 * The snapshot's notes report missing, damaged and strange files. Only a directory without any
 * readable dump is an error. No dump contains the reduction operator, the root or the liveness.
 * These facts are unknown for all ranks alike, so the engine compares nothing by them.
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
 * The maximum size of a file. A dump of 2,000 entries with Python's stacks has a few MiB. With C++
 * stacks too, it exceeds a hundred. Reading a dump of 255 MiB took 755 MiB of memory and about a
 * second.
 */
#define CW_FR_MAX_FILE (256u << 20)

struct cw_fr_source {
	int32_t rank;
	int32_t named_rank; /* the number after "rank" in the file's name; CW_FR_NONE = none */
	int64_t file_ns;    /* last modification of the file, wall time; 0 = unknown */
	struct cw_fr_dump dump;
	const struct cw_fr_group *front; /* private to cw_fr_snapshot() */
};

/* A set of dumps. A zeroed set is empty. */
struct cw_fr_set {
	struct cw_fr_source *sources; /* ascending by rank once cw_fr_snapshot() has run */
	uint32_t n_sources, room;
	char **notes;
	uint32_t n_notes;
};

/*
 * Adds the contents of one file. The rank of the dump is the first of these numbers that exists:
 *
 *  1. the number after "global_rank" in the file's name;
 *  2. the number at the end of the name, before the extension;
 *  3. the number after "rank" in the name;
 *  4. the rank in the dump.
 *
 * Several files may end with the same number. If their numbers after "rank" all differ, these
 * numbers are the ranks. cw_fr_snapshot() decides that.
 *
 * Damage becomes a note, not an error. Returns 0 or -E2BIG (too many files).
 */
int cw_fr_set_add(struct cw_fr_set *set, const char *file_name, const void *data, size_t size,
		  int64_t file_ns);
void cw_fr_set_fini(struct cw_fr_set *set);
/* Adds a line to the report and makes it printable. Drops lines beyond 64. */
__attribute__((format(printf, 2, 3))) void cw_fr_set_note(struct cw_fr_set *set, const char *fmt,
							  ...);

/*
 * Merges the set into a snapshot. The caller may run it again on the same set.
 *
 * by_order matters if the dumps do not show which calls the device has reached. With by_order we
 * assume that each rank's device is at the rank's oldest pending call. It has not reached the
 * pending calls on other groups. The assumption is true if the program waits for its calls one by
 * one. It may be false for asynchronous calls.
 *
 * Returns 0 or -errno; -ENODATA: the set contains no dump.
 */
int cw_fr_snapshot(struct cw_fr_set *set, bool by_order, struct cw_snapshot **ret);

/*
 * Merges the set with and without an assumed order of calls (cw_fr_snapshot()), and returns the
 * more informative snapshot. We use the order if it shows a cycle, or a message that alone closes
 * one, and the other snapshot shows no missing rank.
 */
int cw_fr_snapshot_best(struct cw_fr_set *set, struct cw_snapshot **ret);

/*
 * Reads all files of a directory into a snapshot. watch may be NULL. Returns 0 or -errno, and err
 * explains the error. -ENODATA: there is no dump; -ENOENT …
 */
int cw_flight_recorder_read(const char *dir, const struct cw_import_watch *watch,
			    struct cw_snapshot **ret, struct cw_err *err);
