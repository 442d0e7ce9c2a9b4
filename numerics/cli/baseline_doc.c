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
	json_t *doc;
	int bad = 0;

	if (!op->is_there)
		return json_null();
	doc = json_object();
	bad |= json_object_set_new(doc, "comm", cw_json_hex(op->comm.id));
	bad |= json_object_set_new(doc, "comm_name", cw_json_text(op->comm.name));
	bad |= json_object_set_new(doc, "kind", json_string(baseline_kind_name(row->kind)));
	bad |= json_object_set_new(doc, "seq", json_integer(row->seq));
	bad |= json_object_set_new(doc, "step",
				   row->step_plus_1 ? json_integer((json_int_t)row->step_plus_1 - 1)
						    : json_null());
	bad |= json_object_set_new(doc, "dtype", json_string(cw_dtype_name(row->dtype)));
	bad |= json_object_set_new(doc, "redop", json_string(cw_redop_name(row->redop)));
	bad |= json_object_set_new(doc, "root",
				   row->root_or_peer >= 0 && !is_operator
					   ? json_integer(row->root_or_peer)
					   : json_null());
	bad |= json_object_set_new(doc, "call", is_operator ? json_integer(op->call) : json_null());
	bad |= json_object_set_new(doc, "elements_in",
				   is_operator ? json_integer(row->root_or_peer) : json_null());
	bad |= json_object_set_new(doc, "count", cw_json_u64(cw_baseline_row_count(row)));
	bad |= json_object_set_new(doc, "site", op->site[0] ? cw_json_text(op->site) : json_null());
	bad |= json_object_set_new(doc, "input", side_doc(row, CW_BASELINE_IN));
	bad |= json_object_set_new(doc, "output", side_doc(row, CW_BASELINE_OUT));
	return cw_json_finish(doc, bad);
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
	json_t *doc;
	int bad = 0;

	if (d->what == CW_BASELINE_EQUAL)
		return json_null();
	doc = json_object();
	bad |= json_object_set_new(doc, "rank", number_of_rank(rank));
	bad |= json_object_set_new(doc, "what", json_string(cw_baseline_what_name(d->what)));
	bad |= json_object_set_new(
		doc, "side",
		has_side ? json_string(d->side == CW_BASELINE_IN ? "input" : "output")
			 : json_null());
	bad |= json_object_set_new(doc, "value",
				   has_value ? json_string(cw_baseline_value_name(d->value))
					     : json_null());
	bad |= json_object_set_new(doc, "allowed", has_value ? number(d->allowed) : json_null());
	bad |= json_object_set_new(doc, "baseline", op_doc(&rank->op_a));
	bad |= json_object_set_new(doc, "check", op_doc(&rank->op_b));
	bad |= json_object_set_new(doc, "text",
				   cw_json_text(baseline_text_first(rank, text, sizeof(text))));
	return cw_json_finish(doc, bad);
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

	bad |= json_object_set_new(doc, "ops_baseline", cw_json_u64(s->n_a));
	bad |= json_object_set_new(doc, "ops_check", cw_json_u64(s->n_b));
	bad |= json_object_set_new(doc, "paired", cw_json_u64(s->n_paired));
	bad |= json_object_set_new(doc, "checked", cw_json_u64(s->n_checked));
	bad |= json_object_set_new(doc, "omitted", cw_json_u64(s->n_denied));
	bad |= json_object_set_new(doc, "skipped_baseline", cw_json_u64(s->n_skipped_a));
	bad |= json_object_set_new(doc, "skipped_check", cw_json_u64(s->n_skipped_b));
	bad |= json_object_set_new(doc, "unrecorded_baseline", cw_json_u64(s->n_unrecorded_a));
	bad |= json_object_set_new(doc, "unrecorded_check", cw_json_u64(s->n_unrecorded_b));
	bad |= json_object_set_new(doc, "missing", cw_json_u64(s->n_missing));
	bad |= json_object_set_new(doc, "extra", cw_json_u64(s->n_extra));
	bad |= json_object_set_new(doc, "unlike", cw_json_u64(s->n_unlike));
	bad |= json_object_set_new(doc, "called_otherwise", cw_json_u64(s->n_called_otherwise));
	bad |= json_object_set_new(doc, "tensor_stats", cw_json_u64(s->n_tensor_stats));
	bad |= json_object_set_new(doc, "paired_by", json_string(cw_baseline_way_name(s->way)));
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
		bad |= json_object_set_new(doc, "first", difference_doc(r));
		bad |= json_object_set_new(doc, "baseline", part_doc(&r->a));
		bad |= json_object_set_new(doc, "check", part_doc(&r->b));
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *together_doc(const struct baseline_job *job)
{
	json_t *doc;
	int bad = 0;

	if (!job->world_size_a)
		return json_null();
	doc = json_object();
	bad |= json_object_set_new(doc, "ranks_baseline", json_integer(job->world_size_a));
	bad |= json_object_set_new(doc, "ranks_check", json_integer(job->world_size_b));
	bad |= json_object_set_new(doc, "own", cw_json_u64(job->sum.n_own));
	bad |= json_object_set_new(doc, "omitted_baseline", cw_json_u64(job->n_unlike_a));
	bad |= json_object_set_new(doc, "omitted_check", cw_json_u64(job->n_unlike_b));
	return cw_json_finish(doc, bad);
}

static json_t *tolerances_doc(const struct baseline_request *request)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned dtype = 0; dtype < CW_DTYPE__MAX; dtype++) {
		const struct cw_baseline_tolerance *t = &request->options.of[dtype];
		json_t *doc = json_object();

		bad |= json_object_set_new(doc, "dtype", json_string(cw_dtype_name(dtype)));
		bad |= json_object_set_new(doc, "rtol", number(t->rtol));
		bad |= json_object_set_new(doc, "atol", number(t->atol));
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
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "schema", json_string("collwatch.baseline_check/1"));
	bad |= json_object_set_new(doc, "outcome", json_string(outcomes[job->outcome]));
	bad |= json_object_set_new(doc, "why", job->why[0] ? cw_json_text(job->why) : json_null());
	bad |= json_object_set_new(doc, "coverage",
				   cw_json_text(baseline_text_coverage(job, text, sizeof(text))));
	bad |= set_counts(doc, &job->sum);
	bad |= json_object_set_new(doc, "first",
				   job->n_differ ? difference_doc(&job->parts[job->first])
						 : json_null());
	bad |= json_object_set_new(doc, "ranks_compared", json_integer(job->n_compared));
	bad |= json_object_set_new(doc, "ranks_that_differ", json_integer(job->n_differ));
	bad |= json_object_set_new(doc, "together", together_doc(job));
	bad |= json_object_set_new(doc, "tolerances", tolerances_doc(request));
	bad |= json_object_set_new(doc, "denied_baseline",
				   cw_json_text(baseline_text_denied(job, false)));
	bad |= json_object_set_new(doc, "denied_check",
				   cw_json_text(baseline_text_denied(job, true)));
	bad |= json_object_set_new(doc, "ranks", ranks_doc(job));
	return cw_json_finish(doc, bad);
}
