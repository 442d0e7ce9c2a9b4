/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of one rank of a virtual cluster: a flight record in memory, written by the code that
 * the product's library runs on every call. That code keeps one process's state in globals, so one
 * recorder at a time has them; each function changes over to its own first. Time is the caller's.
 *
 * What the library does around a call (finding NCCL, asking it and the driver) is not in it: NCCL
 * and the device are the caller's, too. Words that the agent has a device write wait here until the
 * device has come that far.
 *
 * One thread. A failure of memory is the only one.
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
	bool has_progress;      /* devices write how far they are */
	int64_t now_ns, wall_ns;
};

/* 0 or -ENOMEM. */
int recorder_new(const struct recorder_config *config, struct recorder **ret);
/* Takes NULL; returns NULL. */
struct recorder *recorder_free(struct recorder *r);

/* The record; it stays where it is, and changes with each call below. */
const void *recorder_memory(const struct recorder *r, size_t *ret_bytes);

/* The agent's thread runs. */
void recorder_beat(struct recorder *r, int64_t now_ns);

/* ---- communicators: entries of the record ---- */

struct recorder_comm {
	uint64_t comm_id, nccl_hash;
	uint32_t nranks;
	int32_t comm_rank, device;
	const char *name;
};

/* In state INIT; -1: there is no place for it. */
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
/* A lone call comes back with an error, an ncclResult_t; a communicator has an asynchronous one. */
void recorder_fail(struct recorder *r, int result, int64_t now_ns);
void recorder_error(struct recorder *r, int c, int32_t result, int64_t now_ns);

/* Ops in between are entered and come back queued: recorder_enter() does both. */
void recorder_group_begin(struct recorder *r, int64_t now_ns);
void recorder_group_launch(struct recorder *r, int64_t now_ns);
void recorder_group_leave(struct recorder *r, int64_t now_ns);

/* A call that waits for other ranks. is_new: it makes this communicator. */
void recorder_block(struct recorder *r, int c, unsigned kind, bool is_new, int64_t now_ns);
void recorder_unblock(struct recorder *r, int64_t now_ns);
/* It comes back with an error, an ncclResult_t. */
void recorder_refuse(struct recorder *r, int result, int64_t now_ns);

/* ---- the device ---- */

/*
 * It has come to the communicator's op with this number, and completed all up to that one: the
 * words that were to be written by then are. Also when they are only asked for later.
 */
void recorder_device(struct recorder *r, int c, uint64_t reached_op, uint64_t completed_op);
