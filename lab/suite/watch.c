/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network's time is the cluster's time without the stretches that we fast-forwarded. In each
 * step, the cluster advances first. Then we hold, end and start daemons as the scenario's faults
 * say. If a rank has ended, its node sends a digest at once instead of at the next second.
 */
#include "lab/suite/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "identity/job_id.h"
#include "lab/suite/watch_faults.h"
#include "lab/vjob/cluster.h"
#include "lab/vnet/network.h"
#include "model/arena.h"
#include "model/rankset.h"
#include "proto/ages.h"
#include "report/json_util.h"

#define S INT64_C(1000000000)
#define CHECK_EVERY_NS (1 * S)
/* After an alert we wait this long for another one. */
#define SETTLE_NS (90 * S)
/*
 * If a scenario fast-forwards, daemons see this much of a healthy stretch at its beginning and at
 * its end.
 */
#define SHOWN_NS (40 * S)
/*
 * If a scenario fast-forwards waits, daemons see this much of a wait at its beginning and at its
 * end. They also see a short part whenever the wait is half as long again. So any report that is
 * due by the wait's age comes then.
 */
#define WAIT_SHOWN_NS (90 * S)
#define WAIT_END_SHOWN_NS (30 * S)
#define WAIT_GLIMPSE_NS (12 * S)
/* We record the time of the proof for this many incidents. A scenario has few. */
#define PROOFS_MAX (2u * CW_VERDICT_LIST_MAX)
/* After a page, a rank that makes progress in this last part of the run did not hang. */
#define STILL_MOVES_NS (30 * S)
/* A wait is long if it lasts for this time, after which users would look at it. */
#define LONG_WAIT_NS (60 * S)
/*
 * We watch a scenario this much longer than its run under three conditions. It expects a page,
 * members complete all at once, and a rank still waits at the end. Scenarios that are older than
 * notices end shortly after the page that was due at that time.
 */
#define UNTIL_PAGE_NS (5 * 3600 * S)
/* The user whose jobs crowd a cluster. */
#define CROWD_UID (CLUSTER_UID + 1)
/*
 * Nodes report at most this many attempts of a job at once. They report a dead attempt for as long
 * as daemons keep dead ranks.
 */
#define MAX_ATTEMPTS 3u
#define KEEP_DEAD_NS (600 * S)

static bool waits_for_page(const struct suite_scenario *s)
{
	return s->completion == SUITE_BARRIER && !suite_is_control(s);
}

/* True if the scenario expects a rank that comes late, or expects that none does. */
static bool expects_slow(const struct suite_scenario *s)
{
	if (s->nobody_is_slow)
		return true;
	for (uint32_t i = 0; i < s->n_answers; i++)
		if (s->answers[i].verdict_class == CW_CLASS_SLOW)
			return true;
	return false;
}

struct node_state {
	enum cluster_daemon daemon;
	uint32_t n_ended; /* ended ranks, as of the last digest */
};

/* The ranks that waited when a page came. */
struct waiters {
	struct outcome *page;
	int32_t *ranks;
	size_t n;
	unsigned restart; /* number of restarts of the job before the page */
};

/*
 * The time on the cluster's clock when an incident's document first said that the hang is proven.
 */
struct proof {
	char id[CW_INCIDENT_ID_LEN];
	int64_t at_ns;
};

struct watch {
	const struct suite_scenario *s;
	const struct watch_observer *observer;
	struct cluster *attempts[MAX_ATTEMPTS]; /* the last attempt is alive */
	unsigned n_attempts, n_restarts;
	struct network *net;
	struct network_observer network_observer;
	struct node_state *nodes;
	struct network_time *times;
	struct watch_faults faults;
	struct cw_job_id job;
	struct cw_arena arena; /* memory of the current reports */
	int64_t fast_forwarded_ns, fault_ns;
	int64_t well_ns;  /* time since which all ranks are well */
	int64_t alert_ns; /* time of the last alert */
	unsigned n_alerts, n_notices, n_postmortems;
	struct waiters waiters[CW_VERDICT_LIST_MAX]; /* ranks that waited at the first pages */
	struct proof proofs[PROOFS_MAX];
	unsigned n_proofs;
	int64_t long_since_ns;          /* beginning of the current long wait; 0 = none */
	int64_t long_fast_forwarded_ns; /* time fast-forwarded before the long wait began */
	int64_t shown_until_ns;         /* we do not fast-forward the long wait before this time */
	uint32_t n_ended;               /* number of ended ranks when the wait became long */
	struct outcome *out;
	struct cw_err *err;
	int error;
	struct cw_thresholds thresholds; /* the thresholds that a restarted daemon gets */
};

