/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/responder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "identity/job_id.h"
#include "tests/support/node/node_fixture.h"

#define COMM 0xc0ffeeu

static const struct agent_options options = { .job = "job-a", .comm_id = COMM };
static struct node_fixture f;
static struct agent agent;
static struct cw_transport *transport;
static struct cw_election *members;
static struct cw_capture *capture;
static struct cw_responder *responder;
/* Two nodes that would lead the job before this one, if they were up, and a node that would not. */
static char heir[2][16], stranger[16];

/* The answers. */
static unsigned n_answers, n_windows;
static char json[512];

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	(void)user;
	cr_assert(cw_responder_message(responder, from, *msg));
}

static void on_reply(const char *from, const struct cw_message *reply, void *user)
{
	(void)from;
	(void)user;
	if (!reply)
		return;
	n_answers++;
	if (reply->type == CW_MSG_WINDOW_REPLY)
		n_windows = reply->window_reply.n_windows;
	else
		(void)snprintf(json, sizeof(json), "%s", reply->evidence_reply.json);
}

/* Whether there was an answer at once. */
static bool ask(struct cw_message *msg)
{
	n_answers = n_windows = 0;
	cr_assert_eq(cw_transport_request(transport, "node", msg, 1000, on_reply, NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		cw_transport_run(transport);
	return n_answers > 0;
}

static int send_nowhere(void *user, const char *node, const struct cw_message *msg)
{
	return 0;
}

static const struct cw_peer *no_peers(void *user, unsigned *ret_n)
{
	*ret_n = 0;
	return NULL;
}

static const struct cw_leader_effects effects = { .send = send_nowhere, .peers = no_peers };

/* This node has ranks of the job, and leads it. */
static void join_job(void)
{
	struct cw_msg_digest digest = { .node = "node",
					.job_hash = cw_job_id_hash(&f.job),
					.job_key = f.job.key,
					.uid = f.job.uid,
					.label = f.job.label };
	uint64_t own = cw_election_weight(digest.job_hash, "node");
	unsigned n = 0;

	cr_assert_eq(cw_election_publish(members, &digest), 0);
	for (unsigned i = 0; n < 2 || !*stranger; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u", i);
		if (cw_election_weight(digest.job_hash, name) < own)
			memcpy(stranger, name, sizeof(name));
		else if (n < 2)
			memcpy(heir[n++], name, sizeof(name));
	}
}

static void set_up(void)
{
	struct cw_transport_config config = { .clock = &cw_clock_system,
					      .self = "node",
					      .on_message = on_message };
	struct cw_responder_config r = { .node_name = "node" };
	struct cw_capture_config c = {
		.clock = &cw_clock_system, .node_name = "node", .max_running = 2, .max_queued = 1000
	};

	fixture_start(&f, 8, 8);
	c.base = f.base;
	c.node = f.node;
	agent = agent_register(&f, &options, 'W');
	agent_do(&f, &agent, 'o');
	fixture_next_digest(&f);
	cr_assert_eq(cw_transport_new(&config, &transport), 0);
	r.transport = transport;
	r.node = f.node;
	cr_assert_eq(cw_election_new(&cw_clock_system, "node", &effects, &members), 0);
	join_job();
	cr_assert_eq(cw_capture_new(&c, &capture), 0);
	r.members = members;
	r.capture = capture;
	cr_assert_eq(cw_responder_new(&r, &responder), 0);
	cr_assert(transport && responder);
}

static void tear_down(void)
{
	cw_capture_free(capture);
	cw_responder_free(responder);
	cw_election_free(members);
	cw_transport_free(transport);
	agent_stop(&agent);
	fixture_stop(&f);
}

TestSuite(responder, .init = set_up, .fini = tear_down);

static struct cw_message windows_of(const struct cw_job_id *job)
{
	static uint64_t comm = COMM;
	struct cw_message msg = { .type = CW_MSG_WINDOW_REQUEST };

	msg.window_request = (struct cw_msg_window_request){ .job_hash = cw_job_id_hash(job),
							     .comm_ids = &comm,
							     .n_comm_ids = 1,
							     .max_ops = 8,
							     .job_key = job->key,
							     .uid = job->uid,
							     .label = job->label };
	return msg;
}

Test(responder, windows_are_those_of_the_job_that_is_named)
{
	struct cw_message msg = windows_of(&f.job);
	struct cw_job_id other;

	cr_assert(ask(&msg));
	cr_assert_eq(n_windows, 1);
	/* The hash is right, the job is another user's. */
	cr_assert_eq(cw_job_id_make(f.job.uid + 1, f.job.label, &other), 0);
	msg = windows_of(&other);
	msg.window_request.job_hash = cw_job_id_hash(&f.job);
	cr_assert(ask(&msg));
	cr_assert_eq(n_windows, 0);
	cr_assert_eq(cw_responder_refused(responder), 0);
}

Test(responder, windows_of_a_job_hash_alone_are_refused_and_counted)
{
	struct cw_message msg = windows_of(&f.job);

	msg.window_request.job_key = (struct cw_job_key){ 0 };
	msg.window_request.label = "";
	cr_assert_not(ask(&msg));
	cr_assert_eq(cw_responder_refused(responder), 1);
}

Test(responder, windows_under_the_key_of_another_job_are_refused)
{
	struct cw_message msg = windows_of(&f.job);

	msg.window_request.job_key.bytes[0]++;
	cr_assert_not(ask(&msg));
	cr_assert_eq(cw_responder_refused(responder), 1);
}

Test(responder, evidence_about_a_process_of_another_job_is_refused)
{
	struct cw_msg_evidence_target target = { .pid = agent.pid, .what = CW_EVIDENCE_PROC };
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REQUEST };
	struct cw_job_id other;

	cr_assert_eq(cw_job_id_make(f.job.uid + 1, f.job.label, &other), 0);
	target.start_ticks = fixture_seen(&f, &agent)->rank.start_ticks;
	msg.evidence_request = (struct cw_msg_evidence_request){ .deadline_ms = 1000,
								 .targets = &target,
								 .n_targets = 1,
								 .job_key = other.key,
								 .uid = other.uid,
								 .label = other.label };
	cr_assert(ask(&msg));
	cr_assert(strstr(json, "the process is not of that job"), "%s", json);
	cr_assert_eq(cw_responder_refused(responder), 1);
}

/* refused so far, after so many requests of this peer about the agent */
static uint64_t ask_as(const char *peer, unsigned n)
{
	struct cw_msg_evidence_target target = { .pid = agent.pid, .what = CW_EVIDENCE_PROC };
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REQUEST };

	target.start_ticks = fixture_seen(&f, &agent)->rank.start_ticks;
	msg.evidence_request = (struct cw_msg_evidence_request){ .deadline_ms = 10000,
								 .targets = &target,
								 .n_targets = 1,
								 .job_key = f.job.key,
								 .uid = f.job.uid,
								 .label = f.job.label };
	while (n--)
		cr_assert(cw_responder_message(responder, peer, &msg));
	return cw_responder_refused(responder);
}

