/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cause.h"
#include "report/doc/snapshot_doc.h"
#include "report/doc/snapshot_text.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/signature.h"
#include "tests/support/report/report_fixture.h"

/* A fixed sequence: a failing case can be run again. */
static uint64_t state;

static uint64_t any64(void)
{
	state = cw_hash_mix64(state);
	return state;
}

/* Zero, small and extreme values are where round trips break. */
static uint64_t any_value(void)
{
	switch (any64() % 5) {
	case 0:
		return 0;
	case 1:
		return any64() % 100;
	case 2:
		return UINT64_MAX;
	case 3:
		return (uint64_t)INT64_MIN;
	default:
		return any64();
	}
}

static void fill(void *at, size_t len)
{
	uint8_t *bytes = at;

	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		uint64_t v = any_value();
		size_t n = len - i < sizeof(v) ? len - i : sizeof(v);

		memcpy(bytes + i, &v, n);
	}
}

/* Any two of them can be subtracted: others are refused. */
static void tame(int64_t *instant)
{
	*instant /= 2;
}

static void fill_thresholds(struct cw_thresholds *t)
{
	int64_t *all[] = { &t->stall_min_ns,
			   &t->stall_max_ns,
			   &t->first_op_ns,
			   &t->first_op_per_rank_ns,
			   &t->proof_ns,
			   &t->confirm_ns,
			   &t->window_after_ns,
			   &t->no_progress_after_ns,
			   &t->host_activity_alert_ns,
			   &t->in_collective_ns,
			   &t->node_silent_ns };

	fill(t, sizeof(*t));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tame(all[i]);
}

static const char *any_text(void)
{
	static const char *const texts[] = { NULL, "", "tp_group", "\x01\x7f weird \"quoted\"\n",
					     "Grüße, 世界" };

	return texts[any64() % 5];
}

static void random_op(struct cw_op *op)
{
	fill(op, sizeof(*op));
	tame(&op->enter_ns);
	tame(&op->return_ns);
}

static void random_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank)
{
	struct cw_op ops[4], pending, last;
	struct cw_p2p_peer p2p[3];
	struct cw_checkpoint last_hashes[3];
	struct cw_snap_connection connections[3];
	struct cw_snap_member m;

	fill(&m, sizeof(m));
	tame(&m.window_ns);
	tame(&m.progress_ns);
	tame(&m.interval_ns);
	for (size_t i = 0; i < 4; i++)
		random_op(&ops[i]);
	for (size_t i = 0; i < 3; i++)
		fill(&p2p[i], sizeof(p2p[i]));
	fill(last_hashes, sizeof(last_hashes));
	for (size_t i = 0; i < 3; i++) {
		fill(&connections[i], sizeof(connections[i]));
		tame(&connections[i].moved_ns);
		tame(&connections[i].same_since_ns);
		tame(&connections[i].held_ns);
	}
	random_op(&pending);
	random_op(&last);
	m.rank = (uint32_t)(any64() % snap->n_ranks);
	m.pending = any64() % 2 ? &pending : NULL;
	m.last = any64() % 2 ? &last : NULL;
	m.n_window = (uint32_t)(any64() % 5);
	m.window = m.n_window ? ops : NULL;
	m.n_last_hashes = (uint32_t)(any64() % 4);
	m.last_hashes = m.n_last_hashes ? last_hashes : NULL;
	m.n_p2p = (uint32_t)(any64() % 4);
	m.p2p = m.n_p2p ? p2p : NULL;
	m.n_connections = (uint32_t)(any64() % 4);
	m.connections = m.n_connections ? connections : NULL;
	m.last_error = any_text();
	cr_assert_eq(cw_snapshot_set_member(snap, comm, comm_rank, &m), 0);
}

