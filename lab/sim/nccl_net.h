/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the simulated NCCL. Any thread may call these functions, but only one thread at a time
 * per listener. All functions block.
 *
 * abort_fd: the caller gives up as soon as this descriptor is readable; -1 = it never gives up.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_hello_type {
	SIM_HELLO_INIT = 1,
	SIM_HELLO_SPLIT,
	SIM_HELLO_MESH,
	SIM_HELLO_P2P,
};

/* The first message on every connection: the caller's identity and purpose. */
struct sim_hello {
	uint64_t key; /* secret shared by the communicator's members */
	uint32_t type;
	uint32_t ordinal; /* index of the split of the communicator */
	int32_t rank;
	int32_t nranks;
	int32_t color;
	int32_t split_key;
	struct sockaddr_in addr; /* the caller's own listening address */
};

struct sim_pending; /* a connection that arrived before any call requested it */

struct sim_listener {
	int fd;
	int abort_fd;
	uint64_t key;
	struct sockaddr_in addr;
	struct sim_pending *pending;
};

int sim_listener_open(struct sim_listener *l, uint64_t key, int abort_fd);
void sim_listener_close(struct sim_listener *l);
/*
 * Waits for a connection with this type and ordinal from a rank with @wanted[rank]; @wanted NULL =
 * from any rank. Keeps other connections for later calls. Returns the socket or -errno.
 */
int sim_listener_take(struct sim_listener *l, enum sim_hello_type type, uint32_t ordinal,
		      const bool *wanted, int num_ranks, struct sim_hello *ret_hello);
/* Connects and sends @hello. Returns the socket or -errno. */
int sim_connect(const struct sockaddr_in *addr, const struct sim_hello *hello, int abort_fd);
int sim_send_all(int fd, const void *buf, size_t len, int abort_fd);
int sim_recv_all(int fd, void *buf, size_t len, int abort_fd);
