/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round makes one digest per job. We walk through the table. The first process that is not in a
 * digest yet determines the job, and all processes of this job go into its digest. Then we make
 * digests for jobs that have no process in the table. Either we search for ranks of such a job, or
 * the table of processes is too full for its processes.
 */
#include "daemon/node/digest_round.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/node/unregistered_ranks.h"
#include "daemon/node/unregistered_scan.h"
#include "digest/digest.h"
#include "identity/untracked.h"

/* Collects the processes of the job, and marks them as done in this round. Returns their number. */
static uint32_t collect_job(struct cw_digest_rounds *rounds, struct cw_process *table,
			    const struct cw_job_id *job, struct cw_digest_rank *ranks, uint32_t max,
			    int64_t now_ns)
{
	uint32_t n = 0;

	for (struct cw_process *p = table; p && n < max; p = p->hh.next) {
		if (!cw_process_is_of(p, job) || p->digest_round == rounds->round)
			continue;
		p->digest_round = rounds->round;
		p->is_urgent = p->is_urgent_seen = false;
		ranks[n++] = cw_process_facts(p, now_ns, rounds->held_ns);
	}
	return n;
}

/*
 * Maximum number of digests per round for jobs that have only untracked ranks: processes that the
 * full table refused.
 */
#define MAX_UNTRACKED_JOBS 256u

/* Adds the job's ranks that never called NCCL to the digest. The arena has their memory. */
static int collect_unregistered(struct cw_digest_rounds *rounds, struct cw_arena *arena,
				struct cw_digest_source *source)
{
	struct cw_msg_rank *v;

	if (!rounds->unregistered)
		return 0;
	v = cw_arena_new_array(arena, struct cw_msg_rank, CW_UNREGISTERED_SCAN_MAX_RANKS);
	source->unregistered = v;
	return v ? cw_unregistered_ranks_list(rounds->unregistered, source->job, arena, v,
					      CW_UNREGISTERED_SCAN_MAX_RANKS,
					      &source->n_unregistered)
		 : -ENOMEM;
}

static void digest_job(struct cw_digest_rounds *rounds, const struct cw_job_id *job,
		       const struct cw_digest_rank *ranks, uint32_t n_ranks)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_digest_source source = {
		.node = rounds->node,
		.epoch = rounds->epoch,
		.number = rounds->number + 1,
		.ranks = ranks,
		.n_ranks = n_ranks,
		.job = job,
		.is_sent = true,
	};
	struct cw_digest digest;

	if (rounds->untracked)
		source.untracked = cw_untracked_of_job(rounds->untracked, job->uid, job->label);
	if (collect_unregistered(rounds, &arena, &source) < 0 ||
	    cw_digest_make(&source, &digest) < 0) {
		log_warn("digest of job=%s: out of memory, skipped", job->label);
		return;
	}
	rounds->number++;
	rounds->on_digest(&digest.msg, rounds->user);
	cw_digest_fini(&digest);
}

static bool has_job(struct cw_process *table, const struct cw_job_id *job)
{
	for (struct cw_process *p = table; p; p = p->hh.next)
		if (cw_process_is_of(p, job))
			return true;
	return false;
}

/*
 * Makes digests for jobs with ranks that never called NCCL, but without a registered process here.
 */
static void digest_unregistered(struct cw_digest_rounds *rounds, struct cw_process *table)
{
	const struct cw_job_id *job;

	for (unsigned i = 0;
	     rounds->unregistered && (job = cw_unregistered_ranks_job(rounds->unregistered, i));
	     i++)
		if (!has_job(table, job))
			digest_job(rounds, job, NULL, 0);
}

struct untracked_jobs {
	struct cw_process *table;
	struct cw_job_id v[MAX_UNTRACKED_JOBS];
	unsigned n;
};

static void add_untracked_job(const struct cw_untracked_entry *entry, void *user)
{
	struct untracked_jobs *jobs = user;
	struct cw_job_id job;

	if (jobs->n == MAX_UNTRACKED_JOBS || cw_job_id_make(entry->uid, entry->label, &job) < 0)
		return;
	for (unsigned i = 0; i < jobs->n; i++)
		if (cw_job_id_is_equal(&jobs->v[i], &job))
			return;
	if (!has_job(jobs->table, &job))
		jobs->v[jobs->n++] = job;
}

/*
 * Makes digests for jobs that have only untracked ranks on this node: processes that the full table
 * refused. Other nodes have ranks of the job. With these digests the leader knows which ranks it
 * cannot see.
 */
static void digest_untracked(struct cw_digest_rounds *rounds, struct cw_process *table)
{
	struct untracked_jobs jobs = { .table = table };

	if (rounds->untracked)
		cw_untracked_each(rounds->untracked, add_untracked_job, &jobs);
	for (unsigned i = 0; i < jobs.n; i++)
		digest_job(rounds, &jobs.v[i], NULL, 0);
}

void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns)
{
	_cleanup_(freep) struct cw_digest_rank *ranks = NULL;
	uint32_t max = HASH_COUNT(table);

	if (!only_urgent)
		digest_unregistered(rounds, table);
	if (!only_urgent)
		digest_untracked(rounds, table);
	if (max == 0)
		return;
	if (max > CW_MSG_MAX_RANKS)
		max = CW_MSG_MAX_RANKS;
	ranks = calloc(max, sizeof(*ranks));
	if (!ranks)
		return; /* out of memory: the next round tries again */
	rounds->round++;
	for (struct cw_process *p = table; p; p = p->hh.next) {
		struct cw_job_id job;

		if (!cw_process_has_job(p) || p->digest_round == rounds->round ||
		    (only_urgent && !p->is_urgent))
			continue;
		job = cw_process_job_id(p);
		digest_job(rounds, &job, ranks,
			   collect_job(rounds, table, &job, ranks, max, now_ns));
	}
}