static struct cluster *living(const struct watch *w)
{
	return w->attempts[w->n_attempts - 1];
}

/* Returns the time on the cluster's clock. */
static int64_t now_ns(const struct watch *w)
{
	return w->net->now_ns + w->fast_forwarded_ns;
}

static void note_error(struct watch *w, int r)
{
	if (!w->error)
		w->error = r;
}

/* ---- the nodes' reports ---- */

static const char *policy_of(const struct suite_scenario *s)
{
	switch (s->policy) {
	case CW_POLICY_SERVING:
		return "serving";
	case CW_POLICY_OFF:
		return "off";
	default:
		return "training";
	}
}

/* Adds the ranks of all attempts to a node's digest. */
static int add_ranks(struct watch *w, unsigned node, struct cw_msg_digest *d)
{
	struct cw_msg_rank *of[MAX_ATTEMPTS];
	uint32_t n[MAX_ATTEMPTS] = { 0 };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < w->n_attempts; i++) {
		r = cluster_digest_ranks(w->attempts[i], node, &w->arena, &of[i], &n[i]);
		d->n_ranks += n[i];
	}
	if (r < 0)
		return r;
	d->ranks = cw_or_exit(cw_arena_new_array(&w->arena, struct cw_msg_rank, d->n_ranks));
	for (unsigned i = 0, k = 0; i < w->n_attempts; i++)
		for (uint32_t j = 0; j < n[i]; j++)
			d->ranks[k++] = of[i][j];
	return 0;
}

/* Publishes jobs of one rank that has no communicator yet. Each job is on one node. */
static void publish_crowd(const struct watch *w, struct network_node *n)
{
	struct cw_msg_rank rank = { .world_size = 1,
				    .rank_source = "RANK",
				    .pid = 1,
				    .start_ticks = 1,
				    .device = -1,
				    .uid = CROWD_UID,
				    .liveness = CW_LIVE_ALIVE,
				    .command = "sweep.py",
				    .host_activity_by = "",
				    .cause_command = "",
				    .cause_group = "",
				    .nonfinite_input = "" };
	char label[32];

	for (uint32_t i = n->index; i < w->faults.crowd; i += w->net->config.n_nodes) {
		struct cw_msg_digest d = { .label = label,
					   .uid = CROWD_UID,
					   .policy = "training",
					   .ranks = &rank,
					   .n_ranks = 1 };
		struct cw_job_id job;

		(void)snprintf(label, sizeof(label), "sweep-%u", (unsigned)i);
		rank.pid = (int32_t)i + 1;
		if (cw_job_id_make(CROWD_UID, label, &job) < 0)
			continue;
		d.job_hash = cw_job_id_hash(&job);
		d.job_key = job.key;
		(void)network_publish(n, &d); /* a failure is harmless: the next digest follows */
	}
}

static void publish(void *user, struct network_node *n)
{
	struct watch *w = user;
	struct cw_msg_digest d = { .job_hash = cw_job_id_hash(&w->job),
				   .job_key = w->job.key,
				   .label = w->job.label,
				   .uid = w->job.uid,
				   .policy = policy_of(w->s) };

	if (n->index >= cluster_n_nodes(living(w)))
		return;
	cw_arena_reset(&w->arena);
	w->nodes[n->index].n_ended = cluster_n_ended(living(w), n->index);
	if (add_ranks(w, n->index, &d) < 0 ||
	    (w->observer->change &&
	     w->observer->change(w->observer->user, n->index, &w->arena, &d) < 0)) {
		note_error(w, -ENOMEM);
		return;
	}
	if (d.n_ranks)
		(void)network_publish(n, &d); /* a failure is harmless: the next digest follows */
	publish_crowd(w, n);
}

static void answer_windows(void *user, struct network_node *n, const char *from,
			   const struct cw_msg_window_request *q)
{
	struct watch *w = user;
	struct cw_message reply = { .type = CW_MSG_WINDOW_REPLY,
				    .window_reply = { .id = q->id, .job_hash = q->job_hash } };

	cw_arena_reset(&w->arena);
	if (cluster_windows(living(w), n->index, q, &w->arena, &reply.window_reply.windows,
			    &reply.window_reply.n_windows) < 0)
		note_error(w, -ENOMEM);
	else
		network_answer(n, from, &reply);
}

/* ---- the faults of nodes ---- */

static void end_daemon(struct watch *w, unsigned node, enum cluster_daemon how)
{
	switch (how) {
	case CLUSTER_DAEMON_HELD:
		network_hold(w->net, node);
		break;
	case CLUSTER_DAEMON_KILLED:
		network_kill(w->net, node, NETWORK_KILLED);
		break;
	case CLUSTER_DAEMON_GOODBYE:
		network_kill(w->net, node, NETWORK_GOODBYE);
		break;
	default:
		network_kill(w->net, node, NETWORK_LOST);
		break;
	}
}

