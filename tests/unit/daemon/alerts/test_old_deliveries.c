/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of an older version reports its deliveries, but not their owners. */
#include "daemon/alerts/old_deliveries.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/messages/messages.h"

#define ID "4c7a1be0d92f3a10"

static char dir[] = "/tmp/cw-old-deliveries-XXXXXX";
static int64_t now = 1000 * CW_NS_PER_S;
static struct cw_clock clock_;
static struct event_base *base;
static struct cw_store *store;
static struct cw_config *config;
static struct cw_alerts *alerts;
static struct cw_transport *transport;
static struct cw_old_deliveries *deliveries;
static unsigned questions;
static uint64_t question_id;

static int64_t fake_now(void *user)
{
	return now;
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct cw_message *msg = cw_message_of_frame(frame, len);

	cr_assert_eq(msg->type, CW_MSG_NODE_REQUEST);
	cr_assert_str_eq(msg->node_request.verb, "incidents");
	cr_assert_eq(msg->node_request.sees_all, 1);
	questions++;
	question_id = msg->node_request.id;
	cw_message_free(msg);
	return 0;
}

static bool is_claim_unconfirmed;

static bool is_unconfirmed(const char *from, const struct cw_msg_incident_delivered *d, void *user)
{
	return is_claim_unconfirmed;
}

static void open_all(void)
{
	static const struct cw_transport_ops ops = { .send = on_send };
	static const char *const names[] = { "node-b", "node-c" };
	struct cw_store_config s = { .state_dir = dir,
				     .max_bytes = 1 << 24,
				     .max_age_ns = 86400 * CW_NS_PER_S,
				     .clock = &clock_ };
	struct cw_transport_config t = {
		.clock = &clock_, .self = "node-a", .names = names, .addresses = names, .n_peers = 2
	};
	struct cw_alerts_config a = { .base = base, .clock = &clock_, .state_dir = dir };
	struct cw_old_deliveries_config o = { .clock = &clock_, .is_unconfirmed = is_unconfirmed };

	cr_assert_eq(cw_store_open(&s, &store, NULL), 0);
	a.store = o.store = store;
	cr_assert_eq(cw_alerts_new(&a, config, &alerts, NULL), 0);
	o.alerts = alerts;
	cr_assert_eq(cw_transport_new(&t, &transport), 0);
	o.transport = transport;
	cw_transport_set_backend(transport, &ops, NULL);
	cw_transport_peer_up(transport, 0, 1);
	cr_assert_eq(cw_old_deliveries_new(&o, &deliveries), 0);
}

static void close_all(void)
{
	deliveries = cw_old_deliveries_free(deliveries);
	transport = cw_transport_free(transport);
	alerts = cw_alerts_free(alerts);
	store = cw_store_close(store);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void setup(void)
{
	char path[128];

	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	write_file("conf", "mode = alert\n");
	cr_assert_eq(cw_config_load(path, &config, NULL), 0);
	base = event_base_new();
	open_all();
}

static void teardown(void)
{
	char command[64];

	close_all();
	cw_config_free(config);
	event_base_free(base);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(old_deliveries, .init = setup, .fini = teardown);

static void answer(unsigned peer, const char *incidents)
{
	char json[512];
	const struct cw_message msg = { .type = CW_MSG_NODE_REPLY,
					.node_reply = { .id = question_id, .json = json } };
	uint8_t *frame;
	size_t len;

	(void)snprintf(json, sizeof(json), "{\"incidents\":%s}", incidents);
	cr_assert_eq(cw_message_encode(&msg, &frame, &len), 0);
	cw_transport_receive(transport, peer, frame + CW_FRAME_HEADER_BYTES,
			     len - CW_FRAME_HEADER_BYTES);
	free(frame);
}

static bool was_sent(uint32_t uid, const char *job)
{
	const struct cw_incident_due due = {
		.id = "00112233445566778899aabbccddeeff", .uid = uid, .job = job, .old_id = ID
	};

	return cw_alerts_was_sent(alerts, &due);
}

Test(old_deliveries, count_for_the_user_that_the_sender_names)
{
	cw_old_deliveries_add(deliveries, "node-b", ID);
	cw_old_deliveries_add(deliveries, "node-b", ID);
	cr_assert_not(was_sent(1000, "slurm:1"), "an id alone settles nothing");
	for (unsigned i = 0; i < 10; i++)
		cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 1);
	answer(0, "[{\"id\":\"ffffffffffffffff\",\"uid\":1001,\"job\":\"j\"},"
		  "{\"id\":\"" ID "\",\"uid\":1000,\"job\":\"slurm:1\"}]");
	cr_assert(was_sent(1000, "slurm:1"));
	cr_assert_not(was_sent(1001, "slurm:1"));
	cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 1);
	close_all();
	open_all();
	cr_assert(was_sent(1000, "slurm:1"), "also after a restart");
}

