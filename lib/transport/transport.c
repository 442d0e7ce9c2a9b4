/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and delivers messages by node name. We encode a message to another node and pass it to the
 * backend at once. We encode a message to our own node too, queue it, and decode it in the next
 * iteration of the loop. A node therefore receives from itself exactly the bytes that other nodes
 * would receive.
 *
 * Requests wait here for their replies. Each request ends with a reply, at its deadline, or when
 * its node is lost.
 */
#include "transport/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "proto/codec.h"
#include "proto/frame.h"

struct request {
	struct request *next, *prev;
	uint64_t id;
	uint32_t reply_type;
	int64_t deadline_ns;
	char *node;
	/* Probable index of the node among the peers; check it, because indexes may change. */
	unsigned peer;
	cw_transport_reply_fn fn;
	void *user;
};

/* Frames that a daemon sends to itself. The queue has a limit. */
struct local_frame {
	struct local_frame *next, *prev;
	size_t len;
	uint8_t frame[]; /* the frame with its header */
};

struct local_queue {
	struct local_frame *frames;
	size_t bytes;
};

struct cw_transport {
	const struct cw_clock *clock;
	char *self;
	struct cw_peer *peers;
	unsigned n_peers;
	bool finds_peers;
	cw_transport_fn on_message;
	cw_transport_wake_fn on_wake;
	void *user;
	const struct cw_transport_ops *ops;
	void *impl;
	struct local_queue local;
	struct request *requests;
	unsigned n_requests;
	uint64_t next_id;
	struct cw_transport_stats stats;
};

/* ---- to our own node ---- */

/*
 * Copies the frame into the queue. Returns 0, -ENOBUFS above CW_TRANSPORT_MAX_LOCAL_BYTES, or
 * -ENOMEM.
 */
static int local_push(struct local_queue *q, const uint8_t *frame, size_t len)
{
	struct local_frame *f;

	if (q->bytes + len > CW_TRANSPORT_MAX_LOCAL_BYTES)
		return -ENOBUFS;
	f = malloc(sizeof(*f) + len);
	if (!f)
		return -ENOMEM;
	memcpy(f->frame, frame, len);
	f->len = len;
	q->bytes += len;
	DL_APPEND(q->frames, f);
	return 0;
}

/* Returns the oldest frame; NULL = the queue is empty. */
static struct local_frame *local_pop(struct local_queue *q)
{
	struct local_frame *f = q->frames;

	if (!f)
		return NULL;
	DL_DELETE(q->frames, f);
	q->bytes -= f->len;
	return f;
}

static void local_fini(struct local_queue *q)
{
	struct local_frame *f;

	while ((f = local_pop(q)))
		free(f);
}

/* ---- creation and release ---- */

static void request_free(struct request *q)
{
	free(q->node);
	free(q);
}

int cw_transport_new(const struct cw_transport_config *config, struct cw_transport **ret)
{
	struct cw_transport *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->clock = config->clock;
	t->on_message = config->on_message;
	t->on_wake = config->on_wake;
	t->user = config->user;
	/*
	 * Start the ids at the current time. A late reply to the daemon's previous run then matches
	 * no request of this run.
	 */
	t->next_id = (uint64_t)cw_clock_wall_ns(t->clock);
	t->self = strdup(config->self);
	t->finds_peers = config->finds_peers;
	/*
	 * Allocate the largest size at once. Callers hold pointers into the array, so we must never
	 * move it.
	 */
	t->peers = calloc(t->finds_peers ? CW_TRANSPORT_MAX_PEERS : config->n_peers + 1,
			  sizeof(*t->peers));
	if (!t->self || !t->peers) {
		(void)cw_transport_free(t); /* always NULL */
		return -ENOMEM;
	}
	for (unsigned i = 0; i < config->n_peers; i++, t->n_peers++) {
		struct cw_peer *p = &t->peers[i];

		p->name = strdup(config->names[i]);
		p->address = strdup(config->addresses ? config->addresses[i] : "");
		if (!p->name || !p->address) {
			t->n_peers++;
			(void)cw_transport_free(t); /* always NULL */
			return -ENOMEM;
		}
	}
	*ret = t;
	return 0;
}

