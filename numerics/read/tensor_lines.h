/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collwatch.torch wrote of each rank's modules and operators, one JSON object a line
 * (docs/schemas.md: collwatch.tensors/1), as the judge wants it (numerics/judge/modules.h). Of a
 * file that is being written the last line may be half there, and is left out.
 *
 * Hostile input: what is kept of all files has a limit in memory; frames beyond it are left out,
 * and a note says so. Reading blocks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/judge/modules.h"

#define CW_TENSOR_LINES_RANKS 16384u

/* A step of which each call is in the file. */
struct cw_tensor_lines_trace {
	int64_t step;
	uint64_t n_calls, n_lost; /* there; beyond what the writer keeps of a step */
};

struct cw_tensor_lines_file {
	const char *path;         /* borrowed */
	int64_t rank, world_size; /* -1 = not known */
	uint64_t n_frames;        /* looked at; as far as whole steps are there */
	uint64_t dropped, unread; /* frames, and tensors that could not be looked at */
	bool is_ended;            /* the program ended the watch: nothing is missing at the end */
	struct cw_modules_step *steps;
	struct cw_modules_event *events;
	uint32_t n_steps, n_events, room_steps;
	struct cw_tensor_lines_trace *traces; /* in their order */
	uint32_t n_traces;
	json_t *bad;         /* array: the line of each event */
	json_t *before;      /* array: of each event the lines of the frames before it */
	json_t *replicas;    /* array: lines of comparisons that found a difference */
	uint64_t n_compared; /* comparisons of replicas */
	json_t *notes;       /* array of texts */
	json_t *denied;  /* array of texts: modules that were not looked at, or patterns of them */
	json_t *stops;   /* array: lines of where the program stopped by itself */
	json_t *buckets; /* array: lines of what a step's collectives carry, the newest last */
};

struct cw_tensor_lines {
	struct cw_tensor_lines_file *files;
	struct cw_modules_rank *ranks; /* of each file, for the judge */
	uint32_t n;
};

/* Such a file begins like this; nothing is said of its contents. False also where it is none. */
bool cw_tensor_lines_is(const char *path);

/*
 * err names file and line. -ENOENT …, -EBADMSG no such line, -ENOTSUP another schema, -E2BIG too
 * many files or lines, or too much to keep, -EEXIST two files of one rank.
 */
int cw_tensor_lines_read(char *const *paths, uint32_t n, struct cw_tensor_lines *ret,
			 struct cw_err *err);
/* Takes one that is zeroed. */
void cw_tensor_lines_fini(struct cw_tensor_lines *lines);
