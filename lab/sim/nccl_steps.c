/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the steps of a connection. A sender has its data from the start, so its GPU fills each
 * buffer at once, and the network takes each step at once. The network confirms a step when the
 * socket has all bytes of the step. A receiver's steps arrive with their bytes. Its GPU consumes
 * them at once, except for the last one, which it consumes when the collective takes the message.
 */
#include "lab/sim/nccl_steps.h"

#include "lab/sim/nccl_link.h"
#include "lab/sim/nccl_profiler.h"

#define STEP_BYTES 65536u

enum {
	SEND_GPU_WAIT = 8,
	SEND_WAIT = 9,
	RECV_WAIT = 10,
	RECV_FLUSH_WAIT = 11,
	RECV_GPU_WAIT = 12,
	SEND_PEER_WAIT = 20,
};

void sim_steps_begin(struct sim_steps *s, struct ncclComm *comm, void *launch, int peer,
		     const struct sim_link *link, bool is_send, uint64_t bytes)
{
	struct sim_profiler_part part = { .launch = launch,
					  .peer = peer,
					  .steps = (int)(bytes / STEP_BYTES) + 1,
					  .chunk_bytes = STEP_BYTES,
					  .is_send = is_send };

	*s = (struct sim_steps){
		.comm = comm, .link = link, .is_send = is_send, .steps = part.steps, .bytes = bytes
	};
	/* A peer that is ahead may already have sent this message, or a part of it. */
	if (is_send)
		s->first_byte = link->posted_total;
	else
		s->first_byte = link->read_total - link->in_done - link->queued_bytes -
				(link->queue ? sizeof(struct sim_msg_header) : 0);
	s->part = sim_profiler_part_start(comm, &part);
}

static void post(struct sim_steps *s)
{
	void *step = sim_profiler_step_start(s->comm, s->part, s->posted);

	s->open[s->posted++ % SIM_STEPS_OPEN] = step;
	sim_profiler_step_state(step, s->is_send ? SEND_GPU_WAIT : RECV_WAIT, 0);
}

/* Moves a step on: a sender passes it to the network, or a receiver has got it. */
static void move(struct sim_steps *s)
{
	void *step = s->open[s->moved++ % SIM_STEPS_OPEN];

	if (s->is_send)
		sim_profiler_step_state(step, SEND_PEER_WAIT, 0);
	sim_profiler_step_state(step, s->is_send ? SEND_WAIT : RECV_FLUSH_WAIT, STEP_BYTES);
	if (!s->is_send)
		sim_profiler_step_state(step, RECV_GPU_WAIT, STEP_BYTES);
}

/* Returns the number of steps whose bytes have all passed through the socket. */
static int passed(const struct sim_steps *s)
{
	uint64_t total = s->is_send ? s->link->written_total : s->link->read_total;
	uint64_t bytes = total > s->first_byte ? total - s->first_byte : 0;

	bytes -= bytes < sizeof(struct sim_msg_header) ? bytes : sizeof(struct sim_msg_header);
	if (total >= s->first_byte + sizeof(struct sim_msg_header) + s->bytes)
		return s->steps;
	return bytes / STEP_BYTES < (uint64_t)s->steps ? (int)(bytes / STEP_BYTES) : s->steps - 1;
}

void sim_steps_advance(struct sim_steps *s, bool is_consumed)
{
	int n = passed(s), moves, done;

	if (!s->part)
		return;
	do {
		while (s->posted < s->steps && s->posted < s->done + SIM_STEPS_OPEN)
			post(s);
		moves = s->is_send || is_consumed || n > s->posted ? s->posted : n;
		while (s->moved < moves)
			move(s);
		done = is_consumed ? s->steps : s->is_send || n < s->steps ? n : s->steps - 1;
		for (; s->done < done && s->done < s->moved; s->done++)
			sim_profiler_stop(s->open[s->done % SIM_STEPS_OPEN]);
	} while (s->done < done);
}

void sim_steps_end(struct sim_steps *s)
{
	sim_profiler_stop(s->part);
	s->part = NULL;
}
