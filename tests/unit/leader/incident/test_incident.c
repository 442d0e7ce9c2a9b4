/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "leader/incident/incident.h"
#include "leader/incident/incident_journal.h"
#include "model/snapshot.h"
#include "record/record_layout.h"
#include "tests/support/cluster/transport_effects.h"

/* One incident on a node without peers, fed with evaluations made by hand. */
static int64_t now = 1000 * CW_NS_PER_S;
static unsigned alerts, bundles, evidence_requests;
static char sent_id[CW_INCIDENT_ID_LEN];
static size_t last_objections;
static char last_objector[16];
static char last_class[32], last_closed_as[32], last_severity[16], last_suppressed[16];
static const char *suppressed;
static bool was_sent, answers_evidence;
static char alerted_id[CW_INCIDENT_ID_LEN]; /* the one id that was sent before; "" = none */
static uint64_t call_before;                /* of the bundle that lies there; 0 = there is none */
static const char *evidence_answer;
static uint32_t evidence_asked; /* bits, of the last request */
static char bundle_python[16];
static json_int_t bundle_stacks; /* ranks in the stacks of all; -1: there are none */
static const char *user_name;    /* NULL = not known yet */
static unsigned names_asked;
static char last_user[32], alerted_user[32];
static struct cw_transport *transport;
static struct cw_incident *inc;
static struct cw_snapshot *snap;
static struct cw_clock clock_;

static int64_t fake_now(void *user)
{
	return now;
}

static void io_path(void *user, const char *id, char *buf, size_t len)
{
	(void)snprintf(buf, len, "/state/%s", id);
}

static void copy_field(char *buf, size_t len, const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));

	(void)snprintf(buf, len, "%s", text ? text : "");
}

static int io_put(void *user, const struct cw_bundle *bundle)
{
	const json_t *seen = json_object_get(bundle->stacks, "seen");

	bundles++;
	bundle_stacks = seen ? json_integer_value(seen) : -1;
	copy_field(last_class, sizeof(last_class), bundle->incident, "class");
	copy_field(last_severity, sizeof(last_severity), bundle->incident, "severity");
	copy_field(last_suppressed, sizeof(last_suppressed), bundle->incident, "suppressed");
	copy_field(last_closed_as, sizeof(last_closed_as), bundle->incident, "closed_as");
	last_objections = json_array_size(json_object_get(bundle->incident, "objections"));
	copy_field(last_objector, sizeof(last_objector),
		   json_array_get(json_object_get(bundle->incident, "objections"), 0), "node");
	copy_field(last_user, sizeof(last_user), bundle->incident, "user");
	copy_field(bundle_python, sizeof(bundle_python),
		   json_object_get(json_array_get(bundle->evidence, 0), "python"), "status");
	return bundles == 1 ? -ENOSPC : 0; /* a full disk stops nothing */
}

static bool io_was_sent(void *user, const struct cw_incident_due *due)
{
	return was_sent || (*alerted_id && !strcmp(due->id, alerted_id));
}

static json_t *io_load_incident(void *user, const struct cw_incident_due *due, bool *ret_is_whole)
{
	*ret_is_whole = true;
	if (!call_before || strcmp(due->id, alerted_id) != 0)
		return NULL;
	return json_pack("{s:s, s:s, s:{s:I}}", "id", due->id, "class", "mismatch", "where",
			 "coll_seq", (json_int_t)call_before);
}

static int io_update_incident(void *user, json_t *incident)
{
	return 0;
}

static const char *io_suppress_reason(void *user, const struct cw_incident_due *due)
{
	cr_assert_eq(due->uid, 7);
	cr_assert_str_eq(due->job, "job");
	cr_assert_eq(strlen(due->id), CW_INCIDENT_ID_LEN - 1);
	return suppressed;
}

static unsigned notices;
static char last_notice[1024];
static bool has_notices;

static bool io_wants_notices(void *user)
{
	return has_notices;
}

static void io_notice(void *user, const struct cw_incident_due *due, const json_t *doc)
{
	notices++;
	copy_field(last_notice, sizeof(last_notice), doc, "summary");
	(void)snprintf(sent_id, sizeof(sent_id), "%s", due->id);
	cr_assert_str_eq(json_string_value(json_object_get(doc, "severity")), "notice");
}

