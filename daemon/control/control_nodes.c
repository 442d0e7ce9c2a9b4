/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each verb has a plan. The plan starts from this node's own answer. It decides whether to ask
 * other nodes, which nodes to ask, and with which arguments. We merge the answers as they arrive
 * (control_merge.h), and the caller gets one answer.
 *
 * A question that we may not start yet waits in the list of questions. If it waits too long, the
 * caller gets this node's answer, with a note that we asked no other node. The second half of this
 * file answers the queries of other nodes, a limited number per second.
 */
#include "daemon/control/control_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/address.h"
#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "daemon/control/control_merge.h"
#include "daemon/control/status_doc.h"
#include "report/json_util.h"
#include "transport/peer_query.h"

enum { CODE_OK = 0, CODE_ERROR = 1, CODE_NO_DATA = 3 };

/*
 * Maximum number of incidents that we request from each node, the newest ones. Users read no more,
 * and the lists of many nodes add up.
 */
#define MAX_LISTED 256

struct plan {
	enum cw_merge_verb verb;
	const char *name;
	json_t *arguments; /* owned reference */
	char node[CW_NODE_NAME_MAX];
	bool is_for_one;
	/*
	 * Names of the leaders to ask, as keys of an owned object; NULL = this plan does not ask
	 * leaders.
	 */
	json_t *leaders;
};

/* A client's question on this node that waits for answers of other nodes. */
struct question {
	struct question *next, *prev;
	struct cw_control_nodes *owner;
	struct cw_caller caller;
	cw_stacks_fn fn;
	void *user;
	struct plan plan;
	struct cw_merge merge;
	struct cw_peer_query *ask; /* the query to the other nodes; NULL = not started yet */
	int64_t asked_ns;
};

/* A query for stacks from another node, until we send the answer. */
struct guest {
	struct guest *next, *prev;
	struct cw_control_nodes *owner;
	char *from;
	uint64_t id;
};

struct cw_control_nodes {
	struct cw_control_nodes_config config;
	struct question *questions;
	struct guest *guests;
	int64_t second_ns; /* start of the second in which we count the answers to other nodes */
	unsigned answered;
	unsigned n_pages;
	/* Uids of the callers that got these pages. */
	uint32_t pages_of[CW_CONTROL_NODES_PAGES_PER_S];
};

int cw_control_nodes_new(const struct cw_control_nodes_config *config,
			 struct cw_control_nodes **ret)
{
	struct cw_control_nodes *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->config = *config;
	*ret = n;
	return 0;
}

static void plan_fini(struct plan *plan)
{
	json_decref(plan->arguments);
	json_decref(plan->leaders);
}

static void drop_question(struct question *q)
{
	struct cw_control_answer unused;

	DL_DELETE(q->owner->questions, q);
	cw_peer_query_free(q->ask);
	cw_control_merge_end(&q->merge, &unused);
	cw_control_answer_fini(&unused);
	plan_fini(&q->plan);
	free(q);
}

static void drop_guest(struct guest *g)
{
	DL_DELETE(g->owner->guests, g);
	cw_stacks_request_cancel(g->owner->config.stacks, g);
	free(g->from);
	free(g);
}

struct cw_control_nodes *cw_control_nodes_free(struct cw_control_nodes *n)
{
	struct question *q, *tmp;
	struct guest *g, *next;

	if (!n)
		return NULL;
	DL_FOREACH_SAFE (n->questions, q, tmp)
		drop_question(q);
	DL_FOREACH_SAFE (n->guests, g, next)
		drop_guest(g);
	free(n);
	return NULL;
}

void cw_control_nodes_cancel(struct cw_control_nodes *n, const void *user)
{
	struct question *q, *tmp;

	DL_FOREACH_SAFE (n->questions, q, tmp)
		if (q->user == user)
			drop_question(q);
}

bool cw_control_nodes_is_idle(const struct cw_control_nodes *n)
{
	return !n->questions && !n->guests;
}

/* ---- asking other nodes ---- */

static bool on_answer(const char *node, const struct cw_msg_node_reply *reply, void *user)
{
	struct question *q = user;

	return cw_control_merge_add(&q->merge, node, reply);
}

