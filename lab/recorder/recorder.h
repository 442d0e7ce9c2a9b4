/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of one rank of a virtual cluster. It writes a flight record in memory with the code
 * that the product's library runs on every call. That code keeps the state of a process in global
 * variables, which belong to one recorder at a time. Each function first switches them to its own
 * recorder. The caller provides the time.
 *
 * The library's other work around a call (finding NCCL, queries to NCCL and the driver) is not
 * included. The caller simulates NCCL and the device. The agent asks a device to write words into
 * the record; they wait here until the device has reached the op.
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_layout.h"

struct recorder;

struct recorder_config {
	int32_t rank, world_size;
	uint32_t pid;
	uint64_t start_ticks;
	const char *job_label;
	uint32_t nccl_version;
	uint64_t env_hash;
	int64_t job_timeout_ns; /* time-out of the job's own watchdog; 0 = it has none */
	bool has_progress;      /* devices write progress words */
	int64_t now_ns, wall_ns;
};

/*
 * Makes a recorder, which the caller owns. If memory runs out, the program ends
 * (common/or_exit/or_exit.h).
 */
struct recorder *recorder_new(const struct recorder_config *config);
/* Accepts NULL and returns NULL. */
struct recorder *recorder_free(struct recorder *r);

/* Returns the record. Its address is stable, and each call below changes its contents. */
const void *recorder_memory(const struct recorder *r, size_t *ret_bytes);

/* Does the periodic work of the agent's thread once. */
void recorder_beat(struct recorder *r, int64_t now_ns);

/* ---- communicators: entries of the record ---- */

struct recorder_comm {
	uint64_t comm_id, nccl_hash;
	uint32_t nranks;
	int32_t comm_rank, device;
	const char *name;
};

/* Makes a communicator in state INIT and returns its index; -1: the record has no room for it. */
int recorder_comm(struct recorder *r, const struct recorder_comm *comm, int64_t now_ns);
void recorder_comm_state(struct recorder *r, int c, enum cw_comm_state state, int64_t now_ns);

/* ---- calls: one at a time, or a group of them ---- */

struct recorder_op {
	uint8_t kind, dtype, redop;
	int32_t root_or_peer;
	uint64_t count;
	uint64_t stream;
};

void recorder_enter(struct recorder *r, int c, const struct recorder_op *op, int64_t now_ns);
void recorder_leave(struct recorder *r, int64_t now_ns);
/*
 * recorder_fail() makes a call outside of groups return an error, an ncclResult_t. recorder_error()
 * gives a communicator an asynchronous error.
 */
void recorder_fail(struct recorder *r, int result, int64_t now_ns);
void recorder_error(struct recorder *r, int c, int32_t result, int64_t now_ns);

/*
 * Begin, launch and leave a group. For an op between begin and launch, recorder_enter() records
 * both entry and return, as queued.
 */
void recorder_group_begin(struct recorder *r, int64_t now_ns);
void recorder_group_launch(struct recorder *r, int64_t now_ns);
void recorder_group_leave(struct recorder *r, int64_t now_ns);

/*
 * recorder_block() begins a call that waits for other ranks. is_new: the call makes this
 * communicator.
 */
void recorder_block(struct recorder *r, int c, unsigned kind, bool is_new, int64_t now_ns);
void recorder_unblock(struct recorder *r, int64_t now_ns);
/* Ends the call of recorder_block() with an error, an ncclResult_t. */
void recorder_refuse(struct recorder *r, int result, int64_t now_ns);

/* ---- the device ---- */

/*
 * Records that the device has reached the communicator's op with the first number, and completed
 * all ops up to the second. The device then writes the words that are due, also words that the
 * agent requests later.
 */
void recorder_device(struct recorder *r, int c, uint64_t reached_op, uint64_t completed_op);
