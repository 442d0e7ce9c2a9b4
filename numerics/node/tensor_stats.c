/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/node/tensor_stats.h"

#include "common/text.h"
#include "numerics/doc/numerics_text.h"
#include "numerics/read/tensor_samples.h"

/* The data of one evaluation. */
struct reading {
	struct cw_tensor_samples samples;
	int32_t world_size; /* the largest world size that any rank states; -1 = unknown */
	int64_t now_ns;
};

static bool is_partial(const struct reading *k)
{
	return k->world_size > 0 && (uint32_t)k->world_size > k->samples.n_ranks;
}

/*
 * True if the rank that fed the number may be on another node. Then the daemon of that node reports
 * it.
 */
static bool is_known_by_peer(const struct reading *k, const struct cw_numerics_report *said)
{
	return is_partial(k) && said->firsts[0].origin == CW_NUMERICS_RECEIVED;
}

static int judge_first(struct cw_tensor_stats *n, const struct reading *k,
		       const struct cw_numerics_job *job, const struct cw_numerics_report *said)
{
	struct cw_extension_finding *finding = &n->first;

	if (finding->seen_ns || !said->n_firsts || said->is_all_scaling ||
	    is_known_by_peer(k, said)) {
		n->bad_ns = 0;
		return 0;
	}
	if (!n->bad_ns)
		n->bad_ns = k->now_ns;
	if (k->now_ns - n->bad_ns < CW_TENSOR_STATS_SETTLE_NS)
		return 0;
	n->bad_ns = 0;
	finding->seen_ns = k->now_ns;
	(void)cw_numerics_text_first(job, said, 0, finding->text, sizeof(finding->text));
	if (is_partial(k))
		cw_text_append(finding->text, sizeof(finding->text),
			       " (this node has %u of its %d ranks)", k->samples.n_ranks,
			       k->world_size);
	return CW_TENSOR_STATS_NEWS_FIRST;
}

static const struct cw_numerics_headroom *nearest(const struct cw_numerics_report *said)
{
	const struct cw_numerics_headroom *best = &said->headroom[0];

	for (uint32_t i = 1; i < said->n_headroom; i++)
		if (said->headroom[i].steps_left < best->steps_left)
			best = &said->headroom[i];
	return best;
}

static int judge_headroom(struct cw_tensor_stats *n, const struct reading *k,
			  const struct cw_numerics_job *job, const struct cw_numerics_report *said)
{
	struct cw_extension_finding *finding = &n->headroom;
	bool was_near = n->is_near;

	n->is_near = said->n_headroom > 0;
	if (!n->is_near || was_near ||
	    (finding->seen_ns && k->now_ns - finding->seen_ns < CW_TENSOR_STATS_AGAIN_NS))
		return 0;
	finding->seen_ns = k->now_ns;
	(void)cw_numerics_text_headroom(job, nearest(said), finding->text, sizeof(finding->text));
	return CW_TENSOR_STATS_NEWS_HEADROOM;
}

static int judge(struct cw_tensor_stats *n, struct reading *k)
{
	struct cw_numerics_job job = cw_tensor_samples_job(&k->samples);
	struct cw_numerics_report said;
	int r = cw_numerics_judge(&job, &said);

	if (r < 0)
		return r;
	r = judge_first(n, k, &job, &said) | judge_headroom(n, k, &job, &said);
	cw_numerics_report_fini(&said);
	return r;
}

int cw_tensor_stats_update(struct cw_tensor_stats *n, struct cw_record *const *records,
			   uint32_t n_records, int64_t now_ns)
{
	struct reading k = { .world_size = -1, .now_ns = now_ns };
	struct cw_tensor_samples_count count;
	uint64_t n_ops = 0;
	bool is_still;
	int r = 0;

	for (uint32_t i = 0; i < n_records; i++) {
		const struct cw_rec_header *h = cw_record_header(records[i]);

		n_ops += h->ring_ticket;
		if (h->world_size_label > k.world_size)
			k.world_size = h->world_size_label;
	}
	is_still = n_ops == n->n_ops;
	if (is_still && n->is_still && !n->bad_ns)
		return 0;
	n->n_ops = n_ops;
	n->is_still = is_still;
	for (uint32_t i = 0; i < n_records && r == 0; i++)
		r = cw_tensor_samples_add(&k.samples, records[i], &count);
	if (r == 0)
		r = judge(n, &k);
	cw_tensor_samples_fini(&k.samples);
	return r;
}
