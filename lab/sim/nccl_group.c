/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups. Every public call that enqueues opens its own group around itself, so there is one path:
 * we collect the calls. At the outermost end we
 *
 *	1. do the blocking jobs (init, split), each in a thread if there are several, because in one
 *	   process they may wait for each other;
 *	2. connect to peers at their first use, also in threads;
 *	3. launch: per communicator the collectives in their order, then the sends and receives as
 *	   one batch.
 *
 * No stream has work of the group before step 3. If a non-blocking communicator takes part and step
 * 1 or 2 must wait, a thread does all this and the call returns ncclInProgress.
 */
#include <signal.h>
#include <stdlib.h>

#include "lab/sim/nccl_profiler.h"
#include "lab/sim/nccl_sim.h"

struct group {
	struct sim_task *tasks;
	struct sim_task **tasks_end;
	struct sim_job *jobs;
	struct sim_job **jobs_end;
};

/* One communicator's part of a group. */
struct part {
	struct part *next;
	ncclComm_t comm; /* holds a reference */
	struct sim_task *colls;
	struct sim_task *p2p;
	bool *wanted; /* per rank: connect to this peer; NULL = no peer */
	ncclResult_t result;
};

struct work {
	struct sim_job *jobs;
	struct part *parts;
};

static __thread int depth;
static __thread ncclResult_t group_result;
static __thread struct group group;

static void jobs_free(struct sim_job *jobs)
{
	while (jobs) {
		struct sim_job *next = jobs->next;

		sim_comm_unref(jobs->comm);
		free(jobs->group);
		free(jobs);
		jobs = next;
	}
}

static void group_reset(void)
{
	group = (struct group){ 0 };
	group_result = ncclSuccess;
}

void sim_group_start(void)
{
	if (depth++ == 0)
		group_reset();
}

ncclResult_t sim_group_note(ncclResult_t result)
{
	if (depth > 0 && result != ncclSuccess && result != ncclInProgress)
		group_result = result;
	return result;
}

ncclResult_t sim_group_add(const struct sim_task *task)
{
	struct sim_task *t = malloc(sizeof(*t));

	if (!t)
		return sim_fail(ncclSystemError, "out of memory");
	*t = *task;
	t->next = NULL;
	sim_profiler_call(t, depth);
	if (!group.tasks)
		group.tasks_end = &group.tasks;
	*group.tasks_end = t;
	group.tasks_end = &t->next;
	return ncclSuccess;
}

ncclResult_t sim_group_add_job(const struct sim_job *job)
{
	struct sim_job *j = malloc(sizeof(*j));

	if (!j) {
		sim_comm_unref(job->comm);
		free(job->group);
		return sim_fail(ncclSystemError, "out of memory");
	}
	*j = *job;
	j->next = NULL;
	if (!group.jobs)
		group.jobs_end = &group.jobs;
	*group.jobs_end = j;
	group.jobs_end = &j->next;
	return ncclSuccess;
}

/* ---- parallel steps that may wait for each other ---- */

struct in_parallel {
	void (*fn)(void *);
	void *arg;
	pthread_t thread;
	bool has_thread;
};

static void *parallel_main(void *arg)
{
	struct in_parallel *p = arg;

	p->fn(p->arg);
	return NULL;
}

static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* Runs all functions at the same time, the last one in the calling thread. */
static void run_parallel(struct in_parallel *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		all[i].has_thread =
			i + 1 < n && start_thread(&all[i].thread, parallel_main, &all[i]) == 0;
		if (!all[i].has_thread)
			all[i].fn(all[i].arg);
	}
	for (size_t i = 0; i < n; i++) {
		if (all[i].has_thread)
			pthread_join(all[i].thread, NULL);
	}
}

/* ---- the steps ---- */

