/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/job_tensor_stats.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/htable.h"
#include "common/log.h"
#include "daemon/node/reading_budget.h"
#include "daemon/process/process.h"
#include "loop/sample_throttle.h"

struct entry {
	struct cw_job_id job;
	int64_t next_ns;
	bool is_here; /* the current tick has seen a process of the job */
	bool is_over; /* the last reading of the job found no living process */
	UT_hash_handle hh;
	max_align_t state[]; /* state of the extension for this job */
};

struct cw_job_tensor_stats {
	const struct cw_extension *extension;
	struct cw_process **table;
	struct cw_reading_budget *budget;
	struct entry *entries;
	uint64_t totals[CW_EXTENSION_KINDS];
};

static bool has_summaries(const struct cw_process *p)
{
	return p->record && cw_process_has_job(p) &&
	       cw_record_header(p->record)->has & CW_REC_HAS_SUMMARIES;
}

/* Returns the job's entry; NULL = out of memory. A later tick then tries again. */
static struct entry *find(struct cw_job_tensor_stats *stats, const struct cw_process *p)
{
	struct cw_job_id job = cw_process_job_id(p);
	struct entry *e;

	HASH_FIND_BYHASHVALUE(hh, stats->entries, &job, sizeof(job), cw_job_id_bucket(&job), e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e) + stats->extension->state_bytes);
	if (!e)
		return NULL;
	e->job = job;
	HASH_ADD_BYHASHVALUE(hh, stats->entries, job, sizeof(e->job), cw_job_id_bucket(&job), e);
	if (cw_htable_added(e))
		return e;
	free(e);
	return NULL;
}

static void find_all(struct cw_job_tensor_stats *stats)
{
	struct entry *e, *tmp;

	for (e = stats->entries; e; e = e->hh.next)
		e->is_here = false;
	for (const struct cw_process *p = *stats->table; p; p = p->hh.next) {
		e = has_summaries(p) ? find(stats, p) : NULL;
		if (e)
			e->is_here = true;
	}
	HASH_ITER (hh, stats->entries, e, tmp) {
		if (e->is_here)
			continue;
		HASH_DEL(stats->entries, e);
		free(e);
	}
}