static void mind_daemons(struct watch *w)
{
	for (unsigned i = 0; i < w->net->config.n_nodes; i++) {
		struct network_node *n = &w->net->nodes[i];
		enum cluster_daemon is = w->nodes[i].daemon, will = cluster_daemon(living(w), i);

		n->time.wall_ahead_ns = cluster_wall_ahead_ns(living(w));
		if (will == CLUSTER_DAEMON_RUNS && n->life == NETWORK_RUNS &&
		    cluster_n_ended(living(w), i) != w->nodes[i].n_ended)
			publish(w, n);
		if (is == will)
			continue;
		w->nodes[i].daemon = will;
		if (will != CLUSTER_DAEMON_RUNS)
			end_daemon(w, i, will);
		else if (is == CLUSTER_DAEMON_HELD)
			network_go_on(w->net, i);
		else
			network_start(w->net, i);
	}
}

static int start_job(struct watch *w, int64_t at_ns)
{
	struct cluster *job = NULL;
	int r = cluster_new(w->s, at_ns, w->err, &job);

	if (r < 0)
		return r;
	w->attempts[w->n_attempts++] = job;
	return cluster_record(job, &w->out->is_recorded);
}

static void forget_first(struct watch *w)
{
	(void)cluster_free(w->attempts[0]);
	memmove(&w->attempts[0], &w->attempts[1], --w->n_attempts * sizeof(w->attempts[0]));
}

/*
 * Restarts the job as the launcher does: with new processes and new comms, watched by the same
 * daemons.
 */
static int start_again(struct watch *w)
{
	int64_t at_ns = cluster_restart_ns(living(w));

	if (w->n_attempts > 1 && now_ns(w) - cluster_restart_ns(w->attempts[0]) > KEEP_DEAD_NS)
		forget_first(w);
	if (!at_ns || at_ns > now_ns(w))
		return 0;
	if (w->n_attempts == MAX_ATTEMPTS)
		forget_first(w);
	w->n_restarts++;
	return start_job(w, at_ns);
}

static void advance(void *user, int64_t network_ns)
{
	struct watch *w = user;
	int r = 0;

	if (w->error)
		return;
	for (unsigned i = 0; r == 0 && i < w->n_attempts; i++)
		r = cluster_run(w->attempts[i], now_ns(w));
	if (r == -EINVAL)
		r = cw_err_set(w->err, EINVAL, "%s:%u: a group or program is too large", w->s->file,
			       w->s->line);
	if (r == 0)
		r = start_again(w);
	if (r < 0) {
		note_error(w, r);
		return;
	}
	watch_faults_run(&w->faults, living(w), now_ns(w) - CLUSTER_ORIGIN_NS);
	mind_daemons(w);
}

static int deliver(void *user, struct network_node *n, const struct cw_incident_due *due,
		   const json_t *doc)
{
	const struct watch *w = user;

	return w->faults.are_undelivered ? NETWORK_NOT_DELIVERED : 0;
}

static const char *suppress_reason(void *user, struct network_node *n,
				   const struct cw_incident_due *due)
{
	const struct watch *w = user;

	return w->faults.are_muted ? "muted" : NULL;
}

static const struct network_ranks ranks = { .advance = advance,
					    .publish = publish,
					    .windows = answer_windows,
					    .alert = deliver,
					    .suppress_reason = suppress_reason };

/* ---- alerts ---- */

static int compare_labels(const void *a, const void *b)
{
	const int32_t *la = a, *lb = b;

	return (*la > *lb) - (*la < *lb);
}

/*
 * Returns the rank of a culprit. A post-mortem lists plain ranks; an incident has an object per
 * rank.
 */
static int32_t rank_of(const json_t *culprit)
{
	return (int32_t)cw_json_int(culprit, "rank", -1);
}

