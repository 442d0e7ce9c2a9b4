/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over one connection between two ranks. A peer's death is no error. We mark the link as
 * dead, and its waiters keep waiting. A GPU kernel does the same: it polls a buffer that the dead
 * peer should have filled.
 */
#include "lab/sim/nccl_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Limit on the bytes of a message. We never send larger ones. */
#define MSG_BYTES_MAX ((uint64_t)1 << 34)
/*
 * Limit on the bytes that we queue. A peer can run ahead by this much; beyond it the peer's sends
 * block.
 */
#define QUEUED_BYTES_MAX ((size_t)64 << 20)

void sim_link_init(struct sim_link *l, int fd)
{
	*l = (struct sim_link){ .fd = fd };
}

void sim_link_fini(struct sim_link *l)
{
	struct sim_msg *m;

	while ((m = sim_link_take(l)))
		free(m);
	free(l->in_msg);
	while (l->out) {
		struct sim_out *o = l->out;

		l->out = o->next;
		free(o);
	}
	if (l->fd >= 0)
		close(l->fd);
	sim_link_init(l, -1);
}

int sim_link_post(struct sim_link *l, const struct sim_msg_header *header, const void *data)
{
	struct sim_out **link = &l->out;
	struct sim_out *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->header = *header;
	o->data = data;
	while (*link)
		link = &(*link)->next;
	*link = o;
	l->posted_total += sizeof(o->header) + o->header.bytes;
	return 0;
}

struct sim_msg *sim_link_take(struct sim_link *l)
{
	struct sim_msg *m = l->queue;

	if (m) {
		l->queue = m->next;
		l->queued_bytes -= m->header.bytes;
	}
	return m;
}

/* Writes as much as the socket accepts. */
static void pump_out(struct sim_link *l)
{
	while (l->out) {
		struct sim_out *o = l->out;
		size_t head = o->done < sizeof(o->header) ? sizeof(o->header) - o->done : 0;
		size_t from = head ? 0 : o->done - sizeof(o->header);
		struct iovec iov[2] = {
			{ (char *)&o->header + sizeof(o->header) - head, head },
			{ o->data ? (char *)o->data + from : NULL, o->header.bytes - from },
		};
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
		ssize_t n = sendmsg(l->fd, &msg, MSG_NOSIGNAL);

		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR)
				l->out_dead = true;
			return;
		}
		o->done += (size_t)n;
		l->written_total += (size_t)n;
		if (o->done < sizeof(o->header) + o->header.bytes)
			return;
		l->out = o->next;
		free(o);
	}
}

static void append(struct sim_link *l, struct sim_msg *m)
{
	struct sim_msg **link = &l->queue;

	while (*link)
		link = &(*link)->next;
	*link = m;
	l->queued_bytes += m->header.bytes;
}

/* Reads a part of the incoming message. Returns true to continue. */
static bool read_part(struct sim_link *l)
{
	bool in_header = l->in_done < sizeof(l->in_header);
	size_t data_done = in_header ? 0 : l->in_done - sizeof(l->in_header);
	void *buf = in_header ? (char *)&l->in_header + l->in_done : l->in_msg->data + data_done;
	size_t len = in_header ? sizeof(l->in_header) - l->in_done : l->in_header.bytes - data_done;
	ssize_t n = recv(l->fd, buf, len, 0);

	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			l->in_dead = true;
		return false;
	}
	l->in_done += (size_t)n;
	l->read_total += (size_t)n;
	if (l->in_done < sizeof(l->in_header))
		return true;
	if (!l->in_msg) {
		if (l->in_header.bytes <= MSG_BYTES_MAX)
			l->in_msg = malloc(sizeof(*l->in_msg) + l->in_header.bytes);
		if (!l->in_msg) {
			l->in_dead = true;
			return false;
		}
		l->in_msg->next = NULL;
		l->in_msg->header = l->in_header;
	}
	if (l->in_done == sizeof(l->in_header) + l->in_header.bytes) {
		append(l, l->in_msg);
		l->in_msg = NULL;
		l->in_done = 0;
		return false; /* stop after each message, because the caller inspects it first */
	}
	return true;
}

static bool may_read(const struct sim_link *l)
{
	return l->queued_bytes < QUEUED_BYTES_MAX;
}

void sim_link_pump(struct sim_link *l, bool wants_input)
{
	if (l->fd < 0)
		return;
	if (!l->out_dead)
		pump_out(l);
	while (wants_input && may_read(l) && !l->in_dead && read_part(l))
		;
}

short sim_link_events(const struct sim_link *l, bool wants_input)
{
	bool can_write = l->out && !l->out_dead;
	bool can_read = wants_input && !l->in_dead && may_read(l);

	if (l->fd < 0)
		return 0;
	return (short)((can_write ? POLLOUT : 0) | (can_read ? POLLIN : 0));
}