/*
 * True if no other node sent stacks. We then answer with the stacks of this node's ranks, and say
 * so.
 */
static bool is_left_to_us(const struct question *q)
{
	return q->merge.verb == CW_MERGE_STACKS && !q->merge.doc && !*q->merge.answer.error;
}

static void finish(struct question *q)
{
	struct cw_control_answer answer = { 0 };
	cw_stacks_fn fn = q->fn;
	void *asker = q->user;

	cw_control_merge_end(&q->merge, &answer);
	drop_question(q);
	fn(&answer, asker);
	cw_control_answer_fini(&answer);
}

static void on_done(void *user)
{
	struct question *q = user;

	if (is_left_to_us(q)) {
		cw_stacks_request(q->owner->config.stacks, &q->caller, q->plan.arguments, q->fn,
				  q->user);
		drop_question(q);
		return;
	}
	finish(q);
}

/*
 * True if the question may start. A question costs other nodes work, so a user may have only one
 * under way.
 */
static bool may_ask(const struct question *q)
{
	const struct question *other;
	unsigned count = 0;

	DL_FOREACH (q->owner->questions, other) {
		count += other->ask != NULL;
		if (other->ask && other->caller.uid == q->caller.uid && !q->caller.sees_all)
			return false;
	}
	return count < CW_PEER_QUERY_MAX;
}

static unsigned count_peers(const struct cw_control_nodes *n)
{
	unsigned n_peers = 0;

	if (n->config.transport)
		(void)cw_transport_peers(n->config.transport, &n_peers);
	return n_peers;
}

static void note_unreachable(struct question *q)
{
	const struct cw_transport *t = q->owner->config.transport;
	const struct cw_peer *peers;
	unsigned n;

	peers = cw_transport_peers(t, &n);
	for (unsigned i = 0; i < n; i++)
		if ((!q->plan.leaders || json_object_get(q->plan.leaders, peers[i].name)) &&
		    !cw_transport_is_alive(t, peers[i].name))
			(void)cw_control_merge_add(&q->merge, peers[i].name, NULL);
}

/*
 * Plans to ask the other nodes with the job's whole label. On another node, the short name may
 * match another job.
 */
static bool plan_mute(struct plan *plan, const struct cw_control_answer *local)
{
	json_t *doc = local->json ? cw_json_parse_text(local->json, 0) : NULL;

	if (local->code == CODE_OK && doc) {
		(void)json_object_set(plan->arguments, "job", json_object_get(doc, "job"));
		(void)json_object_set(plan->arguments, "uid", json_object_get(doc, "uid"));
	}
	json_decref(doc);
	return local->code == CODE_OK || json_is_true(json_object_get(plan->arguments, "unmute"));
}

static bool plan_stacks(struct cw_control_nodes *n, const struct cw_caller *caller,
			struct plan *plan)
{
	switch (cw_stacks_request_place(n->config.stacks, caller, plan->arguments, plan->node,
					sizeof(plan->node))) {
	case CW_STACKS_HERE:
		return false;
	case CW_STACKS_LED_BY_PEER:
		plan->is_for_one = true;
		return cw_transport_is_alive(n->config.transport, plan->node);
	default:
		return true;
	}
}

/*
 * Plans to ask the node that the caller names. If the caller names none, plans to ask all nodes for
 * the job.
 */
static bool plan_summaries(struct cw_control_nodes *n, const struct cw_control_answer *local,
			   struct plan *plan)
{
	const char *node = json_string_value(json_object_get(plan->arguments, "node"));

	if (!node)
		return local->code == CODE_OK;
	plan->is_for_one = true;
	return local->code == CODE_NO_DATA &&
	       strcmp(node, cw_transport_self(n->config.transport)) != 0 &&
	       strlen(node) < sizeof(plan->node) &&
	       snprintf(plan->node, sizeof(plan->node), "%s", node) > 0 &&
	       cw_transport_is_alive(n->config.transport, plan->node);
}

