/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tensor summaries from flight records, for the judge of a job's numbers
 * (numerics/judge/numerics.h). Each rank of the job has one record, in a file or in a live process.
 *
 * A live process changes its record while we read. So records show different moments
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
	uint64_t n_kept;         /* number of these that the record still contains */
	uint64_t n_dropped;      /* tensors omitted because all slots were taken */
	int64_t created_wall_ns; /* when its record was created; 0 = unknown */
	int64_t ended_wall_ns;   /* 0 = unknown, or the process lives */
	bool lives;              /* the process of the record exists and has the same identity */
};

struct cw_numerics_input {
	struct cw_numerics_job job;
	struct cw_numerics_source *sources; /* array with one element per rank of the job */
	/* some ranks are live processes, which go on meanwhile */
	bool is_living;
	int64_t uid;       /* user of the job that we found by name; -1 = none */
	const char *label; /* full name of that job; NULL = none */
	/* number of ranks that did not fit into a bundle or an answer */
	uint32_t n_omitted;
	/* number of ranks whose processes ended in an earlier run */
	uint32_t n_set_aside;
	bool is_bad_set_aside;            /* some of the ranks set aside have NaN or Inf */
	const char *silent;               /* names of nodes without an answer; NULL = none */
	struct cw_tensor_samples samples; /* storage that the job points into */
	struct cw_arena arena;            /* owns the other memory */
};

/*
 * Reads n records. what: files, or the pid of a process with a record, or jobs under their names in
 * `status`. For a job we read all its processes on this host that the caller may inspect. Any user
 * may use the same job name, so only name and user identify a job. uid: the user, or -1 if only one
 * user has such a job. watch may be NULL.
 *
 * Returns 0 or -errno, and err names the file: -EBADMSG not a record, -ENOTSUP, -ENOENT …; -E2BIG
 * too many files. -EEXIST: two records are of the same rank, so they cannot belong to one job. But
 * if `what` names a job, we include both records, and numerics/cli/numerics_gather.h chooses.
 * -ENOTUNIQ: several users have such a job, or one user has several.
 */
int cw_numerics_files_read(char *const *what, uint32_t n, int64_t uid,
			   const struct cw_import_watch *watch, struct cw_numerics_input *ret,
			   struct cw_err *err);
/* Accepts a zeroed input. */
void cw_numerics_input_fini(struct cw_numerics_input *input);
