/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Flight Recorder dumps of a job, one per rank, as one snapshot for the engine.
 *
 * What is missing, damaged or strange is said in the snapshot's notes; only a directory without any
 * readable dump is an error. What a dump does not hold (reduction operator, root, liveness) is
 * absent in the snapshot for all ranks alike, so that nothing is compared by it.
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
	int32_t named_rank; /* the number behind "rank" in its name; CW_FR_NONE = there is none */
	int64_t file_ns;    /* when the file was last written, wall time; 0 = unknown */
	struct cw_fr_dump dump;
	const struct cw_fr_group *front; /* cw_fr_snapshot()'s own */
};

/* Zeroed is empty. */
struct cw_fr_set {
	struct cw_fr_source *sources; /* ascending by rank once read */
	uint32_t n_sources, room;
	char **notes;
	uint32_t n_notes;
};

/*
 * Takes the contents of one file. The rank is the number behind "global_rank" in the name, else the
 * one at its end without extension, else that behind "rank", else the dump's own. Damage becomes a
 * note, not an error: 0, -ENOMEM or -E2BIG (too many).
 *
 * Where several files end with one number and those behind "rank" are all different, these are the
 * ranks: cw_fr_snapshot() settles that.
 */
int cw_fr_set_add(struct cw_fr_set *set, const char *file_name, const void *data, size_t size,
		  int64_t file_ns);
void cw_fr_set_fini(struct cw_fr_set *set);
/* A line for the report, made printable; beyond 64 they are left out. 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int cw_fr_set_note(struct cw_fr_set *set, const char *fmt,
							 ...);

/*
 * by_order: where dumps do not tell which calls a device has got to, take each rank's oldest
 * pending call for the one, and those on other groups to be behind it. So it is when calls are
 * waited for one by one; it may not be when they are asynchronous. May be called again for the same
 * set. -ENODATA: no dump among them.
 */
int cw_fr_snapshot(struct cw_fr_set *set, bool by_order, struct cw_snapshot **ret);

/*
 * The snapshot that says more: by order only where otherwise nobody is missing anywhere, and order
 * shows a circle.
 */
int cw_fr_snapshot_best(struct cw_fr_set *set, struct cw_snapshot **ret);

/* All of it, for the files of a directory; watch NULL: nobody. -ENODATA no dump there, -ENOENT …;
 * err says more. */
int cw_flight_recorder_read(const char *dir, const struct cw_import_watch *watch,
			    struct cw_snapshot **ret, struct cw_err *err);
