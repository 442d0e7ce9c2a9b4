/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_doc.h"

#include <math.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "model/op.h"
#include "numerics/cli/numerics_coverage.h"
#include "numerics/doc/numerics_text.h"
#include "numerics/judge/members.h"
#include "report/json_util.h"

#define TEXT_BYTES 1024

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *rank_of(const struct cw_numerics_job *job, uint32_t rank)
{
	return json_integer(job->ranks[rank].rank);
}

static json_t *sample_doc(const struct cw_numerics_job *job, uint32_t sample)
{
	const struct cw_numerics_sample *l = &job->samples[sample];

	return cw_json_object((struct cw_json_member[]){
		{ "rank", rank_of(job, l->rank) },
		{ "comm", cw_json_hex(job->comms[l->comm].id) },
		{ "comm_name", cw_json_text(job->comms[l->comm].name) },
		{ "kind", json_string(cw_op_kind_name(l->kind)) },
		{ "seq", cw_json_u64(l->seq) },
		{ "step", l->step >= 0 ? json_integer(l->step) : json_null() },
		{ "entered", cw_json_wall(l->at_ns) },
		{ "side", json_string(l->is_output ? "output" : "input") },
		{ "dtype", json_string(cw_dtype_name(l->dtype)) },
		{ "redop", json_string(cw_redop_name(l->redop)) },
		{ "elements", cw_json_u64(l->offered) },
		{ "looked_at", cw_json_u64(l->elements) },
		{ "nans", cw_json_u64(l->nans) },
		{ "infs", cw_json_u64(l->infs) },
		{ "zeros", cw_json_u64(l->zeros) },
		{ "absmax", number(l->abs_max) },
		{ "absmin", number(l->abs_min) },
		{ "mean", number(l->mean) },
		{ "l2", number(l->l2) },
		{ "at_limit", number((double)l->at_limit) },
		{ "denormal", number((double)l->denormal) },
		{ "checksum", cw_json_hex(l->checksum) },
		{ "site", cw_json_text(l->site) },
		{ "carried", cw_json_text(l->carried) },
		{ NULL },
	});
}

