/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question put to other nodes (NodeRequest), and their answers as they come: to one, or to all
 * living peers, some at a time, until the asker has enough, all have answered, or the time is up.
 * A node that goes away or is too slow has given no answer.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/transport.h"
#include "common/clock.h"

struct cw_ask_nodes;

/* Of one question at once: beside those, evidence and windows have to find room on the way. */
#define CW_ASK_NODES_IN_FLIGHT 32u
/* Questions at once. */
#define CW_ASK_NODES_MAX 8u

/* answer NULL: none came. Returns true when no further answer is wanted. */
typedef bool (*cw_ask_nodes_fn)(const char *node, const struct cw_msg_node_reply *answer,
				void *user);
/* No answer comes any more; the question may be freed, and is by its owner. Never from inside
 * cw_ask_nodes_new(). */
typedef void (*cw_ask_nodes_done_fn)(void *user);

struct cw_ask_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const char *node; /* NULL = all living peers */
	const char *verb, *json;
	uint32_t uid;
	bool sees_all;
	uint32_t within_ms;
	cw_ask_nodes_fn on_answer;
	cw_ask_nodes_done_fn on_done;
	void *user;
};

/* Copies what it needs; nothing is sent before cw_ask_nodes_tick(). 0 or -ENOMEM. */
int cw_ask_nodes_new(const struct cw_ask_nodes_config *config, struct cw_ask_nodes **ret);
/* Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_ask_nodes *cw_ask_nodes_free(struct cw_ask_nodes *a);
/* Call it several times a second. May call on_done. */
void cw_ask_nodes_tick(struct cw_ask_nodes *a);
