/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one snapshot for the engine from flight records of dead processes, which were copied to
 * files (cp /proc/PID/fd/N FILE). There is one file per rank of one job.
 *
 * We build a digest and the snapshot with the code of a daemon and of a job's leader (digest/,
 * leader/snapshot_build.h). So the same records give the same verdict. Facts about processes that
 * only a daemon collects are unknown.
 *
 * A record ends with its process, or when it was copied, and we take it at that time. Wall time is
 * the common timeline, because records may come from several hosts. Reading files blocks.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "import/import_watch.h"
#include "model/snapshot.h"

/*
 * The maximum number of ops that we read per communicator. A record has one ring per communicator,
 * and one ring that all communicators share.
 */
#define CW_RECORD_FILES_WINDOW 256

/*
 * Reads n record files into a snapshot. watch may be NULL. Returns 0 or -errno, and err explains
 * the error. If a file is not a record, the error is -EBADMSG, -ENOTSUP, -ENOENT …, and err names
 * the file. -E2BIG: too many ranks.
 */
int cw_record_files_read(char *const *paths, uint32_t n, const struct cw_import_watch *watch,
			 struct cw_snapshot **ret, struct cw_err *err);