static int io_alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	alerts++;
	(void)snprintf(sent_id, sizeof(sent_id), "%s", due->id);
	copy_field(alerted_user, sizeof(alerted_user), doc, "user");
	return 0;
}

static unsigned ends;
static char last_end[1024];

static void io_event(void *user, int level, const char *message_id, const char *text,
		     const char *const *fields)
{
	if (strcmp(message_id, CW_MESSAGE_ID_RESOLVED) != 0)
		return;
	ends++;
	(void)snprintf(last_end, sizeof(last_end), "%s", text);
}

static const char *io_user_name(void *user, uint32_t uid)
{
	cr_assert_eq(uid, 7);
	names_asked++;
	return user_name;
}

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	const struct cw_msg_evidence_request *q = &(*msg)->evidence_request;

	cr_assert_eq((*msg)->type, CW_MSG_EVIDENCE_REQUEST);
	evidence_requests++;
	evidence_asked = q->targets[0].what;
	for (uint32_t i = 0; i < q->n_targets && answers_evidence; i++) {
		struct cw_message reply = {
			.type = CW_MSG_EVIDENCE_REPLY,
			.evidence_reply = { .id = q->id,
					    .pid = q->targets[i].pid,
					    .start_ticks = q->targets[i].start_ticks,
					    .json = evidence_answer,
					    .remaining = q->n_targets - i - 1 },
		};

		cr_assert_eq(cw_transport_send(transport, from, &reply), 0);
	}
}

static void make_snapshot(void)
{
	struct cw_snap_comm comm = { .id = 5, .nranks = 2 };
	uint32_t index;

	snap = cw_snapshot_new();
	cr_assert_eq(cw_snapshot_set_job(snap, "job", "RANK"), 0);
	cr_assert_eq(cw_snapshot_add_node(snap, "n", &index), 0);
	for (int32_t i = 0; i < 2; i++) {
		struct cw_snap_rank rank = {
			.rank = i, .pid = 100 + i, .liveness = CW_LIVE_ALIVE, .start_ticks = 9
		};

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct cw_snap_member member = { .rank = i, .state = CW_COMM_READY };

		cr_assert_eq(cw_snapshot_set_member(snap, 0, i, &member), 0);
	}
	snap->now_ns = snap->wall_ns = now;
}

static void setup(void)
{
	struct cw_transport_config t = { .clock = &clock_, .self = "n", .on_message = on_message };
	static struct cw_leader_effects effects = { .path = io_path,
						    .put = io_put,
						    .load_incident = io_load_incident,
						    .update_incident = io_update_incident,
						    .was_sent = io_was_sent,
						    .suppress_reason = io_suppress_reason,
						    .alert = io_alert,
						    .wants_notices = io_wants_notices,
						    .notice = io_notice,
						    .event = io_event,
						    .user_name = io_user_name };
	struct cw_incident_config config = { .clock = &clock_,
					     .effects = &effects,
					     .job_hash = 1,
					     .uid = 7,
					     .job = "job",
					     .self = "n" };

	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
	cr_assert_eq(cw_transport_new(&t, &transport), 0);
	transport_effects_init(&effects, transport);
	cr_assert_eq(cw_incident_new(&config, &inc), 0);
	make_snapshot();
	answers_evidence = true;
	evidence_answer = "{\"schema\":\"collwatch.evidence/1\"}";
	has_notices = true;
}

static void teardown(void)
{
	cw_incident_free(inc);
	cw_transport_free(transport);
	cw_snapshot_free(snap);
}

static struct cw_culprit culprit = { .rank = 1 };
static uint32_t victim = 0;

static struct cw_verdict verdict(uint32_t verdict_class)
{
	struct cw_verdict v = { .verdict_class = verdict_class,
				.confidence = CW_CONFIDENCE_LIKELY,
				.culprits = &culprit,
				.n_culprits = 1,
				.victims = &victim,
				.n_victims = 1,
				.coll_seq = 3 };

	return v;
}