static struct cw_snapshot *random_snapshot(void)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t index, n_nodes = 1 + (uint32_t)(any64() % 3),
			n_ranks = 1 + (uint32_t)(any64() % 9);

	cr_assert_not_null(snap);
	snap->now_ns = (int64_t)any_value();
	snap->wall_ns = (int64_t)any_value();
	snap->policy = (uint32_t)any_value();
	snap->ranks_expected = (uint32_t)any_value();
	tame(&snap->now_ns);
	tame(&snap->wall_ns);
	fill_thresholds(&snap->thresholds);
	cr_assert_eq(cw_snapshot_set_job(snap, any_text(), any_text()), 0);
	for (uint32_t i = 0; i < n_nodes; i++) {
		cr_assert_eq(cw_snapshot_add_node(snap, "node", &index), 0);
		snap->nodes[index].state = (uint32_t)any_value();
		snap->nodes[index].last_digest_ns = (int64_t)any_value();
		tame(&snap->nodes[index].last_digest_ns);
	}
	for (uint32_t i = 0; i < n_ranks; i++) {
		struct cw_snap_rank rank;

		fill(&rank, sizeof(rank));
		tame(&rank.ended_ns);
		tame(&rank.sampled_ns);
		tame(&rank.host_activity_ns);
		tame(&rank.host_call.enter_ns);
		tame(&rank.host_call.return_ns);
		rank.node = (uint32_t)(any64() % n_nodes);
		rank.host_activity_by = any_text();
		rank.command = any_text();
		rank.cause = any_text();
		rank.cause_kind %= 2 * CW_CAUSE__MAX;
		rank.cause_command = any_text();
		rank.cause_group = any_text();
		rank.job_timeout_source = any_text();
		rank.nccl_variables = any_text();
		rank.pod = any_text();
		rank.pod_namespace = any_text();
		rank.container = any_text();
		rank.nonfinite_input = any_text();
		tame(&rank.nonfinite_input_ns);
		if (rank.host_call.kind == CW_OP_NONE)
			rank.host_call = (struct cw_op){ 0 };
		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	for (uint32_t c = 0; c < any64() % 4; c++) {
		struct cw_snap_comm comm;

		fill(&comm, sizeof(comm));
		comm.id = c + 1; /* (id, instance) names a comm once */
		comm.nranks = 1 + (uint32_t)(any64() % 6);
		comm.name = any_text();
		cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
		for (uint32_t m = 0; m < comm.nranks; m++)
			if (any64() % 3)
				random_member(snap, index, m);
	}
	cr_assert_eq(cw_snapshot_add_note(snap, "a note"), 0);
	return snap;
}

static void assert_same_text(const char *a, const char *b, const char *what)
{
	cr_assert_eq(!a, !b, "%s: one is missing", what);
	if (a)
		cr_assert_str_eq(a, b, "%s", what);
}

/* Field by field where padding may differ, so that we compare no padding. */
static void assert_same_op(const struct cw_op *a, const struct cw_op *b)
{
	cr_assert_eq(!a, !b);
	if (!a)
		return;
	cr_assert(a->kind == b->kind && a->dtype == b->dtype && a->redop == b->redop);
	cr_assert(a->progress == b->progress && a->flags == b->flags && a->result == b->result);
	cr_assert(a->root == b->root && a->peer == b->peer && a->count == b->count);
	cr_assert(a->bytes == b->bytes && a->coll_seq == b->coll_seq && a->p2p_seq == b->p2p_seq);
	cr_assert(a->op_index == b->op_index && a->group_id == b->group_id);
	cr_assert(a->stream == b->stream && a->tid == b->tid);
	cr_assert(a->enter_ns == b->enter_ns && a->return_ns == b->return_ns);
}

static void assert_same_member(const struct cw_snap_member *a, const struct cw_snap_member *b)
{
	cr_assert_eq(a->rank, b->rank);
	if (a->rank == CW_SNAP_NONE)
		return;
	cr_assert(a->state == b->state && a->known == b->known);
	cr_assert(a->pending_count == b->pending_count && a->op_index == b->op_index);
	cr_assert(a->coll_entered == b->coll_entered && a->coll_returned == b->coll_returned);
	cr_assert(a->coll_reached == b->coll_reached && a->coll_completed == b->coll_completed);
	cr_assert(a->hash_seq == b->hash_seq && a->hash == b->hash);
	cr_assert_arr_eq(a->checkpoints, b->checkpoints, sizeof(a->checkpoints));
	cr_assert_eq(a->n_last_hashes, b->n_last_hashes);
	for (uint32_t i = 0; i < a->n_last_hashes; i++)
		cr_assert(a->last_hashes[i].coll_seq == b->last_hashes[i].coll_seq &&
			  a->last_hashes[i].hash == b->last_hashes[i].hash);
	assert_same_op(a->pending, b->pending);
	assert_same_op(a->last, b->last);
	cr_assert(a->n_window == b->n_window && a->n_p2p == b->n_p2p);
	for (uint32_t i = 0; i < a->n_window; i++)
		assert_same_op(&a->window[i], &b->window[i]);
	for (uint32_t i = 0; i < a->n_p2p; i++) {
		cr_assert(a->p2p[i].peer == b->p2p[i].peer && a->p2p[i].sends == b->p2p[i].sends);
		cr_assert(a->p2p[i].recvs == b->p2p[i].recvs);
		cr_assert(a->p2p[i].send_hash == b->p2p[i].send_hash);
		cr_assert(a->p2p[i].recv_hash == b->p2p[i].recv_hash);
	}
	cr_assert(a->window_lost == b->window_lost && a->window_ns == b->window_ns);
	cr_assert(a->progress_ns == b->progress_ns && a->interval_ns == b->interval_ns);
	cr_assert(a->sends == b->sends && a->recvs == b->recvs);
	cr_assert(a->async_error == b->async_error && a->last_result == b->last_result);
	assert_same_text(a->last_error, b->last_error, "last_error");
}