/* If another node leads the job, adds this leader and the job's key to the plan. */
static void plan_status_of(const struct cw_transport *t, const json_t *job, struct plan *plan,
			   json_t *keys)
{
	const char *leader = cw_json_str(job, "leader", "");
	char key[CW_STATUS_KEY_BYTES];

	if (strcmp(cw_json_str(job, "state", ""), "led_elsewhere") != 0 || !*leader ||
	    strcmp(leader, cw_transport_self(t)) == 0)
		return;
	if (!json_object_get(plan->leaders, leader) &&
	    json_object_size(plan->leaders) == CW_CONTROL_NODES_LEADERS)
		return;
	(void)json_object_set_new(plan->leaders, leader, json_true());
	cw_status_key(cw_json_int(job, "uid", -1), cw_json_str(job, "job", ""), key);
	(void)json_object_set_new(keys, key, json_true());
}

/*
 * Plans to ask the leaders of this node's jobs. A leader gets only the keys of jobs, and answers
 * about those that it leads.
 */
static bool plan_status(const struct cw_control_nodes *n, const struct cw_control_answer *local,
			struct plan *plan)
{
	bool is_wanted = json_is_true(json_object_get(plan->arguments, "leaders"));
	json_t *doc = is_wanted && local->json ? cw_json_parse_text(local->json, 0) : NULL;
	json_t *keys, *job;
	size_t i;

	if (!doc || local->code != CODE_OK) {
		json_decref(doc);
		return false;
	}
	plan->leaders = json_object();
	keys = json_object();
	json_array_foreach (json_object_get(doc, "jobs"), i, job)
		plan_status_of(n->config.transport, job, plan, keys);
	json_decref(doc);
	(void)json_object_clear(plan->arguments);
	(void)json_object_set_new(plan->arguments, "jobs", keys);
	return json_object_size(plan->leaders) > 0;
}

static bool make_plan(struct cw_control_nodes *n, const struct cw_caller *caller,
		      const struct cw_control_answer *local, struct plan *plan)
{
	static const char *const names[CW_MERGE__MAX] = { "incidents", "report",    "mute",
							  "stacks",    "summaries", "communicators",
							  "status" };
	unsigned verb = 0;

	while (verb < CW_MERGE__MAX && strcmp(names[verb], plan->name) != 0)
		verb++;
	plan->verb = verb;
	if (verb < CW_MERGE__MAX)
		/* A static string, because verb may be freed before the query ends. */
		plan->name = names[verb];
	switch (verb) {
	case CW_MERGE_COMMUNICATORS:
		return local->code == CODE_OK;
	case CW_MERGE_INCIDENTS:
		(void)json_object_set_new(plan->arguments, "max", json_integer(MAX_LISTED));
		return local->code == CODE_OK;
	case CW_MERGE_REPORT:
		return local->code == CODE_NO_DATA;
	case CW_MERGE_MUTE:
		return plan_mute(plan, local);
	case CW_MERGE_STACKS:
		return plan_stacks(n, caller, plan);
	case CW_MERGE_SUMMARIES:
		return plan_summaries(n, local, plan);
	case CW_MERGE_STATUS:
		return plan_status(n, local, plan);
	default:
		return false;
	}
}

static uint32_t deadline_of(enum cw_merge_verb verb)
{
	switch (verb) {
	case CW_MERGE_STACKS:
		return CW_CONTROL_NODES_STACKS_MS;
	case CW_MERGE_STATUS:
		return CW_CONTROL_NODES_STATUS_MS;
	case CW_MERGE_COMMUNICATORS:
		return CW_CONTROL_NODES_COMMS_MS;
	default:
		return CW_CONTROL_NODES_WITHIN_MS;
	}
}

/* Lists the living leaders of the plan. The names belong to the plan. */
static unsigned living_leaders(const struct question *q,
			       const char *names[CW_CONTROL_NODES_LEADERS])
{
	const char *name;
	unsigned n = 0;
	json_t *unused;

	json_object_foreach (q->plan.leaders, name, unused)
		if (n < CW_CONTROL_NODES_LEADERS &&
		    cw_transport_is_alive(q->owner->config.transport, name))
			names[n++] = name;
	return n;
}

