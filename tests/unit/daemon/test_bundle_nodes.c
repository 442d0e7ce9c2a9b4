/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to other nodes for a new bundle, and the handling of their answers. */
#include "daemon/bundle_nodes.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json_whole.h"
#include "numerics/node/numerics_extension.h"
#include "proto/codec.h"
#include "report/json_util.h"
#include "tests/support/messages/messages.h"
#include "tests/support/node/store_fixture.h"

#define ID "aa11"
#define N_PEERS 3u
#define BEGAN_NS(pid) (1000 + (pid)) /* when the record of a rank was made */
#define MAX_ASKED 400u

#define SELF N_PEERS

static const char *const peers[N_PEERS + 1] = { "node-b", "node-c", "node-d", "node-a" };

static int64_t fake_now(void *user)
{
	return now_ns;
}

static const struct cw_clock clock_ = { fake_now, fake_now, NULL };
static struct cw_store *store;
static struct cw_transport *transport;
static struct cw_bundle_nodes *nodes;

/* Requests that wait for their answers. */
static struct asked {
	unsigned peer;
	uint64_t id;
	json_t *arguments;
} asked[MAX_ASKED];
static unsigned n_asked, n_pages, n_lists;

/* Properties of the peers. */
static unsigned n_ranks[N_PEERS + 1];    /* 0: none of this job */
static const char *page_of[N_PEERS + 1]; /* replaces its real page */
static bool is_silent[N_PEERS + 1];
static unsigned n_unanswered; /* lists of the first, before one is given */
static unsigned n_refusals;   /* of pages of the first, before one is given */
static size_t padding;        /* bytes of a page that say nothing */
static bool is_endless;
static bool refuses_second_list; /* the first one; and the second one the first */
static bool goes_away;           /* the first one, at its first request for a page */

/* The owners of the first six requested bundles. */
static char uids[64];

static void note_uid(unsigned peer, const struct cw_message *msg)
{
	size_t len = strlen(uids);

	if (peer == 0 && len < 30 && !strstr(msg->node_request.json, "\"node\""))
		(void)snprintf(uids + len, sizeof(uids) - len, "%u ", msg->node_request.uid);
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct cw_message *msg = cw_message_of_frame(frame, len);

	cr_assert_eq(msg->type, CW_MSG_NODE_REQUEST);
	cr_assert_str_eq(msg->node_request.verb, "summaries");
	note_uid(peer, msg);
	cr_assert_eq(msg->node_request.sees_all, 0, "the job's user may see all that is wanted");
	cr_assert_lt(n_asked, MAX_ASKED);
	asked[n_asked++] = (struct asked){ peer, msg->node_request.id,
					   cw_json_parse_text(msg->node_request.json, 0) };
	cw_message_free(msg);
	return 0;
}

/* This node's answer to itself. */
static void on_message(const char *from, struct cw_message **msg, void *user)
{
	cr_assert_eq((*msg)->type, CW_MSG_NODE_REQUEST);
	cr_assert_lt(n_asked, MAX_ASKED);
	asked[n_asked++] = (struct asked){ SELF, (*msg)->node_request.id,
					   cw_json_parse_text((*msg)->node_request.json, 0) };
}

static void set_up(void)
{
	static const struct cw_transport_ops ops = { .send = on_send };
	struct cw_transport_config config = { .clock = &clock_,
					      .self = "node-a",
					      .names = peers,
					      .addresses = peers,
					      .n_peers = N_PEERS,
					      .on_message = on_message };
	struct cw_bundle_nodes_config of_nodes = { .clock = &clock_,
						   .extension = &cw_numerics_extension };

	store_setup();
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(put(store, ID, 10, NULL), 0);
	cr_assert_eq(cw_transport_new(&config, &transport), 0);
	cw_transport_set_backend(transport, &ops, NULL);
	for (unsigned i = 0; i < N_PEERS; i++)
		cw_transport_peer_up(transport, i, 1);
	of_nodes.transport = transport;
	of_nodes.store = store;
	cr_assert_eq(cw_bundle_nodes_new(&of_nodes, &nodes), 0);
}

static void tear_down(void)
{
	(void)cw_bundle_nodes_free(nodes);
	(void)cw_transport_free(transport);
	for (unsigned i = 0; i < n_asked; i++)
		json_decref(asked[i].arguments);
	(void)cw_store_close(store);
	store_teardown();
}

TestSuite(bundle_nodes, .init = set_up, .fini = tear_down);

