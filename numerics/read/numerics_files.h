/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tensor summaries from flight records, for the judge of a job's numbers
 * (numerics/judge/numerics.h). There is one record per rank of one job, in files or of
 * live processes.
 *
 * Records of live processes change while we read them, so each record shows its own moment
 * (numerics/read/tensor_samples.h). Reading files blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "import/import_watch.h"
#include "model/arena.h"
#include "numerics/judge/numerics.h"
#include "numerics/read/tensor_samples.h"

struct cw_numerics_source {
	const char *path; /* a file, "process 812" for a live process, or "process 812 on node-b" */
	int32_t rank, pid;
	int32_t world_size;      /* -1 = the rank does not state it */
	bool has_summaries;      /* the agent sampled tensors */
	uint64_t n_ops;          /* calls of the rank */
	uint64_t n_samples;      /* tensors that it sampled */
	uint64_t n_kept;         /* how many of these its record still contains */
	uint64_t n_dropped;      /* tensors omitted because all slots were taken */
	int64_t created_wall_ns; /* when its record was created; 0 = unknown */
	int64_t ended_wall_ns;   /* 0 = unknown, or it lives */
	bool lives;              /* the process of the record exists and has the same identity */
};

struct cw_numerics_input {
	struct cw_numerics_job job;
	struct cw_numerics_source *sources; /* n_ranks of the job, one each */
	bool is_living;                     /* some are live processes, which go on meanwhile */
	int64_t uid;                        /* user of the job that we found by name; -1 = none */
	const char *label;                  /* full name of that job; NULL = none */
	uint32_t n_omitted;                 /* ranks that did not fit a bundle or an answer */
	uint32_t n_set_aside;               /* ranks of processes that ended in an earlier run */
	bool is_bad_set_aside;              /* some of them have NaN or Inf */
	const char *silent;                 /* names of nodes without an answer; NULL = none */
	struct cw_tensor_samples samples;   /* the job points into it */
	struct cw_arena arena;              /* owns the rest */
};

/*
 * Reads n records. what: files, or else the pid of a process with a record, or else jobs under
 * their names in `status`. For a job we read all its processes on this host that the caller may
 * inspect. A name and a user identify a job, because any user may use the name. uid is the user, or
 * -1 if only one user has such a job.
 *
 * Returns 0 or -errno, and err names the file: -EBADMSG not a record, -ENOTSUP, -ENOENT …; -E2BIG
 * too many files. -EEXIST: two records are of the same rank, so they cannot belong to one job. If
 * what names a job, both are included instead, for numerics/cli/numerics_gather.h. -ENOTUNIQ:
 * several users have such a job, or one user has several. watch may be NULL.
 */
int cw_numerics_files_read(char *const *what, uint32_t n, int64_t uid,
			   const struct cw_import_watch *watch, struct cw_numerics_input *ret,
			   struct cw_err *err);
/* Accepts a zeroed input. */
void cw_numerics_input_fini(struct cw_numerics_input *input);
