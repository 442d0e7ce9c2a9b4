/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bundle_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "cluster/peer_query.h"
#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "identity/job_id.h"
#include "leader/incident/incident_id.h"
#include "report/doc/looks_doc.h"
#include "report/json_util.h"

enum { CODE_OK = 0, CODE_NO_DATA = 3 };

#define VERB "summaries"
#define ANSWER_MS 5000u
/* A node that has too many questions to answer is asked again after this, so often. */
#define PAUSE_NS (2 * CW_NS_PER_S)
#define TRIES 8u
/* Ranks of one node that are taken: pages end somewhere, whatever a node says. */
#define NODE_RANKS_MAX 128u

struct wanted {
	struct wanted *next, *prev;
	struct cw_job_id job;
	char id[CW_INCIDENT_ID_MAX + 1];
};

/* Of the bundle whose turn it is. */
struct turn {
	json_t *nodes; /* names, of those who have the job; NULL = they are not asked yet */
	size_t at;     /* the one that is asked */
	unsigned tries;
	uint32_t n_ranks; /* of this one, so far */
	int64_t after_ns, after_pid;
	int64_t rest_until_ns, end_ns;
	uint64_t bytes;
	unsigned n_pages, n_silent;
	uint32_t ranks, left_out; /* of all nodes */
	bool is_full;
};

struct cw_bundle_nodes {
	struct cw_bundle_nodes_config config;
	struct wanted *queue; /* the first has its turn */
	unsigned n_waiting;
	struct turn turn;
	struct cw_peer_query *ask;
};

int cw_bundle_nodes_new(const struct cw_bundle_nodes_config *config, struct cw_bundle_nodes **ret)
{
	struct cw_bundle_nodes *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->config = *config;
	*ret = b;
	return 0;
}

static void drop_first(struct cw_bundle_nodes *b)
{
	struct wanted *w = b->queue;

	b->ask = cw_peer_query_free(b->ask);
	json_decref(b->turn.nodes);
	b->turn = (struct turn){ .nodes = NULL };
	DL_DELETE(b->queue, w);
	free(w);
	b->n_waiting--;
}

struct cw_bundle_nodes *cw_bundle_nodes_free(struct cw_bundle_nodes *b)
{
	if (!b)
		return NULL;
	while (b->queue)
		drop_first(b);
	free(b);
	return NULL;
}

bool cw_bundle_nodes_is_idle(const struct cw_bundle_nodes *b)
{
	return !b->queue;
}

void cw_bundle_nodes_want(struct cw_bundle_nodes *b, const json_t *head)
{
	const json_t *uid = json_object_get(head, "uid");
	const char *id = cw_json_str(head, "id", "");
	struct wanted *w;

	if (!cw_transport_n_alive(b->config.transport) || !json_is_integer(uid) ||
	    !cw_incident_id_is_valid(id))
		return;
	if (b->n_waiting == CW_BUNDLE_NODES_WAITING) {
		log_notice(
			"inc=%s: too many bundles wait for tensor summaries of other nodes: this "
			"one stays without",
			id);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w || cw_job_id_make((uid_t)json_integer_value(uid), cw_json_str(head, "job", ""),
				 &w->job) < 0) {
		free(w); /* then there is nobody to ask for */
		return;
	}
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	DL_APPEND(b->queue, w);
	b->n_waiting++;
}

/* ---- asking ---- */

static void on_done(void *user)
{
	struct cw_bundle_nodes *b = user;

	b->ask = cw_peer_query_free(b->ask);
}

/* node NULL: all of them. False: no memory. */
static bool ask(struct cw_bundle_nodes *b, const char *node, const json_t *arguments,
		cw_peer_query_fn fn)
{
	_cleanup_(freep) char *json = arguments ? cw_json_write(arguments, JSON_COMPACT) : NULL;
	struct cw_peer_query_config query = {
		.clock = b->config.clock,
		.transport = b->config.transport,
		.node = node,
		.verb = VERB,
		.json = json,
		.uid = b->queue->job.uid,
		.within_ms = ANSWER_MS,
		.on_answer = fn,
		.on_done = on_done,
		.user = b,
	};

	return json && cw_peer_query_new(&query, &b->ask) == 0;
}

static bool is_of_job(const json_t *job, const struct cw_job_id *wanted)
{
	return cw_json_int(job, "uid", -1) == wanted->uid &&
	       strcmp(cw_json_str(job, "job", ""), wanted->label) == 0;
}

/* Of itself alone a node says what it has. */
static bool on_list(const char *node, const struct cw_msg_node_reply *answer, void *user)
{
	struct cw_bundle_nodes *b = user;
	struct turn *t = &b->turn;
	const json_t *job;
	json_t *doc;
	size_t i;

	if (!answer || answer->code != CODE_OK) {
		t->n_silent++;
		return false;
	}
	doc = cw_json_parse_text(answer->json, JSON_REJECT_DUPLICATES);
	json_array_foreach (json_object_get(doc, "jobs"), i, job) {
		if (!is_of_job(job, &b->queue->job))
			continue;
		if (json_array_size(t->nodes) < CW_BUNDLE_NODES_MAX)
			(void)json_array_append_new(t->nodes, cw_json_text(node));
		else
			t->n_silent++;
		break;
	}
	json_decref(doc);
	return false;
}

static bool ask_who(struct cw_bundle_nodes *b)
{
	json_t *arguments = json_pack("{s:s}", "job", b->queue->job.label);
	bool is_asked;

	b->turn.nodes = json_array();
	is_asked = b->turn.nodes && ask(b, NULL, arguments, on_list);
	json_decref(arguments);
	return is_asked;
}

