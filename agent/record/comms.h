/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicators of this process: from NCCL's handle to the entry of the flight record.
 *
 * Looking up is lock-free. Everything that changes the table happens in calls that make or end a
 * communicator and takes one lock, never across a call into NCCL, CUDA or the loader.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/base/nccl_set.h"
#include "agent/base/state.h"
#include "agent/record/record.h"

#define CW_COMM_STREAMS 8

/* What the agent keeps of a communicator besides the record. */
struct cw_comm {
	uintptr_t handle; /* atomic; 0 = none */
	const struct cw_real *real;
	void *context;         /* CUcontext, NULL = no device progress */
	uint64_t device_words; /* CUdeviceptr of the progress section in that context */
	uint32_t nranks;       /* twins of the record's: one line less on the hot path */
	uint32_t generation;
	uint32_t made; /* comm-making calls on it so far: the ordinal of the next child */
	/* Streams seen, a cache of progress slots; slot first written, then stream. */
	struct {
		uint64_t stream_plus_1; /* 0 = free */
		uint32_t slot;
	} streams[CW_COMM_STREAMS];
	ncclComm_t *deferred; /* where NCCL will store the handle, NULL = not waiting */
	int32_t parent;       /* entry of the parent while deferred */
	/* The call that makes it, in both rings, and the entry it is recorded at; -1 = not known.
	 */
	int32_t making_at;
	uint64_t making_ring_ticket, making_comm_ticket;
} __attribute__((aligned(64)));

extern struct cw_comm cw_comms[CW_REC_COMMS];

struct cw_comm_birth {
	const struct cw_real *real;
	uint64_t comm_id;
	uint64_t parent_id;
	int32_t parent; /* entry, -1 = none */
	int32_t nranks; /* 0 = not known yet */
	int32_t rank;   /* -1 = not known yet */
	uint32_t ordinal;
	int32_t color;
	unsigned flags; /* CW_REC_COMM_* */
	const ncclConfig_t *config;
};

extern uint8_t cw_comm_hints[256]; /* entry by hash of the handle: a guess */

static inline unsigned cw_comm_hint(uintptr_t handle)
{
	return (uint32_t)(handle >> 4) * 0x9e3779b1u >> 24;
}

/* Entry of a handle by looking at all of them; -1. Any thread, lock-free. */
int cw_comm_find_slow(uintptr_t handle);

/* Entry of a handle, -1 when it is not known. Any thread, lock-free. */
static inline int cw_comm_find(ncclComm_t comm)
{
	uintptr_t handle = (uintptr_t)comm;
	unsigned guess = cw_tls.last_comm;
	int c;

	if (handle && CW_LOAD(cw_comms[guess].handle) == handle)
		return (int)guess;
	guess = CW_LOAD(cw_comm_hints[cw_comm_hint(handle)]);
	if (handle && CW_LOAD(cw_comms[guess].handle) == handle)
		c = (int)guess;
	else
		c = cw_comm_find_slow(handle);
	if (c >= 0)
		cw_tls.last_comm = (uint16_t)c;
	return c;
}

/*
 * Takes an entry in state INIT; -1 when all are alive (counted). A call that repeats one that
 * failed takes its entry: that communicator never came to be. Any thread, takes the lock.
 */
int cw_comm_reserve(const struct cw_comm_birth *birth);

/* Gives the entry its handle. Any thread. */
void cw_comm_bind(int c, ncclComm_t comm);

/*
 * Settles a communicator that NCCL reported ready: asks NCCL for ranks and device, state READY, and
 * tells the features. Not before NCCL said ncclSuccess. Any thread; calls NCCL and CUDA.
 */
void cw_comm_ready(int c);

/* NCCL will store the handle later (split of a non-blocking parent, split in a group). */
void cw_comm_defer(int c, ncclComm_t *where, int parent);

/*
 * Binds deferred children whose handle is there by now: all of this parent (handle 0), or the one
 * with this handle. Return: the entry bound last, -1.
 */
int cw_comm_settle_deferred(int parent, ncclComm_t handle);

/*
 * Ends the entry's handle and sets a final or intermediate state. A communicator whose making
 * failed stays FAILED, however its handle is given back. Any thread, takes the lock.
 */
void cw_comm_set_state(int c, enum cw_comm_state state, bool forget_handle);

/*
 * What people call it, where NCCL was given no name. False: it is none that is known. Any thread,
 * takes the lock.
 */
bool cw_comm_name(ncclComm_t comm, const char *name);

/* Notes NCCL's own words for what is wrong with the comm. */
void cw_comm_note_error(int c);

/* Notes a call's failure: result and NCCL's own words for it. */
void cw_comm_failed(int c, ncclResult_t result);

/* The p2p block of a communicator, made on first use; NULL when all are taken. */
struct cw_rec_p2p_block *cw_comm_p2p(int c);

/* Ids. */
uint64_t cw_comm_id_of(const ncclUniqueId *ids, int count);
uint64_t cw_comm_child_id(int parent, uint32_t ordinal, int32_t color);