static void read_alert(const json_t *doc, struct outcome *o)
{
	const json_t *culprits = json_object_get(doc, "culprits");
	size_t n = json_array_size(culprits);
	int verdict_class = cw_class_from_name(cw_json_str(doc, "class", ""));
	int detail = cw_detail_from_name(cw_json_str(doc, "detail", ""));
	int confidence = cw_confidence_from_name(cw_json_str(doc, "confidence", ""));
	int hang = cw_hang_from_name(cw_json_str(doc, "hang", ""));

	o->verdict_class = verdict_class < 0 ? CW_CLASS_UNKNOWN : (enum cw_class)verdict_class;
	o->detail = detail < 0 ? CW_DETAIL_NONE : (enum cw_detail)detail;
	o->confidence = confidence < 0 ? CW_CONFIDENCE_POSSIBLE : (enum cw_confidence)confidence;
	o->hang = hang < 0 ? CW_HANG_NONE : (enum cw_hang)hang;
	(void)snprintf(o->summary, sizeof(o->summary), "%s", cw_json_str(doc, "summary", ""));
	o->culprits = cw_or_exit(calloc(n + 1, sizeof(*o->culprits)));
	for (size_t i = 0; i < n; i++)
		o->culprits[o->n_culprits++] = rank_of(json_array_get(culprits, i));
	qsort(o->culprits, n, sizeof(*o->culprits), compare_labels);
}

/* Records which ranks wait when the page comes. At the end we check whether they went on. */
static void note_waiters(struct watch *w, const json_t *doc, struct outcome *page)
{
	const char *victims = cw_json_str(json_object_get(doc, "victims"), "ranks", "");
	struct waiters *waiters = &w->waiters[w->n_alerts];

	if (w->n_alerts >= CW_VERDICT_LIST_MAX)
		return;
	*waiters = (struct waiters){ .page = page, .restart = w->n_restarts };
	(void)cw_or_exit_result(
		cw_rankset_parse(victims, w->s->n_ranks, &waiters->ranks, &waiters->n));
}

/*
 * Returns how long the fault could be known before the page. We count from the last fault of the
 * ranks that the page names. If a rank that it holds up began to wait later, we count from that
 * wait.
 */
static int64_t known_for_ns(const struct watch *w, const struct outcome *page,
			    const struct waiters *waiters)
{
	int64_t known_ns = 0, waiting_ns = SUITE_FOREVER;

	for (uint32_t i = 0; i < page->n_culprits; i++) {
		uint32_t rank = (uint32_t)page->culprits[i];
		int64_t ns = rank < w->s->n_ranks ? cluster_hit_ns(living(w), rank) : 0;

		known_ns = ns > known_ns ? ns : known_ns;
	}
	for (size_t i = 0; i < waiters->n; i++) {
		uint32_t rank = (uint32_t)waiters->ranks[i];
		int64_t ns = rank < w->s->n_ranks ? cluster_moved_ns(living(w), rank) : 0;

		if (ns && ns < waiting_ns)
			waiting_ns = ns;
	}
	if (waiting_ns != SUITE_FOREVER && waiting_ns > known_ns)
		known_ns = waiting_ns;
	return known_ns && known_ns < w->alert_ns ? w->alert_ns - known_ns : 0;
}

static const struct proof *find_proof(const struct watch *w, const char *id)
{
	for (unsigned i = 0; i < w->n_proofs; i++)
		if (!strcmp(w->proofs[i].id, id))
			return &w->proofs[i];
	return NULL;
}

/*
 * Records when the document of an incident first says that the hang is proven. From then on, users
 * can read it.
 */
static void note_proof(struct watch *w, const json_t *doc)
{
	const char *id = cw_json_str(doc, "id", "");
	struct proof *p = &w->proofs[w->n_proofs];

	if (strcmp(cw_json_str(doc, "hang", ""), cw_hang_name(CW_HANG_PROVEN)) != 0 ||
	    find_proof(w, id) || w->n_proofs == PROOFS_MAX)
		return;
	(void)snprintf(p->id, sizeof(p->id), "%s", id);
	p->at_ns = now_ns(w);
	w->n_proofs++;
}

static void on_put(void *user, const struct network_node *n, const struct cw_bundle *bundle)
{
	(void)n;
	if (bundle->incident)
		note_proof(user, bundle->incident);
}

static void on_update_incident(void *user, const struct network_node *n, const json_t *incident)
{
	(void)n;
	note_proof(user, incident);
}

/* Sets the time of the proof in all pages, because a page may come before its proof. */
static void note_proofs(struct watch *w)
{
	struct outcome *o = w->out;

	for (unsigned i = 0; i < w->n_alerts && o; i++, o = o->also) {
		const struct proof *p = find_proof(w, w->net->alerts[i].id);

		/*
		 * A proof before the page counts from the page, because users could not read it
		 * earlier.
		 */
		if (p)
			o->proven_ns = p->at_ns > o->alerted_ns ? p->at_ns : o->alerted_ns;
	}
}

