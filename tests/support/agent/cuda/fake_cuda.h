/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that executes each request at once and counts it. It provides what the simulated
 * device lacks, such as captures and errors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_cuda {
	void *current;      /* the calling thread's context */
	void *stream_owner; /* the context that every stream belongs to */
	int capture_status; /* capture status of every stream */
	int capture_result; /* result of a query for the capture status */
	int capture_mode;   /* capture mode of the thread */
	int write_result;   /* result of the next writes */
	unsigned registrations, writes;
	bool holds_writes;         /* no stream executes the writes */
	void (*registering)(void); /* called while pages are registered; may be NULL */
	bool was_relaxed;          /* the capture mode was relaxed when the pages were registered */
	bool was_wrong;            /* a write was made outside of its stream's context */
	/* Graphs: while capture_status is 1, writes go into the graph that is being captured. */
	void *graph;             /* graph that the capture builds */
	uint64_t capture_id;     /* id of the capture */
	unsigned captured;       /* number of writes in the graph */
	unsigned graph_launches; /* number of launches of any executable graph */
	unsigned stop_after;     /* a launch executes only this many writes; 0 = all */
	uintptr_t log_size;      /* the fifth argument of the last cuGraphInstantiate */
	int graph_result;        /* result of the next launches of graphs */
	void (*inside)(void);    /* called in the middle of a launch, may be NULL */
	uint64_t last_address;
	uint32_t last_value;
	unsigned modules, launches;
	bool is_stuck;         /* launched kernels do not run */
	bool computes_nothing; /* a kernel publishes a summary of no numbers */
	int launch_result;     /* result of the next launches of kernels */
	/* called for each launch; may be NULL */
	void (*launching)(void *stream, const void *param);
	uint64_t range_base; /* base of the only allocation; 0 = all memory is one allocation */
	uint64_t range_bytes;
	const char *model; /* model of all devices; NULL = the driver reports none */
	unsigned names;    /* number of requests for the model */
};

extern struct fake_cuda fake_cuda;
