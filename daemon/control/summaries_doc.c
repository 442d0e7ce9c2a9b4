/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/summaries_doc.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/job_env.h"
#include "daemon/node/job_tensor_stats.h"
#include "daemon/process/process.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "numerics/read/tensor_samples.h"
#include "record/record_reader.h"
#include "report/json_util.h"

static int32_t at_least(int32_t v, int32_t least)
{
	return v < least ? least : v;
}

/* When the process ended, by the present wall clock. */
static int64_t ended_wall_ns(const struct cw_process *p, const struct cw_clock *clock)
{
	int64_t ago_ns = cw_clock_now_ns(clock) - p->ended_ns;
	int64_t at_ns = cw_clock_wall_ns(clock) - (ago_ns > 0 ? ago_ns : 0);

	return cw_process_is_dead(p) && at_ns > 0 ? at_ns : 0;
}

static struct cw_tensor_samples_source source_of(const struct cw_process *p, bool lives,
						 const struct cw_clock *clock)
{
	const struct cw_rec_header *h = cw_record_header(p->record);
	bool is_time = h->created_wall_ns <= INT64_MAX;

	return (struct cw_tensor_samples_source){
		.rank = at_least(h->rank_label, -1),
		.pid = cw_process_pid(p), /* the rank's own pid is of its namespace */
		.world_size = at_least(h->world_size_label, -1),
		.n_ops = h->ring_ticket,
		.n_dropped = h->drops[CW_REC_DROP_SUMMARIES],
		.created_wall_ns = is_time ? (int64_t)h->created_wall_ns : 0,
		.ended_wall_ns = ended_wall_ns(p, clock),
		.lives = lives,
	};
}

struct member {
	const struct cw_process *process;
	struct cw_tensor_samples_source source;
};

/* Newest first: if there are more ranks than places, those of an earlier run are left out. */
static int compare_places(int64_t a_ns, int32_t a_pid, int64_t b_ns, int32_t b_pid)
{
	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return (a_pid < b_pid) - (a_pid > b_pid);
}

static int compare_members(const void *a, const void *b)
{
	const struct cw_tensor_samples_source *x = &((const struct member *)a)->source;
	const struct cw_tensor_samples_source *y = &((const struct member *)b)->source;

	return compare_places(x->created_wall_ns, x->pid, y->created_wall_ns, y->pid);
}

/* Fills v in the order of pages. */
static uint32_t members_of(const struct cw_node *node, const struct cw_clock *clock,
			   const struct cw_job_id *job,
			   struct member v[static CW_JOB_TENSOR_STATS_RANKS], uint32_t *ret_omitted)
{
	const struct cw_process *processes[CW_JOB_TENSOR_STATS_RANKS];
	uint32_t n_living, n;

	n = cw_job_tensor_stats_processes(cw_node_tensor_stats(node), job, processes, &n_living,
					  ret_omitted);
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct member){ processes[i],
					source_of(processes[i], i < n_living, clock) };
	qsort(v, n, sizeof(*v), compare_members);
	return n;
}

static bool is_before(const struct cw_tensor_samples_source *s,
		      const struct cw_summaries_page *page)
{
	return page->is_next &&
	       compare_places(s->created_wall_ns, s->pid, page->after_ns, page->after_pid) <= 0;
}

json_t *cw_summaries_doc(const struct cw_node *node, const char *node_name,
			 const struct cw_clock *clock, const struct cw_job_id *job,
			 struct cw_summaries_page *page)
{
	_cleanup_(cw_tensor_samples_fini) struct cw_tensor_samples samples = { .samples = NULL };
	struct cw_tensor_samples_source sources[CW_JOB_TENSOR_STATS_RANKS];
	struct member members[CW_JOB_TENSOR_STATS_RANKS];
	struct cw_tensor_samples_head head = { .node = node_name,
					       .taken_wall_ns = cw_clock_wall_ns(clock) };
	struct cw_numerics_job all;
	uint32_t n = 0, n_taken = 0;

	page->n_omitted = 0;
	if (node)
		n = members_of(node, clock, job, members, &page->n_omitted);
	for (uint32_t i = 0; i < n; i++) {
		struct cw_tensor_samples_source *s = &members[i].source;
		struct cw_tensor_samples_count count;

		if (is_before(s, page))
			continue;
		if (n_taken == page->n) {
			page->n_omitted++;
			continue;
		}
		if (cw_tensor_samples_add(&samples, members[i].process->record, &count) < 0)
			return NULL;
		s->n_samples = count.newest;
		s->n_kept = count.kept;
		sources[n_taken++] = *s;
	}
	all = cw_tensor_samples_job(&samples);
	page->n_samples = all.n_samples;
	head.n_omitted = page->n_omitted;
	return cw_tensor_samples_doc(&head, &all, sources);
}

/* ---- jobs of a name ---- */

struct search {
	const struct cw_caller *caller;
	const char *name, *node_name;
	json_t *list;
	int bad;
};

static void on_job(const struct cw_job_id *job, const struct cw_tensor_stats *tensor_stats,
		   void *user)
{
	struct search *s = user;
	json_t *doc;
	int bad = 0;

	if (!cw_caller_may_see(s->caller, job->uid) || !cw_job_env_is_named(job->label, s->name))
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
		cw_job_tensor_stats_each(cw_node_tensor_stats(node), on_job, &s);
	return cw_json_finish(s.list, s.bad);
}

/* ---- living jobs ---- */

int cw_summaries_living_add(json_t *list, const char *job, json_int_t uid, json_int_t since_ns)
{
	json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		if (cw_json_int(entry, "uid", -1) != uid ||
		    strcmp(cw_json_str(entry, "job", ""), job) != 0)
			continue;
		return cw_json_int(entry, "since_ns", 0) <= since_ns
			       ? 0
			       : json_object_set_new(entry, "since_ns", json_integer(since_ns));
	}
	if (json_array_size(list) == CW_SUMMARIES_LIVING_MAX)
		return 0;
	entry = json_pack("{s:o, s:I, s:I}", "job", cw_json_text(job), "uid", uid, "since_ns",
			  since_ns);
	return json_array_append_new(list, entry);
}

static void on_living(const struct cw_job_id *job, int64_t since_ns, void *user)
{
	struct search *s = user;

	if (cw_caller_may_see(s->caller, job->uid) && cw_job_env_is_named(job->label, s->name))
		s->bad |= cw_summaries_living_add(s->list, job->label, job->uid, since_ns);
}

json_t *cw_summaries_doc_living(const struct cw_node *node, const struct cw_caller *caller,
				const char *name)
{
	struct search s = { .caller = caller, .name = name, .list = json_array() };

	if (node)
		cw_job_tensor_stats_each_living(cw_node_tensor_stats(node), on_living, &s);
	return cw_json_finish(s.list, s.bad);
}