struct cw_transport *cw_transport_free(struct cw_transport *t)
{
	struct request *q, *tmp;

	if (!t)
		return NULL;
	DL_FOREACH_SAFE (t->requests, q, tmp) {
		DL_DELETE(t->requests, q);
		request_free(q);
	}
	local_fini(&t->local);
	for (unsigned i = 0; i < t->n_peers; i++) {
		free((char *)t->peers[i].name);
		free((char *)t->peers[i].address);
	}
	free(t->peers);
	free(t->self);
	free(t);
	return NULL;
}

void cw_transport_set_backend(struct cw_transport *t, const struct cw_transport_ops *ops,
			      void *impl)
{
	t->ops = ops;
	t->impl = impl;
}

/* ---- peers ---- */

const char *cw_transport_self(const struct cw_transport *t)
{
	return t->self;
}

const struct cw_peer *cw_transport_peers(const struct cw_transport *t, unsigned *ret_n)
{
	*ret_n = t->n_peers;
	return t->peers;
}

static int find_peer(const struct cw_transport *t, const char *name)
{
	for (unsigned i = 0; i < t->n_peers; i++)
		if (!strcmp(t->peers[i].name, name))
			return (int)i;
	return -1;
}

const struct cw_peer *cw_transport_peer(const struct cw_transport *t, const char *name)
{
	int i = find_peer(t, name);

	return i < 0 ? NULL : &t->peers[i];
}

bool cw_transport_peer_is_alive(const struct cw_transport *t, const struct cw_peer *p)
{
	return cw_peer_is_alive(p, cw_clock_awake_ns(t->clock));
}

bool cw_transport_is_alive(const struct cw_transport *t, const char *name)
{
	const struct cw_peer *p;

	if (!strcmp(name, t->self))
		return true;
	p = cw_transport_peer(t, name);
	return p && cw_transport_peer_is_alive(t, p);
}

unsigned cw_transport_n_alive(const struct cw_transport *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_peers; i++)
		n += cw_transport_peer_is_alive(t, &t->peers[i]);
	return n;
}

void cw_transport_stats(const struct cw_transport *t, struct cw_transport_stats *ret)
{
	*ret = t->stats;
}

bool cw_transport_finds_peers(const struct cw_transport *t)
{
	return t->finds_peers;
}

int cw_transport_add_peer(struct cw_transport *t, const char *name, unsigned *ret)
{
	struct cw_peer p = { 0 };

	if (!t->finds_peers || t->n_peers >= CW_TRANSPORT_MAX_PEERS)
		return -ENOSPC;
	p.name = strdup(name);
	p.address = strdup("");
	if (!p.name || !p.address) {
		free((char *)p.name);
		free((char *)p.address);
		return -ENOMEM;
	}
	*ret = t->n_peers;
	t->peers[t->n_peers++] = p;
	return 0;
}

void cw_transport_remove_peer(struct cw_transport *t, unsigned peer)
{
	free((char *)t->peers[peer].name);
	free((char *)t->peers[peer].address);
	t->peers[peer] = t->peers[--t->n_peers];
}

/* ---- sending ---- */

static int send_local(struct cw_transport *t, const uint8_t *frame, size_t len)
{
	int r = local_push(&t->local, frame, len);

	if (r < 0) {
		t->stats.dropped++;
		return r;
	}
	if (t->on_wake)
		t->on_wake(t->user);
	return 0;
}

static int send_peer(struct cw_transport *t, unsigned peer, const uint8_t *frame, size_t len)
{
	int r = -ENOTCONN;

	if (t->ops && t->peers[peer].state == CW_PEER_CONNECTED)
		r = t->ops->send(t->impl, peer, frame, len);
	if (r < 0) {
		t->peers[peer].dropped++;
		t->stats.dropped++;
	} else {
		t->stats.sent++;
	}
	return r;
}

static int send_frame(struct cw_transport *t, const char *node, const uint8_t *frame, size_t len)
{
	int peer;

	if (!strcmp(node, t->self))
		return send_local(t, frame, len);
	peer = find_peer(t, node);
	return peer < 0 ? -ENOENT : send_peer(t, (unsigned)peer, frame, len);
}