static void answer(const struct asked *a, uint32_t code, const char *json)
{
	struct cw_message reply = {
		.type = CW_MSG_NODE_REPLY,
		.node_reply = { .id = a->id, .code = code, .json = json, .error = "" }
	};
	uint8_t *frame = NULL;
	size_t len;

	if (a->peer == SELF) {
		cr_assert_eq(cw_transport_send(transport, peers[SELF], &reply), 0);
		return;
	}
	cr_assert_eq(cw_message_encode(&reply, &frame, &len), 0);
	cw_transport_deliver(transport, a->peer, cw_message_of_frame(frame, len));
	free(frame);
}

static void answer_list(const struct asked *a)
{
	char json[256];

	n_lists += a->peer == 0;
	if (refuses_second_list && a->peer < 2 && (a->peer == 0) == (n_lists == 2)) {
		answer(a, 1, "");
		return;
	}
	if (a->peer == 0 && n_unanswered) {
		n_unanswered--;
		answer(a, 1, "");
		return;
	}
	(void)snprintf(json, sizeof(json),
		       "{\"jobs\":[{\"job\":\"4711\",\"uid\":1001},{\"job\":\"%s\",\"uid\":1000,"
		       "\"node\":\"somebody else\"}]}",
		       n_ranks[a->peer] ? "4711" : "4713");
	answer(a, 0, json);
}

/* A rank a page, the oldest last: its pid is how many come behind it. */
static void answer_page(const struct asked *a)
{
	json_int_t before = cw_json_int(a->arguments, "after_pid", n_ranks[a->peer] + 1) - 1;
	bool is_next = json_object_get(a->arguments, "after_pid") != NULL;
	char *json = malloc(512 + padding);

	cr_assert_not_null(json);
	cr_assert_str_eq(cw_json_str(a->arguments, "node", ""), peers[a->peer]);
	cr_assert_eq(cw_json_int(a->arguments, "uid", -1), 1000);
	cr_assert_eq(cw_json_int(a->arguments, "after_ns", 0), is_next ? BEGAN_NS(before + 1) : 0,
		     "where the page before ended");
	n_pages += a->peer != SELF;
	if (!n_ranks[a->peer]) {
		(void)snprintf(json, 512,
			       "{\"schema\":\"collwatch.summaries/1\",\"node\":\"%s\","
			       "\"ranks_omitted\":0,\"ranks\":[]}",
			       peers[a->peer]);
		answer(a, 0, json);
		free(json);
		return;
	}
	if (a->peer == 0 && n_refusals) {
		n_refusals--;
		answer(a, 1, "");
		free(json);
		return;
	}
	if (is_endless)
		before = 7;
	(void)snprintf(
		json, 512,
		"{\"schema\":\"collwatch.summaries/1\",\"node\":\"%s\",\"ranks_omitted\":%lld,"
		"\"ranks\":[{\"rank\":%lld,\"pid\":%lld,\"created_ns\":%lld}]}",
		peers[a->peer], (long long)before - 1, (long long)before, (long long)before,
		(long long)BEGAN_NS(before));
	if (padding) {
		size_t len = strlen(json);

		(void)memset(json + len, ' ', padding);
		json[len + padding] = '\0';
	}
	answer(a, 0, page_of[a->peer] ? page_of[a->peer] : json);
	free(json);
}

static void answer_or_not(const struct asked *a)
{
	bool is_page = json_object_get(a->arguments, "node") != NULL;

	if (is_page && goes_away && a->peer == 0)
		cw_transport_peer_down(transport, 0, false);
	else if (is_page && !is_silent[a->peer])
		answer_page(a);
	else if (!is_page)
		answer_list(a);
}

/* Turns the loop, four times a second, as long as something is to be done. Returns the seconds. */
static double run(void)
{
	int64_t start = now_ns;

	for (unsigned at = n_asked; !cw_bundle_nodes_is_idle(nodes);) {
		cr_assert_lt(now_ns - start, 2 * CW_BUNDLE_NODES_WITHIN_NS);
		cw_bundle_nodes_tick(nodes);
		for (; at < n_asked; at++)
			answer_or_not(&asked[at]);
		now_ns += CW_NS_PER_S / 4;
		for (unsigned i = 0; i < N_PEERS; i++)
			cw_transport_peer_seen(transport, i);
		cw_transport_run(transport);
	}
	return (double)(now_ns - start) / CW_NS_PER_S;
}

