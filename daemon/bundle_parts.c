/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bundle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "daemon/control/ops_doc.h"
#include "daemon/control/summaries_doc.h"
#include "daemon/node/node.h"
#include "identity/job_id.h"
#include "report/json_util.h"

static bool read_job(const json_t *head, struct cw_job_id *ret)
{
	const json_t *uid = json_object_get(head, "uid");

	return json_is_integer(uid) && cw_job_id_make((uid_t)json_integer_value(uid),
						      cw_json_str(head, "job", ""), ret) == 0;
}

/*
 * Maximum number of ranks whose summaries we add. The loop has time for these, and few nodes have
 * more GPUs.
 */
#define RANKS_MAX 16u

/*
 * Returns the summaries as one JSON string. We write a string twice as fast as a document.
 * NULL = the job has no summaries, or we are out of memory.
 */
static json_t *summaries_of(const struct cw_summaries_source *source, const struct cw_job_id *job)
{
	struct cw_summaries_page page = { .n = RANKS_MAX };
	json_t *doc = cw_summaries_doc(source, job, &page);
	_cleanup_(freep) char *text =
		doc && page.n_samples ? cw_json_write(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (page.n_omitted)
		log_info("job=%s: the bundle omits the tensor summaries of %u more rank%s",
			 job->label, page.n_omitted, page.n_omitted == 1 ? "" : "s");
	return text ? json_string(text) : NULL;
}

void cw_bundle_parts_add(const struct cw_summaries_source *source, const json_t *head,
			 struct cw_bundle *bundle)
{
	struct cw_job_id job;

	if (!read_job(head, &job))
		return;
	bundle->ops = cw_ops_doc_of_job(source->node, source->node_name, &job);
	if (bundle->ops && !json_array_size(json_object_get(bundle->ops, "rows"))) {
		/* This node runs no ranks of the job, so the document is empty. */
		json_decref(bundle->ops);
		bundle->ops = NULL;
	}
	bundle->summaries = summaries_of(source, &job);
}