int cw_transport_send(struct cw_transport *t, const char *node, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r = cw_message_encode(msg, &frame, &len);

	return r < 0 ? r : send_frame(t, node, frame, len);
}

int cw_transport_send_digest(struct cw_transport *t, const char *node, const char *copy_to,
			     const struct cw_message *msg, int *ret_copy)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r = cw_message_encode(msg, &frame, &len);

	if (r < 0) {
		*ret_copy = r;
		return r;
	}
	cw_message_set_digest_type(frame, CW_MSG_DIGEST_COPY);
	*ret_copy = send_frame(t, copy_to, frame, len);
	cw_message_set_digest_type(frame, CW_MSG_DIGEST);
	return send_frame(t, node, frame, len);
}

unsigned cw_transport_announce(struct cw_transport *t, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	unsigned n = 0;
	size_t len;

	if (cw_message_encode(msg, &frame, &len) < 0)
		return 0;
	for (unsigned i = 0; i < t->n_peers; i++)
		if (cw_transport_peer_is_alive(t, &t->peers[i]))
			n += send_peer(t, i, frame, len) >= 0;
	return n;
}

/* ---- requests ---- */

int cw_transport_request(struct cw_transport *t, const char *node, struct cw_message *msg,
			 uint32_t deadline_ms, cw_transport_reply_fn fn, void *user,
			 uint64_t *ret_id)
{
	struct request *q;
	int r;

	if (t->n_requests >= CW_TRANSPORT_MAX_REQUESTS)
		return -EAGAIN;
	q = calloc(1, sizeof(*q));
	if (!q || !(q->node = strdup(node))) {
		free(q);
		return -ENOMEM;
	}
	q->id = ++t->next_id;
	q->deadline_ns = cw_clock_awake_ns(t->clock) + deadline_ms * CW_NS_PER_MS;
	q->fn = fn;
	q->user = user;
	if (msg->type == CW_MSG_WINDOW_REQUEST) {
		q->reply_type = CW_MSG_WINDOW_REPLY;
		msg->window_request.id = q->id;
	} else if (msg->type == CW_MSG_NODE_REQUEST) {
		q->reply_type = CW_MSG_NODE_REPLY;
		msg->node_request.id = q->id;
	} else {
		q->reply_type = CW_MSG_EVIDENCE_REPLY;
		msg->evidence_request.id = q->id;
	}
	r = cw_transport_send(t, node, msg);
	if (r < 0) {
		request_free(q);
		return r;
	}
	DL_APPEND(t->requests, q);
	t->n_requests++;
	if (ret_id)
		*ret_id = q->id;
	return 0;
}

static void drop_request(struct cw_transport *t, struct request *q)
{
	DL_DELETE(t->requests, q);
	t->n_requests--;
	request_free(q);
}

void cw_transport_cancel(struct cw_transport *t, const void *user)
{
	struct request *q, *tmp;

	DL_FOREACH_SAFE (t->requests, q, tmp)
		if (q->user == user)
			drop_request(t, q);
}

static bool is_reply(const struct cw_message *msg, uint64_t *ret_id, bool *ret_is_last)
{
	switch (msg->type) {
	case CW_MSG_WINDOW_REPLY:
		*ret_id = msg->window_reply.id;
		*ret_is_last = true;
		return true;
	case CW_MSG_NODE_REPLY:
		*ret_id = msg->node_reply.id;
		*ret_is_last = true;
		return true;
	case CW_MSG_EVIDENCE_REPLY:
		*ret_id = msg->evidence_reply.id;
		*ret_is_last = msg->evidence_reply.remaining == 0;
		return true;
	default:
		return false;
	}
}

static void deliver(struct cw_transport *t, const char *from, struct cw_message *msg)
{
	struct request *q, *tmp;
	bool is_last = false;
	uint64_t id = 0;

	if (msg->type == CW_MSG_NONE) {
		t->stats.unknown++;
	} else if (is_reply(msg, &id, &is_last)) {
		DL_FOREACH_SAFE (t->requests, q, tmp) {
			cw_transport_reply_fn fn = q->fn;
			void *user = q->user;

			if (q->id != id || q->reply_type != msg->type || strcmp(q->node, from) != 0)
				continue;
			/*
			 * Drop the request before the call, because fn may cancel all requests of
			 * its user.
			 */
			if (is_last)
				drop_request(t, q);
			fn(from, msg, user);
			break; /* a reply to an ended request matches nothing */
		}
	} else {
		t->on_message(from, &msg, t->user);
	}
	cw_message_free(msg);
}