/* ---- pages ---- */

static void next_node(struct turn *t)
{
	t->at++;
	t->tries = 0;
	t->n_ranks = 0;
	t->rest_until_ns = 0;
}

static const char *node_of(const struct turn *t)
{
	return json_string_value(json_array_get(t->nodes, t->at));
}

/* The store has no place for it, or the bundle is gone: no page is wanted any more. */
static void add(struct cw_bundle_nodes *b, const char *text)
{
	struct turn *t = &b->turn;
	const struct wanted *w = b->queue;
	json_t *doc = json_string(text);
	size_t bytes = strlen(text);
	int r = -E2BIG;

	if (t->bytes + bytes <= CW_BUNDLE_NODES_BYTES && t->n_pages < CW_BUNDLE_MAX_ELSEWHERE)
		r = doc ? cw_store_add_elsewhere(b->config.store, w->job.uid, w->job.label, w->id,
						 t->n_pages + 1, doc)
			: -ENOMEM;
	json_decref(doc);
	if (r == 0) {
		t->n_pages++;
		t->bytes += bytes;
		return;
	}
	t->is_full = true;
	log_notice("job=%s inc=%s: no more tensor summaries of other nodes in the bundle: %s",
		   w->job.label, w->id, strerror(-r));
}

/* Behind the last rank of this page. False: it has none, or no more behind it. */
static bool go_on(struct turn *t, const json_t *doc)
{
	const json_t *ranks = json_object_get(doc, "ranks");
	const json_t *last = json_array_get(ranks, json_array_size(ranks) - 1);

	t->after_ns = cw_json_int(last, "created_ns", 0);
	t->after_pid = cw_json_int(last, "pid", 0);
	return last && cw_looks_doc_left_out(doc) && t->n_ranks < NODE_RANKS_MAX;
}

static void take_page(struct cw_bundle_nodes *b, const char *text)
{
	struct turn *t = &b->turn;
	/* What readers of bundles refuse must not come into one. */
	json_t *doc = cw_json_parse_text(text, JSON_REJECT_DUPLICATES);
	size_t n = json_array_size(json_object_get(doc, "ranks"));

	if (strcmp(cw_json_str(doc, "node", ""), node_of(t)) != 0 ||
	    strcmp(cw_json_str(doc, "schema", ""), CW_LOOKS_DOC_SCHEMA) != 0 ||
	    n > NODE_RANKS_MAX) {
		log_notice("%s: what it has of tensors is no page of its own", node_of(t));
		t->n_silent++;
		next_node(t);
	} else {
		if (n)
			add(b, text);
		t->n_ranks += (uint32_t)n;
		t->ranks += t->is_full ? 0 : (uint32_t)n;
		t->tries = 0;
		if (!go_on(t, doc)) {
			t->left_out += cw_looks_doc_left_out(doc);
			next_node(t);
		}
	}
	json_decref(doc);
}

static bool on_page(const char *node, const struct cw_msg_node_reply *answer, void *user)
{
	struct cw_bundle_nodes *b = user;
	struct turn *t = &b->turn;

	if (answer && answer->code == CODE_OK) {
		take_page(b, answer->json);
	} else if (answer && answer->code != CODE_NO_DATA && ++t->tries < TRIES) {
		t->rest_until_ns = cw_clock_awake_ns(b->config.clock) + PAUSE_NS;
	} else {
		t->n_silent++;
		next_node(t);
	}
	return true;
}

static bool ask_node(struct cw_bundle_nodes *b)
{
	const struct turn *t = &b->turn;
	json_t *arguments = json_pack("{s:s, s:s, s:I}", "node", node_of(t), "job",
				      b->queue->job.label, "uid", (json_int_t)b->queue->job.uid);
	int bad = arguments ? 0 : -1;
	bool is_asked;

	if (t->n_ranks) {
		bad |= json_object_set_new(arguments, "after_ns", json_integer(t->after_ns));
		bad |= json_object_set_new(arguments, "after_pid", json_integer(t->after_pid));
	}
	is_asked = !bad && ask(b, node_of(t), arguments, on_page);
	json_decref(arguments);
	return is_asked;
}

/* ---- a turn ---- */

static void end_turn(struct cw_bundle_nodes *b)
{
	const struct turn *t = &b->turn;
	const struct wanted *w = b->queue;
	size_t n_nodes = json_array_size(t->nodes), n_silent = t->n_silent + (n_nodes - t->at);

	if (n_nodes)
		log_info(
			"job=%s inc=%s: tensor summaries of other nodes are in the bundle; ranks: %u, "
			"without a place: %u; nodes that have some: %zu, that gave none: %zu",
			w->job.label, w->id, t->ranks, t->left_out, n_nodes, n_silent);
	drop_first(b);
}

/* False: it is over. */
static bool next_question(struct cw_bundle_nodes *b)
{
	struct turn *t = &b->turn;
	int64_t now = cw_clock_awake_ns(b->config.clock);

	if (!t->nodes) {
		t->end_ns = now + CW_BUNDLE_NODES_WITHIN_NS;
		return ask_who(b);
	}
	if (t->at == json_array_size(t->nodes) || t->is_full || now >= t->end_ns)
		return false;
	return now < t->rest_until_ns || ask_node(b);
}

void cw_bundle_nodes_tick(struct cw_bundle_nodes *b)
{
	if (b->queue && !b->ask && !next_question(b))
		end_turn(b);
	if (b->ask)
		cw_peer_query_tick(b->ask);
}
