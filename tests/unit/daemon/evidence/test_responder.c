/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/responder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "identity/job_id.h"
#include "tests/support/node_fixture.h"

#define COMM 0xc0ffeeu

static const struct agent_options options = { .job = "job-a", .comm_id = COMM };
static struct node_fixture f;
static struct agent agent;
static struct cw_transport *transport;
static struct cw_responder *responder;

/* What came back. */
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

static void set_up(void)
{
	struct cw_transport_config config = { .clock = &cw_clock_system,
					      .self = "node",
					      .on_message = on_message };
	struct cw_responder_config r = { .node_name = "node" };

	fixture_start(&f, 8, 8);
	agent = agent_register(&f, &options, 'W');
	agent_do(&f, &agent, 'o');
	fixture_next_digest(&f);
	cr_assert_eq(cw_transport_new(&config, &transport), 0);
	r.transport = transport;
	r.node = f.node;
	cr_assert_eq(cw_responder_new(&r, &responder), 0);
	cr_assert(transport && responder);
}

static void tear_down(void)
{
	cw_responder_free(responder);
	cw_transport_free(transport);
	agent_stop(&agent);
	fixture_stop(&f);
}

TestSuite(responder, .init = set_up, .fini = tear_down);

static struct cw_message windows_of(const struct cw_job_id *job)
{
	static uint64_t comm = COMM;
	struct cw_message msg = { .type = CW_MSG_WINDOW_REQUEST };

	msg.window_request = (struct cw_msg_window_request){ .route = cw_job_id_route(job),
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
	/* The route is right, the job is another user's. */
	cr_assert_eq(cw_job_id_make(f.job.uid + 1, f.job.label, &other), 0);
	msg = windows_of(&other);
	msg.window_request.route = cw_job_id_route(&f.job);
	cr_assert(ask(&msg));
	cr_assert_eq(n_windows, 0);
	cr_assert_eq(cw_responder_refused(responder), 0);
}

Test(responder, windows_of_a_route_alone_are_refused_and_counted)
{
	struct cw_message msg = windows_of(&f.job);

	msg.window_request.job_key = (struct cw_job_key){ 0 };
	msg.window_request.label = "";
	cr_assert_not(ask(&msg));
	cr_assert_eq(cw_responder_unnamed(responder), 1);
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
	cr_assert(strstr(json, "not a process of that job"), "%s", json);
	cr_assert_eq(cw_responder_refused(responder), 1);
}
