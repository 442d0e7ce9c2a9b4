/* SPDX-License-Identifier: Apache-2.0 */
#include "report/process_doc.h"

#include "model/cause.h"
#include "model/snapshot.h"
#include "report/json_util.h"

static int add_text(json_t *doc, const char *key, const char *text)
{
	return text && *text ? json_object_set_new(doc, key, cw_json_text(text)) : 0;
}

int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank)
{
	int bad = 0;

	bad |= add_text(doc, "pod", rank->pod);
	bad |= add_text(doc, "pod_namespace", rank->pod_namespace);
	bad |= add_text(doc, "container", rank->container);
	if (rank->own_pid > 0)
		bad |= json_object_set_new(doc, "own_pid", json_integer(rank->own_pid));
	return bad;
}

int cw_process_doc_add_cause(json_t *doc, const struct cw_snap_rank *rank)
{
	int bad = 0;

	bad |= add_text(doc, "cause_kind", cw_cause_kind_name(rank->cause_kind));
	bad |= add_text(doc, "cause_by", cw_end_by_name(rank->cause_by));
	return bad;
}

const char *cw_process_doc_verb(const json_t *doc)
{
	enum cw_cause_kind kind = cw_cause_kind_from_name(cw_json_str(doc, "cause_kind", ""));
	enum cw_end_by by = cw_end_by_from_name(cw_json_str(doc, "cause_by", ""));

	return cw_cause_verb(kind, by);
}
