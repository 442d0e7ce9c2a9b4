/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/node/numerics_extension.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "numerics/node/tensor_stats.h"
#include "numerics/read/tensor_samples.h"
#include "record/record_reader.h"
#include "report/json_util.h"

/* ---- findings ---- */

static int on_digest(void *state, struct cw_record *const *records, uint32_t n_records,
		     int64_t now_ns)
{
	int news = cw_tensor_stats_update(state, records, n_records, now_ns);

	if (news < 0)
		return news;
	return (news & CW_TENSOR_STATS_NEWS_FIRST ? 1 << CW_NUMERICS_NONFINITE : 0) |
	       (news & CW_TENSOR_STATS_NEWS_HEADROOM ? 1 << CW_NUMERICS_HEADROOM : 0);
}

static const struct cw_extension_finding *finding(const void *state, unsigned kind)
{
	const struct cw_tensor_stats *stats = state;

	return kind == CW_NUMERICS_NONFINITE ? &stats->first : &stats->headroom;
}

/* ---- pages ---- */

static int32_t at_least(int32_t v, int32_t least)
{
	return v < least ? least : v;
}

static struct cw_tensor_samples_source source_of(const struct cw_extension_rank *rank,
						 const struct cw_tensor_samples_count *count)
{
	const struct cw_rec_header *h = cw_record_header(rank->record);

	return (struct cw_tensor_samples_source){
		.rank = at_least(h->rank_label, -1),
		/* the pid on the host; the rank's own pid belongs to its namespace */
		.pid = rank->pid,
		.world_size = at_least(h->world_size_label, -1),
		.n_ops = h->ring_ticket,
		.n_samples = count->newest,
		.n_kept = count->kept,
		.n_dropped = h->drops[CW_REC_DROP_SUMMARIES],
		.created_wall_ns =
			h->created_wall_ns <= INT64_MAX ? (int64_t)h->created_wall_ns : 0,
		.ended_wall_ns = rank->ended_wall_ns,
		.lives = rank->lives,
	};
}

static json_t *page(const struct cw_extension_content *content, uint32_t *ret_n_samples)
{
	_cleanup_(cw_tensor_samples_fini) struct cw_tensor_samples samples = { .samples = NULL };
	_cleanup_(freep) struct cw_tensor_samples_source *sources =
		calloc(content->n_ranks + 1, sizeof(*sources));
	const struct cw_tensor_samples_head head = { .node = content->node,
						     .taken_wall_ns = content->taken_wall_ns,
						     .n_omitted = content->n_omitted };
	struct cw_numerics_job job;
	json_t *doc;

	if (!sources)
		return NULL;
	for (uint32_t i = 0; i < content->n_ranks; i++) {
		const struct cw_extension_rank *rank = &content->ranks[i];
		struct cw_tensor_samples_count count;

		if (cw_tensor_samples_add(&samples, rank->record, &count) < 0)
			return NULL;
		sources[i] = source_of(rank, &count);
	}
	job = cw_tensor_samples_job(&samples);
	doc = cw_tensor_samples_doc(&head, &job, sources);
	if (doc)
		*ret_n_samples = job.n_samples;
	return doc;
}

static json_t *empty_page(const struct cw_extension_absence *absence)
{
	const struct cw_tensor_samples_head head = { .node = absence->node,
						     .taken_wall_ns = absence->taken_wall_ns };

	return cw_tensor_samples_doc_of_none(&head, absence->silent, absence->n_silent,
					     absence->is_asking ? CW_TENSOR_SAMPLES_DOC_ASKING
								: NULL);
}

static int read_page(const json_t *doc, struct cw_extension_page *ret)
{
	const json_t *ranks = json_object_get(doc, "ranks");
	size_t n = json_array_size(ranks);
	const json_t *last = n ? json_array_get(ranks, n - 1) : NULL;

	if (strcmp(cw_json_str(doc, "schema", ""), CW_TENSOR_SAMPLES_DOC_SCHEMA) != 0 ||
	    n > CW_TENSOR_SAMPLES_DOC_PAGE_RANKS)
		return -EBADMSG;
	*ret = (struct cw_extension_page){
		.node = cw_json_str(doc, "node", ""),
		.n_ranks = (uint32_t)n,
		.n_omitted = cw_tensor_samples_doc_omitted(doc),
		.last_created_wall_ns = cw_json_int(last, "created_ns", 0),
		.last_pid = cw_json_int(last, "pid", 0),
	};
	return 0;
}

const struct cw_extension cw_numerics_extension = {
	.kinds = {
		[CW_NUMERICS_NONFINITE] = {
			.name = "nonfinite",
			.message_id = "5b0d4c1fb0a84c5e8f5d2c9b7a3e6f10",
			.metric = "nonfinite_jobs_total",
			.metric_help = "Jobs whose tensors became NaN or infinite on ranks of this node, unless loss scaling explains it. Each job counts once.",
		},
		[CW_NUMERICS_HEADROOM] = {
			.name = "headroom",
			.message_id = "c7e2a9d86f1b4f33a4b8d05e91c6472f",
			.metric = "headroom_warnings_total",
			.metric_help = "Jobs' tensors that grew towards the limit of their type, number of findings.",
		},
	},
	.state_bytes = sizeof(struct cw_tensor_stats),
	.max_node_ranks = CW_TENSOR_SAMPLES_DOC_NODE_RANKS,
	.on_digest = on_digest,
	.finding = finding,
	.page = page,
	.empty_page = empty_page,
	.read_page = read_page,
};
