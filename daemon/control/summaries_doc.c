/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/summaries_doc.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/job_env.h"
#include "daemon/node/job_tensor_stats.h"
#include "daemon/process/process.h"
#include "record/record_reader.h"
#include "report/json_util.h"

/*
 * Returns the wall time at which the process ended, 0 if it lives. We convert with today's wall
 * clock.
 */
static int64_t ended_wall_ns(const struct cw_process *p, const struct cw_clock *clock)
{
	int64_t ago_ns = cw_clock_now_ns(clock) - p->ended_ns;
	int64_t at_ns = cw_clock_wall_ns(clock) - (ago_ns > 0 ? ago_ns : 0);

	return cw_process_is_dead(p) && at_ns > 0 ? at_ns : 0;
}

struct member {
	struct cw_extension_rank rank;
	int64_t created_wall_ns; /* time at which the process made its record; 0 = unknown */
};

static struct member member_of(const struct cw_process *p, bool lives, const struct cw_clock *clock)
{
	const struct cw_rec_header *h = cw_record_header(p->record);
	bool is_time = h->created_wall_ns <= INT64_MAX;

	return (struct member){
		.rank = { .record = p->record,
			  .pid = cw_process_pid(p),
			  .ended_wall_ns = ended_wall_ns(p, clock),
			  .lives = lives },
		.created_wall_ns = is_time ? (int64_t)h->created_wall_ns : 0,
	};
}

/*
 * Sorts the newest records first. If there are too many ranks, those of an earlier run are left
 * out.
 */
static int compare_places(int64_t a_ns, int32_t a_pid, int64_t b_ns, int32_t b_pid)
{
	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return (a_pid < b_pid) - (a_pid > b_pid);
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return compare_places(x->created_wall_ns, x->rank.pid, y->created_wall_ns, y->rank.pid);
}

/* Fills v with the members of the job, in the order of the pages. Returns their number. */
static uint32_t members_of(const struct cw_summaries_source *source, const struct cw_job_id *job,
			   struct member v[static CW_JOB_TENSOR_STATS_RANKS], uint32_t *ret_omitted)
{
	const struct cw_process *processes[CW_JOB_TENSOR_STATS_RANKS];
	uint32_t n_living, n;

	n = cw_job_tensor_stats_processes(cw_node_tensor_stats(source->node), job, processes,
					  &n_living, ret_omitted);
	for (uint32_t i = 0; i < n; i++)
		v[i] = member_of(processes[i], i < n_living, source->clock);
	qsort(v, n, sizeof(*v), compare_members);
	return n;
}

static bool is_before(const struct member *m, const struct cw_summaries_page *page)
{
	return page->is_next && compare_places(m->created_wall_ns, m->rank.pid, page->after_ns,
					       page->after_pid) <= 0;
}

json_t *cw_summaries_doc(const struct cw_summaries_source *source, const struct cw_job_id *job,
			 struct cw_summaries_page *page)
{
	struct cw_extension_rank ranks[CW_JOB_TENSOR_STATS_RANKS];
	struct member members[CW_JOB_TENSOR_STATS_RANKS];
	struct cw_extension_content content = { .node = source->node_name,
						.taken_wall_ns = cw_clock_wall_ns(source->clock),
						.ranks = ranks };
	uint32_t n = 0;

	page->n_omitted = page->n_samples = 0;
	if (source->node)
		n = members_of(source, job, members, &page->n_omitted);
	for (uint32_t i = 0; i < n; i++) {
		if (is_before(&members[i], page))
			continue;
		if (content.n_ranks == page->n)
			page->n_omitted++;
		else
			ranks[content.n_ranks++] = members[i].rank;
	}
	content.n_omitted = page->n_omitted;
	/* cppcheck-suppress returnDanglingLifetime ; the document copies the content */
	return source->extension->page(&content, &page->n_samples);
}

/* ---- jobs of a name ---- */

struct search {
	const struct cw_caller *caller;
	const char *name, *node_name;
	json_t *list;
	int bad;
};

static void on_job(const struct cw_job_id *job, void *user)
{
	struct search *s = user;
	json_t *doc;
	int bad = 0;

	if (!cw_caller_may_see(s->caller, job->uid) || !cw_job_env_is_named(job->label, s->name))
		return;
	doc = json_object();
	bad |= cw_json_add(doc, (struct cw_json_member[]){
					{ "node", cw_json_text(s->node_name) },
					{ "job", cw_json_text(job->label) },
					{ "uid", json_integer((json_int_t)job->uid) },
					{ NULL },
				});
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