Test(responder, evidence_is_for_those_who_may_lead_the_job)
{
	cr_assert_eq(ask_as(heir[0], 1), 0);
	cr_assert_eq(ask_as(stranger, 1), 1);
}

Test(responder, evidence_without_a_job_is_refused)
{
	struct cw_msg_evidence_target target = { .pid = agent.pid, .what = CW_EVIDENCE_PROC };
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REQUEST };

	target.start_ticks = fixture_seen(&f, &agent)->rank.start_ticks;
	msg.evidence_request = (struct cw_msg_evidence_request){
		.deadline_ms = 10000, .targets = &target, .n_targets = 1, .label = ""
	};
	cr_assert(cw_responder_message(responder, heir[0], &msg));
	cr_assert_eq(cw_responder_refused(responder), 1);
}

Test(responder, windows_are_for_those_who_may_lead_the_job)
{
	struct cw_message msg = windows_of(&f.job);

	cr_assert(cw_responder_message(responder, heir[0], &msg));
	cr_assert_eq(cw_responder_refused(responder), 0);
	cr_assert(cw_responder_message(responder, stranger, &msg));
	cr_assert_eq(cw_responder_refused(responder), 1);
}

Test(responder, one_peer_leaves_places_to_the_others)
{
	cr_assert_eq(ask_as(heir[0], CW_RESPONDER_MAX_PENDING), CW_RESPONDER_MAX_PENDING / 8);
	cr_assert_eq(ask_as(heir[1], 4), CW_RESPONDER_MAX_PENDING / 8);
}
