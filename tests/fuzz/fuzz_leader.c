/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of two peers to a leader: digests, requested windows, evidence, announcements,
 * objections. The input is a list of steps: a byte that names the peer and says whether it answers
 * the leader's open request, a byte of time (in seconds), a frame. Up to the alert: it must be a
 * document that a report can show.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "leader/election.h"
#include "leader/leader.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "report/text/render_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/cluster/transport_effects.h"
#include "transport/transport.h"

#define N_PEERS 2u
#define MAX_STEPS 64u
#define MAX_SECONDS 6u /* a node whose digests stop is gone after 5 */
#define ANSWERS 0x80u

static const char *const names[N_PEERS] = { "b", "c" };

struct world {
	int64_t now_ns;
	struct cw_transport *transport;
	struct cw_election *members;
	struct cw_leader *leader;
	uint64_t asked[N_PEERS]; /* the newest request to each */
	unsigned jobs;
};

static int64_t now_ns(void *user)
{
	return ((struct world *)user)->now_ns;
}

static int64_t wall_ns(void *user)
{
	return ((struct world *)user)->now_ns + INT64_C(1700000000) * CW_NS_PER_S;
}

/* ---- the leader's outputs ---- */

static void io_path(void *user, const char *id, char *buf, size_t len)
{
	(void)snprintf(buf, len, "/state/incidents/%s", id);
}

static int io_put(void *user, const struct cw_bundle *bundle)
{
	static FILE *nowhere;
	struct cw_render_opts opts = { 0 };

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	FUZZ_CHECK(nowhere && json_is_object(bundle->incident));
	FUZZ_CHECK(cw_render_text(nowhere, bundle, &opts) == 0);
	return 0;
}

static bool io_was_sent(void *user, const struct cw_incident_due *due)
{
	return false;
}

static const char *io_suppress_reason(void *user, const struct cw_incident_due *due)
{
	return NULL;
}

static int io_alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	char *text = json_dumps(doc, JSON_COMPACT);

	FUZZ_CHECK(text);
	free(text);
	return 0;
}

static void io_log(void *user, int level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void io_log(void *user, int level, const char *fmt, va_list ap)
{
	char line[1024];

	FUZZ_CHECK(vsnprintf(line, sizeof(line), fmt, ap) >= 0);
}

static struct cw_leader_effects effects = {
	.path = io_path,
	.put = io_put,
	.was_sent = io_was_sent,
	.was_sent_here = io_was_sent,
	.suppress_reason = io_suppress_reason,
	.alert = io_alert,
	.log = io_log,
};

/* ---- the network ---- */

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct world *w = impl;
	struct cw_message *msg = NULL;

	FUZZ_CHECK(cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES,
				     &msg) == 0);
	if (msg->type == CW_MSG_WINDOW_REQUEST)
		w->asked[peer] = msg->window_request.id;
	if (msg->type == CW_MSG_EVIDENCE_REQUEST)
		w->asked[peer] = msg->evidence_request.id;
	(void)cw_message_free(msg); /* always NULL */
	return 0;
}

static const struct cw_transport_ops ops = { .send = on_send };

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct world *w = user;

	if ((*msg)->type == CW_MSG_MEMBERS)
		cw_election_answer(w->members, from, &(*msg)->members);
	else
		(void)cw_leader_message(w->leader, from, msg);
}

/* ---- steps ---- */

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	FUZZ_CHECK(memchr(job->view.summary, '\0', sizeof(job->view.summary)));
	((struct world *)user)->jobs++;
}

/* In whole seconds, where a daemon takes quarters: each evaluation costs. */
static void pass_time(struct world *w, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		w->now_ns += CW_NS_PER_S;
		for (unsigned p = 0; p < N_PEERS; p++)
			cw_transport_peer_seen(w->transport, p);
		cw_transport_run(w->transport);
		(void)cw_leader_tick(w->leader);
		cw_leader_jobs(w->leader, on_job, w);
	}
}

/*
 * Sets the values that the fuzzer could only guess: the peer of a digest, and the answered request.
 */
static void adjust(struct world *w, struct cw_message *msg, unsigned peer, bool answers)
{
	if (msg->type == CW_MSG_DIGEST || msg->type == CW_MSG_DIGEST_COPY)
		msg->digest.node = names[peer];
	if (msg->type == CW_MSG_WINDOW_REPLY && answers)
		msg->window_reply.id = w->asked[peer];
	if (msg->type == CW_MSG_EVIDENCE_REPLY && answers)
		msg->evidence_reply.id = w->asked[peer];
}

static void play(struct world *w, const uint8_t *data, size_t size)
{
	for (unsigned step = 0; step < MAX_STEPS && size > 2; step++) {
		unsigned peer = data[0] % N_PEERS, seconds = data[1] % (MAX_SECONDS + 1);
		bool answers = data[0] & ANSWERS;
		struct cw_message *msg = NULL;
		const uint8_t *payload;
		size_t len, used;

		if (cw_frame_parse(data + 2, size - 2, &payload, &len, &used) != 0)
			return;
		if (cw_message_decode_received(payload, len, &msg) == 0) {
			adjust(w, msg, peer, answers);
			cw_transport_deliver(w->transport, peer, msg);
		}
		pass_time(w, seconds);
		data += 2 + used;
		size -= 2 + used;
	}
}

static void start(struct world *w, struct cw_clock *clock)
{
	static const char *const addresses[N_PEERS] = { "127.0.0.1:2", "127.0.0.1:3" };
	struct cw_transport_config transport = {
		.clock = clock,
		.self = "a",
		.names = names,
		.addresses = addresses,
		.n_peers = N_PEERS,
		.on_message = on_message,
		.user = w,
	};
	struct cw_leader_config leader = {
		.clock = clock,
		.self = "a",
		.effects = &effects,
		.thresholds = cw_thresholds_default(),
		.iteration_members = 4, /* larger evaluations are split: messages come in between */
	};

	leader.thresholds.no_progress_after_ns = 5 * CW_NS_PER_S;
	FUZZ_CHECK(cw_transport_new(&transport, &w->transport) == 0);
	cw_transport_set_backend(w->transport, &ops, w);
	for (unsigned p = 0; p < N_PEERS; p++)
		cw_transport_peer_up(w->transport, p, 1);
	transport_effects_init(&effects, w->transport);
	FUZZ_CHECK(cw_election_new(clock, "a", &effects, &w->members) == 0);
	leader.members = w->members;
	FUZZ_CHECK(cw_leader_new(&leader, &w->leader) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .now_ns = 1000 * CW_NS_PER_S };
	struct cw_clock clock = { .monotonic_ns = now_ns, .wall_ns = wall_ns, .user = &w };

	cw_log_set_level(CW_LOG_ERR);
	start(&w, &clock);
	play(&w, data, size);
	cw_transport_peer_down(w.transport, 0, false);
	pass_time(&w, 3);
	cw_leader_free(w.leader);
	cw_election_free(w.members);
	cw_transport_free(w.transport);
	return 0;
}