static void note_ranks(struct watch *w)
{
	uint32_t n = w->s->n_ranks, *groups = cw_or_exit(calloc(n, sizeof(*groups)));

	w->out->ranks = cw_or_exit(calloc(n, sizeof(*w->out->ranks)));
	cluster_groups(living(w), groups);
	for (w->out->n_ranks = 0; w->out->n_ranks < n; w->out->n_ranks++) {
		uint32_t i = w->out->n_ranks;
		struct outcome_rank *r = &w->out->ranks[i];

		*r = (struct outcome_rank){ .hit_ns = cluster_hit_ns(living(w), i),
					    .group = groups[i] };
		r->stood_ns = cluster_stands_since_ns(living(w), i, &r->until_ns);
		/* A wait that has only just begun may end soon, so it does not count. */
		if (r->until_ns == now_ns(w) && now_ns(w) - r->stood_ns <= STILL_MOVES_NS)
			r->stood_ns = 0;
	}
	free(groups);
}

static void show(const struct watch *w, const json_t *doc)
{
	json_t *truth;

	if (!w->observer->on_incident)
		return;
	truth = cw_or_exit(cluster_truth(living(w)));
	/* The report is from now. Its document may be older if the leader was held up. */
	(void)json_object_set_new(
		truth, "wall_s",
		json_real((double)(NETWORK_WALL_NS + w->net->now_ns) / (double)CW_NS_PER_S));
	w->observer->on_incident(w->observer->user, w->s, doc, truth);
	json_decref(truth);
}

static void note_alerts(struct watch *w)
{
	for (; w->n_alerts < w->net->n_alerts; w->n_alerts++) {
		const struct network_alert *a = &w->net->alerts[w->n_alerts];
		struct outcome *o = outcome_next(w->out);

		read_alert(a->doc, o);
		note_waiters(w, a->doc, o);
		show(w, a->doc);
		o->is_alert = true;
		w->alert_ns = o->alerted_ns = a->at_ns + w->fast_forwarded_ns;
		o->after_ns = w->alert_ns - (w->fault_ns ? w->fault_ns : CLUSTER_ORIGIN_NS);
		if (w->n_alerts < CW_VERDICT_LIST_MAX)
			o->known_for_ns = known_for_ns(w, o, &w->waiters[w->n_alerts]);
	}
}

static void note_notices(struct watch *w)
{
	for (; w->n_notices < w->net->n_notices; w->n_notices++) {
		const struct network_alert *a = &w->net->notices[w->n_notices];
		struct outcome *o = outcome_next_notice(w->out);

		read_alert(a->doc, o);
		show(w, a->doc);
		o->after_ns = a->at_ns + w->fast_forwarded_ns - (w->fault_ns ?: CLUSTER_ORIGIN_NS);
	}
}

/* True if both documents accuse the same ranks, in this order, of the same. */
static bool is_same_verdict(const json_t *a, const json_t *b)
{
	const json_t *of_a = json_object_get(a, "culprits"), *of_b = json_object_get(b, "culprits");

	for (size_t i = 0; i < json_array_size(of_a); i++)
		if (rank_of(json_array_get(of_a, i)) != rank_of(json_array_get(of_b, i)))
			return false;
	return json_array_size(of_a) == json_array_size(of_b) &&
	       json_equal(json_object_get(a, "class"), json_object_get(b, "class")) &&
	       json_equal(json_object_get(a, "detail"), json_object_get(b, "detail"));
}

/*
 * True if an earlier post-mortem has the same content. Several leaders may store it, and equal ones
 * count once.
 */
static bool is_said(const struct network *net, unsigned nth)
{
	const struct network_postmortem *e = &net->postmortems[nth];

	for (unsigned i = 0; i < nth; i++)
		if (!strcmp(net->postmortems[i].id, e->id) &&
		    is_same_verdict(net->postmortems[i].doc, e->doc))
			return true;
	return false;
}

static void note_postmortems(struct watch *w)
{
	for (; w->n_postmortems < w->net->n_postmortems; w->n_postmortems++) {
		const struct network_postmortem *e = &w->net->postmortems[w->n_postmortems];
		struct outcome *o;

		if (is_said(w->net, w->n_postmortems))
			continue;
		o = outcome_next_postmortem(w->out);
		read_alert(e->doc, o);
		show(w, e->doc);
		o->after_ns = e->at_ns + w->fast_forwarded_ns - (w->fault_ns ?: CLUSTER_ORIGIN_NS);
	}
}

/*
 * Records whether the waiting ranks went on after the page. Calls that differ cause wrong data even
 * if the job goes on. Ranks that have ended or were restarted did not go on.
 */
