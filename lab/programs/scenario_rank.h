/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a labelled scenario as a real process: scenario_rank.c interprets the program. */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/scenario/scenario.h"
#include "lab/vjob/comm_slot.h"

#define N_STREAMS 4u

struct member {
	bool is_member, is_ready;
	struct suite_comm_slot slot;
	ncclComm_t comm;
};

struct rank {
	const struct suite_scenario *s;
	uint32_t index;
	int64_t start_ns; /* CLOCK_MONOTONIC: origin of the scenario's times */
	struct member members[SUITE_MAX_FAMILIES];
	CUstream streams[N_STREAMS];
	CUdeviceptr from, to;
	CUgraphExec graphs[SUITE_MAX_INSNS]; /* by their start in the program */
	bool is_capturing;
	/* faults */
	bool done[SUITE_MAX_FAULTS];
	bool has_held;
	struct suite_call held;
	int64_t slow_ns, slow_until_ns;
};

enum effect { GOES_ON, SKIPPED, TWICE };

/* ---- scenario_nccl.c: the device, the communicators, the calls ---- */

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);
/* Makes device, streams and buffers, and the comms that exist from the start. */
void rank_connect(struct rank *r);
void rank_call(struct rank *r, const struct suite_call *call);
/* Waits for all streams (SUITE_NONE) or one. */
void rank_sync(struct rank *r, uint32_t stream);
/* Puts work of this length on the stream; it may be endless. */
void rank_occupy(struct rank *r, uint32_t stream, int64_t ns);

/* Captures all calls until the end; then *ret is the graph, launched once. */
void rank_capture(struct rank *r, uint32_t stream);
void rank_end_capture(struct rank *r, uint32_t stream, CUgraphExec *ret);
void rank_replay(const struct rank *r, uint32_t stream, CUgraphExec graph);

/* ---- scenario_fault.c: the faults ---- */

int64_t rank_now_ns(const struct rank *r);
void rank_sleep(int64_t ns); /* SUITE_FOREVER: endless */
/* Schedules faults that strike at a fixed time during any activity of the rank. */
void faults_schedule(const struct rank *r);
/* True if a fault will strike the rank before this call. */
bool faults_are_due(const struct rank *r, const struct suite_call *call);
/* Sleeps for the delay of each call. */
void faults_delay(struct rank *r);
/* May change *call, block, or end the process. */
enum effect faults_before_call(struct rank *r, struct suite_call *call);
