/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bundle_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "common/text.h"
#include "identity/job_id.h"
#include "leader/incident/incident_id.h"
#include "report/json_util.h"
#include "transport/peer_query.h"

enum { CODE_OK = 0, CODE_NO_DATA = 3 };

#define VERB "summaries"
#define ANSWER_MS 5000u
/* Time between a failed query and the next query of the same node. */
#define REST_NS (2 * CW_NS_PER_S)
/*
 * Maximum number of times that we ask for the nodes that have the job. We ask again if a node did
 * not answer.
 */
#define LISTS 2u

struct wanted {
	struct wanted *next, *prev;
	struct cw_job_id job;
	char id[CW_INCIDENT_ID_MAX + 1];
};

/* A node that has summaries of the job. */
struct source {
	char *name;
	unsigned tries;   /* number of failed queries since the last page */
	uint32_t n_ranks; /* number of ranks whose summaries we have fetched from this node */
	int64_t after_ns, after_pid;
	int64_t rest_until_ns;
	bool is_done, is_silent;
};

/* The bundle that we work on now, and its progress. */
struct gathering {
	unsigned n_lists;
	/* True if we have asked for the nodes that have the job, as often as useful. */
	bool are_listed;
	/* Number of nodes that did not answer when we last asked for nodes with the job. */
	unsigned n_silent;
	json_t *silent; /* names of the silent nodes */
	struct source *sources;
	unsigned n_sources;
	struct source *asked; /* node whose page we are waiting for; NULL = none */
	int64_t rest_until_ns, end_ns;
	int64_t write_at_ns; /* time of the next try to write to the bundle */
	uint64_t bytes;
	unsigned n_pages;
	uint32_t omitted; /* number of ranks that were left out */
	int error;        /* -errno of the reason for fetching no further page; 0 = none */
};

struct cw_bundle_nodes {
	struct cw_bundle_nodes_config config;
	struct wanted *queue; /* the bundles to do; we work on the first one */
	struct gathering current;
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
	struct gathering *gathering = &b->current;