static void note_went_on(const struct watch *w, const struct waiters *waiters)
{
	uint32_t n_alive = 0;

	if (!waiters->n || waiters->page->verdict_class == CW_CLASS_MISMATCH ||
	    waiters->restart != w->n_restarts)
		return;
	for (size_t i = 0; i < waiters->n; i++) {
		int32_t rank = waiters->ranks[i];
		int64_t ns = rank < 0 || (uint32_t)rank >= w->s->n_ranks
				     ? 0
				     : cluster_moved_ns(living(w), (uint32_t)rank);

		if (ns && now_ns(w) - ns > STILL_MOVES_NS)
			return;
		n_alive += ns != 0;
	}
	waiters->page->went_on = n_alive > 0;
}

static uint32_t n_ended(const struct watch *w)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < w->net->config.n_nodes; i++)
		n += cluster_n_ended(living(w), i);
	return n;
}

/*
 * Counts the alerts during the long wait. Their times are on the network's clock, which stands
 * still while we fast-forward the cluster.
 */
static uint32_t count_since(const struct watch *w, const struct network_alert *alerts, size_t n)
{
	uint32_t since = 0;

	while (n && alerts[--n].at_ns + w->long_fast_forwarded_ns >= w->long_since_ns)
		since++;
	return since;
}

static void note_healthy_wait(struct watch *w)
{
	const struct network *net = w->net;
	const struct outcome_wait wait = {
		.length_ns = now_ns(w) - w->long_since_ns,
		.pages = count_since(w, net->alerts, net->n_alerts),
		.notices = count_since(w, net->notices, net->n_notices),
	};

	outcome_add_wait(w->out, &wait);
}

/*
 * Records the beginning and the end of a long wait. It begins when a wait has lasted for
 * LONG_WAIT_NS, and ends when no rank waits for that long.
 */
static void note_long_wait(struct watch *w)
{
	int64_t since_ns = cluster_waiting_since_ns(living(w));
	bool is_long = since_ns != SUITE_FOREVER && now_ns(w) - since_ns > LONG_WAIT_NS;

	if (is_long && !w->long_since_ns) {
		w->long_since_ns = since_ns;
		w->long_fast_forwarded_ns = w->fast_forwarded_ns;
		w->shown_until_ns = since_ns + WAIT_SHOWN_NS;
		w->n_ended = n_ended(w);
	}
	if (is_long || !w->long_since_ns)
		return;
	if (n_ended(w) == w->n_ended)
		note_healthy_wait(w);
	w->long_since_ns = 0;
}

static void note_faults(struct watch *w)
{
	bool all;
	int64_t ns = cluster_fault_ns(living(w), &all);

	if (!w->fault_ns)
		w->fault_ns = ns;
	if (all && watch_faults_have_begun(&w->faults))
		w->out->is_fault_missing = false;
}

/* ---- the rank that comes late, if the scenario expects one ---- */

struct led {
	const struct cw_job_digests *digests;
	struct cw_job *job;
};

/* Takes the current attempt of the job. In an earlier attempt no rank is alive. */
static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	*(struct led *)user = (struct led){ digests, (struct cw_job *)job };
}

static int leader_snapshot(const struct watch *w, struct cw_snapshot **ret)
{
	int leader = network_leader(w->net);
	struct led led = { 0 };

	if (leader < 0)
		return -ENOENT;
	cw_leader_jobs(w->net->nodes[leader].leader, on_job, &led);
	return cw_leader_snapshot(w->net->nodes[leader].leader, led.digests, led.job, ret);
}

static int add_window(struct cw_snapshot *snap, const struct cw_msg_window *window,
		      struct cw_arena *arena)
{
	uint32_t comm = cw_snapshot_find_comm(snap, window->comm_id, window->instance);
	struct cw_op *ops;

	if (comm == CW_SNAP_NONE || (uint32_t)window->comm_rank >= snap->comms[comm].nranks ||
	    snap->comms[comm].members[window->comm_rank].rank == CW_SNAP_NONE)
		return 0; /* the leader does not know this communicator */
	ops = cw_or_exit(cw_arena_new_array(arena, struct cw_op, window->n_ops));
	for (uint32_t i = 0; i < window->n_ops; i++)
		ops[i] = cw_ages_to_op(&window->ops[i], snap->now_ns);
	return cw_snapshot_set_window(snap, comm, (uint32_t)window->comm_rank, ops, window->n_ops,
				      window->lost, snap->now_ns);
}

/*
 * Adds the windows of all communicators to the snapshot, like those that a reader of flight records
 * gets.
 */
