/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/summaries_doc.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/job_env.h"
#include "daemon/node/job_numbers.h"
#include "digest/looks.h"
#include "record/record_reader.h"
#include "report/doc/looks_doc.h"
#include "report/json_util.h"

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

/* -1: out of memory. */
static int gather(struct cw_record *const *records, uint32_t n, uint32_t n_living,
		  struct cw_summaries_page *page, struct cw_looks *looks,
		  struct cw_looks_source *sources)
{
	uint32_t met = 0, taken = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct cw_looks_count count;

		if (is_told_by_another(records, n, n_living, i) || met++ < page->first)
			continue;
		if (taken == page->n) {
			page->n_left_out++;
			continue;
		}
		if (cw_looks_add(looks, records[i], &count) < 0)
			return -1;
		sources[taken++] = source_of(records[i], &count);
	}
	return 0;
}

json_t *cw_summaries_doc(const struct cw_node *node, const char *node_name, int64_t wall_ns,
			 const struct cw_job_id *job, struct cw_summaries_page *page)
{
	_cleanup_(cw_looks_fini) struct cw_looks looks = { .looks = NULL };
	struct cw_looks_source sources[CW_JOB_NUMBERS_RANKS];
	struct cw_record *records[CW_JOB_NUMBERS_RANKS];
	struct cw_looks_head head = { .node = node_name, .taken_wall_ns = wall_ns };
	struct cw_numerics_job all;
	uint32_t n = 0, n_living = 0;

	page->n_left_out = 0;
	if (node)
		n = cw_job_numbers_records(cw_node_numbers(node), job, records, &n_living,
					   &page->n_left_out);
	if (gather(records, n, n_living, page, &looks, sources) < 0)
		return NULL;
	all = cw_looks_job(&looks);
	page->n_looks = all.n_looks;
	head.n_left_out = page->n_left_out;
	return cw_looks_doc(&head, &all, sources);
}

/* ---- jobs of a name ---- */

struct search {
	const struct cw_caller *caller;
	const char *name, *node_name;
	json_t *list;
	int bad;
};

static void on_job(const struct cw_job_id *job, const struct cw_numbers *numbers, void *user)
{
	struct search *s = user;
	json_t *doc;
	int bad = 0;

	if (!cw_caller_may_see(s->caller, job->uid) ||
	    (strcmp(job->label, s->name) != 0 &&
	     strcmp(cw_job_env_shown(job->label), s->name) != 0))
		return;
	doc = json_object();
	bad |= json_object_set_new(doc, "node", cw_json_text(s->node_name));
	bad |= json_object_set_new(doc, "job", cw_json_text(job->label));
	bad |= json_object_set_new(doc, "uid", json_integer((json_int_t)job->uid));
	s->bad |= json_array_append_new(s->list, cw_json_finish(doc, bad));
}

json_t *cw_summaries_doc_jobs(const struct cw_node *node, const char *node_name,
			      const struct cw_caller *caller, const char *name)
{
	struct search s = {
		.caller = caller, .name = name, .node_name = node_name, .list = json_array()
	};

	if (node)
		cw_job_numbers_each(cw_node_numbers(node), on_job, &s);
	return cw_json_finish(s.list, s.bad);
}