static void assert_same_rank(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	cr_assert(a->rank == b->rank && a->node == b->node && a->pid == b->pid);
	cr_assert(a->device == b->device && a->start_ticks == b->start_ticks);
	cr_assert(a->liveness == b->liveness && a->flags == b->flags);
	cr_assert(a->exit_code == b->exit_code && a->term_signal == b->term_signal);
	cr_assert(a->ended_ns == b->ended_ns && a->sampled_ns == b->sampled_ns);
	cr_assert(a->host_activity_ns == b->host_activity_ns && a->nccl_version == b->nccl_version);
	cr_assert(a->env_hash == b->env_hash && a->dropped == b->dropped);
	cr_assert_eq(a->host_call_comm_id, b->host_call_comm_id);
	assert_same_op(&a->host_call, &b->host_call);
	assert_same_text(a->host_activity_by, b->host_activity_by, "host_activity_by");
	assert_same_text(a->command, b->command, "command");
	assert_same_text(a->cause, b->cause, "cause");
	assert_same_text(a->cause_command, b->cause_command, "cause_command");
	assert_same_text(a->cause_group, b->cause_group, "cause_group");
	cr_assert(a->cause_kind == b->cause_kind && a->cause_by == b->cause_by);
	cr_assert(a->cause_signal == b->cause_signal && a->cause_pid == b->cause_pid);
	cr_assert(a->cause_uid == b->cause_uid && a->cause_resident == b->cause_resident);
	cr_assert(a->cause_group_bytes == b->cause_group_bytes &&
		  a->cause_group_limit == b->cause_group_limit);
	cr_assert(a->cause_op_kind == b->cause_op_kind && a->cause_op_seq == b->cause_op_seq);
	cr_assert_eq(a->cause_is_output, b->cause_is_output);
	assert_same_text(a->nonfinite_input, b->nonfinite_input, "nonfinite_input");
	assert_same_text(a->job_timeout_source, b->job_timeout_source, "job_timeout_source");
	assert_same_text(a->nccl_variables, b->nccl_variables, "nccl_variables");
	cr_assert_eq(a->nccl_variables_omitted, b->nccl_variables_omitted);
	assert_same_text(a->pod, b->pod, "pod");
	assert_same_text(a->pod_namespace, b->pod_namespace, "pod_namespace");
	assert_same_text(a->container, b->container, "container");
	cr_assert_eq(a->own_pid, b->own_pid);
	cr_assert_eq(a->nonfinite_input_ns, b->nonfinite_input_ns);
}

static void assert_same(const struct cw_snapshot *a, const struct cw_snapshot *b)
{
	cr_assert(a->now_ns == b->now_ns && a->wall_ns == b->wall_ns && a->policy == b->policy);
	cr_assert_eq(a->ranks_expected, b->ranks_expected);
	assert_same_text(a->job, b->job, "job");
	assert_same_text(a->group, b->group, "group");
	cr_assert(a->thresholds.stall_min_ns == b->thresholds.stall_min_ns);
	cr_assert(a->thresholds.stall_factor == b->thresholds.stall_factor);
	cr_assert(a->thresholds.bytes_per_s == b->thresholds.bytes_per_s);
	cr_assert(a->thresholds.node_silent_ns == b->thresholds.node_silent_ns);
	cr_assert(a->n_nodes == b->n_nodes && a->n_ranks == b->n_ranks);
	cr_assert(a->n_comms == b->n_comms && a->n_notes == b->n_notes);
	for (uint32_t i = 0; i < a->n_nodes; i++)
		cr_assert(a->nodes[i].state == b->nodes[i].state &&
			  a->nodes[i].last_digest_ns == b->nodes[i].last_digest_ns);
	for (uint32_t i = 0; i < a->n_ranks; i++)
		assert_same_rank(&a->ranks[i], &b->ranks[i]);
	for (uint32_t c = 0; c < a->n_comms; c++) {
		cr_assert(a->comms[c].id == b->comms[c].id);
		cr_assert(a->comms[c].split_color == b->comms[c].split_color);
		cr_assert(a->comms[c].parent_id == b->comms[c].parent_id);
		cr_assert_eq(a->comms[c].nranks, b->comms[c].nranks);
		assert_same_text(a->comms[c].name, b->comms[c].name, "name");
		for (uint32_t m = 0; m < a->comms[c].nranks; m++)
			assert_same_member(&a->comms[c].members[m], &b->comms[c].members[m]);
	}
}

