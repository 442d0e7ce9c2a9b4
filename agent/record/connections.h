/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network connections of this process with an open op, as slots of the flight record
 * (cw_rec_connection). NCCL cuts an op into a part per connection, and a part into steps. NCCL's
 * proxy threads report parts and steps.
 *
 * NCCL starts the parts of later ops while an earlier part still runs. A slot shows the op of the
 * newest step, because the connection works on no other op. Counts follow the number of the step,
 * because NCCL repeats some reports.
 *
 * All functions may run in any thread, but the calls for one communicator's connections must come
 * from one thread at a time. They are lock-free, do not allocate, keep errno and make no system
 * call. The caller checks cw_agent_is_armed().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * Handles of parts and steps. NCCL may give us a handle late, or the handle of another process. A
 * handle is therefore a number that we look up, and not a pointer. No pointer equals a handle.
 *
 *	bit 63: always set. bit 62: a step. bits 50 to 61: entry. bits 32 to 49: its generation.
 *	bits 0 to 31: number of the step.
 */
static inline bool cw_connections_is_part(uint64_t handle)
{
	return handle >> 62 == 2;
}

static inline bool cw_connections_is_step(uint64_t handle)
{
	return handle >> 62 == 3;
}

/*
 * One op's part on one connection. The fields have the meaning that they have in cw_rec_connection.
 */
struct cw_connection_part {
	/* Any number by which the caller distinguishes the communicators of one process. */
	uint64_t owner;
	uint32_t pid;
	int32_t rank, peer;
	int comm; /* entry of the communicator, -1 = unknown */
	uint32_t op, replay, steps;
	uint8_t channel;
	uint8_t flags; /* CW_REC_CONNECTION_* without USED */
};

/*
 * Opens a part. Returns its handle. Returns 0 if the table is full, and counts a drop in the
 * record.
 */
uint64_t cw_connections_open(const struct cw_connection_part *part);

/* Returns the handle of a step of an open part; 0 = the part is not open. `step` counts from 0. */
uint64_t cw_connections_step(uint64_t part, uint32_t step);

/*
 * Notes that a step has reached state `which`. bytes: size of the step's data; 0 = unknown, or
 * already noted. A repeated call changes nothing.
 */
void cw_connections_count(uint64_t step, enum cw_rec_step which, uint64_t bytes);

/* Closes a part. The slot of a connection without an open part becomes free. */
void cw_connections_close(uint64_t part);

/*
 * Closes all parts of this process's communicator c; -1 = all parts. Call this function when NCCL
 * has stopped the threads that report these parts.
 */
void cw_connections_forget(int c);