static int add_windows(struct watch *w, struct cw_snapshot *snap)
{
	struct cw_msg_window_request q = { .max_ops = CW_MSG_MAX_WINDOW_OPS };
	int r = 0;

	cw_arena_reset(&w->arena);
	q.comm_ids = cw_or_exit(cw_arena_new_array(&w->arena, uint64_t, snap->n_comms));
	for (; q.n_comm_ids < snap->n_comms; q.n_comm_ids++)
		q.comm_ids[q.n_comm_ids] = snap->comms[q.n_comm_ids].id;
	for (unsigned i = 0; r == 0 && i < w->net->config.n_nodes; i++) {
		struct cw_msg_window *windows;
		uint32_t n = 0;

		r = cluster_windows(living(w), i, &q, &w->arena, &windows, &n);
		for (uint32_t k = 0; r == 0 && k < n; k++)
			r = add_window(snap, &windows[k], &w->arena);
	}
	return r;
}

static int snapshot_with_windows(struct watch *w, struct cw_snapshot **ret)
{
	struct cw_snapshot *snap = NULL;
	int r = leader_snapshot(w, &snap);

	if (r == 0)
		r = add_windows(w, snap);
	if (r == 0)
		*ret = steal_ptr(&snap);
	(void)cw_snapshot_free(snap);
	return r;
}

static int look_for_slow(struct watch *w)
{
	struct cw_snapshot *snap = NULL;
	int r = snapshot_with_windows(w, &snap);

	if (r == 0)
		r = cw_outcome_note_slow(w->out, snap);
	(void)cw_snapshot_free(snap);
	return r == -ENOENT ? 0 : r;
}

/* ---- the whole watch ---- */

/* Skips to the next event, if no rank has waited for a while and all ranks make steps. */
static void fast_forward(struct watch *w)
{
	int64_t until = cluster_next_fault_ns(living(w));
	int64_t end = CLUSTER_ORIGIN_NS + w->s->run_ns;

	if (!cluster_is_well(living(w)))
		w->well_ns = now_ns(w);
	until = (until < end ? until : end) - SHOWN_NS;
	if (now_ns(w) - w->well_ns < SHOWN_NS || until - now_ns(w) < SHOWN_NS)
		return;
	until = (until - now_ns(w)) / S * S;
	cluster_fast_forward(living(w), until);
	w->out->fast_forwarded_ns += until;
	w->fast_forwarded_ns += until;
	w->well_ns = now_ns(w);
}

/*
 * Skips a part of a long wait that will go on. Meanwhile the cluster runs, but no node reports. In
 * the next reports the wait is older by the skipped part.
 */
static int fast_forward_wait(struct watch *w)
{
	int64_t until, age = now_ns(w) - w->long_since_ns;

	if (!w->long_since_ns || now_ns(w) < w->shown_until_ns ||
	    now_ns(w) - w->alert_ns < SETTLE_NS)
		return 0;
	until = cluster_rests_until(living(w));
	if (until > CLUSTER_ORIGIN_NS + w->s->run_ns)
		until = CLUSTER_ORIGIN_NS + w->s->run_ns;
	if (until > cluster_next_fault_ns(living(w)))
		until = cluster_next_fault_ns(living(w));
	/* Show the end of the wait and what follows. */
	if (until - now_ns(w) < WAIT_END_SHOWN_NS + WAIT_GLIMPSE_NS) {
		w->shown_until_ns = until + WAIT_END_SHOWN_NS;
		return 0;
	}
	until -= WAIT_END_SHOWN_NS + now_ns(w);
	until = (until < age / 2 ? until : age / 2) / S * S;
	w->out->fast_forwarded_ns += until;
	w->fast_forwarded_ns += until;
	w->shown_until_ns = now_ns(w) + WAIT_GLIMPSE_NS;
	return cluster_run(living(w), now_ns(w));
}

/* Returns the result of the leader's last evaluation; NULL = no node leads. */
static const struct cw_job_view *last_view(const struct watch *w)
{
	int leader = network_leader(w->net);
	const struct cw_job *job = leader < 0 ? NULL : network_job(w->net, (unsigned)leader);

	return job ? &job->view : NULL;
}

/* True if a rank waits for longer than usual, so that a page may still come. */
static bool is_stalled(const struct watch *w)
{
	const struct cw_job_view *view = last_view(w);

	return view && view->phase >= CW_STALL_STALLED;
}

static void show_view(const struct watch *w)
{
	const struct cw_job_view *view = w->observer->on_second ? last_view(w) : NULL;

	if (view)
		w->observer->on_second(w->observer->user, now_ns(w), view);
}

static void on_log(void *user, const struct network_node *n, const char *text)
{
	const struct watch *w = user;

	w->observer->on_log(w->observer->user, now_ns(w) - CLUSTER_ORIGIN_NS, n->name, text);
}