static void run_job(void *arg)
{
	struct sim_job *j = arg;
	struct sim_split split = { .parent = j->comm,
				   .config = j->has_config ? &j->config : NULL,
				   .ordinal = j->ordinal,
				   .color = j->color,
				   .split_key = j->split_key,
				   .group = j->group,
				   .num_group = j->num_group };
	ncclComm_t child = NULL;

	if (j->group) {
		j->result = sim_bootstrap_split(&split, &child);
		if (child) {
			child->hash = sim_profiler_child_hash(j->comm->hash, (int)j->ordinal + 1,
							      j->color);
			sim_profiler_init(child);
		}
		*j->newcomm = child;
		return;
	}
	j->result = sim_bootstrap_init(j->comm, &j->id);
	j->comm->hash = sim_profiler_hash(&j->id);
	if (j->result == ncclSuccess)
		sim_profiler_init(j->comm);
	if (j->result != ncclSuccess && j->comm->is_blocking) {
		*j->newcomm = NULL;
		sim_comm_release(j->comm);
	}
}

static ncclResult_t run_jobs(struct sim_job *jobs)
{
	struct in_parallel *all;
	ncclResult_t result = ncclSuccess;
	size_t n = 0;

	for (struct sim_job *j = jobs; j; j = j->next)
		n++;
	if (n == 0)
		return ncclSuccess;
	all = calloc(n, sizeof(*all));
	if (!all)
		return sim_fail(ncclSystemError, "out of memory");
	n = 0;
	for (struct sim_job *j = jobs; j; j = j->next)
		all[n++] = (struct in_parallel){ .fn = run_job, .arg = j };
	run_parallel(all, n);
	free(all);
	for (struct sim_job *j = jobs; j; j = j->next) {
		if (j->result != ncclSuccess)
			result = j->result;
	}
	return result;
}

static void run_connect(void *arg)
{
	struct part *p = arg;

	p->result = sim_bootstrap_p2p(p->comm, p->wanted);
}

static ncclResult_t run_connects(struct part *parts)
{
	struct in_parallel *all;
	ncclResult_t result = ncclSuccess;
	size_t n = 0;

	for (struct part *p = parts; p; p = p->next)
		n += p->wanted != NULL;
	if (n == 0)
		return ncclSuccess;
	all = calloc(n, sizeof(*all));
	if (!all)
		return sim_fail(ncclSystemError, "out of memory");
	n = 0;
	for (struct part *p = parts; p; p = p->next) {
		if (p->wanted)
			all[n++] = (struct in_parallel){ .fn = run_connect, .arg = p };
	}
	run_parallel(all, n);
	free(all);
	for (struct part *p = parts; p; p = p->next) {
		if (p->result != ncclSuccess)
			result = p->result;
	}
	return result;
}

static ncclResult_t run_launches(struct part *parts)
{
	ncclResult_t result = ncclSuccess;

	for (struct part *p = parts; p; p = p->next) {
		while (p->colls && result == ncclSuccess) {
			struct sim_task *t = p->colls;

			p->colls = t->next;
			t->next = NULL;
			sim_profiler_launch(p->comm, t, false);
			result = sim_launch(p->comm, t);
		}
		if (p->p2p && result == ncclSuccess) {
			struct sim_task *batch = p->p2p;

			p->p2p = NULL;
			sim_profiler_launch(p->comm, batch, false);
			result = sim_launch(p->comm, batch);
		}
	}
	return result;
}

static void parts_free(struct part *parts)
{
	while (parts) {
		struct part *next = parts->next;

		sim_tasks_free(parts->colls);
		sim_tasks_free(parts->p2p);
		free(parts->wanted);
		sim_comm_unref(parts->comm);
		free(parts);
		parts = next;
	}
}

static ncclResult_t run_work(struct work *w)
{
	ncclResult_t result = run_jobs(w->jobs);

	if (result == ncclSuccess)
		result = run_connects(w->parts);
	if (result == ncclSuccess)
		result = run_launches(w->parts);
	return result;
}

static void work_set_async(struct work *w, ncclResult_t result)
{
	for (struct sim_job *j = w->jobs; j; j = j->next)
		sim_comm_set_async(j->comm, result);
	for (struct part *p = w->parts; p; p = p->next)
		sim_comm_set_async(p->comm, result);
}

static void work_free(struct work *w)
{
	jobs_free(w->jobs);
	parts_free(w->parts);
	free(w);
}

static void *background_main(void *arg)
{
	struct work *w = arg;

	work_set_async(w, run_work(w));
	work_free(w);
	return NULL;
}