/* Through text, as a bundle goes. */
static struct cw_snapshot *through_text(const struct cw_snapshot *snap)
{
	json_t *doc = cw_snapshot_doc(snap), *again;
	struct cw_snapshot *back = NULL;
	struct cw_err err = { "" };
	char *text;

	cr_assert_not_null(doc);
	text = json_dumps(doc, JSON_COMPACT);
	cr_assert_not_null(text);
	again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(again);
	cr_assert_eq(cw_snapshot_from_doc(again, &back, &err), 0, "%s", err.text);
	free(text);
	json_decref(doc);
	json_decref(again);
	return back;
}

Test(snapshot_doc, any_snapshot_comes_back_unchanged)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct cw_snapshot *snap, *back;

		state = seed;
		snap = random_snapshot();
		back = through_text(snap);
		assert_same(snap, back);
		cw_snapshot_free(back);
		cw_snapshot_free(snap);
	}
}

static json_t *text_in_pieces(const struct cw_snapshot *snap, uint64_t pieces)
{
	struct cw_snapshot_text *writer = cw_snapshot_text_new(snap, NULL);
	json_t *text, *doc;
	uint64_t left;
	int r;

	cr_assert_not_null(writer);
	do {
		cr_assert_null(cw_snapshot_text_take(writer), "it is not complete");
		left = cw_snapshot_text_left(writer);
		r = cw_snapshot_text_step(writer, snap, pieces);
		cr_assert_geq(r, 0);
		cr_assert_leq(left - cw_snapshot_text_left(writer), pieces);
	} while (r == 0);
	cr_assert_eq(cw_snapshot_text_left(writer), 0);
	text = cw_snapshot_text_take(writer);
	doc = json_loadb(json_string_value(text), json_string_length(text), JSON_REJECT_DUPLICATES,
			 NULL);
	cr_assert_not_null(doc);
	json_decref(text);
	(void)cw_snapshot_text_free(writer);
	return doc;
}

Test(snapshot_doc, text_in_pieces_says_the_same)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct cw_snapshot *snap;
		json_t *whole, *pieces;

		state = seed;
		snap = random_snapshot();
		whole = cw_snapshot_doc(snap);
		pieces = text_in_pieces(snap, seed % 5 + 1);
		cr_assert(json_equal(whole, pieces), "seed %d", (int)seed);
		json_decref(whole);
		json_decref(pieces);
		cw_snapshot_free(snap);
	}
}

Test(snapshot_doc, text_of_nothing_is_a_document)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	json_t *whole = cw_snapshot_doc(snap), *pieces = text_in_pieces(snap, 1);

	cr_assert(json_equal(whole, pieces));
	json_decref(whole);
	json_decref(pieces);
	cw_snapshot_free(snap);
}

Test(snapshot_doc, call_stacks_come_back_under_their_numbers)
{
	struct cw_snapshot *snap = fixture_snapshot(), *back;
	uint32_t number;

	cr_assert_eq(cw_snapshot_add_stack(snap, "a.py:1 in f\nb.py:2 in g", &number), 0);
	cr_assert_eq(cw_snapshot_add_stack(snap, "b.py:2 in g", &number), 0);
	cr_assert_eq(number, 2);
	snap->comms[0].members[0].last->stack = 2;
	back = through_text(snap);
	cr_assert_eq(back->n_stacks, 2);
	cr_expect_str_eq(back->stacks[0], "a.py:1 in f\nb.py:2 in g");
	cr_expect_str_eq(cw_snapshot_stack(back, back->comms[0].members[0].last), "b.py:2 in g");
	cw_snapshot_free(back);
	cw_snapshot_free(snap);
}

