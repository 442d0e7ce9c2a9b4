/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor summaries that flight records hold, as the judge of a job's numbers wants them
 * (numerics/judge/numerics.h): one record per rank of one job, in files or of living processes.
 *
 * Records of living processes move on while they are read: each is of its own moment
 * (numerics/read/looks.h). Reading files blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "import/import_watch.h"
#include "model/arena.h"
#include "numerics/judge/numerics.h"
#include "numerics/read/looks.h"

struct cw_numerics_source {
	const char *path; /* "process 812" of a living one, "process 812 on node-b" */
	int32_t rank, pid;
	int32_t world_size;      /* -1 = the rank does not say */
	bool has_summaries;      /* the agent looked at tensors at all */
	uint64_t n_ops;          /* calls of the rank */
	uint64_t n_looks;        /* tensors that it looked at */
	uint64_t n_kept;         /* … of which these are here */
	uint64_t n_dropped;      /* tensors left out, for all places were taken */
	int64_t created_wall_ns; /* its record; 0 = not known */
	int64_t ended_wall_ns;   /* 0 = not known, or it lives */
	bool lives;              /* of a process: that is there, and calls itself so */
};

struct cw_numerics_input {
	struct cw_numerics_job job;
	struct cw_numerics_source *sources; /* n_ranks of the job */
	bool is_living;                     /* some are of processes, which go on meanwhile */
	int64_t uid;                        /* whose job was found by its name; -1 = none was */
	const char *label;                  /* … and what it is called in full; NULL = none was */
	uint32_t n_left_out;                /* ranks that had no place in a bundle or an answer */
	uint32_t n_set_aside;               /* ranks of processes that ended in an earlier run */
	bool is_bad_set_aside;              /* … with NaN or Inf */
	const char *silent;    /* nodes that were asked in vain, as text; NULL = none */
	struct cw_looks looks; /* what the job points to */
	struct cw_arena arena; /* the rest */
};

/*
 * what: files; else the number of a process that has a record; else jobs, as `status` names them:
 * all processes of such a job on this host that the caller may look at. A job is its name and its
 * user's, whoever takes its name: uid says whose, -1 where only one user has one.
 *
 * err names the file: -EBADMSG no record, -ENOTSUP, -ENOENT …; -E2BIG too many files; -EEXIST two
 * records of one rank, which cannot be of one job, but where one job is named: then both are there,
 * for whoever gathers (numerics/cli/numerics_gather.h); -ENOTUNIQ several users' jobs, or several
 * of one. watch NULL: nobody.
 */
int cw_numerics_files_read(char *const *what, uint32_t n, int64_t uid,
			   const struct cw_import_watch *watch, struct cw_numerics_input *ret,
			   struct cw_err *err);
/* Takes one that is zeroed. */
void cw_numerics_input_fini(struct cw_numerics_input *input);