Test(old_deliveries, settle_nothing_where_the_claim_is_unconfirmed)
{
	is_claim_unconfirmed = true;
	cw_old_deliveries_add(deliveries, "node-b", ID);
	cw_old_deliveries_tick(deliveries);
	answer(0, "[{\"id\":\"" ID "\",\"uid\":1000,\"job\":\"slurm:1\"}]");
	cr_assert_not(was_sent(1000, "slurm:1"));
}

/* The attacker's bundle lies under the id of the victim's incident, which was not alerted. */
Test(old_deliveries, of_an_attacker_silence_nobody_else)
{
	cw_old_deliveries_add(deliveries, "node-b", ID);
	cw_old_deliveries_tick(deliveries);
	answer(0, "[{\"id\":\"" ID "\",\"uid\":1001,\"job\":\"mine\"}]");
	cr_assert_not(was_sent(1000, "slurm:1"));
}

Test(old_deliveries, settle_nothing_where_the_answer_is_none_or_nonsense)
{
	static const char *const answers[] = {
		"[]",
		"7",
		"[7]",
		"[{\"id\":\"" ID "\"}]",
		"[{\"id\":\"" ID "\",\"uid\":-1,\"job\":\"j\"}]",
		"[{\"id\":\"" ID "\",\"uid\":1000}]",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		cw_old_deliveries_add(deliveries, "node-b", ID);
		cw_old_deliveries_tick(deliveries);
		cr_assert_eq(questions, i + 1);
		answer(0, answers[i]);
		cr_assert_not(was_sent(1000, "j"), "%s", answers[i]);
	}
	cw_old_deliveries_add(deliveries, "node-b", "../../etc/passwd");
	cw_old_deliveries_add(deliveries, "node-c", ID); /* is away by now */
	cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 6);
}

Test(old_deliveries, beyond_a_limit_are_counted)
{
	char id[17];

	for (unsigned i = 0; i < CW_OLD_DELIVERIES_MAX + 3; i++) {
		(void)snprintf(id, sizeof(id), "%016x", i);
		cw_old_deliveries_add(deliveries, "node-b", id);
	}
	cr_assert_eq(cw_old_deliveries_lost(deliveries), 3);
}

/* `sent` as the older version left it on this node. */
Test(old_deliveries, noted_before_the_start_are_asked_of_all_peers)
{
	close_all();
	write_file("sent", ID " 999000000000 elsewhere\nffffffffffffffff 999000000000\n");
	open_all();
	cr_assert_not(was_sent(1000, "slurm:1"));
	cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 1);
	answer(0, "[]");
	cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 1, "each peer once");
	cw_transport_peer_up(transport, 1, 1);
	cw_old_deliveries_tick(deliveries);
	cr_assert_eq(questions, 2);
	answer(1, "[{\"id\":\"" ID "\",\"uid\":1000,\"job\":\"slurm:1\"}]");
	cr_assert(was_sent(1000, "slurm:1"));
}
