/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network connections of this process with an open op, as slots of the flight record
 * (cw_rec_connection). NCCL's proxy threads report an op's part on a connection, and the steps of
 * that part.
 *
 * NCCL starts the parts of later ops while an earlier one still runs. A slot shows the op of the
 * newest step: the connection works on no other. Counts follow the number of the step, because NCCL
 * repeats some reports.
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
 * Handles are numbers that no pointer equals. NCCL may give us a handle late, or the handle of
 * another process, so we look it up instead of following it.
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

/* One op's part on one connection. Fields as in cw_rec_connection. */
struct cw_connection_part {
	/* A number of the caller's that tells the communicators of one process apart. */
	uint64_t owner;
	uint32_t pid;
	int32_t rank, peer;
	int comm; /* entry of the communicator, -1 = unknown */
	uint32_t op, replay, steps;
	uint8_t channel;
	uint8_t flags; /* CW_REC_CONNECTION_* without USED */
};

/* Opens a part. Returns its handle; 0 = no place, which the record counts as a drop. */
uint64_t cw_connections_open(const struct cw_connection_part *part);

/* Returns the handle of a step of an open part; 0 = the part is not open. step counts from 0. */
uint64_t cw_connections_step(uint64_t part, uint32_t step);

/*
 * Notes that a step has got this far. bytes: that the step moved; 0 = unknown, or noted before. A
 * repeated call changes nothing.
 */
void cw_connections_count(uint64_t step, enum cw_rec_step which, uint64_t bytes);

/* Closes a part. A connection without an open part frees its slot. */
void cw_connections_close(uint64_t part);

/*
 * Closes all parts of this process's communicator c, -1 = all parts. NCCL has stopped the threads
 * that report them.
 */
void cw_connections_forget(int c);