static void want_for(const char *id, const char *job)
{
	json_t *head = json_pack("{s:s, s:s, s:i}", "id", id, "job", job, "uid", 1000);

	cw_bundle_nodes_want(nodes, head);
	json_decref(head);
}

static void want(const char *job)
{
	want_for(ID, job);
}

/* As "node-b 2, node-b 1, …": of each page in the bundle its node and rank; behind it who is
 * silent. */
static const char *in_bundle(void)
{
	static char text[512];
	struct cw_bundle bundle = { 0 };
	const json_t *doc, *name;
	size_t i, len = 0;

	*text = '\0';
	cr_assert_eq(cw_store_get(store, ID, &bundle), 0);
	for (i = 1; i < json_array_size(bundle.remote_summaries); i++) {
		doc = json_array_get(bundle.remote_summaries, i);
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%s %lld", i > 1 ? ", " : "",
			cw_json_str(doc, "node", "?"),
			(long long)cw_json_int(json_array_get(json_object_get(doc, "ranks"), 0),
					       "rank", -1));
	}
	doc = json_array_get(bundle.remote_summaries, 0);
	json_array_foreach (json_object_get(doc, "silent"), i, name)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "; not ",
					json_string_value(name));
	(void)snprintf(text + len, sizeof(text) - len, "%s%s",
		       *cw_json_str(doc, "why", "") ? "; " : "", cw_json_str(doc, "why", ""));
	cw_bundle_fini(&bundle);
	return text;
}

/* More of them than the store reads for an answer. */
static unsigned count_files(void)
{
	char path[PATH_MAX];
	unsigned n = 0;

	do
		(void)snprintf(path, sizeof(path),
			       "%s/lib/state/incidents/" ID "/summaries-%u.json", root, ++n);
	while (access(path, F_OK) == 0);
	return n - 1;
}

Test(bundle_nodes, ranks_of_all_nodes_that_have_the_job_come_into_the_bundle)
{
	n_ranks[0] = 3;
	n_ranks[2] = 1;
	want("4711");
	cr_expect_leq(run(), 0.25 * 8);
	cr_expect_str_eq(in_bundle(), "node-b 3, node-b 2, node-b 1, node-d 1");
	cr_expect_eq(n_pages, 4, "node-c has another job alone");
	cr_expect_eq(n_lists, 1);
}

/* The request to its own node goes out at the same time, and its answer comes first. */
Test(bundle_nodes, its_own_node_is_asked_with_the_others)
{
	n_ranks[0] = 1;
	n_ranks[SELF] = 2;
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "node-a 2, node-a 1, node-b 1");
}

Test(bundle_nodes, a_node_that_is_away_is_named)
{
	n_ranks[1] = 1;
	cw_transport_peer_down(transport, 0, false);
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "node-c 1; not node-b");
}

/* It has reported the job once, and the second request need not repeat that. */
Test(bundle_nodes, who_has_said_that_it_has_the_job_is_not_silent)
{
	n_ranks[0] = n_ranks[1] = 1;
	refuses_second_list = true;
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "node-b 1, node-c 1");
}

/* Until it is over the bundle says that it is not, also where the daemon ends meanwhile. */
Test(bundle_nodes, a_bundle_says_that_nodes_are_still_being_asked)
{
	n_ranks[0] = 9;
	want("4711");
	for (unsigned at = 0, i = 0; i < 4; i++) {
		cw_bundle_nodes_tick(nodes);
		for (; at < n_asked; at++)
			answer_or_not(&asked[at]);
		cw_transport_run(transport);
	}
	nodes = cw_bundle_nodes_free(nodes);
	cr_expect_not_null(strstr(in_bundle(), "node-b 9"), "%s", in_bundle());
	cr_expect_not_null(strstr(in_bundle(), "; asking"));
}

Test(bundle_nodes, a_job_of_this_node_alone_leaves_nothing_about_others)
{
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "");
	n_unanswered = 2;
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "; not node-b", "it may have some");
}

Test(bundle_nodes, who_is_silent_or_lies_keeps_nobody_elses_out_and_is_named)
{
	static const char *const lies[] = {
		"",
		"7",
		"{",
		"{\"schema\":\"collwatch.summaries/1\",\"node\":\"node-c\"}",
		"{\"schema\":\"collwatch.incident/1\",\"node\":\"node-b\",\"ranks\":[{}]}",
		"{\"schema\":\"collwatch.summaries/1\",\"node\":\"node-b\",\"ranks\":[{\"pid\":1,\"pid\":2}]}",
	};

	n_ranks[0] = n_ranks[1] = n_ranks[2] = 1;
	is_silent[1] = true;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		page_of[0] = lies[i];
		want("4711");
		cr_expect_lt(run(), 35);
		cr_expect_str_eq(in_bundle(), "node-d 1; not node-b, node-c", "%s", lies[i]);
	}
}

