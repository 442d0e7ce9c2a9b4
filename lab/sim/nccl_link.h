/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over one connection between two ranks of the simulated NCCL. One thread at a time uses a
 * connection: the launch whose turn it is. No function here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_msg_type {
	SIM_MSG_COLL = 1, /* a rank's part of a collective */
	SIM_MSG_DATA,     /* a send */
	/*
	 * The peer has posted the receive for the oldest unacknowledged send; units = the receive's
	 * bytes.
	 */
	SIM_MSG_ACK,
};

/*
 * The header of a message on the wire. As in the real NCCL it has no sequence number, no data type
 * and no reduction operator. So ranks do not notice if they disagree about these.
 */
struct sim_msg_header {
	uint32_t type;
	uint32_t kind;
	int32_t root;
	uint32_t reserved;
	uint64_t units; /* elements of a reduction, else bytes */
	uint64_t bytes; /* number of bytes of data that follow */
};

struct sim_msg {
	struct sim_msg *next;
	struct sim_msg_header header;
	char data[];
};

struct sim_out {
	struct sim_out *next;
	struct sim_msg_header header;
	/* the user's buffer, which is valid because an op does not end before we have written it */
	const void *data;
	size_t done; /* bytes of header and data written */
};

struct sim_link {
	int fd;        /* -1: not connected (or this rank itself) */
	bool in_dead;  /* the peer is gone: no more data will arrive, and we report no error */
	bool out_dead; /* sending is impossible; data that arrived before is still valid */
	struct sim_msg_header in_header;
	size_t in_done; /* bytes of the incoming message read, header included */
	struct sim_msg *in_msg;
	struct sim_msg *queue; /* complete messages */
	size_t queued_bytes;
	struct sim_out *out;
	/*
	 * Counts of bytes of messages, headers included: posted, written to the socket, and read
	 * from it.
	 */
	uint64_t posted_total, written_total, read_total;
	/* Unacknowledged sends of this batch and of earlier ones. */
	unsigned int unacked;
	uint64_t unacked_bytes;
};

void sim_link_init(struct sim_link *l, int fd);
void sim_link_fini(struct sim_link *l);
/* Queues a message. Borrows @data until the message is written. Returns 0 or -ENOMEM. */
int sim_link_post(struct sim_link *l, const struct sim_msg_header *header, const void *data);
/* Writes and, if @wants_input, reads as much as possible without waiting. */
void sim_link_pump(struct sim_link *l, bool wants_input);
/* Takes the oldest complete message, which the caller frees. NULL = there is none. */
struct sim_msg *sim_link_take(struct sim_link *l);
/* Returns the poll events that would let the link make progress; 0 = no event would. */
short sim_link_events(const struct sim_link *l, bool wants_input);
