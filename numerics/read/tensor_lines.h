/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads collwatch.torch's files about each rank's modules and operators, for the judge
 * (numerics/judge/modules.h). They have one JSON object per line (docs/schemas.md:
 * collwatch.tensors/1). If the program still writes a file, its last line may be incomplete, and we
 * skip it.
 *
 * Hostile input. All files together have a memory limit. We omit frames beyond it, and a note says
 * so. Reading blocks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/judge/modules.h"

#define CW_TENSOR_LINES_RANKS 16384u

/* A traced step. The file contains each of its calls. */
struct cw_tensor_lines_trace {
	int64_t step;
	/* number of calls in the file, and of calls beyond the writer's limit */
	uint64_t n_calls, n_lost;
};

struct cw_tensor_lines_file {
	const char *path;         /* borrowed */
	int64_t rank, world_size; /* -1 = unknown */
	uint64_t n_frames;        /* sampled frames, of whole steps only */
	uint64_t dropped, unread; /* dropped frames, and tensors that were not readable */
	bool is_ended;            /* the program ended the watch, so the file is complete */
	struct cw_modules_step *steps;
	struct cw_modules_event *events;
	uint32_t n_steps, n_events, room_steps;
	struct cw_tensor_lines_trace *traces; /* in order of steps */
	uint32_t n_traces;
	json_t *bad;         /* array: the line of each event */
	json_t *before;      /* array: for each event, the lines of the frames before it */
	json_t *replicas;    /* array: lines of comparisons that found a difference */
	uint64_t n_compared; /* number of comparisons of replicas */
	json_t *notes;       /* array of texts */
	json_t *denied; /* array of texts: modules that were not sampled, or patterns of them */
	json_t *stops;  /* array: lines about places where the program stopped by itself */
	/* array: lines about the contents of a step's collectives, newest last */
	json_t *buckets;
};

struct cw_tensor_lines {
	struct cw_tensor_lines_file *files;
	struct cw_modules_rank *ranks; /* one per file, for the judge */
	uint32_t n;
};

/*
 * True if the file begins like a file of collwatch.torch. Does not check the rest. False if the
 * file is missing.
 */
bool cw_tensor_lines_is(const char *path);

/*
 * Reads n files. Returns 0 or -errno, and err names file and line: -ENOENT …, -EBADMSG an invalid
 * line, -ENOTSUP another schema, -EEXIST two files of one rank. -E2BIG: there are too many files or
 * lines, or the lines take too much memory.
 */
int cw_tensor_lines_read(char *const *paths, uint32_t n, struct cw_tensor_lines *ret,
			 struct cw_err *err);
/* Accepts zeroed lines. */
void cw_tensor_lines_fini(struct cw_tensor_lines *lines);
