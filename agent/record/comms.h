/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of this process's communicators. It maps NCCL's handle to the index of an entry in the
 * flight record.
 *
 * A look-up takes no lock. Only calls that create or end a communicator change the table. They take
 * one lock and never hold it across a call into NCCL, CUDA or the loader.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/base/nccl_set.h"
#include "agent/base/state.h"
#include "agent/record/nccl_hash.h"
#include "agent/record/record.h"

#define CW_COMM_STREAMS 8

/*
 * The agent's private data of a communicator. The communicator's entry in the record has all other
 * data.
 */
struct cw_comm {
	uintptr_t handle; /* NCCL's handle, atomic; 0 = none */
	const struct cw_real *real;
	void *context;         /* CUcontext, NULL = no device progress */
	uint64_t device_words; /* CUdeviceptr of the progress section in that context */
	/* Copies of the record's fields. The copies save the hot path a cache line. */
	uint32_t nranks;
	uint32_t generation;
	/*
	 * Number of calls so far that create a child of this communicator. The number gives the
	 * next ordinal.
	 */
	uint32_t made;
	/* Caches the progress slot of each stream. A writer stores slot before stream_plus_1. */
	struct {
		uint64_t stream_plus_1; /* 0 = free */
		uint32_t slot;
	} streams[CW_COMM_STREAMS];
	ncclComm_t *deferred; /* NCCL will store the handle here; NULL = we have the handle */
	int32_t parent;       /* entry of the parent while `deferred` is set */
	/*
	 * The call that creates the communicator: the entry that records the call (-1 = unknown),
	 * and the call's tickets in both rings.
	 */
	int32_t making_at;
	uint64_t making_ring_ticket, making_comm_ticket;
	struct cw_nccl_hashes hashes; /* possible values of NCCL's own hash of the communicator */
} __attribute__((aligned(64)));

extern struct cw_comm cw_comms[CW_REC_COMMS];

struct cw_comm_birth {
	const struct cw_real *real;
	const ncclUniqueId *id; /* gives NCCL's own hash of the communicator; NULL = unknown */
	uint64_t comm_id;
	uint64_t parent_id;
	int32_t parent; /* the parent's entry, -1 = none */
	int32_t nranks; /* 0 = not known yet */
	int32_t rank;   /* -1 = not known yet */
	uint32_t ordinal;
	int32_t color;
	unsigned flags; /* CW_REC_COMM_* */
	const ncclConfig_t *config;
};

extern uint8_t cw_comm_hints[256]; /* for each hash of a handle: a guess of its entry */

static inline unsigned cw_comm_hint(uintptr_t handle)
{
	return (uint32_t)(handle >> 4) * 0x9e3779b1u >> 24;
}

/* Finds the entry of a handle in a scan of all entries; -1 = unknown. Any thread, lock-free. */
int cw_comm_find_slow(uintptr_t handle);

/* Finds the entry of a handle; -1 = unknown. Any thread, lock-free. */
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
 * Reserves an entry in state INIT. A call that repeats a failed call gets the entry of that call,
 * because its communicator never existed. Returns the entry. Returns -1 if all communicators are
 * alive, and counts a drop in the record. Any thread, takes the lock.
 */
int cw_comm_reserve(const struct cw_comm_birth *birth);

/* Binds entry c to the handle comm. Any thread, takes the lock. */
void cw_comm_bind(int c, ncclComm_t comm);

/*
 * Completes the entry of a communicator that NCCL reported ready: queries NCCL for rank, size and
 * device, sets state READY, and calls the features. The caller must have seen ncclSuccess. Any
 * thread; calls NCCL and CUDA.
 */
void cw_comm_ready(int c);

/*
 * Notes that NCCL will store the child's handle in *where later. NCCL does so for a split of a
 * non-blocking parent, and for a split in a group.
 */
void cw_comm_defer(int c, ncclComm_t *where, int parent);

/*
 * Binds deferred children whose handle NCCL has stored by now. With handle 0 these are all children
 * of the parent, else the child with this handle. Returns the entry that was bound last; -1 = none.
 */
int cw_comm_settle_deferred(int parent, ncclComm_t handle);

/*
 * Sets a final or intermediate state. With forget_handle it also clears the handle. A communicator
 * whose creation failed stays FAILED, even if the program destroys or aborts its handle. Any
 * thread, takes the lock.
 */
void cw_comm_set_state(int c, enum cw_comm_state state, bool forget_handle);

/*
 * Names a communicator for reports. A name that the program gave to NCCL takes precedence. Returns
 * false if the communicator is unknown. Any thread, takes the lock.
 */
bool cw_comm_name(ncclComm_t comm, const char *name);

/* Copies NCCL's last error text of the communicator into the record. */
void cw_comm_note_error(int c);

/* Records the result of a failed call on communicator c, and NCCL's error text. */
void cw_comm_failed(int c, ncclResult_t result);

/* Returns the p2p block of a communicator. Assigns a block on first use; NULL if all are taken. */
struct cw_rec_p2p_block *cw_comm_p2p(int c);

/*
 * Return an id of a communicator, which is equal in all processes of the communicator. An id is
 * never 0.
 */
uint64_t cw_comm_id_of(const ncclUniqueId *ids, int count);
uint64_t cw_comm_child_id(int parent, uint32_t ordinal, int32_t color);
