/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight records of processes that are gone, copied to files (cp /proc/PID/fd/N FILE), as one
 * snapshot for the engine: one file per rank of one job.
 *
 * They become a digest and this a snapshot by what a daemon and a job's leader run (digest/,
 * leader/snapshot_build.h): the same records give the same verdict. What only a daemon could know
 * of the processes is unknown.
 *
 * A record ends when its process did or when it was copied; all are taken as they stood then. Wall
 * time is the common timeline, for records may come from several hosts. Reading files blocks.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "import/import_watch.h"
#include "model/snapshot.h"

/* Ops per communicator: its own ring and some of the bulk ring. */
#define CW_RECORD_FILES_WINDOW 256

/*
 * A file that is no record is an error: -EBADMSG, -ENOTSUP, -ENOENT …, err naming it; -E2BIG too
 * many ranks. watch NULL: nobody.
 */
int cw_record_files_read(char *const *paths, uint32_t n, const struct cw_import_watch *watch,
			 struct cw_snapshot **ret, struct cw_err *err);
