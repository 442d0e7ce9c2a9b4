/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We keep a request for evidence until each of its targets has an answer or a refusal. Each target
 * gets its own reply. If windows do not fit into one frame, we read them again with half of their
 * length.
 */
#include "daemon/evidence/responder.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "identity/job_id.h"
#include "identity/quota.h"

/* Fewest ops of a window. A shorter window does not show how ranks diverged. */
#define MIN_WINDOW_OPS 8u

_Static_assert(CW_RESPONDER_MAX_TARGETS <= CW_CAPTURE_MAX_ALL, "a request is one sweep");

struct pending {
	struct pending *next, *prev;
	struct cw_responder *responder;
	char *from;
	uint64_t id;
	uint32_t remaining;
};

struct cw_responder {
	struct cw_responder_config config;
	struct pending *pending;
	unsigned n_pending;
	uint64_t refused;
};

int cw_responder_new(const struct cw_responder_config *config, struct cw_responder **ret)
{
	struct cw_responder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *config;
	*ret = r;
	return 0;
}

static void drop(struct cw_responder *r, struct pending *p)
{
	DL_DELETE(r->pending, p);
	r->n_pending--;
	free(p->from);
	free(p);
}

struct cw_responder *cw_responder_free(struct cw_responder *r)
{
	struct pending *p, *tmp;

	if (!r)
		return NULL;
	DL_FOREACH_SAFE (r->pending, p, tmp)
		drop(r, p);
	free(r);
	return NULL;
}

/* ---- windows ---- */

/*
 * True if the sender may ask about the job. This node may always ask itself, as a leader and for
 * its own users.
 */
static bool may_ask(const struct cw_responder *r, const char *from, const struct cw_job_id *job)
{
	return !strcmp(from, r->config.node_name) ||
	       cw_election_may_lead(r->config.members, job, from);
}

static void answer_windows(struct cw_responder *r, const char *from,
			   const struct cw_msg_window_request *asked)
{
	struct cw_msg_window_request request = *asked;
	struct cw_job_id job;
	int e = cw_job_id_read(&asked->job_key, asked->uid, asked->label, &job);

	if (e < 0 || !may_ask(r, from, &job)) {
		r->refused++;
		return; /* the sender's request has a deadline, which reports the failure */
	}
	e = -EMSGSIZE;

	/*
	 * If the windows do not fit into one frame, read windows of half their length. Short
	 * windows of all ranks are more useful than long windows of some.
	 */
	for (; e == -EMSGSIZE && request.max_ops >= MIN_WINDOW_OPS; request.max_ops /= 2) {
		struct cw_message msg = { .type = CW_MSG_WINDOW_REPLY };

		e = cw_node_windows(r->config.node, &job, &request, &msg.window_reply);
		if (e < 0)
			break;
		msg.window_reply.id = asked->id;
		msg.window_reply.job_hash = asked->job_hash;
		e = cw_transport_send(r->config.transport, from, &msg);
		cw_node_windows_fini(&msg.window_reply);
	}
	if (e < 0)
		log_info("windows for %s cannot be sent: %s, ignoring", from, strerror(-e));
}

/* ---- evidence ---- */

static void answer_evidence(struct pending *p, const struct cw_msg_evidence_target *target,
			    const char *json)
{
	struct cw_responder *r = p->responder;
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REPLY };
	int e;

	msg.evidence_reply = (struct cw_msg_evidence_reply){
		.id = p->id,
		.pid = target->pid,
		.start_ticks = target->start_ticks,
		.json = json,
		.remaining = --p->remaining,
	};
	e = cw_transport_send(r->config.transport, p->from, &msg);
	if (e < 0)
		log_info("evidence about pid %d cannot be sent to %s: %s", target->pid, p->from,
			 strerror(-e));
	if (p->remaining == 0)
		drop(r, p);
}

static void on_captured(const struct cw_msg_evidence_target *target, const char *json, void *user)
{
	answer_evidence(user, target, json);
}