/* A matter with this number; 0 = none. */
static struct cw_verdict_key matter(uint64_t n)
{
	return (struct cw_verdict_key){ .comm_id = 5, .seq = n, .is_set = n != 0 };
}

static void evaluate(uint32_t verdict_class, uint32_t phase, uint64_t key, uint64_t resolved)
{
	struct cw_verdict v = verdict(verdict_class);
	struct cw_stall_decision d = { .phase = phase,
				       .key = matter(key),
				       .resolved_key = matter(resolved),
				       .confidence = CW_CONFIDENCE_LIKELY };

	snap->now_ns = now;
	if (verdict_class == CW_CLASS_MISMATCH) {
		v.is_proof = true;
		v.confidence = CW_CONFIDENCE_CERTAIN;
	}
	cw_incident_step(inc, snap, &v, &d);
}

static void pass(double seconds)
{
	int64_t end = now + (int64_t)(seconds * 1e9);

	for (; now < end; now += CW_NS_PER_S / 4) {
		cw_transport_run(transport);
		cw_incident_tick(inc);
	}
}

TestSuite(incident, .init = setup, .fini = teardown);

Test(incident, every_move_leads_to_a_state_and_the_end_is_final)
{
	unsigned moves = 0;

	for (unsigned s = 0; s < CW_INCIDENT__MAX; s++) {
		for (unsigned e = 0; e < CW_INCIDENT_EV__MAX; e++) {
			int next = cw_incident_state_next(s, e);

			cr_assert_lt(next, CW_INCIDENT__MAX);
			moves += next >= 0;
			if (s == CW_INCIDENT_ENDED)
				cr_assert_eq(next, -1);
		}
		if (s != CW_INCIDENT_ENDED) /* a job may end at any time */
			cr_assert_eq(cw_incident_state_next(s, CW_INCIDENT_EV_END),
				     CW_INCIDENT_ENDED);
	}
	cr_assert_gt(moves, 40);
	cr_assert_eq(cw_incident_state_next(CW_INCIDENT_IDLE, CW_INCIDENT_EV_CLEAR), -1);
	cr_assert_eq(cw_incident_state_next(CW_INCIDENT__MAX, 0), -1);
	cr_assert_eq(cw_incident_state_next(0, CW_INCIDENT_EV__MAX), -1);
}

Test(incident, only_the_moves_through_announcement_and_evidence_reach_the_alert)
{
	for (unsigned s = 0; s < CW_INCIDENT__MAX; s++)
		for (unsigned e = 0; e < CW_INCIDENT_EV__MAX; e++)
			if (s != CW_INCIDENT_ALERTED &&
			    cw_incident_state_next(s, e) == CW_INCIDENT_ALERTED)
				cr_assert((s == CW_INCIDENT_CLEARED &&
					   e == CW_INCIDENT_EV_EVIDENCE) ||
					  (s == CW_INCIDENT_PREPARED && e == CW_INCIDENT_EV_CLEAR));
}

Test(incident, suspicion_and_stall_alone_write_and_send_nothing)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_SUSPECT, 11, 0);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_STALLED, 11, 0);
	pass(5);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_STALLED);
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_IDLE);
	cr_assert_eq(alerts + bundles + evidence_requests, 0);
}

Test(incident, alert_follows_evidence_and_comes_once)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	cr_assert_eq(alerts, 0);
	pass(1);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(evidence_requests, 1);
	cr_assert_eq(strlen(sent_id), CW_INCIDENT_ID_LEN - 1);
	for (unsigned i = 0; i < 50; i++) {
		evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
		pass(1);
	}
	cr_assert_eq(alerts, 1);
	cr_assert_eq(bundles, 1);
}

Test(incident, the_users_name_is_looked_up_from_the_decision_on_and_in_the_alert)
{
	answers_evidence = false; /* the alert waits for its deadline */
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	cr_assert_gt(names_asked, 0);
	user_name = "alice";
	pass(15);
	cr_assert_eq(alerts, 1);
	cr_assert_str_eq(alerted_user, "alice");
	cr_assert_str_eq(last_user, "alice");
	names_asked = 0;
	user_name = "bob"; /* the sent alert keeps its name */
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(2);
	cr_assert_eq(names_asked, 0);
}