static json_t *firsts_doc(const struct cw_numerics_job *job, const struct cw_numerics_report *said)
{
	static const char *const names[] = { [CW_NUMERICS_BY_RANK] = "rank",
					     [CW_NUMERICS_SUM] = "operation",
					     [CW_NUMERICS_RECEIVED] = "received" };
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_firsts; i++) {
		json_t *doc = sample_doc(job, said->firsts[i].sample);

		bad |= json_object_set_new(doc, "origin",
					   json_string(names[said->firsts[i].origin]));
		bad |= json_object_set_new(
			doc, "text",
			cw_json_text(cw_numerics_text_first(job, said, i, text, sizeof(text))));
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *ranks_doc(const struct cw_numerics_input *in, const struct cw_numerics_report *said,
			 uint32_t last)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t r = 0; r < in->job.n_ranks; r++) {
		const struct cw_numerics_source *s = &in->sources[r];
		const struct cw_numerics_rank_said *k = &said->ranks[r];
		json_t *doc, *before = json_array();

		doc = cw_json_object((struct cw_json_member[]){
			{ "rank", rank_of(&in->job, r) },
			{ "record", cw_json_text(s->path) },
			{ "calls", cw_json_u64(s->n_ops) },
			{ "tensors", cw_json_u64(s->n_samples) },
			{ "kept", cw_json_u64(s->n_kept) },
			{ "not_collected", cw_json_u64(s->n_dropped) },
			{ "nonfinite", json_integer(k->n_bad) },
			{ NULL },
		});
		if (k->first_bad != CW_NUMERICS_NONE) {
			uint32_t i =
				k->first_bad - k->first < last ? k->first : k->first_bad - last;

			for (; i < k->first_bad; i++)
				bad |= json_array_append_new(before, sample_doc(&in->job, i));
			bad |= json_object_set_new(doc, "first",
						   sample_doc(&in->job, k->first_bad));
		}
		bad |= json_object_set_new(doc, "before", before);
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *rows_doc(const struct cw_numerics_job *job, const struct cw_numerics_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_rows; i++) {
		const struct cw_numerics_row *row = &said->rows[i];
		json_t *doc;

		doc = cw_json_object((struct cw_json_member[]){
			{ "comm", cw_json_hex(job->comms[row->comm].id) },
			{ "comm_name", cw_json_text(job->comms[row->comm].name) },
			{ "step", cw_json_u64(row->step) },
			{ "steps", cw_json_u64(row->n_steps) },
			{ "tensors", json_integer(row->n_samples) },
			{ "ratio", row->ratio > 0 ? number(row->ratio) : json_null() },
			{ "loss_scaling", json_boolean(row->is_scaling) },
			{ "text",
			  cw_json_text(cw_numerics_text_row(job, row, text, sizeof(text))) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *headroom_doc(const struct cw_numerics_job *job,
			    const struct cw_numerics_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_headroom; i++) {
		const struct cw_numerics_headroom *h = &said->headroom[i];
		json_t *doc = sample_doc(job, h->sample);

		bad |= cw_json_add(doc, (struct cw_json_member[]){
						{ "value", number(h->value) },
						{ "limit", number(h->limit) },
						{ "summed", json_boolean(h->is_sum) },
						{ "growth", number(h->growth) },
						{ "steps_left", number(h->steps_left) },
						{ "since_step", cw_json_u64(h->warned_step) },
						{ "text", cw_json_text(cw_numerics_text_headroom(
								  job, h, text, sizeof(text))) },
						{ NULL },
					});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *ranges_doc(const struct cw_numerics_job *job, const struct cw_numerics_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_ranges; i++) {
		const struct cw_numerics_range *r = &said->ranges[i];
		json_t *doc = sample_doc(job, r->sample);

		bad |= cw_json_add(doc, (struct cw_json_member[]){
						{ "end", json_string(r->end == CW_NUMERICS_UPPER
									     ? "at_limit"
									     : "denormal") },
						{ "share", number(r->share) },
						{ "room", number(r->room) },
						{ "steps", json_integer(r->n_steps) },
						{ "text", cw_json_text(cw_numerics_text_range(
								  job, r, text, sizeof(text))) },
						{ NULL },
					});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *groups_doc(const struct cw_numerics_job *job, const uint32_t *samples, uint32_t n)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < n;) {
		uint64_t checksum = job->samples[samples[i]].checksum;
		json_t *doc = json_object(), *ranks = json_array();

		bad |= json_object_set_new(doc, "checksum", cw_json_hex(checksum));
		for (; i < n && job->samples[samples[i]].checksum == checksum; i++)
			bad |= json_array_append_new(ranks,
						     rank_of(job, job->samples[samples[i]].rank));
		bad |= json_object_set_new(doc, "ranks", ranks);
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

/*
 * Lists the members of a call by their value of one property. v: the members, sorted by this
 * property.
 */
static json_t *members_doc(const struct cw_numerics_job *job, const struct cw_member *v, uint32_t n,
			   enum cw_members_by by)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0, end; i < n;) {
		json_t *doc = json_object(), *ranks = json_array();

		(void)cw_members_text(&v[i], by, text, sizeof(text));
		for (end = cw_members_end(v, n, i); i < end; i++)
			bad |= json_array_append_new(ranks,
						     rank_of(job, job->samples[v[i].sample].rank));
		bad |= json_object_set_new(doc, "value", *text ? cw_json_text(text) : json_null());
		bad |= json_object_set_new(doc, "ranks", ranks);
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

/* Lists the members' platforms. Omits properties that are equal on all members. */
static json_t *unlike_doc(const struct cw_numerics_job *job, const uint32_t *samples, uint32_t n)
{
	static const char *const names[] = { [CW_MEMBERS_BY_DEVICE] = "device_model",
					     [CW_MEMBERS_BY_CUDA_DRIVER] = "cuda_driver",
					     [CW_MEMBERS_BY_NCCL] = "nccl" };
	_cleanup_(freep) struct cw_member *v = calloc((size_t)n + 1, sizeof(*v));
	json_t *doc = json_object();
	int bad = v ? 0 : -1;

	for (unsigned by = 0; v && by < CW_MEMBERS_BY__MAX; by++)
		if (cw_members_sort(job, samples, n, by, v))
			bad |= json_object_set_new(doc, names[by], members_doc(job, v, n, by));
	return cw_json_finish(doc, bad);
}

static json_t *divergence_doc(const struct cw_numerics_job *job,
			      const struct cw_numerics_report *said,
			      const struct cw_numerics_divergence *d, const char *text)
{
	const uint32_t *samples = &said->divergent[d->first];
	json_t *doc = sample_doc(job, d->sample);
	int bad = 0;

	bad |= cw_json_add(doc, (struct cw_json_member[]){
					{ "groups", groups_doc(job, samples, d->count) },
					{ "has_majority", json_boolean(d->has_majority) },
					{ "unlike", unlike_doc(job, samples, d->count) },
					{ "text", cw_json_text(text) },
					{ NULL },
				});
	return cw_json_finish(doc, bad);
}

/* Makes the list of the report's divergences, or of its roundings. */
static json_t *divergences_doc(const struct cw_numerics_job *job,
			       const struct cw_numerics_report *said,
			       const struct cw_numerics_divergence *v, uint32_t n,
			       cw_numerics_text_divergence_fn *text_of)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		(void)text_of(job, said, &v[i], text, sizeof(text));
		bad |= json_array_append_new(list, divergence_doc(job, said, &v[i], text));
	}
	return cw_json_finish(list, bad);
}

static json_t *imbalances_doc(const struct cw_numerics_job *job,
			      const struct cw_numerics_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_imbalances; i++) {
		const struct cw_numerics_imbalance *m = &said->imbalances[i];
		json_t *doc = sample_doc(job, m->sample);

		bad |= cw_json_add(doc, (struct cw_json_member[]){
						{ "sum_in", number(m->in) },
						{ "sum_out", number(m->out) },
						{ "bound", number(m->bound) },
						{ "text", cw_json_text(cw_numerics_text_imbalance(
								  job, m, text, sizeof(text))) },
						{ NULL },
					});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *suspects_doc(const struct cw_numerics_job *job,
			    const struct cw_numerics_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_suspects; i++) {
		const struct cw_numerics_suspect *s = &said->suspects[i];
		json_t *doc;

		doc = cw_json_object((struct cw_json_member[]){
			{ "rank", rank_of(job, s->rank) },
			{ "divergences", json_integer(s->n_divergences) },
			{ "communicators", json_integer(s->n_comms) },
			{ "text",
			  cw_json_text(cw_numerics_text_suspect(job, s, text, sizeof(text))) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

json_t *numerics_doc(const struct cw_numerics_input *in, const struct cw_numerics_report *said,
		     uint32_t last)
{
	const struct cw_numerics_job *job = &in->job;
	json_t *doc, *over_limit, *checked = json_object();
	char text[TEXT_BYTES];
	int bad = 0;

	doc = cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.numerics/1") },
		{ "alarm", json_boolean(cw_numerics_is_alarming(said)) },
		{ "coverage", cw_json_text(numerics_coverage_text(in, said, text, sizeof(text))) },
		{ "ranks_omitted", json_integer(in->n_omitted) },
		{ "ranks_set_aside", json_integer(in->n_set_aside) },
		{ "silent", in->silent ? cw_json_text(in->silent) : json_null() },
		{ "nonfinite", cw_json_u64(said->n_bad) },
		{ "loss_scaling_explains_all", json_boolean(said->is_all_scaling) },
		{ "first_by_clock", json_boolean(said->is_first_by_clock) },
		{ "firsts", firsts_doc(job, said) },
		{ "rows", rows_doc(job, said) },
		{ "headroom", headroom_doc(job, said) },
		{ "ranges", ranges_doc(job, said) },
		{ "divergences", divergences_doc(job, said, said->divergences, said->n_divergences,
						 cw_numerics_text_divergence) },
		{ "roundings", divergences_doc(job, said, said->roundings, said->n_roundings,
					       cw_numerics_text_rounding) },
		{ "suspects", suspects_doc(job, said) },
		{ "imbalances", imbalances_doc(job, said) },
		{ "ranks", ranks_doc(in, said, last) },
		{ NULL },
	});
	bad |= json_object_set_new(checked, "replicas", cw_json_u64(said->n_replicas_checked));
	bad |= json_object_set_new(checked, "sums", cw_json_u64(said->n_sums_checked));
	bad |= json_object_set_new(doc, "checked", checked);
	over_limit = cw_json_object((struct cw_json_member[]){
		{ "rows", json_integer(said->n_rows_over_limit) },
		{ "headroom", json_integer(said->n_headroom_over_limit) },
		{ "ranges", json_integer(said->n_ranges_over_limit) },
		{ "divergences", json_integer(said->n_divergences_over_limit) },
		{ "roundings", json_integer(said->n_roundings_over_limit) },
		{ "imbalances", json_integer(said->n_imbalances_over_limit) },
		{ NULL },
	});
	bad |= json_object_set_new(doc, "over_limit", over_limit);
	return cw_json_finish(doc, bad);
}