/* Starts the query. Returns 0 or -ENOMEM. */
static int start(struct question *q)
{
	const char *leaders[CW_CONTROL_NODES_LEADERS];
	const struct cw_control_nodes *n = q->owner;
	const struct plan *plan = &q->plan;
	_cleanup_(freep) char *json = cw_json_write(plan->arguments, JSON_COMPACT);
	struct cw_peer_query_config ask = {
		.clock = n->config.clock,
		.transport = n->config.transport,
		.node = plan->is_for_one ? plan->node : NULL,
		.verb = plan->name,
		.json = json,
		.uid = q->caller.uid,
		.sees_all = q->caller.sees_all,
		.nodes = plan->leaders ? leaders : NULL,
		.n_nodes = plan->leaders ? living_leaders(q, leaders) : 0,
		.within_ms = deadline_of(plan->verb),
		.on_answer = on_answer,
		.on_done = on_done,
		.user = q,
	};

	if (!json || cw_peer_query_new(&ask, &q->ask) < 0)
		return -ENOMEM;
	if (!plan->is_for_one)
		note_unreachable(q);
	return 0;
}

/*
 * Ends a question that could not start in time. We must answer now, because its caller has a
 * deadline, too.
 */
static void give_up(struct question *q)
{
	unsigned n = q->plan.leaders ? (unsigned)json_object_size(q->plan.leaders)
				     : count_peers(q->owner);

	cw_control_merge_not_asked(&q->merge, q->plan.is_for_one ? 1 : n);
	finish(q);
}

bool cw_control_nodes_ask(struct cw_control_nodes *n, const struct cw_caller *caller,
			  const char *verb, const char *json, struct cw_control_answer *local,
			  cw_stacks_fn fn, void *user)
{
	struct plan plan = { .name = verb,
			     .arguments = cw_json_parse_text(*json ? json : "{}", 0) };
	struct question *q = NULL;

	if (count_peers(n) && json_is_object(plan.arguments) && make_plan(n, caller, local, &plan))
		q = calloc(1, sizeof(*q));
	if (!q) {
		plan_fini(&plan);
		return false;
	}
	q->owner = n;
	q->caller = *caller;
	q->fn = fn;
	q->user = user;
	q->plan = plan;
	q->asked_ns = cw_clock_now_ns(n->config.clock);
	cw_control_merge_begin(&q->merge, plan.verb, local);
	DL_APPEND(n->questions, q);
	return true; /* the next tick will start it */
}

/* ---- answering other nodes ---- */

static void reply(struct cw_control_nodes *n, const char *to, uint64_t id,
		  const struct cw_control_answer *answer)
{
	struct cw_message msg = { .type = CW_MSG_NODE_REPLY,
				  .node_reply = { .id = id,
						  .code = answer->code,
						  .json = answer->json ? answer->json : "",
						  .error = answer->error } };
	int r = cw_transport_send(n->config.transport, to, &msg);

	if (r < 0)
		log_info("an answer for %s cannot be sent: %s", to, strerror(-r));
}

static void on_stacks(struct cw_control_answer *answer, void *user)
{
	struct guest *g = user;

	reply(g->owner, g->from, g->id, answer);
	drop_guest(g);
}

/*
 * True if this peer may ask for stacks now. Only four collections run at the same time for all
 * users, so one peer must leave room for others.
 */
static bool has_quota(const struct cw_control_nodes *n, const char *from)
{
	const struct guest *g;
	unsigned count = 0;

	DL_FOREACH (n->guests, g)
		count += !strcmp(g->from, from);
	return count < CW_STACKS_MAX_RUNNING / 2;
}

/*
 * Answers a query for stacks if this node leads the job. Any other node would only have to ask the
 * leader.
 */
static void answer_stacks(struct cw_control_nodes *n, const char *from,
			  const struct cw_caller *caller, const struct cw_msg_node_request *ask)
{
	struct cw_control_answer nothing = { .code = CODE_NO_DATA };
	json_t *arguments =
		cw_json_parse_text(*ask->json ? ask->json : "{}", JSON_REJECT_DUPLICATES);
	char leader[CW_NODE_NAME_MAX];
	struct guest *g = NULL;

	if (json_is_object(arguments) && has_quota(n, from) &&
	    cw_stacks_request_place(n->config.stacks, caller, arguments, leader, sizeof(leader)) ==
		    CW_STACKS_HERE)
		g = calloc(1, sizeof(*g));
	if (g)
		g->from = strdup(from);
	if (!g || !g->from) {
		free(g);
		reply(n, from, ask->id, &nothing);
	} else {
		g->owner = n;
		g->id = ask->id;
		DL_APPEND(n->guests, g);
		cw_stacks_request(n->config.stacks, caller, arguments, on_stacks, g);
	}
	json_decref(arguments);
}