Test(snapshot_doc, the_same_verdict_can_be_computed_from_a_bundle)
{
	struct cw_snapshot *snap = fixture_snapshot(), *back = through_text(snap);

	assert_same(snap, back);
	cr_assert_eq(cw_snapshot_find_comm(back, FIXTURE_COMM, 1), 0);
	cw_snapshot_free(back);
	cw_snapshot_free(snap);
}

static void refuse(const char *why, json_t *doc, int expected)
{
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };

	cr_assert_not_null(doc);
	cr_assert_eq(cw_snapshot_from_doc(doc, &snap, &err), expected, "%s: %s", why, err.text);
	cr_assert_null(snap);
	cr_assert_neq(err.text[0], '\0', "%s: no reason given", why);
	json_decref(doc);
}

static json_t *good(void)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *doc = cw_snapshot_doc(snap);

	cw_snapshot_free(snap);
	return doc;
}

static json_t *comm_of(json_t *doc)
{
	return json_array_get(json_object_get(doc, "comms"), 0);
}

static json_t *member_of(json_t *doc)
{
	return json_array_get(json_object_get(comm_of(doc), "members"), 0);
}

Test(snapshot_doc, refuses_what_is_no_snapshot)
{
	refuse("array", json_array(), -EBADMSG);
	refuse("empty", json_object(), -EBADMSG);
	refuse("other schema", json_pack("{s:s}", "schema", "collwatch.incident/1"), -EBADMSG);
	refuse("no lists", json_pack("{s:s}", "schema", "collwatch.snapshot/1"), -EBADMSG);
}

Test(snapshot_doc, refuses_wrong_types_and_ranges)
{
	json_t *doc;

	doc = good();
	json_object_set_new(doc, "now_ns", json_string("soon"));
	refuse("text for a number", doc, -EBADMSG);
	doc = good();
	json_object_set_new(doc, "policy", json_integer(-1));
	refuse("negative", doc, -EBADMSG);
	doc = good();
	json_object_set_new(doc, "now_ns", json_integer(INT64_MIN));
	refuse("instant that cannot be subtracted", doc, -EBADMSG);
	doc = good();
	json_object_set_new(member_of(doc), "state", json_integer(INT64_C(1) << 32));
	refuse("too large for 32 bits", doc, -EBADMSG);
	doc = good();
	json_object_set_new(member_of(doc), "hash", json_string("0x12345678123456789"));
	refuse("17 digits", doc, -EBADMSG);
	doc = good();
	json_object_set_new(json_object_get(member_of(doc), "last"), "kind", json_integer(256));
	refuse("too large for 8 bits", doc, -EBADMSG);
	doc = good();
	json_object_set_new(member_of(doc), "window", json_integer(3));
	refuse("window is a number", doc, -EBADMSG);
	doc = good();
	json_object_set_new(doc, "notes", json_pack("[i]", 1));
	refuse("note is a number", doc, -EBADMSG);
	doc = good();
	json_object_set_new(doc, "stacks", json_pack("[i]", 1));
	refuse("stack is a number", doc, -EBADMSG);
	doc = good();
	json_object_set_new(doc, "stacks", json_pack("[ss]", "a", "a"));
	refuse("a stack under two numbers", doc, -EBADMSG);
}

Test(snapshot_doc, refuses_indices_that_point_nowhere)
{
	json_t *doc;

	doc = good();
	json_object_set_new(member_of(doc), "rank", json_integer(8));
	refuse("rank", doc, -EBADMSG);
	doc = good();
	json_object_set_new(member_of(doc), "comm_rank", json_integer(8));
	refuse("comm rank", doc, -EBADMSG);
	doc = good();
	json_object_set_new(member_of(doc), "comm_rank", json_integer(1));
	refuse("two members in one place", doc, -EBADMSG);
	doc = good();
	json_object_set_new(json_array_get(json_object_get(doc, "ranks"), 0), "node",
			    json_integer(2));
	refuse("node", doc, -EBADMSG);
}

Test(snapshot_doc, a_small_document_cannot_claim_much_memory)
{
	json_t *doc = good();

	json_object_set_new(comm_of(doc), "nranks", json_integer(16000000));
	refuse("16 million members, eight described", doc, -E2BIG);
}
