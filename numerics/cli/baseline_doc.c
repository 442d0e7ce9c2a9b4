/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_doc.h"

#include <math.h>

#include "model/op.h"
#include "numerics/cli/baseline_text.h"
#include "report/json_util.h"

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *side_doc(const struct cw_baseline_row *row, enum cw_baseline_side side)
{
	json_t *doc;
	int bad = 0;

	if (!cw_baseline_row_has(row, side))
		return json_null();
	doc = json_object();
	for (enum cw_baseline_value v = 0; v < CW_BASELINE_VALUES; v++)
		bad |= json_object_set_new(doc, cw_baseline_value_name(v),
					   number(cw_baseline_row_value(row, side, v)));
	bad |= json_object_set_new(doc, "nonfinite", json_integer(row->nonfinite[side]));
	return cw_json_finish(doc, bad);
}

static json_t *op_doc(const struct baseline_op *op)
{
	const struct cw_baseline_row *row = &op->row;
	bool is_operator = cw_baseline_row_is_operator(row);

	if (!op->is_there)
		return json_null();
	return cw_json_object((struct cw_json_member[]){
		{ "comm", cw_json_hex(op->comm.id) },
		{ "comm_name", cw_json_text(op->comm.name) },
		{ "kind", json_string(baseline_kind_name(row->kind)) },
		{ "seq", json_integer(row->seq) },
		{ "step",
		  row->step_plus_1 ? json_integer((json_int_t)row->step_plus_1 - 1) : json_null() },
		{ "dtype", json_string(cw_dtype_name(row->dtype)) },
		{ "redop", json_string(cw_redop_name(row->redop)) },
		{ "root", row->root_or_peer >= 0 && !is_operator ? json_integer(row->root_or_peer)
								 : json_null() },
		{ "call", is_operator ? json_integer(op->call) : json_null() },
		{ "elements_in", is_operator ? json_integer(row->root_or_peer) : json_null() },
		{ "count", cw_json_u64(cw_baseline_row_count(row)) },
		{ "site", op->site[0] ? cw_json_text(op->site) : json_null() },
		{ "input", side_doc(row, CW_BASELINE_IN) },
		{ "output", side_doc(row, CW_BASELINE_OUT) },
		{ NULL },
	});
}

static json_t *number_of_rank(const struct baseline_rank *rank)
{
	return rank->rank == BASELINE_ALL_RANKS ? json_null() : json_integer(rank->rank);
}

static json_t *difference_doc(const struct baseline_rank *rank)
{
	const struct cw_baseline_difference *d = &rank->said.first;
	bool has_side = d->what == CW_BASELINE_TENSOR_STATS || d->what == CW_BASELINE_NONFINITE;
	bool has_value = d->what == CW_BASELINE_TENSOR_STATS;
	char text[BASELINE_TEXT_BYTES_MAX];

	if (d->what == CW_BASELINE_EQUAL)
		return json_null();
	return cw_json_object((struct cw_json_member[]){
		{ "rank", number_of_rank(rank) },
		{ "what", json_string(cw_baseline_what_name(d->what)) },
		{ "side", has_side ? json_string(d->side == CW_BASELINE_IN ? "input" : "output")
				   : json_null() },
		{ "value",
		  has_value ? json_string(cw_baseline_value_name(d->value)) : json_null() },
		{ "allowed", has_value ? number(d->allowed) : json_null() },
		{ "baseline", op_doc(&rank->op_a) },
		{ "check", op_doc(&rank->op_b) },
		{ "text", cw_json_text(baseline_text_first(rank, text, sizeof(text))) },
		{ NULL },
	});
}

static json_t *part_doc(const struct baseline_part *part)
{
	static const char *const names[CW_BASELINE_COUNTERS] = {
		[CW_BASELINE_N_LOST_OPS] = "lost_ops",
		[CW_BASELINE_N_LOST_TENSORS] = "lost_tensors",
		[CW_BASELINE_N_PARTIAL] = "partial",
		[CW_BASELINE_N_UNSEEN] = "unseen",
		[CW_BASELINE_N_REFUSED] = "refused",
		[CW_BASELINE_N_NOT_COLLECTED] = "not_collected",
		[CW_BASELINE_N_TENSORS] = "tensors",
	};
	json_t *doc;
	int bad = 0;

	if (!part->is_there)
		return json_null();
	doc = json_object();
	bad |= json_object_set_new(doc, "finished", json_boolean(part->is_finished));
	for (unsigned n = 0; n < CW_BASELINE_COUNTERS; n++)
		bad |= json_object_set_new(doc, names[n], cw_json_u64(part->counters[n]));
	return cw_json_finish(doc, bad);
}