/*
 * Takes one of this second's pages for the caller. Returns false if there is none left for this
 * caller. A user gets at most half of the pages. This does not apply to a caller with sees_all.
 */
static bool has_page(struct cw_control_nodes *n, const struct cw_caller *caller)
{
	unsigned own = 0;

	for (unsigned i = 0; i < n->n_pages; i++)
		own += n->pages_of[i] == caller->uid;
	if (n->n_pages == CW_CONTROL_NODES_PAGES_PER_S ||
	    (own >= CW_CONTROL_NODES_PAGES_PER_S / 2 && !caller->sees_all))
		return false;
	n->pages_of[n->n_pages++] = caller->uid;
	return true;
}

static bool is_page(const struct cw_msg_node_request *ask)
{
	json_t *arguments;
	bool is_it;

	if (strcmp(ask->verb, "summaries") != 0)
		return false;
	arguments = cw_json_parse_text(*ask->json ? ask->json : "{}", 0);
	is_it = json_object_get(arguments, "node") != NULL;
	json_decref(arguments);
	return is_it;
}

static bool has_time(struct cw_control_nodes *n, const struct cw_caller *caller,
		     const struct cw_msg_node_request *ask)
{
	int64_t now = cw_clock_now_ns(n->config.clock);

	if (now - n->second_ns >= CW_NS_PER_S) {
		n->second_ns = now;
		n->answered = n->n_pages = 0;
	}
	if (n->answered >= CW_CONTROL_NODES_PER_S || (is_page(ask) && !has_page(n, caller)))
		return false;
	n->answered++;
	return true;
}

bool cw_control_nodes_message(struct cw_control_nodes *n, const char *from,
			      const struct cw_message *msg)
{
	static const char *const served[] = { "incidents", "report",        "mute",
					      "summaries", "communicators", "status" };
	const struct cw_msg_node_request *ask = &msg->node_request;
	struct cw_caller caller = { .uid = ask->uid, .sees_all = ask->sees_all, .node = from };
	struct cw_control_answer answer = { .code = CODE_ERROR,
					    .error = "it has too many requests to answer" };

	if (msg->type != CW_MSG_NODE_REQUEST)
		return false;
	if (!has_time(n, &caller, ask)) {
		reply(n, from, ask->id, &answer);
		return true;
	}
	if (strcmp(ask->verb, "stacks") == 0) {
		answer_stacks(n, from, &caller, ask);
		return true;
	}
	(void)snprintf(answer.error, sizeof(answer.error),
		       "it does not answer this request for other nodes");
	/* Log it here, because otherwise only the reply to the other node mentions it. */
	if (strcmp(ask->verb, "mute") == 0)
		log_notice("%s mutes or unmutes a job for uid=%u: %.256s", from, ask->uid,
			   ask->json);
	for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++)
		if (strcmp(ask->verb, served[i]) == 0)
			cw_control_handle(n->config.source, &caller, ask->verb, ask->json, &answer);
	reply(n, from, ask->id, &answer);
	cw_control_answer_fini(&answer);
	return true;
}

void cw_control_nodes_tick(struct cw_control_nodes *n)
{
	int64_t now = cw_clock_now_ns(n->config.clock);
	struct question *q, *tmp;

	DL_FOREACH_SAFE (n->questions, q, tmp) {
		bool may_start = !q->ask && may_ask(q);

		if ((may_start && start(q) < 0) ||
		    (!q->ask && now - q->asked_ns >= CW_CONTROL_NODES_PLACE_MS * CW_NS_PER_MS))
			give_up(q);
		else if (q->ask)
			cw_peer_query_tick(q->ask);
	}
}
