/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One collective's part on one connection, in steps, as NCCL's proxy works on it. Up to 8 steps are
 * open at once, and each has the states of src/transport/net.cc. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ncclComm;
struct sim_link;

#define SIM_STEPS_OPEN 8

struct sim_steps {
	struct ncclComm *comm;
	const struct sim_link *link;
	void *part; /* the plugin's handle; NULL = the plugin wants no steps */
	bool is_send;
	int steps, posted, moved, done;
	uint64_t first_byte; /* first byte of the message, counted like the link's totals */
	uint64_t bytes;      /* bytes of the message without its header */
	void *open[SIM_STEPS_OPEN];
};

/*
 * Begins the part. Call it before the message is posted. bytes: the size of the message, or the
 * size that we expect. launch: the plugin's handle for the launch.
 */
void sim_steps_begin(struct sim_steps *s, struct ncclComm *comm, void *launch, int peer,
		     const struct sim_link *link, bool is_send, uint64_t bytes);
/* Reports the progress of the link. is_consumed: a receiver's device has taken the message. */
void sim_steps_advance(struct sim_steps *s, bool is_consumed);
/* Ends the part. Does nothing if it never began. */
void sim_steps_end(struct sim_steps *s);
