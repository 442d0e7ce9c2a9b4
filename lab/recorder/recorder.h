/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of one rank of a virtual cluster: it writes a flight record in memory with the code
 * that the product's library runs on every call. That code keeps the state of one process in
 * globals, so only one recorder at a time can own them; each function switches to its own first.
 * The caller provides the time.
 *
 * The library's work around a call (finding NCCL, querying it and the driver) is not included: the
 * caller simulates NCCL and the device, too. Words that the agent asks a device to write wait here
 * until the device has got that far.
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
	int64_t job_timeout_ns; /* 0 = none */
	bool has_progress;      /* devices write progress words */
	int64_t now_ns, wall_ns;
};

/* The caller owns the result. Without memory the program ends (common/or_exit/or_exit.h). */
struct recorder *recorder_new(const struct recorder_config *config);
/* Takes NULL; returns NULL. */
struct recorder *recorder_free(struct recorder *r);

/* The record; its address is stable, and each call below changes it. */
const void *recorder_memory(const struct recorder *r, size_t *ret_bytes);

/* The agent's thread runs once. */
void recorder_beat(struct recorder *r, int64_t now_ns);

/* ---- communicators: entries of the record ---- */

struct recorder_comm {
	uint64_t comm_id, nccl_hash;
	uint32_t nranks;
	int32_t comm_rank, device;
	const char *name;
};

/* Makes one in state INIT; -1: the record has no room for it. */
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
/* A lone call returns an error, an ncclResult_t; a communicator gets an asynchronous one. */
void recorder_fail(struct recorder *r, int result, int64_t now_ns);
void recorder_error(struct recorder *r, int c, int32_t result, int64_t now_ns);

/* Ops in between enter and return as queued: recorder_enter() does both. */
void recorder_group_begin(struct recorder *r, int64_t now_ns);
void recorder_group_launch(struct recorder *r, int64_t now_ns);
void recorder_group_leave(struct recorder *r, int64_t now_ns);

/* A call begins that waits for other ranks. is_new: it makes this communicator. */
void recorder_block(struct recorder *r, int c, unsigned kind, bool is_new, int64_t now_ns);
void recorder_unblock(struct recorder *r, int64_t now_ns);
/* It returns an error, an ncclResult_t. */
void recorder_refuse(struct recorder *r, int result, int64_t now_ns);

/* ---- the device ---- */

/*
 * The device has reached the communicator's op with the first number, and completed all ops up to
 * the second. It writes the due words, including words that the agent requests later.
 */
void recorder_device(struct recorder *r, int c, uint64_t reached_op, uint64_t completed_op);