static int set_counts(json_t *doc, const struct cw_baseline_said *s)
{
	int bad = 0;

	bad |= cw_json_add(doc, (struct cw_json_member[]){
					{ "ops_baseline", cw_json_u64(s->n_a) },
					{ "ops_check", cw_json_u64(s->n_b) },
					{ "paired", cw_json_u64(s->n_paired) },
					{ "checked", cw_json_u64(s->n_checked) },
					{ "omitted", cw_json_u64(s->n_denied) },
					{ "skipped_baseline", cw_json_u64(s->n_skipped_a) },
					{ "skipped_check", cw_json_u64(s->n_skipped_b) },
					{ "unrecorded_baseline", cw_json_u64(s->n_unrecorded_a) },
					{ "unrecorded_check", cw_json_u64(s->n_unrecorded_b) },
					{ "missing", cw_json_u64(s->n_missing) },
					{ "extra", cw_json_u64(s->n_extra) },
					{ "unlike", cw_json_u64(s->n_unlike) },
					{ "called_otherwise", cw_json_u64(s->n_called_otherwise) },
					{ "tensor_stats", cw_json_u64(s->n_tensor_stats) },
					{ "paired_by", json_string(cw_baseline_way_name(s->way)) },
					{ NULL },
				});
	return bad;
}

static json_t *ranks_doc(const struct baseline_job *job)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct baseline_rank *r = &job->parts[i];
		json_t *doc = json_object();

		bad |= json_object_set_new(doc, "rank", number_of_rank(r));
		bad |= json_object_set_new(doc, "part",
					   json_string(r->part == CW_BASELINE_OPERATORS
							       ? "operators"
							       : "collectives"));
		bad |= set_counts(doc, &r->said);
		bad |= cw_json_add(doc, (struct cw_json_member[]){
						{ "first", difference_doc(r) },
						{ "baseline", part_doc(&r->a) },
						{ "check", part_doc(&r->b) },
						{ NULL },
					});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *together_doc(const struct baseline_job *job)
{
	if (!job->world_size_a)
		return json_null();
	return cw_json_object((struct cw_json_member[]){
		{ "ranks_baseline", json_integer(job->world_size_a) },
		{ "ranks_check", json_integer(job->world_size_b) },
		{ "own", cw_json_u64(job->sum.n_own) },
		{ "omitted_baseline", cw_json_u64(job->n_unlike_a) },
		{ "omitted_check", cw_json_u64(job->n_unlike_b) },
		{ NULL },
	});
}

static json_t *tolerances_doc(const struct baseline_request *request)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned dtype = 0; dtype < CW_DTYPE__MAX; dtype++) {
		const struct cw_baseline_tolerance *t = &request->options.of[dtype];
		json_t *doc;

		doc = cw_json_object((struct cw_json_member[]){
			{ "dtype", json_string(cw_dtype_name(dtype)) },
			{ "rtol", number(t->rtol) },
			{ "atol", number(t->atol) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

json_t *baseline_doc(const struct baseline_job *job, const struct baseline_request *request)
{
	static const char *const outcomes[] = { [BASELINE_OUTCOME_EQUAL] = "equal",
						[BASELINE_OUTCOME_DIFFERS] = "differs",
						[BASELINE_OUTCOME_NONE] = "incomparable" };
	char text[BASELINE_TEXT_BYTES_MAX];
	json_t *doc;
	int bad = 0;

	doc = cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.baseline_check/1") },
		{ "outcome", json_string(outcomes[job->outcome]) },
		{ "why", job->why[0] ? cw_json_text(job->why) : json_null() },
		{ "coverage", cw_json_text(baseline_text_coverage(job, text, sizeof(text))) },
		{ NULL },
	});
	bad |= set_counts(doc, &job->sum);
	bad |= cw_json_add(
		doc, (struct cw_json_member[]){
			     { "first", job->n_differ ? difference_doc(&job->parts[job->first])
						      : json_null() },
			     { "ranks_compared", json_integer(job->n_compared) },
			     { "ranks_that_differ", json_integer(job->n_differ) },
			     { "together", together_doc(job) },
			     { "tolerances", tolerances_doc(request) },
			     { "denied_baseline", cw_json_text(baseline_text_denied(job, false)) },
			     { "denied_check", cw_json_text(baseline_text_denied(job, true)) },
			     { "ranks", ranks_doc(job) },
			     { NULL },
		     });
	return cw_json_finish(doc, bad);
}