Test(incident, a_name_that_nobody_knows_is_omitted)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(15);
	cr_assert_eq(alerts, 1);
	cr_assert_str_eq(alerted_user, "");
}

Test(incident, missing_evidence_holds_the_alert_until_its_deadline)
{
	answers_evidence = false;
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(3);
	cr_assert_eq(alerts, 0);
	pass(2);
	cr_assert_eq(alerts, 1);
}

#define EVIDENCE(status)                                                                                       \
	"{\"schema\":\"collwatch.evidence/1\",\"native\":{\"status\":\"ok\"},\"python\":{\"status\":\"" status \
	"\"}}"

Test(incident, python_stacks_that_were_refused_are_asked_for_once_more)
{
	evidence_answer = EVIDENCE("refused");
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_assert_eq(alerts, 1);
	cr_assert_str_eq(bundle_python, "refused");
	evidence_answer = "{\"schema\":\"collwatch.evidence/1\",\"python\":{\"status\":\"ok\"}}";
	pass(4);
	cr_assert_eq(evidence_requests, 1);
	pass(2);
	cr_assert_eq(evidence_requests, 2);
	cr_assert_eq(evidence_asked, CW_EVIDENCE_PYTHON);
	cr_assert_str_eq(bundle_python, "ok");
	pass(60);
	cr_assert_eq(evidence_requests, 2);
	cr_assert_eq(alerts, 1);
}

/* A page whose ranks always answer this. */
static void expect_asked(const char *answer, unsigned times, const char *python)
{
	evidence_answer = answer;
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(60);
	cr_assert_eq(evidence_requests, times);
	cr_assert_str_eq(bundle_python, python);
	cr_assert_eq(alerts, 1);
}

Test(incident, what_was_refused_twice_stays_so)
{
	expect_asked(EVIDENCE("refused"), 2, "refused");
}

Test(incident, python_stacks_that_came_are_not_asked_for_again)
{
	expect_asked(EVIDENCE("ok"), 1, "ok");
}

Test(incident, proof_waits_for_evidence_no_longer_than_for_objections)
{
	struct cw_verdict v = verdict(CW_CLASS_DEADLOCK);
	struct cw_stall_decision d = { .phase = CW_STALL_HANG, .key = matter(11) };

	v.is_proof = true;
	answers_evidence = false;
	cw_incident_step(inc, snap, &v, &d);
	pass(1.5);
	cr_assert_eq(evidence_requests, 1);
	cr_assert_eq(alerts, 0);
	pass(1);
	cr_assert_eq(alerts, 1);
}

Test(incident, id_is_about_the_matter_not_about_class_or_culprit)
{
	char first[CW_INCIDENT_ID_LEN];

	evaluate(CW_CLASS_UNKNOWN, CW_STALL_HANG, 11, 0);
	(void)snprintf(first, sizeof(first), "%s", cw_incident_id(inc));
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	cr_assert_str_eq(cw_incident_id(inc), "");
	culprit.rank = 0;
	evaluate(CW_CLASS_MISMATCH, CW_STALL_HANG, 11, 0);
	cr_assert_str_eq(cw_incident_id(inc), first);
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	evaluate(CW_CLASS_MISMATCH, CW_STALL_HANG, 12, 0);
	cr_assert_str_neq(cw_incident_id(inc), first);
}