static bool is_over(const struct watch *w)
{
	bool is_settled = now_ns(w) - w->alert_ns >= SETTLE_NS;
	int64_t watched_ns = now_ns(w) - CLUSTER_ORIGIN_NS;

	if (watched_ns >= w->s->run_ns && waits_for_page(w->s) && !w->n_alerts &&
	    watched_ns < w->s->run_ns + UNTIL_PAGE_NS && is_stalled(w))
		return false;

	if (w->n_alerts && !is_settled)
		return false;
	return (w->n_alerts && w->n_alerts >= suite_n_incidents(w->s) && !w->s->is_whole &&
		!suite_expects_postmortem(w->s)) ||
	       watched_ns >= w->s->run_ns;
}

static int run(struct watch *w)
{
	int r = 0;

	w->well_ns = CLUSTER_ORIGIN_NS;
	while (r == 0 && !is_over(w)) {
		r = network_run(w->net, CHECK_EVERY_NS);
		if (r == 0)
			r = w->error;
		if (r < 0)
			break;
		show_view(w);
		note_faults(w);
		note_long_wait(w);
		note_notices(w);
		note_alerts(w);
		note_postmortems(w);
		w->out->n_checks++;
		if (w->s->is_fast_forwarding)
			fast_forward(w);
		if (w->s->is_fast_forwarding_waits)
			r = fast_forward_wait(w);
	}
	return r;
}

static int begin(struct watch *w)
{
	struct network_config config = {
		.start_ns = CLUSTER_ORIGIN_NS,
		.thresholds = &w->thresholds,
		.has_no_notices = w->s->has_no_notices,
		.iteration_members = w->s->iteration_members,
		.ranks = &ranks,
		.user = w,
	};
	int r;

	w->thresholds = cw_thresholds_default();
	r = start_job(w, CLUSTER_ORIGIN_NS);
	if (r < 0)
		return r;
	config.n_nodes = cluster_n_nodes(w->attempts[0]);
	/*
	 * As in the daemon, the time in which other nodes may object is part of the time that a
	 * proof takes.
	 */
	if (config.n_nodes > 1)
		w->thresholds.proof_ns -= CW_INCIDENT_OBJECTION_NS;
	w->nodes = cw_or_exit(calloc(config.n_nodes, sizeof(*w->nodes)));
	w->times = cw_or_exit(calloc(config.n_nodes, sizeof(*w->times)));
	watch_faults_machines(w->s, config.n_nodes, w->times);
	config.times = w->times;
	w->network_observer =
		(struct network_observer){ .user = w,
					   .on_put = on_put,
					   .on_update_incident = on_update_incident,
					   .on_log = w->observer->on_log ? on_log : NULL };
	config.observer = &w->network_observer;
	r = cw_job_id_make(CLUSTER_UID, "suite", &w->job);
	if (r == 0)
		r = network_new(&config, &w->net);
	if (r == 0)
		watch_faults_init(&w->faults, w->s, w->net);
	return r;
}

static void end(struct watch *w)
{
	for (unsigned i = 0; i < CW_VERDICT_LIST_MAX; i++)
		free(w->waiters[i].ranks);
	w->net = network_free(w->net);
	while (w->n_attempts)
		forget_first(w);
	cw_arena_fini(&w->arena);
	free(w->nodes);
	free(w->times);
}

int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret)
{
	return cw_watch_with(s, &(struct watch_observer){ 0 }, err, ret);
}

int cw_watch_with(const struct suite_scenario *s, const struct watch_observer *observer,
		  struct cw_err *err, struct outcome *ret)
{
	struct outcome out = { .is_fault_missing = s->n_faults > 0 };
	struct watch w = { .s = s, .observer = observer, .out = &out, .err = err };
	int r = begin(&w);

	if (r == 0)
		r = run(&w);
	if (r == 0 && !out.is_alert && expects_slow(s))
		r = look_for_slow(&w);
	out.is_well = r == 0 && !out.is_alert && cluster_is_well(living(&w));
	if (r == 0)
		note_ranks(&w);
	note_proofs(&w);
	for (unsigned i = 0; r == 0 && i < CW_VERDICT_LIST_MAX; i++)
		note_went_on(&w, &w.waiters[i]);
	end(&w);
	if (r < 0) {
		cw_outcome_fini(&out);
		return r;
	}
	*ret = out;
	return 0;
}

int cw_watch_snapshot(const struct suite_scenario *s, int64_t after_ns, struct cw_err *err,
		      struct cw_snapshot **ret)
{
	const struct watch_observer observer = { 0 };
	struct outcome out = { 0 };
	struct watch w = { .s = s, .observer = &observer, .out = &out, .err = err };
	int r = begin(&w);

	if (r == 0)
		r = network_run(w.net, after_ns);
	if (r == 0)
		r = w.error;
	if (r == 0)
		r = snapshot_with_windows(&w, ret);
	end(&w);
	return r;
}
