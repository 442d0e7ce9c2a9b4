/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of the simulated NCCL: their lifetime, and the rendezvous of their ranks. */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/sim/nccl_link.h"
#include "lab/sim/nccl_net.h"

#define SIM_COMM_MAGIC 0x636f6d6du

struct sim_redop {
	struct sim_redop *next;
	ncclRedOp_t handle;
	ncclDataType_t dtype;
	double scalar;
};

struct ncclComm {
	uint32_t magic;
	int refs;
	int rank;
	int nranks;
	int device;
	CUcontext ctx;
	bool is_blocking;
	bool is_released; /* the caller has released the handle */
	bool is_revoked;
	volatile bool is_aborted;
	int abort_fd; /* eventfd; stays readable after an abort */
	pthread_mutex_t lock;
	pthread_cond_t turn; /* signals the end of a launch, or an abort */
	uint64_t launches;   /* number of tickets, assigned in the order of the calls */
	uint64_t launches_done;
	/*
	 * Number of running launches, including captured ones. It exceeds one only after an abort.
	 */
	unsigned int n_running;
	struct sim_launch *captured; /* launches in graphs */
	ncclResult_t async;          /* ncclInProgress during a non-blocking call */
	pthread_mutex_t host_lock;   /* serialises host calls that use the listener */
	struct sim_listener listener;
	struct sockaddr_in *addrs; /* each rank's listening address */
	struct sim_link *coll;     /* one per rank, connected at init */
	struct sim_link *p2p;      /* one per rank, connected at first use */
	uint32_t splits;
	/* one bit per kind of collective that has connections, for SIM_NCCL_SPIN */
	uint32_t connected;
	struct sim_redop *redops;
	int next_redop;
	char name[64];                /* name from the configuration, "" = none */
	void *profiler;               /* the plugin's context */
	uint64_t hash;                /* NCCL's hash of the communicator, for the plugin */
	uint64_t profiler_numbers[8]; /* number of launched collectives, by kind */
};

/* Makes a communicator without connections, bound to the current device of the calling thread. */
ncclResult_t sim_comm_new(int nranks, int rank, const ncclConfig_t *config,
			  const struct ncclComm *parent, ncclComm_t *ret_comm);
void sim_comm_ref(ncclComm_t comm);
void sim_comm_unref(ncclComm_t comm);
/*
 * Releases the caller's handle. An abort and a failing init may both call this; only the first call
 * counts.
 */
void sim_comm_release(ncclComm_t comm);
/* Returns ncclSuccess if the handle is a communicator whose last operation has ended. */
ncclResult_t sim_comm_check(ncclComm_t comm);
void sim_comm_set_async(ncclComm_t comm, ncclResult_t result);
/*
 * Ends all waits for peers. Afterwards the communicator can still be split, but allows no other
 * calls. Blocks.
 */
void sim_comm_revoke(ncclComm_t comm);
struct sim_redop *sim_comm_find_redop(ncclComm_t comm, ncclRedOp_t handle);

/* ---- nccl_bootstrap.c; all of it blocks until the peers arrive ---- */

ncclResult_t sim_bootstrap_init(ncclComm_t comm, const ncclUniqueId *id);

struct sim_split {
	ncclComm_t parent;
	const ncclConfig_t *config; /* configuration of the child; NULL = that of the parent */
	uint32_t ordinal;           /* index of the split of the parent */
	int color;
	int split_key;
	const int *group; /* the participating ranks of the parent, ascending */
	int num_group;
};

/* Splits a communicator. *@ret_comm becomes NULL if the colour is NOCOLOR. */
ncclResult_t sim_bootstrap_split(const struct sim_split *split, ncclComm_t *ret_comm);
/* Connects to every rank with @wanted[rank], unless there is a p2p connection. */
ncclResult_t sim_bootstrap_p2p(ncclComm_t comm, const bool *wanted);