Test(incident, refinement_changes_the_bundle_not_the_alert)
{
	evaluate(CW_CLASS_UNKNOWN, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_assert_str_eq(last_class, "unknown");
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_assert_str_eq(last_class, "never_entered");
	evaluate(CW_CLASS_MISMATCH, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_assert_str_eq(last_class, "mismatch");
	evaluate(CW_CLASS_UNKNOWN, CW_STALL_HANG, 11, 0); /* knows less: ignored */
	pass(1);
	cr_assert_str_eq(last_class, "mismatch");
	cr_assert_eq(alerts, 1);
}

Test(incident, wrong_data_that_comes_to_hold_somebody_up_is_not_told_twice)
{
	struct cw_verdict v = verdict(CW_CLASS_MISMATCH), later = v;
	struct cw_verdict_key key = matter(11), other = { .comm_id = 6, .is_set = true };
	struct cw_stall_decision d = { .phase = CW_STALL_HANG, .key = key, .hang = CW_HANG_PROVEN };

	later.coll_seq++;
	evaluate(CW_CLASS_MISMATCH, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(evidence_requests, 0);
	cr_assert(cw_incident_is_wrong_data(inc, &v, &key));
	cr_assert_not(cw_incident_is_wrong_data(inc, &later, &key));
	cr_assert_not(cw_incident_is_wrong_data(inc, &v, &other));

	v.is_proof = true;
	v.waiting_since_ns = now - CW_NS_PER_S;
	snap->now_ns = now;
	cw_incident_holds_up(inc, snap, &v, &d);
	pass(1);
	cw_incident_holds_up(inc, snap, &v, &d);
	pass(1);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(evidence_requests, 1, "who hangs is looked at, once");
	cr_assert_gt(bundles, 1);
}

Test(incident, a_wait_for_a_message_of_another_size_is_about_those_that_were_told_of)
{
	struct cw_verdict v = verdict(CW_CLASS_P2P_UNMATCHED);
	struct cw_verdict_key key = matter(11), other = { .comm_id = 6, .is_set = true };

	evaluate(CW_CLASS_P2P_UNMATCHED, CW_STALL_HANG, 11, 0);
	v.detail = CW_DETAIL_SIZE;
	cr_assert(cw_incident_is_wrong_data(inc, &v, &key));
	cr_assert_not(cw_incident_is_wrong_data(inc, &v, &other));
	v.detail = CW_DETAIL_NOT_POSTED;
	cr_assert_not(cw_incident_is_wrong_data(inc, &v, &key));
}

Test(incident, death_after_the_decision_is_a_consequence)
{
	evaluate(CW_CLASS_UNKNOWN, CW_STALL_HANG, 11, 0);
	pass(1);
	snap->ranks[1].liveness = CW_LIVE_KILLED;
	snap->ranks[1].ended_ns = now;
	evaluate(CW_CLASS_PROCESS_DEAD, CW_STALL_HANG, 11, 0);
	cr_assert_str_eq(last_class, "unknown");
}

Test(incident, alert_of_an_earlier_life_is_not_repeated)
{
	was_sent = true;
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(2);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_ALERTED);
	cr_assert_eq(alerts, 0);
	cr_assert_eq(bundles, 1);
}

/* The keys of one mismatch: `key` alone, and with its call. */
static void evaluate_call(bool is_waited, uint64_t call)
{
	struct cw_verdict v = verdict(CW_CLASS_MISMATCH);
	struct cw_stall_decision d = { .phase = CW_STALL_HANG,
				       .key = { .comm_id = 5,
						.seq = is_waited ? call : 0,
						.is_waited = is_waited,
						.is_set = true },
				       .hang = CW_HANG_PROVEN };

	v.is_proof = true;
	v.coll_seq = call;
	v.waiting_since_ns = is_waited ? now - CW_NS_PER_S : 0;
	snap->now_ns = now;
	cw_incident_step(inc, snap, &v, &d);
	pass(3);
}

/* As a daemon that starts anew: of its earlier life it knows one id that was sent. */
static void begin_anew(void)
{
	(void)snprintf(alerted_id, sizeof(alerted_id), "%s", sent_id);
	teardown();
	setup();
}

Test(incident, mismatch_alerted_before_a_rank_waited_is_not_alerted_again_after_a_restart)
{
	evaluate_call(false, 3);
	cr_assert_eq(alerts, 1);
	begin_anew();
	evaluate_call(true, 3);
	cr_expect_eq(alerts, 1);
	cr_expect_str_eq(cw_incident_id(inc), alerted_id, "one bundle, one report");
}

Test(incident, mismatch_alerted_while_a_rank_waited_is_not_alerted_again_after_a_restart)
{
	evaluate_call(true, 3);
	begin_anew();
	evaluate_call(false, 3);
	cr_expect_eq(alerts, 1);
	cr_expect_str_eq(cw_incident_id(inc), alerted_id);
}

Test(incident, another_mismatch_of_that_communicator_is_alerted_after_a_restart)
{
	evaluate_call(false, 3);
	begin_anew();
	call_before = 3;
	evaluate_call(true, 9);
	cr_expect_eq(alerts, 2);
}

Test(incident, objection_silences_until_asked_again)
{
	answers_evidence = false;
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	cr_assert(cw_incident_object(inc, "other", "led here", 0));
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_OBJECTED);
	pass(29);
	cr_assert_eq(alerts, 0);
	pass(4);
	cr_assert_eq(alerts, 1);
}

/* One node that was taken over objects to everything. */
Test(incident, a_node_without_a_part_in_the_job_keeps_an_alert_back_three_times)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	for (unsigned i = 0; i < 3 * 120; i++) { /* 30 s each */
		(void)cw_incident_object(inc, "liar", "I know better",
					 CW_INCIDENT_MAX_DEFERRED); /* or not */
		pass(0.25);
		cr_assert_eq(alerts, 0, "%u", i);
	}
	cr_assert_not(cw_incident_object(inc, "liar", "I know better", CW_INCIDENT_MAX_DEFERRED));
	cr_assert_not(cw_incident_object(inc, "its friend", "so do I", CW_INCIDENT_MAX_DEFERRED));
	pass(5);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(last_objections, 2);
	cr_assert_str_eq(last_objector, "liar");
}

