/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a rank's baseline. It consists of units of 64 bytes. The writer appends them while
 * the program runs, so the file is readable at any time. This is version 1, in the byte order of
 * the machine that wrote it; the first eight bytes show the order.
 *
 *	head           first; the other units follow in any order
 *	communicator   before the first row that names it; numbered in order, from 0. A second
 *	               unit if the program named it later
 *	denied         a piece of the names of operators that were not sampled
 *	text           a piece of a call site, before the first row that names it; from 1
 *	row            one op (numerics/compare/baseline_row.h)
 *	end            the counters; once, the last unit. Missing: the file is unfinished
 *
 * A file is untrusted. The reader refuses any other content, makes texts printable, and keeps a
 * limited number of rows, communicators and call sites.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/compare/baseline.h"

#define CW_BASELINE_COMMS 4096u
#define CW_BASELINE_SITES 65535u
#define CW_BASELINE_SITE_BYTES 240u
#define CW_BASELINE_DENIED_BYTES 4095u
#define CW_BASELINE_SUFFIX ".baseline"

/*
 * A rank has two files, for its collectives and for its operators, because different processes
 * write them.
 */
enum cw_baseline_file_part { CW_BASELINE_COLLECTIVES, CW_BASELINE_OPERATORS, CW_BASELINE_PARTS };

enum cw_baseline_counter {
	CW_BASELINE_N_LOST_OPS,      /* ops that the rank overwrote before we read them */
	CW_BASELINE_N_LOST_TENSORS,  /* upper limit of the sampled tensors that we did not read */
	CW_BASELINE_N_PARTIAL,       /* tensors that the agent sampled in part */
	CW_BASELINE_N_UNSEEN,        /* launches of graphs and calls without a number */
	CW_BASELINE_N_REFUSED,       /* ops beyond the limit of a file */
	CW_BASELINE_N_NOT_COLLECTED, /* tensors that the agent could not record, because its ring
					was full */
	CW_BASELINE_N_TENSORS,       /* tensors with statistics in rows */
	CW_BASELINE_COUNTERS,
};

struct cw_baseline_head {
	enum cw_baseline_file_part part;
	int32_t rank, world_size; /* -1 = unknown */
	uint32_t pid;
	uint64_t created_wall_ns;
};

/* ---- writing ---- */

struct cw_baseline_writer;

/*
 * Creates the file. Never overwrites a file. Returns 0 or -errno; -EEXIST: the file exists. Blocks
 * on the disk, like all functions here.
 */
int cw_baseline_writer_new(const char *path, const struct cw_baseline_head *head,
			   struct cw_baseline_writer **ret);
/*
 * Add a communicator or a call site, and return its number for rows. -ENOSPC: there are too many.
 * -ENOMEM. Texts beyond their limit are cut.
 */
int cw_baseline_writer_comm(struct cw_baseline_writer *w, const struct cw_baseline_comm *comm);
/* Gives a communicator the name that the program set later. */
void cw_baseline_writer_comm_name(struct cw_baseline_writer *w, int number,
				  const struct cw_baseline_comm *comm);
int cw_baseline_writer_site(struct cw_baseline_writer *w, const char *text);
/*
 * Writes the names of operators that the run did not sample, cut at their limit. Call it at most
 * once. Returns 0.
 */
int cw_baseline_writer_denied(struct cw_baseline_writer *w, const char *names);
/*
 * Writes a row. Returns 0, or -ENOSPC if there are too many rows. cw_baseline_writer_free() reports
 * disk errors.
 */
int cw_baseline_writer_row(struct cw_baseline_writer *w, const struct cw_baseline_row *row);
/*
 * Finishes and closes the file. counters NULL: the file gets no end unit and stays unfinished.
 * Accepts a NULL writer. Returns 0 or the -errno of the first failure.
 */
int cw_baseline_writer_free(struct cw_baseline_writer *w,
			    const uint64_t counters[CW_BASELINE_COUNTERS]);

/* ---- reading ---- */

struct cw_baseline_file {
	struct cw_baseline_head head;
	bool is_finished;
	uint64_t counters[CW_BASELINE_COUNTERS]; /* valid if the file is finished */
	struct cw_baseline_run run;              /* points into the following fields */
	struct cw_baseline_row *rows;
	struct cw_baseline_comm *comms;
	char **sites;
	char denied[CW_BASELINE_DENIED_BYTES + 1]; /* "" = none */
};

/*
 * Reads a baseline from the beginning of fd. Returns 0 or -errno; -EBADMSG: it is no baseline, or
 * is damaged. err contains no path.
 */
int cw_baseline_file_read(int fd, struct cw_baseline_file *ret, struct cw_err *err);
/* Reads only the head of the file. */
int cw_baseline_file_head(int fd, struct cw_baseline_head *ret, struct cw_err *err);
void cw_baseline_file_fini(struct cw_baseline_file *file);
