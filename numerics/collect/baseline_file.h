/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's baseline in a file: units of 64 bytes, written one after the other while the program
 * runs, so that what there is can be read wherever it ends. Version 1, in the byte order of the
 * machine that wrote it, which the first eight bytes tell.
 *
 *	head, then in any order:
 *	communicator   before the first row that names it; numbered as they come, from 0. Once
 *	               more where it had no name, and was given one
 *	denied         a piece of the names of operators that were not looked at
 *	text           a piece of a call site, before the first row that names it; from 1
 *	row            one op (numerics/compare/baseline_row.h)
 *	end            what was counted; once, the last one. Not there: it was not finished
 *
 * A file is a stranger's: whatever does not follow from that is refused, texts are made printable,
 * and no more is kept than so many rows, communicators and call sites.
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

/* A rank's collectives and its operators are files of their own: other processes make them. */
enum cw_baseline_file_part { CW_BASELINE_COLLECTIVES, CW_BASELINE_OPERATORS, CW_BASELINE_PARTS };

enum cw_baseline_counter {
	CW_BASELINE_N_LOST_OPS,     /* overwritten before they were read */
	CW_BASELINE_N_LOST_TENSORS, /* looked at by the agent, at most so many, and not read */
	CW_BASELINE_N_PARTIAL,      /* tensors of which a share was looked at */
	CW_BASELINE_N_UNSEEN,       /* launches of graphs and calls without a number */
	CW_BASELINE_N_REFUSED,      /* ops beyond what a file may hold */
	CW_BASELINE_N_LEFT_OUT,     /* tensors that the agent had no place for */
	CW_BASELINE_N_TENSORS,      /* in rows */
	CW_BASELINE_COUNTERS,
};

struct cw_baseline_head {
	enum cw_baseline_file_part part;
	int32_t rank, world_size; /* -1 = not known */
	uint32_t pid;
	uint64_t created_wall_ns;
};

/* ---- writing ---- */

struct cw_baseline_writer;

/* -EEXIST: never writes over a file. Blocks on the disk, as all of these. */
int cw_baseline_writer_new(const char *path, const struct cw_baseline_head *head,
			   struct cw_baseline_writer **ret);
/* Numbers for rows; -ENOSPC: there are too many, or -ENOMEM. Texts beyond their limit are cut. */
int cw_baseline_writer_comm(struct cw_baseline_writer *w, const struct cw_baseline_comm *comm);
/* One of those has a name now. */
void cw_baseline_writer_comm_name(struct cw_baseline_writer *w, int number,
				  const struct cw_baseline_comm *comm);
int cw_baseline_writer_site(struct cw_baseline_writer *w, const char *text);
/* Names of operators that were not looked at; cut at their limit. Once, or never. 0. */
int cw_baseline_writer_denied(struct cw_baseline_writer *w, const char *names);
/* -ENOSPC: there are too many. What goes wrong with the disk is said at the end. */
int cw_baseline_writer_row(struct cw_baseline_writer *w, const struct cw_baseline_row *row);
/* counters NULL: it is left without an end. Takes NULL; 0 or -errno of the first that failed. */
int cw_baseline_writer_free(struct cw_baseline_writer *w,
			    const uint64_t counters[CW_BASELINE_COUNTERS]);

/* ---- reading ---- */

struct cw_baseline_file {
	struct cw_baseline_head head;
	bool is_finished;
	uint64_t counters[CW_BASELINE_COUNTERS]; /* where it is finished */
	struct cw_baseline_run run;              /* points into: */
	struct cw_baseline_row *rows;
	struct cw_baseline_comm *comms;
	char **sites;
	char denied[CW_BASELINE_DENIED_BYTES + 1]; /* "" = nothing is */
};

/* Reads from the beginning of fd. -EBADMSG: no baseline, or a broken one; err has no path. */
int cw_baseline_file_read(int fd, struct cw_baseline_file *ret, struct cw_err *err);
/* The head alone. */
int cw_baseline_file_head(int fd, struct cw_baseline_head *ret, struct cw_err *err);
void cw_baseline_file_fini(struct cw_baseline_file *file);