/* Its leader's deputy has told people, and its webhook is away: no end of patience. */
Test(incident, who_leads_the_job_is_believed)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	for (unsigned i = 0; i < 1200; i++) {
		cr_assert(cw_incident_object(inc, "deputy", "led here", 0));
		pass(0.25);
	}
	cr_assert_eq(alerts, 0);
}

Test(incident, undelivered_alert_is_repeated_until_it_is_known_as_sent)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cw_incident_undelivered(inc);
	pass(31);
	cr_assert_eq(alerts, 2);
	cw_incident_undelivered(inc);
	was_sent = true;
	pass(31);
	cr_assert_eq(alerts, 2);
}

Test(incident, suppressed_alert_is_in_the_bundle_and_nowhere_else)
{
	suppressed = "shadow";
	evaluate(CW_CLASS_UNKNOWN, CW_STALL_HANG, 11, 0);
	pass(5);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_ALERTED);
	cr_assert_str_eq(cw_incident_suppressed(inc), "shadow");
	cr_assert_str_eq(last_suppressed, "shadow");
	/* A refinement makes the documents anew. */
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	cr_assert_str_eq(last_class, "never_entered");
	cr_assert_str_eq(last_suppressed, "shadow");
	cw_incident_undelivered(inc); /* as after a reload */
	pass(40);
	cr_assert_eq(alerts, 0);
	/* For the next matter we ask anew. */
	suppressed = NULL;
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 12, 0);
	pass(5);
	cr_assert_null(cw_incident_suppressed(inc));
	cr_assert_str_eq(last_suppressed, "");
	cr_assert_eq(alerts, 1);
}

Test(incident, other_matter_taking_its_turn_does_not_end_the_first)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_SUSPECT, 12, 0);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_QUIET, 0, 0);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_ALERTED);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 12, 11);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_CONFIRMED);
	pass(1);
	cr_assert_eq(alerts, 2);
}

Test(incident, end_of_the_job_closes_the_bundle)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cw_incident_end(inc);
	cr_assert_str_eq(last_closed_as, "job_ended");
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_ENDED);
}

static void expect_end(const char *how)
{
	const char *said = strstr(last_end, how),
		   *before = strstr(last_end, "What was seen before: ");

	cr_expect_eq(ends, 1, "%u ends, the last: %s", ends, last_end);
	cr_expect(said && before && said < before, "%s", last_end);
}

Test(incident, the_journal_has_one_end_in_the_past_tense)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cr_expect_eq(ends, 0);
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	pass(1);
	expect_end(": resolved");
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	cw_incident_end(inc);
	expect_end(": resolved");
}

Test(incident, the_journal_has_the_end_of_a_job_that_hung_once)
{
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(1);
	cw_incident_end(inc);
	cw_incident_end(inc);
	expect_end(": the job ended");
}