static void receive(struct cw_transport *t, const char *from, const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL;

	t->stats.received++;
	if (cw_message_decode_received(payload, len, &msg) < 0) {
		t->stats.bad++;
		return;
	}
	deliver(t, from, msg);
}

void cw_transport_peer_seen(struct cw_transport *t, unsigned peer)
{
	struct cw_peer *p = &t->peers[peer];
	int64_t now = cw_clock_awake_ns(t->clock);

	if (now - p->last_seen_ns >= CW_PEER_GAP_NS)
		p->seen_since_ns = now;
	p->last_seen_ns = now;
}

void cw_transport_deliver(struct cw_transport *t, unsigned peer, struct cw_message *msg)
{
	t->stats.received++;
	deliver(t, t->peers[peer].name, msg);
}

void cw_transport_receive(struct cw_transport *t, unsigned peer, const uint8_t *payload, size_t len)
{
	cw_transport_peer_seen(t, peer);
	receive(t, t->peers[peer].name, payload, len);
}

void cw_transport_peer_up(struct cw_transport *t, unsigned peer, uint64_t epoch)
{
	t->peers[peer].state = CW_PEER_CONNECTED;
	t->peers[peer].refusal = CW_PEER_NOT_REFUSED;
	t->peers[peer].epoch = epoch;
	t->peers[peer].seen_since_ns = t->peers[peer].last_seen_ns = cw_clock_awake_ns(t->clock);
}

void cw_transport_peer_down(struct cw_transport *t, unsigned peer, bool said_goodbye)
{
	t->peers[peer].state = said_goodbye ? CW_PEER_GOODBYE : CW_PEER_LOST;
}

void cw_transport_peer_refused(struct cw_transport *t, unsigned peer, enum cw_peer_refusal why)
{
	if (t->peers[peer].state != CW_PEER_CONNECTED)
		t->peers[peer].refusal = why;
}

/*
 * Returns whether the node can still answer. We check each request four times a second, and there
 * may be CW_TRANSPORT_MAX_REQUESTS of them. q->peer therefore stores the peer's index, which saves
 * a search by name.
 */
static bool can_answer(const struct cw_transport *t, struct request *q)
{
	int found;

	if (!strcmp(q->node, t->self))
		return true;
	if (q->peer >= t->n_peers || strcmp(t->peers[q->peer].name, q->node) != 0) {
		found = find_peer(t, q->node);
		if (found < 0)
			return false;
		q->peer = (unsigned)found;
	}
	return cw_transport_peer_is_alive(t, &t->peers[q->peer]);
}

/*
 * Ends at most one request per call. Its callback may cancel any other request, so the caller must
 * not continue to walk the list.
 */
static bool expire_one(struct cw_transport *t, int64_t now)
{
	struct request *q;

	DL_FOREACH (t->requests, q) {
		cw_transport_reply_fn fn = q->fn;
		void *user = q->user;
		char *node;

		if (q->deadline_ns > now && can_answer(t, q))
			continue;
		node = steal_ptr(&q->node);
		drop_request(t, q);
		t->stats.timeouts++;
		fn(node, NULL, user);
		free(node);
		return true;
	}
	return false;
}

void cw_transport_run(struct cw_transport *t)
{
	struct local_frame *f, *batch = t->local.frames;
	int64_t now = cw_clock_awake_ns(t->clock);

	/*
	 * Take the whole queue first. If a handler sends a message to our own node, this message
	 * then waits for the next iteration.
	 */
	t->local.frames = NULL;
	t->local.bytes = 0;
	while ((f = batch)) {
		DL_DELETE(batch, f);
		receive(t, t->self, f->frame + CW_FRAME_HEADER_BYTES,
			f->len - CW_FRAME_HEADER_BYTES);
		free(f);
	}
	while (expire_one(t, now))
		;
}
