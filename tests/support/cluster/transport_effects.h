/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader's effects that send messages to other nodes, over a transport that the test makes.
 * `user` is the transport.
 */
#pragma once

#include "leader/incident/leader_effects.h"
#include "transport/transport.h"

static inline int transport_effects_send(void *user, const char *node, const struct cw_message *msg)
{
	return cw_transport_send(user, node, msg);
}

static inline int transport_effects_send_digest(void *user, const char *leader, const char *next,
						const struct cw_message *digest, int *ret_copy)
{
	return cw_transport_send_digest(user, leader, next, digest, ret_copy);
}

static inline unsigned transport_effects_announce(void *user, const struct cw_message *msg)
{
	return cw_transport_announce(user, msg);
}

static inline int transport_effects_ask(void *user, const char *node, struct cw_message *msg,
					uint32_t deadline_ms, cw_leader_answer_fn fn, void *asker)
{
	return cw_transport_request(user, node, msg, deadline_ms, fn, asker, NULL);
}

static inline void transport_effects_cancel(void *user, const void *asker)
{
	cw_transport_cancel(user, asker);
}

static inline const struct cw_peer *transport_effects_peers(void *user, unsigned *ret_n)
{
	return cw_transport_peers(user, ret_n);
}

/*
 * Sets the effects that send messages. The caller sets the other effects; those also get the
 * transport as `user`.
 */
static inline void transport_effects_init(struct cw_leader_effects *e, struct cw_transport *t)
{
	e->user = t;
	e->send = transport_effects_send;
	e->send_digest = transport_effects_send_digest;
	e->announce = transport_effects_announce;
	e->ask = transport_effects_ask;
	e->cancel = transport_effects_cancel;
	e->peers = transport_effects_peers;
}