	b->ask = cw_peer_query_free(b->ask);
	for (unsigned i = 0; i < gathering->n_sources; i++)
		free(gathering->sources[i].name);
	free(gathering->sources);
	json_decref(gathering->silent);
	*gathering = (struct gathering){ .n_lists = 0 };
	DL_DELETE(b->queue, w);
	free(w);
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

/* ---- the queue ---- */

static bool has_place(const struct cw_bundle_nodes *b, uint32_t uid)
{
	const struct wanted *w;
	unsigned n = 0, own = 0;

	DL_FOREACH (b->queue, w) {
		n++;
		own += w->job.uid == uid;
	}
	return n < CW_BUNDLE_NODES_WAITING && own < CW_BUNDLE_NODES_WAITING_OF_USER;
}

/*
 * Inserts w into the queue so that users take turns. A user's n-th bundle goes behind the n-th
 * bundle of each other user.
 */
static void enqueue(struct cw_bundle_nodes *b, struct wanted *w)
{
	struct wanted *at, *other, *before = NULL;
	unsigned own = 0;

	DL_FOREACH (b->queue, at)
		own += at->job.uid == w->job.uid;
	DL_FOREACH (b->queue, at) {
		unsigned n = 0; /* number of the same user's bundles before it in the queue */

		for (other = b->queue; other != at; other = other->next)
			n += other->job.uid == at->job.uid;
		if (n > own && at != b->queue) {
			before = at;
			break;
		}
	}
	if (before)
		DL_PREPEND_ELEM(b->queue, before, w);
	else
		DL_APPEND(b->queue, w);
}

void cw_bundle_nodes_want(struct cw_bundle_nodes *b, const json_t *head)
{
	const json_t *uid = json_object_get(head, "uid");
	const char *id = cw_json_str(head, "id", "");
	struct wanted *w;
	unsigned n_peers;

	(void)cw_transport_peers(b->config.transport, &n_peers);
	if (!n_peers || !json_is_integer(uid) || !cw_incident_id_is_valid(id))
		return;
	if (!has_place(b, (uint32_t)json_integer_value(uid))) {
		log_notice("inc=%s: too many bundles wait for tensor summaries of other nodes: "
			   "this one gets none",
			   id);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w || cw_job_id_make((uint32_t)json_integer_value(uid), cw_json_str(head, "job", ""),
				 &w->job) < 0) {
		free(w); /* without a job there is nothing to fetch */
		return;
	}
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	enqueue(b, w);
}

/* ---- queries ---- */

static void on_done(void *user)
{
	struct cw_bundle_nodes *b = user;

	b->ask = cw_peer_query_free(b->ask);
}

/* Sends a query. node: NULL = all living nodes. Returns false if out of memory. */
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

/* ---- finding the nodes that have the job ---- */

static bool is_of_job(const json_t *job, const struct cw_job_id *wanted)
{
	return cw_json_int(job, "uid", -1) == wanted->uid &&
	       strcmp(cw_json_str(job, "job", ""), wanted->label) == 0;
}

static void add_silent(struct gathering *gathering, const char *name)
{
	gathering->n_silent++;
	if (json_array_size(gathering->silent) < CW_BUNDLE_NODES_NAMED)
		(void)json_array_append_new(gathering->silent, cw_json_text(name));
}

static bool has_source(const struct gathering *gathering, const char *name)
{
	for (unsigned i = 0; i < gathering->n_sources; i++)
		if (strcmp(gathering->sources[i].name, name) == 0)
			return true;
	return false;
}

/* True if nodes other than this one have summaries of the job. */
static bool has_others(const struct gathering *gathering)
{
	return gathering->n_sources > 1;
}

static void add_source(struct gathering *gathering, const char *name)
{
	struct source *grown;

	if (has_source(gathering, name))
		return;
	grown = gathering->n_sources < CW_BUNDLE_NODES_MAX
			? realloc(gathering->sources, (gathering->n_sources + 1) * sizeof(*grown))
			: NULL;
	if (grown) {
		gathering->sources = grown;
		grown[gathering->n_sources] = (struct source){ .name = strdup(name) };
	}
	if (grown && grown[gathering->n_sources].name)
		gathering->n_sources++;
	else
		add_silent(gathering, name);
}

/* Takes one node's list of jobs. Ignores what the list says about other nodes. */
static bool on_list(const char *node, const struct cw_msg_node_reply *answer, void *user)
{
	struct cw_bundle_nodes *b = user;
	const json_t *job;
	json_t *doc;
	size_t i;

	doc = answer && answer->code == CODE_OK
		      ? cw_json_parse_text(answer->json, JSON_REJECT_DUPLICATES)
		      : NULL;
	if (!json_is_array(json_object_get(doc, "jobs")) && !has_source(&b->current, node))
		add_silent(&b->current, node);
	json_array_foreach (json_object_get(doc, "jobs"), i, job) {
		if (is_of_job(job, &b->queue->job)) {
			add_source(&b->current, node);
			break;
		}
	}
	json_decref(doc);
	return false;
}

/* Notes the dead peers as silent. We cannot query them, so their summaries may be missing, too. */
static void add_away(struct cw_bundle_nodes *b)
{
	const struct cw_peer *peers;
	unsigned n;

	peers = cw_transport_peers(b->config.transport, &n);
	for (unsigned i = 0; i < n; i++)
		if (!cw_transport_peer_is_alive(b->config.transport, &peers[i]) &&
		    !has_source(&b->current, peers[i].name))
			add_silent(&b->current, peers[i].name);
}

static bool ask_who(struct cw_bundle_nodes *b)
{
	struct gathering *gathering = &b->current;
	json_t *arguments = json_pack("{s:s}", "job", b->queue->job.label);
	bool is_asked;

	/* Fetch from this node first, so that all pages have about the same age. */
	add_source(gathering, cw_transport_self(b->config.transport));
	json_decref(gathering->silent);
	gathering->silent = json_array();
	gathering->n_silent = 0;
	gathering->n_lists++;
	gathering->rest_until_ns = cw_clock_awake_ns(b->config.clock) + REST_NS;
	is_asked = gathering->silent && ask(b, NULL, arguments, on_list);
	json_decref(arguments);
	return is_asked;
}

/* ---- writing to the bundle ---- */

/*
 * Adds document n to the bundle. Returns 0, or -errno if the store is full or the bundle is gone.
 */
static int put(struct cw_bundle_nodes *b, unsigned n, const json_t *doc)
{
	const struct wanted *w = b->queue;

	return doc ? cw_store_add_remote_summaries(b->config.store, w->job.uid, w->job.label, w->id,
						   n, doc)
		   : -ENOMEM;
}

/*
 * Writes the list of silent nodes, or the note that we are still asking. Returns the values of
 * put().
 */
static int put_absence(struct cw_bundle_nodes *b, struct cw_extension_absence absence)
{
	json_t *doc;
	int r;

	absence.node = cw_transport_self(b->config.transport);
	absence.taken_wall_ns = cw_clock_wall_ns(b->config.clock);
	doc = b->config.extension->empty_page(&absence);
	r = put(b, 1, doc);

	json_decref(doc);
	return r;
}

/* ---- fetching the pages ---- */

static void give_up(struct source *s)
{
	s->is_done = s->is_silent = true;
}

/* Postpones the node: we query it again after the other nodes. */
static void defer(struct cw_bundle_nodes *b, struct source *s)
{
	s->rest_until_ns = cw_clock_awake_ns(b->config.clock) + REST_NS;
	if (++s->tries == CW_BUNDLE_NODES_TRIES)
		give_up(s);
}

/*
 * Adds a page to the bundle. Returns false if the page is not in the bundle. We then fetch it again
 * later, or fetch no further page.
 */
static bool add_page(struct cw_bundle_nodes *b, struct source *s, const char *text)
{
	struct gathering *gathering = &b->current;
	json_t *doc = json_string(text);
	size_t bytes = strlen(text);
	int r = gathering->bytes + bytes <= CW_BUNDLE_NODES_BYTES
			? put(b, gathering->n_pages + 2, doc)
			: -ENOSPC;

	json_decref(doc);
	if (r == 0) {
		gathering->n_pages++;
		gathering->bytes += bytes;
	} else if (r == -EBUSY) {
		defer(b, s);
	} else {
		gathering->error = r;
	}
	return r == 0;
}

/*
 * Notes the last rank of this page. The next page starts after it. If there are no more ranks, this
 * node is done.
 */
static void go_on(struct cw_bundle_nodes *b, struct source *s, const struct cw_extension_page *page)
{
	s->tries = 0;
	s->n_ranks += page->n_ranks;
	s->after_ns = page->last_created_wall_ns;
	s->after_pid = page->last_pid;
	if (page->n_ranks && page->n_omitted && s->n_ranks < b->config.extension->max_node_ranks)
		return;
	s->is_done = true;
	b->current.omitted += page->n_omitted;
}

static void take_page(struct cw_bundle_nodes *b, struct source *s, const char *text)
{
	/* Check the document first, because readers of bundles refuse duplicate keys. */
	json_t *doc = cw_json_parse_text(text, JSON_REJECT_DUPLICATES);
	struct cw_extension_page page;

	if (b->config.extension->read_page(doc, &page) < 0 || strcmp(page.node, s->name) != 0)
		give_up(s);
	else if (!page.n_ranks || add_page(b, s, text))
		go_on(b, s, &page);
	json_decref(doc);
}

static bool on_page(const char *node, const struct cw_msg_node_reply *answer, void *user)
{
	struct cw_bundle_nodes *b = user;
	struct source *s = b->current.asked;

	if (answer && answer->code == CODE_OK)
		take_page(b, s, answer->json);
	else if (answer && answer->code == CODE_NO_DATA)
		give_up(s); /* the job no longer runs on this node */
	else
		defer(b, s);
	return true;
}

static bool ask_node(struct cw_bundle_nodes *b, struct source *s)
{
	json_t *arguments = json_pack("{s:s, s:s, s:I}", "node", s->name, "job",
				      b->queue->job.label, "uid", (json_int_t)b->queue->job.uid);
	int bad = arguments ? 0 : -1;
	bool is_asked;

	if (s->n_ranks) {
		bad |= json_object_set_new(arguments, "after_ns", json_integer(s->after_ns));
		bad |= json_object_set_new(arguments, "after_pid", json_integer(s->after_pid));
	}
	b->current.asked = s;
	is_asked = !bad && ask(b, s->name, arguments, on_page);
	json_decref(arguments);
	return is_asked;
}

/* ---- a bundle from start to end ---- */

static void name_all(char *text, size_t size, const json_t *names, unsigned count)
{
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		cw_text_append(text, size, "%s%s", i ? ", " : "", json_string_value(name));
	if (count > json_array_size(names))
		cw_text_append(text, size, ", …");
}

/* Notes the nodes whose summaries are missing or incomplete. */
static void add_unanswered(struct gathering *gathering)
{
	for (unsigned i = 0; i < gathering->n_sources; i++)
		if (gathering->sources[i].is_silent || !gathering->sources[i].is_done)
			add_silent(gathering, gathering->sources[i].name);
}

static void end_gathering(struct cw_bundle_nodes *b)
{
	struct gathering *gathering = &b->current;
	const struct wanted *w = b->queue;
	char silent[1024] = "";

	if (has_others(gathering))
		add_unanswered(gathering);
	if (has_others(gathering) || gathering->n_silent) {
		if (gathering->silent && gathering->error != -ENOENT)
			(void)put_absence(b, (struct cw_extension_absence){
						     .silent = gathering->silent,
						     .n_silent = gathering->n_silent });
		name_all(silent, sizeof(silent), gathering->silent, gathering->n_silent);
		log_info("job=%s inc=%s: tensor summaries of other nodes in the bundle: documents: "
			 "%u; ranks left out: %u; no answer from: %s%s%s",
			 w->job.label, w->id, gathering->n_pages, gathering->omitted,
			 *silent ? silent : "none",
			 gathering->error ? "; no more were accepted: " : "",
			 gathering->error ? strerror(-gathering->error) : "");
	}
	drop_first(b);
}

/*
 * Writes the first note to the bundle. Returns false if this is not possible now, because the
 * bundle is still only in memory. If gathering->error is set, it will never be possible.
 */
static bool begin_pages(struct cw_bundle_nodes *b, int64_t now)
{
	struct gathering *gathering = &b->current;
	int r;

	if (now < gathering->write_at_ns)
		return false;
	r = put_absence(b, (struct cw_extension_absence){ .is_asking = true });
	if (r == -EBUSY && now < gathering->end_ns)
		gathering->write_at_ns = now + REST_NS;
	else
		gathering->error = r;
	return r == 0;
}

/*
 * Returns a node that we may query now; NULL = none. *ret_rests: at least one node still has to
 * wait after a failed query.
 */
static struct source *next_source(struct gathering *gathering, int64_t now, bool *ret_rests)
{
	*ret_rests = false;
	for (unsigned i = 0; i < gathering->n_sources; i++) {
		struct source *s = &gathering->sources[i];

		if (!s->is_done && s->rest_until_ns <= now)
			return s;
		*ret_rests = *ret_rests || !s->is_done;
	}
	return NULL;
}

/* Sends the next query. Returns false if the bundle is complete. */
static bool next_question(struct cw_bundle_nodes *b)
{
	struct gathering *gathering = &b->current;
	int64_t now = cw_clock_awake_ns(b->config.clock);
	struct source *s;
	bool rests;

	if (!gathering->n_lists)
		gathering->end_ns = now + CW_BUNDLE_NODES_WITHIN_NS;
	if (!gathering->n_lists ||
	    (!gathering->are_listed && gathering->n_silent && gathering->n_lists < LISTS))
		return now < gathering->rest_until_ns || ask_who(b);
	if (!gathering->are_listed)
		add_away(b);
	gathering->are_listed = true;
	if (has_others(gathering) && !gathering->asked && !begin_pages(b, now))
		return !gathering->error;
	if (!has_others(gathering) || gathering->error || now >= gathering->end_ns)
		return false;
	s = next_source(gathering, now, &rests);
	return s ? ask_node(b, s) : rests;
}

void cw_bundle_nodes_tick(struct cw_bundle_nodes *b)
{
	if (b->ask)
		cw_peer_query_tick(b->ask);
	if (b->queue && !b->ask && !next_question(b))
		end_gathering(b);
	if (b->ask)
		cw_peer_query_tick(b->ask);
}
