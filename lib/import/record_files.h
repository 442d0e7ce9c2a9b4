/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight records of dead processes, copied to files (cp /proc/PID/fd/N FILE), as one snapshot for
 * the engine. There is one file per rank of one job.
 *
 * We build a digest and the snapshot with the code of a daemon and of a job's leader (digest/,
 * leader/snapshot_build.h), so the same records give the same verdict. Facts about processes that
 * only a daemon collects are unknown.
 *
 * A record ends with its process or with the copying, and we take it at that moment. Wall time is
 * the common timeline, because records may come from several hosts. Reading files blocks.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "import/import_watch.h"
#include "model/snapshot.h"

/* Limit of ops per communicator: its own ring and some of the bulk ring. */
#define CW_RECORD_FILES_WINDOW 256

/*
 * Reads n record files into a snapshot. watch may be NULL. Returns 0 or -errno, and err explains
 * it. A file that is not a record is an error: -EBADMSG, -ENOTSUP, -ENOENT …, and err names it.
 * -E2BIG: too many ranks.
 */
int cw_record_files_read(char *const *paths, uint32_t n, const struct cw_import_watch *watch,
			 struct cw_snapshot **ret, struct cw_err *err);