/* Answers for a target without a capture, and gives the reason. */
static void refuse_evidence(struct pending *p, const struct cw_msg_evidence_target *target,
			    const char *reason)
{
	const char *name = p->responder->config.node_name;
	_cleanup_(freep) char *text = NULL;
	char start[32];
	json_t *doc;

	(void)snprintf(start, sizeof(start), "%" PRIu64, target->start_ticks);
	doc = json_pack("{s:s, s:s, s:i, s:s, s:i, s:{s:s, s:s}, s:n, s:n}", "schema",
			"collwatch.evidence/1", "host", name, "pid", (int)target->pid,
			"start_ticks", start, "rank", -1, "proc", "status", "refused", "reason",
			reason, "native", "python");
	text = doc ? cw_json_write(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	answer_evidence(p, target, text ? text : "{}");
}

/*
 * True if the peer may have one more open request. Peers share the limit by quotas, so that one
 * peer does not use it up.
 */
static bool has_quota(const struct cw_responder *r, const char *from)
{
	struct cw_quota_count count = { .capacity = CW_RESPONDER_MAX_PENDING,
					.taken = r->n_pending,
					.users = 1 };
	const struct pending *p, *q;

	DL_FOREACH (r->pending, p) {
		bool is_new = strcmp(p->from, from) != 0;

		count.own += !is_new;
		for (q = r->pending; q != p && is_new; q = q->next)
			is_new = strcmp(q->from, p->from) != 0;
		count.users += is_new;
	}
	return cw_quota_ask(&count) == CW_QUOTA_ADMIT;
}

/*
 * Returns the reason why the sender gets no evidence about this process; NULL = it gets evidence.
 * job: the job that the request names.
 */
static const char *refusal(const struct cw_responder *r, const char *from,
			   const struct cw_job_id *job, const struct cw_msg_evidence_target *t)
{
	if (cw_node_is_of_another(r->config.node, t->pid, t->start_ticks, job))
		return "the process is not of that job";
	return may_ask(r, from, job) ? NULL : "its node considers another node the leader";
}

/* True if one child may read this process together with others. */
static bool is_for_sweep(const struct cw_msg_evidence_target *t)
{
	return t->what & CW_EVIDENCE_BRIEF && t->what & CW_EVIDENCE_PYTHON_READ &&
	       !(t->what & CW_EVIDENCE_NATIVE);
}

static void refuse_capture(struct pending *p, const struct cw_msg_evidence_target *t, int e)
{
	refuse_evidence(p, t, e == -EAGAIN ? "too many captures are waiting" : strerror(-e));
}

static void take_evidence_request(struct cw_responder *r, const char *from,
				  const struct cw_msg_evidence_request *q)
{
	struct cw_msg_evidence_target swept[CW_RESPONDER_MAX_TARGETS];
	uint32_t n = q->n_targets, deadline_ms = q->deadline_ms, n_swept = 0;
	struct cw_job_id job;
	struct pending *p;
	int e;

	if (cw_job_id_read(&q->job_key, q->uid, q->label, &job) < 0) {
		r->refused++;
		return; /* the sender's request has a deadline, which reports the failure */
	}
	if (n > CW_RESPONDER_MAX_TARGETS) {
		r->refused += n - CW_RESPONDER_MAX_TARGETS;
		n = CW_RESPONDER_MAX_TARGETS;
	}
	if (n == 0)
		return;
	if (!has_quota(r, from)) {
		r->refused++;
		return; /* the sender's request has a deadline, which reports the failure */
	}
	if (deadline_ms > CW_RESPONDER_MAX_DEADLINE_MS)
		deadline_ms = CW_RESPONDER_MAX_DEADLINE_MS;
	p = calloc(1, sizeof(*p));
	if (!p || !(p->from = strdup(from))) {
		free(p);
		return;
	}
	p->responder = r;
	p->id = q->id;
	p->remaining = n;
	DL_APPEND(r->pending, p);
	r->n_pending++;
	/*
	 * Captures call back later, so no callback frees p before the end. Only a refusal of the
	 * last target may do so.
	 */
	for (uint32_t i = 0; i < n; i++) {
		const struct cw_msg_evidence_target *t = &q->targets[i];
		const char *why_not = refusal(r, from, &job, t);

		if (why_not) {
			r->refused++;
			refuse_evidence(p, t, why_not);
			continue;
		}
		if (is_for_sweep(t)) {
			swept[n_swept++] = *t;
			continue;
		}
		e = cw_capture_request(r->config.capture, t, deadline_ms, on_captured, p);
		if (e < 0)
			refuse_capture(p, t, e);
	}
	e = n_swept ? cw_capture_request_all(r->config.capture, swept, n_swept, deadline_ms,
					     on_captured, p)
		    : 0;
	for (uint32_t i = 0; i < n_swept && e < 0; i++)
		refuse_capture(p, &swept[i], e);
}

bool cw_responder_message(struct cw_responder *r, const char *from, const struct cw_message *msg)
{
	switch (msg->type) {
	case CW_MSG_WINDOW_REQUEST:
		answer_windows(r, from, &msg->window_request);
		return true;
	case CW_MSG_EVIDENCE_REQUEST:
		take_evidence_request(r, from, &msg->evidence_request);
		return true;
	case CW_MSG_RANK_SEARCH:
		if (!cw_node_search(r->config.node, &msg->rank_search)) {
			r->refused++;
			log_info("job=%s: refused a search for ranks that %s requested",
				 msg->rank_search.label, from);
		}
		return true;
	default:
		return false;
	}
}

uint64_t cw_responder_refused(const struct cw_responder *r)
{
	return r->refused;
}