/* ---- the end of a group ---- */

static struct part *part_of(struct work *w, ncclComm_t comm)
{
	struct part **link = &w->parts;

	while (*link && (*link)->comm != comm)
		link = &(*link)->next;
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		if (*link) {
			(*link)->comm = comm;
			sim_comm_ref(comm);
		}
	}
	return *link;
}

static bool need_connection(struct part *p, int peer)
{
	if (peer == p->comm->rank || p->comm->p2p[peer].fd >= 0)
		return true;
	if (!p->wanted)
		p->wanted = calloc((size_t)p->comm->nranks, sizeof(*p->wanted));
	if (p->wanted)
		p->wanted[peer] = true;
	return p->wanted != NULL;
}

/* Sorts the tasks into parts. Takes over the tasks, also on failure. */
static ncclResult_t sort_tasks(struct work *w, struct sim_task *tasks)
{
	while (tasks) {
		struct sim_task *t = tasks;
		struct part *p = part_of(w, t->comm);
		struct sim_task **link;

		if (!p || (sim_is_p2p(t) && !need_connection(p, t->root))) {
			sim_tasks_free(tasks);
			return sim_fail(ncclSystemError, "out of memory");
		}
		tasks = t->next;
		t->next = NULL;
		link = sim_is_p2p(t) ? &p->p2p : &p->colls;
		while (*link)
			link = &(*link)->next;
		*link = t;
	}
	return ncclSuccess;
}

/*
 * True if a thread must do the work, because it would block a non-blocking communicator. NCCL never
 * simulates in another thread.
 */
static bool goes_to_background(const struct work *w, bool is_simulated)
{
	bool has_non_blocking = false, may_block = w->jobs != NULL;

	for (const struct sim_job *j = w->jobs; j; j = j->next)
		has_non_blocking |= !j->comm->is_blocking;
	for (const struct part *p = w->parts; p; p = p->next) {
		has_non_blocking |= !p->comm->is_blocking;
		may_block |= p->wanted != NULL;
	}
	return has_non_blocking && (may_block || is_simulated);
}

static void drop_group(void)
{
	for (struct sim_job *j = group.jobs; j; j = j->next) {
		if (!j->group) { /* for an init, the caller has its handle already */
			*j->newcomm = NULL;
			sim_comm_release(j->comm);
		}
	}
	jobs_free(group.jobs);
	sim_tasks_free(group.tasks);
	group_reset();
}

/* Handles the outermost end. A simulation makes communicators and launches nothing. */
static ncclResult_t finish_group(bool is_simulated)
{
	struct work *w;
	ncclResult_t result;
	pthread_t thread;

	w = calloc(1, sizeof(*w));
	if (group_result != ncclSuccess || !w) {
		result = w ? group_result : sim_fail(ncclSystemError, "out of memory");
		free(w);
		drop_group();
		return result;
	}
	w->jobs = group.jobs;
	result = sort_tasks(w, group.tasks);
	group_reset();
	if (result == ncclSuccess && goes_to_background(w, is_simulated)) {
		work_set_async(w, ncclInProgress);
		if (start_thread(&thread, background_main, w) == 0) {
			pthread_detach(thread);
			return ncclInProgress;
		}
		result = sim_fail(ncclSystemError, "cannot start a thread");
		work_set_async(w, result);
	} else if (result == ncclSuccess) {
		result = is_simulated ? run_jobs(w->jobs) : run_work(w);
	}
	work_free(w);
	return result;
}

ncclResult_t sim_group_end(ncclSimInfo_t *info)
{
	ncclResult_t result;

	if (depth == 0)
		return sim_fail(ncclInvalidUsage, "GroupEnd without GroupStart");
	if (--depth > 0)
		return ncclSuccess;
	if (group_result == ncclSuccess && info && info->magic != 0x74685283)
		group_result = sim_fail(ncclInvalidArgument, "GroupSimulateEnd: not initialised");
	sim_profiler_end_begins();
	result = finish_group(info);
	sim_profiler_end_is_over();
	if (info && result == ncclSuccess)
		info->estimatedTime = 0; /* we have no model of time */
	return result;
}
