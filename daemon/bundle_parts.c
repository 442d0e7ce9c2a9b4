/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bundle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "daemon/control/ops_doc.h"
#include "daemon/node/job_numbers.h"
#include "daemon/node/node.h"
#include "digest/looks.h"
#include "identity/job_id.h"
#include "record/record_reader.h"
#include "report/doc/looks_doc.h"
#include "report/json_util.h"

static bool read_job(const json_t *head, struct cw_job_id *ret)
{
	const json_t *uid = json_object_get(head, "uid");

	return json_is_integer(uid) && cw_job_id_make((uid_t)json_integer_value(uid),
						      cw_json_str(head, "job", ""), ret) == 0;
}

static struct cw_looks_source source_of(const struct cw_record *record,
					const struct cw_looks_count *n)
{
	const struct cw_rec_header *h = cw_record_header(record);

	return (struct cw_looks_source){
		.rank = h->rank_label,
		.pid = (int32_t)h->pid,
		.world_size = h->world_size_label,
		.n_ops = h->ring_ticket,
		.n_looks = n->newest,
		.n_kept = n->kept,
		.n_dropped = h->drops[CW_REC_DROP_SUMMARIES],
	};
}

/* As text, which is half as long as a document is written. NULL: there are none, or no memory. */
static json_t *summaries_of(const struct cw_node *node, const struct cw_job_id *job,
			    struct cw_looks_head *head)
{
	_cleanup_(cw_looks_fini) struct cw_looks looks = { .looks = NULL };
	struct cw_record *records[CW_JOB_NUMBERS_RANKS];
	struct cw_looks_source sources[CW_JOB_NUMBERS_RANKS];
	_cleanup_(freep) char *text = NULL;
	struct cw_numerics_job all;
	uint32_t n, n_living;
	json_t *doc;

	n = cw_job_numbers_records(cw_node_numbers(node), job, records, &n_living,
				   &head->n_left_out);
	for (uint32_t i = 0; i < n; i++) {
		struct cw_looks_count count;

		if (cw_looks_add(&looks, records[i], &count) < 0)
			return NULL;
		sources[i] = source_of(records[i], &count);
	}
	all = cw_looks_job(&looks);
	if (!all.n_looks)
		return NULL;
	doc = cw_looks_doc(head, &all, sources);
	text = doc ? cw_json_write(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return text ? json_string(text) : NULL;
}

void cw_bundle_parts_add(const struct cw_node *node, const char *node_name, int64_t wall_ns,
			 const json_t *head, struct cw_bundle *bundle)
{
	struct cw_looks_head looks = { .node = node_name, .taken_wall_ns = wall_ns };
	struct cw_job_id job;

	if (!read_job(head, &job))
		return;
	bundle->ops = cw_ops_doc_of_job(node, node_name, &job);
	if (bundle->ops && !json_array_size(json_object_get(bundle->ops, "rows"))) {
		json_decref(bundle->ops); /* its ranks are elsewhere */
		bundle->ops = NULL;
	}
	bundle->summaries = summaries_of(node, &job, &looks);
	if (looks.n_left_out)
		log_info(
			"job=%s: of %u more rank%s the tensor summaries are left out of the bundle",
			job.label, looks.n_left_out, looks.n_left_out == 1 ? "" : "s");
}
