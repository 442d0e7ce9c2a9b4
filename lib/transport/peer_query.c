/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/peer_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cw_peer_query {
	struct cw_peer_query_config config;
	char *verb, *json;
	char **nodes;
	unsigned n_nodes, next, in_flight;
	int64_t end_ns;
	bool has_enough;
};

static int add_node(struct cw_peer_query *a, const char *name)
{
	a->nodes[a->n_nodes] = strdup(name);
	return a->nodes[a->n_nodes++] ? 0 : -1;
}

static int list_nodes(struct cw_peer_query *a)
{
	struct cw_transport *t = a->config.transport;
	const struct cw_peer *peers;
	unsigned n;
	int r = 0;

	peers = cw_transport_peers(t, &n);
	a->nodes = calloc(n + a->config.n_nodes + 1, sizeof(*a->nodes));
	if (!a->nodes)
		return -1;
	if (a->config.node)
		return add_node(a, a->config.node);
	for (unsigned i = 0; i < a->config.n_nodes && r == 0; i++)
		r = add_node(a, a->config.nodes[i]);
	for (unsigned i = 0; !a->config.nodes && i < n && r == 0; i++)
		if (cw_transport_is_alive(t, peers[i].name))
			r = add_node(a, peers[i].name);
	return r;
}

int cw_peer_query_new(const struct cw_peer_query_config *config, struct cw_peer_query **ret)
{
	struct cw_peer_query *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->config = *config;
	a->verb = strdup(config->verb);
	a->json = strdup(config->json);
	a->end_ns = cw_clock_awake_ns(config->clock) + config->within_ms * CW_NS_PER_MS;
	if (!a->verb || !a->json || list_nodes(a) < 0) {
		(void)cw_peer_query_free(a); /* always NULL */
		return -ENOMEM;
	}
	a->config.node = NULL; /* the new query does not own these pointers of the caller */
	a->config.nodes = NULL;
	*ret = a;
	return 0;
}

struct cw_peer_query *cw_peer_query_free(struct cw_peer_query *a)
{
	if (!a)
		return NULL;
	cw_transport_cancel(a->config.transport, a);
	for (unsigned i = 0; i < a->n_nodes; i++)
		free(a->nodes[i]);
	free(a->nodes);
	free(a->verb);
	free(a->json);
	free(a);
	return NULL;
}

static void take(struct cw_peer_query *a, const char *node, const struct cw_msg_node_reply *answer)
{
	if (!a->has_enough)
		a->has_enough = a->config.on_answer(node, answer, a->config.user);
}

/*
 * Counts a reply. It never ends the question: the owner would free `a` while the transport still
 * calls this function. The next tick ends the question.
 */
static void on_reply(const char *node, const struct cw_message *reply, void *user)
{
	struct cw_peer_query *a = user;

	a->in_flight--;
	take(a, node, reply ? &reply->node_reply : NULL);
}

static void ask(struct cw_peer_query *a, const char *node, int64_t left_ns)
{
	struct cw_message msg = { .type = CW_MSG_NODE_REQUEST,
				  .node_request = { .verb = a->verb,
						    .json = a->json,
						    .uid = a->config.uid,
						    .sees_all = a->config.sees_all } };

	if (cw_transport_request(a->config.transport, node, &msg,
				 (uint32_t)(left_ns / CW_NS_PER_MS) + 1, on_reply, a, NULL) < 0)
		take(a, node, NULL);
	else
		a->in_flight++;
}

void cw_peer_query_tick(struct cw_peer_query *a)
{
	int64_t left_ns = a->end_ns - cw_clock_awake_ns(a->config.clock);

	while (!a->has_enough && left_ns > 0 && a->next < a->n_nodes &&
	       a->in_flight < CW_PEER_QUERY_IN_FLIGHT)
		ask(a, a->nodes[a->next++], left_ns);
	while (!a->has_enough && left_ns <= 0 && a->next < a->n_nodes)
		/* The deadline passed before we could ask this node. */
		take(a, a->nodes[a->next++], NULL);
	/*
	 * Wait for requests in flight. They have the same deadline as the question, and the
	 * transport reports each node that misses the deadline.
	 */
	if (!a->has_enough && (a->next < a->n_nodes || a->in_flight))
		return;
	a->config.on_done(a->config.user);
}
