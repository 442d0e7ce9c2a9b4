/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that the modes of agent_program share: NCCL by its functions, one communicator, one buffer.
 */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <sys/types.h>

#define COUNT 64

/* Linked, or through dlopen as many frameworks do. */
struct nccl {
	ncclResult_t (*unique_id)(ncclUniqueId *);
	ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				   ncclComm_t, CUstream);
	ncclResult_t (*bcast)(void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream);
	ncclResult_t (*group_start)(void);
	ncclResult_t (*group_end)(void);
	ncclResult_t (*destroy)(ncclComm_t);
	ncclResult_t (*count)(const ncclComm_t, int *);
};

extern struct nccl nccl;
extern CUstream stream;
extern CUdeviceptr buffer;
extern ncclComm_t comm;

/* Ends the program with exit status 1 unless ok. */
void must(int ok, const char *what);

/* Everything up to the stream and the buffer, on device 0. */
void set_up_device(void);

/* Device and communicator; given: the unique id, NULL to ask for one. */
void set_up(int ranks, int rank, const ncclUniqueId *given);

/* 2 * ops collectives and a group of two, then waits for the stream. */
void work(int ops);

/* Waits for a child and prints how it ended. */
void wait_for(pid_t pid);

struct mode {
	const char *name;
	void (*run)(void);
};

/* Things programs do to themselves (agent_habits.c); ends with a name of NULL. */
extern const struct mode habits[];

/* Others, while threads are inside NCCL (agent_children.c); ends likewise. */
extern const struct mode children[];
