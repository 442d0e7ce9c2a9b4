/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that does each request at once and keeps account of it. It provides features that
 * the simulated device lacks, captures and errors among them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_cuda {
	void *current;      /* the calling thread's context */
	void *stream_owner; /* context every stream belongs to */
	int capture_status; /* of every stream */
	int capture_result; /* of asking for it */
	int capture_mode;   /* of the thread */
	int write_result;   /* of the next writes */
	unsigned registrations, writes;
	bool holds_writes;         /* the streams do not get to them */
	void (*registering)(void); /* called while pages are registered, may be NULL */
	bool was_relaxed;          /* when the pages were registered */
	bool was_wrong;            /* a write outside of the stream's context */
	/* Graphs: while capture_status is 1, writes go into the graph that is being captured. */
	void *graph;             /* of the capture */
	uint64_t capture_id;     /* of the capture */
	unsigned captured;       /* writes in the graph */
	unsigned graph_launches; /* of any executable graph */
	unsigned stop_after;     /* a launch gets so far, 0 = to its end */
	uintptr_t log_size;      /* the fifth argument of the last cuGraphInstantiate */
	int graph_result;        /* of the next launches */
	void (*inside)(void);    /* called in the middle of a launch, may be NULL */
	uint64_t last_address;
	uint32_t last_value;
	unsigned modules, launches;
	bool is_stuck;         /* launched kernels do not run */
	bool computes_nothing; /* a summary is published with numbers of none */
	int launch_result;     /* of the next launches */
	void (*launching)(void *stream, const void *param); /* of each launch, may be NULL */
	uint64_t range_base; /* of the one allocation there is; 0 = everything is one */
	uint64_t range_bytes;
	const char *model; /* of all devices; NULL = it does not say */
	unsigned names;    /* times the name was requested */
};

extern struct fake_cuda fake_cuda;
