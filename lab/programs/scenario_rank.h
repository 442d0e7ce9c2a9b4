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
	int64_t start_ns; /* CLOCK_MONOTONIC: the scenario's times count from here */
	struct member members[SUITE_MAX_FAMILIES];
	CUstream streams[N_STREAMS];
	CUdeviceptr from, to;
	CUgraphExec graphs[SUITE_MAX_INSNS]; /* by where they begin in the program */
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
/* Device, streams, buffers; all comms that are there from the start. */
void rank_connect(struct rank *r);
void rank_call(struct rank *r, const struct suite_call *call);
/* All streams (SUITE_NONE) or one. */
void rank_sync(struct rank *r, uint32_t stream);
/* Work on the stream for so long, or for ever. */
void rank_occupy(struct rank *r, uint32_t stream, int64_t ns);

/* What is called until the end is captured; then a launch of it is kept as *ret, and made. */
void rank_capture(struct rank *r, uint32_t stream);
void rank_end_capture(struct rank *r, uint32_t stream, CUgraphExec *ret);
void rank_replay(const struct rank *r, uint32_t stream, CUgraphExec graph);

/* ---- scenario_fault.c: what goes wrong ---- */

int64_t rank_now_ns(const struct rank *r);
void rank_sleep(int64_t ns); /* SUITE_FOREVER: for ever */
/* Those that come at their time whatever the rank is doing. */
void faults_schedule(const struct rank *r);
/* Something will happen to the rank before this call. */
bool faults_are_due(const struct rank *r, const struct suite_call *call);
/* What each call comes late by. */
void faults_delay(struct rank *r);
/* May change *call, block, or end the process. */
enum effect faults_before_call(struct rank *r, struct suite_call *call);
