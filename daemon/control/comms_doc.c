/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/comms_doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "identity/job_label.h"
#include "report/json_util.h"

struct collector {
	const struct cw_caller *caller;
	json_t *list;
	int bad;
};

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct collector *c = user;

	if (!cw_caller_may_see(c->caller, digests->uid))
		return;
	for (uint32_t i = 0; i < job->view.n_partial; i++) {
		const struct cw_job_view_comm *comm = &job->view.partial[i];
		char id[24];

		if (json_array_size(c->list) >= CW_COMMS_DOC_MAX)
			return;
		(void)snprintf(id, sizeof(id), "0x%" PRIx64, comm->id);
		c->bad |= json_array_append_new(
			c->list,
			json_pack("{s:s, s:I, s:I, s:o, s:I, s:o}", "comm", id, "nranks",
				  (json_int_t)comm->nranks, "seen", (json_int_t)comm->seen, "job",
				  cw_json_text(digests->label), "uid", (json_int_t)digests->uid,
				  "namespace", cw_json_text(job->view.pod_namespace)));
	}
}

json_t *cw_comms_doc(const struct cw_status_source *s, const struct cw_caller *caller)
{
	struct collector c = { .caller = caller, .list = json_array() };

	cw_leader_jobs(s->leader, on_job, &c);
	return json_pack("{s:s, s:o}", "schema", "collwatch.communicators/1", "communicators",
			 cw_json_finish(c.list, c.bad));
}

static bool is_short(const json_t *entry, const char *key, size_t len)
{
	const char *text = json_string_value(json_object_get(entry, key));

	return text && strlen(text) < len;
}

static bool is_entry(const json_t *entry)
{
	json_int_t uid = cw_json_int(entry, "uid", -1);

	return is_short(entry, "comm", 24) && is_short(entry, "job", CW_JOB_LABEL_BYTES) &&
	       is_short(entry, "namespace", 64) && uid >= 0 && uid <= UINT32_MAX &&
	       cw_json_int(entry, "nranks", 0) > 0 && cw_json_int(entry, "seen", -1) >= 0;
}

void cw_comms_doc_merge(json_t *doc, const json_t *more)
{
	json_t *list = json_object_get(doc, "communicators"), *entry;
	size_t i;

	json_array_foreach (json_object_get(more, "communicators"), i, entry) {
		if (i == CW_COMMS_DOC_MAX || json_array_size(list) >= CW_COMMS_DOC_MAX_ALL)
			break;
		if (is_entry(entry))
			(void)json_array_append(list, entry);
	}
}
