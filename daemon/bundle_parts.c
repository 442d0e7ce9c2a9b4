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

/* A turn of the loop has time for these; nodes of more GPUs are few. */
#define RANKS_MAX 16u

static int32_t at_least(int32_t v, int32_t least)
{
	return v < least ? least : v;
}

static bool is_newer(const struct cw_record *a, const struct cw_record *b)
{
	return cw_record_header(a)->created_wall_ns > cw_record_header(b)->created_wall_ns;
}

/* Of several processes that say they are one rank the one that lives, else the newest. */
static bool is_told_by_another(struct cw_record *const *records, uint32_t n, uint32_t n_living,
			       uint32_t i)
{
	int32_t rank = cw_record_header(records[i])->rank_label;

	for (uint32_t k = 0; k < n && rank >= 0; k++) {
		if (k == i || cw_record_header(records[k])->rank_label != rank)
			continue;
		if ((k < n_living) != (i < n_living)
			    ? k < n_living
			    : is_newer(records[k], records[i]) ||
				      (k < i && !is_newer(records[i], records[k])))
			return true;
	}
	return false;
}

static struct cw_looks_source source_of(const struct cw_record *record,
					const struct cw_looks_count *n)
{
	const struct cw_rec_header *h = cw_record_header(record);

	return (struct cw_looks_source){
		.rank = at_least(h->rank_label, -1),
		.pid = at_least((int32_t)h->pid, 0),
		.world_size = at_least(h->world_size_label, -1),
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
	struct cw_looks_source sources[RANKS_MAX];
	_cleanup_(freep) char *text = NULL;
	struct cw_numerics_job all;
	uint32_t n, n_living, n_taken = 0;
	json_t *doc;

	n = cw_job_numbers_records(cw_node_numbers(node), job, records, &n_living,
				   &head->n_left_out);
	for (uint32_t i = 0; i < n; i++) {
		struct cw_looks_count count;

		if (is_told_by_another(records, n, n_living, i))
			continue;
		if (n_taken == RANKS_MAX) {
			head->n_left_out++;
			continue;
		}
		if (cw_looks_add(&looks, records[i], &count) < 0)
			return NULL;
		sources[n_taken++] = source_of(records[i], &count);
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