static int compare_ranks(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Returns the sorted ranks of the job's living processes, with or without summaries. NULL = out of
 * memory.
 */
static int32_t *ranks_that_live(struct cw_process *table, const struct cw_job_id *job,
				size_t *ret_n)
{
	int32_t *ranks = calloc(HASH_COUNT(table) + 1, sizeof(*ranks));
	size_t n = 0;

	*ret_n = 0;
	if (!ranks)
		return NULL;
	for (const struct cw_process *p = table; p; p = p->hh.next)
		if (!cw_process_is_dead(p) && p->record && cw_process_is_of(p, job))
			ranks[n++] = cw_record_header(p->record)->rank_label;
	qsort(ranks, n, sizeof(*ranks), compare_ranks);
	*ret_n = n;
	return ranks;
}

/*
 * True if a living process has the same rank. The dead process's record then belongs to an earlier
 * run.
 */
static bool is_replaced(const struct cw_process *dead, const int32_t *ranks, size_t n)
{
	int32_t rank = cw_record_header(dead->record)->rank_label;

	return rank >= 0 && n && bsearch(&rank, ranks, n, sizeof(*ranks), compare_ranks);
}

static void add_process(const struct cw_process **v, uint32_t *n, uint32_t *over_limit,
			const struct cw_process *p)
{
	if (*n < CW_JOB_TENSOR_STATS_RANKS)
		v[(*n)++] = p;
	else
		(*over_limit)++;
}

uint32_t
cw_job_tensor_stats_processes(const struct cw_job_tensor_stats *stats, const struct cw_job_id *job,
			      const struct cw_process *ret[static CW_JOB_TENSOR_STATS_RANKS],
			      uint32_t *ret_living, uint32_t *ret_over_limit)
{
	uint32_t n_living, all = 0, over_limit = 0;
	_cleanup_(freep) int32_t *ranks = NULL;
	size_t n_ranks;

	for (const struct cw_process *p = *stats->table; p; p = p->hh.next)
		if (!cw_process_is_dead(p) && has_summaries(p) && cw_process_is_of(p, job))
			add_process(ret, &all, &over_limit, p);
	n_living = all;
	ranks = ranks_that_live(*stats->table, job, &n_ranks);
	for (const struct cw_process *p = *stats->table; p; p = p->hh.next)
		if (cw_process_is_dead(p) && has_summaries(p) && cw_process_is_of(p, job) &&
		    !is_replaced(p, ranks, n_ranks))
			add_process(ret, &all, &over_limit, p);
	*ret_living = n_living;
	if (ret_over_limit)
		*ret_over_limit = over_limit;
	return all;
}

static void say(const struct entry *e, const struct cw_extension_kind *kind,
		const struct cw_extension_finding *finding)
{
	char text[sizeof(finding->text) + CW_JOB_LABEL_BYTES + 16], job[192];
	const char *fields[] = { job, NULL };

	(void)snprintf(text, sizeof(text), "job=%s: %s", e->job.label, finding->text);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", e->job.label);
	cw_log_event(CW_LOG_WARN, kind->message_id, text, fields);
}

static void read_job(struct cw_job_tensor_stats *stats, struct entry *e, int64_t now_ns)
{
	const struct cw_process *processes[CW_JOB_TENSOR_STATS_RANKS];
	struct cw_record *records[CW_JOB_TENSOR_STATS_RANKS];
	uint32_t n_living, n_records = cw_job_tensor_stats_processes(stats, &e->job, processes,
								     &n_living, NULL);
	int news;

	if (e->is_over && n_living)
		memset(e->state, 0, stats->extension->state_bytes); /* the job has been restarted */
	e->is_over = n_living == 0;
	for (uint32_t i = 0; i < n_records; i++)
		records[i] = processes[i]->record;
	news = stats->extension->on_digest(e->state, records, n_records, now_ns);
	if (news < 0)
		return; /* out of memory: the next reading tries again */
	for (unsigned kind = 0; kind < CW_EXTENSION_KINDS; kind++) {
		if (!(news & 1 << kind))
			continue;
		stats->totals[kind]++;
		say(e, &stats->extension->kinds[kind], stats->extension->finding(e->state, kind));
	}
}

void cw_job_tensor_stats_tick(struct cw_job_tensor_stats *stats, int64_t now_ns)
{
	struct entry *due = NULL;
	int64_t start_ns = cw_clock_cpu_ns(), cost_ns, rest_ns;

	find_all(stats);
	for (struct entry *e = stats->entries; e; e = e->hh.next)
		if (e->next_ns <= now_ns && (!due || e->next_ns < due->next_ns) &&
		    cw_reading_budget_allows(stats->budget, e->job.uid))
			due = e;
	if (!due)
		return;
	read_job(stats, due, now_ns);
	cost_ns = cw_clock_cpu_ns() - start_ns;
	cw_reading_budget_charge(stats->budget, due->job.uid, cost_ns);
	rest_ns = cw_sample_throttle_next_ns(now_ns, cost_ns, 1);
	due->next_ns = rest_ns > now_ns + CW_JOB_TENSOR_STATS_NS ? rest_ns
								 : now_ns + CW_JOB_TENSOR_STATS_NS;
}

void cw_job_tensor_stats_totals(const struct cw_job_tensor_stats *stats,
				uint64_t ret[static CW_EXTENSION_KINDS])
{
	memcpy(ret, stats->totals, sizeof(stats->totals));
}

void cw_job_tensor_stats_each(const struct cw_job_tensor_stats *stats, cw_job_tensor_stats_fn fn,
			      void *user)
{
	for (const struct entry *e = stats->entries; e; e = e->hh.next)
		fn(&e->job, user);
}

void cw_job_tensor_stats_each_finding(const struct cw_job_tensor_stats *stats,
				      cw_job_tensor_stats_finding_fn fn, void *user)
{
	for (const struct entry *e = stats->entries; e; e = e->hh.next) {
		for (unsigned kind = 0; kind < CW_EXTENSION_KINDS; kind++) {
			const struct cw_extension_finding *finding =
				stats->extension->finding(e->state, kind);

			if (finding->seen_ns)
				fn(&e->job, &stats->extension->kinds[kind], finding, user);
		}
	}
}

void cw_job_tensor_stats_each_living(const struct cw_job_tensor_stats *stats,
				     cw_job_tensor_stats_living_fn fn, void *user)
{
	for (const struct cw_process *p = *stats->table; p; p = p->hh.next) {
		uint64_t since_ns = p->record ? cw_record_header(p->record)->created_wall_ns : 0;
		struct cw_job_id job;

		if (!since_ns || since_ns > INT64_MAX || cw_process_is_dead(p) ||
		    !cw_process_has_job(p))
			continue;
		job = cw_process_job_id(p);
		fn(&job, (int64_t)since_ns, user);
	}
}

int cw_job_tensor_stats_new(const struct cw_extension *extension, struct cw_process **table,
			    struct cw_reading_budget *budget, struct cw_job_tensor_stats **ret)
{
	struct cw_job_tensor_stats *stats = calloc(1, sizeof(*stats));

	if (!stats)
		return -ENOMEM;
	stats->extension = extension;
	stats->table = table;
	stats->budget = budget;
	*ret = stats;
	return 0;
}

struct cw_job_tensor_stats *cw_job_tensor_stats_free(struct cw_job_tensor_stats *stats)
{
	struct entry *e, *tmp;

	if (!stats)
		return NULL;
	HASH_ITER (hh, stats->entries, e, tmp) {
		HASH_DEL(stats->entries, e);
		free(e);
	}
	free(stats);
	return NULL;
}