/* Its next request comes behind the others, and the number of retries is limited. */
Test(bundle_nodes, a_node_that_has_too_many_questions_has_a_rest)
{
	n_ranks[0] = n_ranks[1] = 1;
	n_refusals = CW_BUNDLE_NODES_TRIES - 1;
	want("4711");
	cr_expect_gt(run(), 6);
	cr_expect_str_eq(in_bundle(), "node-c 1, node-b 1");
	n_refusals = 1000;
	n_pages = 0;
	want("4711");
	(void)run();
	cr_expect_eq(n_pages, CW_BUNDLE_NODES_TRIES + 1);
	cr_expect_not_null(strstr(in_bundle(), "; not node-b"));
}

Test(bundle_nodes, who_did_not_say_whether_it_has_the_job_is_asked_once_more)
{
	n_ranks[0] = n_ranks[1] = 1;
	n_unanswered = 1;
	want("4711");
	(void)run();
	cr_expect_str_eq(in_bundle(), "node-c 1, node-b 1");
	cr_expect_eq(n_lists, 2);
	n_unanswered = 2;
	want("4711");
	(void)run();
	cr_expect_not_null(strstr(in_bundle(), "node-c 1"));
	cr_expect_not_null(strstr(in_bundle(), "; not node-b"));
}

Test(bundle_nodes, pages_of_a_node_end_whatever_it_says)
{
	n_ranks[0] = 7;
	is_endless = true;
	want("4711");
	(void)run();
	cr_expect_eq(n_pages, 128);
}

Test(bundle_nodes, bytes_of_all_nodes_together_have_an_end)
{
	n_ranks[0] = n_ranks[1] = n_ranks[2] = 60;
	padding = 300 << 10;
	want("4711");
	(void)run();
	cr_expect_eq(n_pages, CW_BUNDLE_NODES_BYTES / (300 << 10) + 1);
	cr_expect_eq(count_files(), CW_BUNDLE_NODES_BYTES / (300 << 10) + 1);
}

Test(bundle_nodes, the_time_for_a_bundle_has_an_end)
{
	n_ranks[0] = 1;
	want("4711");
	cw_bundle_nodes_tick(nodes);
	now_ns += CW_BUNDLE_NODES_WITHIN_NS + CW_NS_PER_S;
	for (unsigned i = 0; i < N_PEERS; i++)
		cw_transport_peer_seen(transport, i);
	(void)run();
	cr_expect_eq(n_pages, 0);
}

/* It has said that it has the job, and gets a request for a page. */
Test(bundle_nodes, a_node_that_goes_away_costs_the_others_nothing)
{
	n_ranks[0] = n_ranks[2] = 1;
	goes_away = true;
	want("4711");
	cr_expect_lt(run(), 2.5 * CW_BUNDLE_NODES_TRIES, "the bundle does not wait for its answer");
	cr_expect_str_eq(in_bundle(), "node-d 1; not node-b");
}

Test(bundle_nodes, a_bundle_that_is_gone_takes_no_page)
{
	n_ranks[0] = n_ranks[1] = 5;
	want_for("bb22", "4711");
	(void)run();
	cr_expect_eq(n_pages, 0);
	want_for("bb22", "4712");
	(void)run();
	cr_expect_eq(n_pages, 0, "no node has that job");
}

/* One user's do not keep another's waiting. */
Test(bundle_nodes, bundles_wait_in_a_row_that_has_an_end_and_users_take_turns)
{
	json_t *other = json_pack("{s:s, s:s, s:i}", "id", "cc33", "job", "7", "uid", 2000);

	for (unsigned i = 0; i < 2 * CW_BUNDLE_NODES_WAITING; i++)
		want("4711");
	cw_bundle_nodes_want(nodes, other);
	cw_bundle_nodes_want(nodes, other);
	n_ranks[1] = 1;
	(void)run();
	cr_expect_eq(n_pages, CW_BUNDLE_NODES_WAITING_OF_USER);
	cr_expect_str_eq(uids, "1000 2000 1000 2000 1000 1000 ");
	want("4711");
	cw_bundle_nodes_tick(nodes); /* drops the requests under way */
	json_decref(other);
}