/* A stall that only viewers of the status see. */
static void evaluate_notice(uint64_t key)
{
	struct cw_verdict v = verdict(CW_CLASS_NEVER_ENTERED);
	struct cw_stall_decision d = { .phase = CW_STALL_STALLED,
				       .is_noticed = true,
				       .key = matter(key),
				       .hang = CW_HANG_POSSIBLE };

	snap->now_ns = now;
	cw_incident_step(inc, snap, &v, &d);
}

Test(incident, a_notice_has_a_bundle_and_calls_nobody)
{
	evaluate_notice(11);
	pass(10);
	cr_assert(cw_incident_is_open(inc));
	cr_assert(cw_incident_is_noted(inc));
	cr_assert_eq(notices, 1);
	cr_assert_eq(alerts, 0);
	cr_assert_geq(bundles, 1);
	evaluate_notice(11);
	pass(40);
	cr_assert_eq(notices, 1);
	evaluate(CW_CLASS_HEALTHY, CW_STALL_QUIET, 0, 11);
	cr_assert_not(cw_incident_is_open(inc));
	cr_assert_eq(alerts, 0);
	cr_assert_str_eq(last_closed_as, "slow");
}

Test(incident, a_notice_has_stacks_of_all_ranks)
{
	evidence_answer = "{\"schema\":\"collwatch.evidence/1\",\"native\":{\"status\":\"ok\","
			  "\"threads\":[{\"tid\":101,\"frames\":[{\"symbol\":\"f\"}]}]}}";
	evaluate_notice(11);
	pass(10);
	cr_assert_str_eq(last_severity, "notice");
	cr_assert_eq(bundle_stacks, 2);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(10);
	cr_assert_str_eq(last_severity, "page");
	cr_assert_eq(bundle_stacks, 2, "taken anew");
}

Test(incident, a_notice_proposes_what_its_decision_does)
{
	struct cw_verdict v = verdict(CW_CLASS_NEVER_ENTERED);
	struct cw_stall_decision d = { .phase = CW_STALL_STALLED,
				       .is_noticed = true,
				       .proposes_serving = true,
				       .key = matter(11),
				       .hang = CW_HANG_POSSIBLE };

	snap->now_ns = now;
	cw_incident_step(inc, snap, &v, &d);
	pass(10);
	cr_assert_eq(notices, 1);
	cr_assert_eq(alerts, 0);
	cr_expect_not_null(strstr(last_notice, "COLLWATCH_POLICY=serving"), "%s", last_notice);
}

Test(incident, what_was_noted_becomes_one_page_under_the_same_id)
{
	char noted[CW_INCIDENT_ID_LEN];

	evaluate_notice(11);
	pass(10);
	(void)snprintf(noted, sizeof(noted), "%s", cw_incident_id(inc));
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(10);
	cr_assert_eq(cw_incident_state(inc), CW_INCIDENT_ALERTED);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(notices, 1);
	cr_assert_str_eq(sent_id, noted);
	cr_assert_eq(cw_incident_severity(inc), CW_SEVERITY_PAGE);
}

/* A page on disk that was not sent is sent as it lies there: by then its evidence must be in it. */
Test(incident, what_was_noted_is_a_page_on_disk_when_people_are_told)
{
	evaluate_notice(11);
	pass(1);
	cr_assert_str_eq(last_severity, "notice");
	for (unsigned i = 0; i < 80 && !alerts; i++) {
		evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
		cr_assert_str_eq(last_severity, "notice", "before the alert");
		pass(0.25);
	}
	cr_assert_eq(alerts, 1);
	cr_assert_str_eq(last_severity, "page");
}

Test(incident, without_notices_there_is_nothing_before_the_page)
{
	has_notices = false;
	evaluate_notice(11);
	pass(10);
	cr_assert_not(cw_incident_is_open(inc));
	cr_assert_eq(bundles, 0);
	evaluate(CW_CLASS_NEVER_ENTERED, CW_STALL_HANG, 11, 0);
	pass(10);
	cr_assert_eq(alerts, 1);
	cr_assert_eq(notices, 0);
}
