/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is one search per job, as long as a leader requests it. Its scans run in a child, one at a
 * time. The child's result is not trusted: we check each process by pidfd and start time before we
 * count it. If a rank registers after all, we drop it from the search.
 */
#include "daemon/node/unregistered_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/pidfd.h"
#include "daemon/kernel/liveness.h"
#include "daemon/node/unregistered_scan.h"
#include "daemon/process/host_activity.h"
#include "daemon/process/proc_pod.h"
#include "daemon/process/process.h"
#include "identity/quota.h"
#include "loop/children.h"
#include "model/facts.h"

/* One rank that a scan found. */
struct unregistered_rank {
	struct cw_unregistered_scan_found found;
	char command[CW_PROCESS_COMMAND_BYTES];
	int pidfd, proc_fd;
	int32_t own_pid; /* pid in the rank's own pid namespace; 0 = unknown, or the same pid */
	uint32_t liveness;
	struct cw_host_activity host_activity;
	bool is_current; /* true if the last scan has found it, too */
};

struct search {
	struct cw_unregistered_ranks *owner;
	struct cw_job_id job; /* an empty label = this entry is free */
	struct cw_unregistered_scan_query query;
	int64_t since_ns, asked_ns, scanned_ns;
	struct cw_child *child; /* NULL = no scan is in progress */
	struct unregistered_rank *ranks[CW_UNREGISTERED_SCAN_MAX_RANKS];
	uint32_t n_ranks;
	/*
	 * Refreshing may take several seconds: the first n_to_look_at ranks still have to be
	 * refreshed. 0 = start again with all ranks.
	 */
	uint32_t n_to_look_at;
};

/*
 * CPU time per second for refreshing the ranks of all searches. Without this limit, 1,024 ranks
 * with many descendants would hold up the loop for seconds. The remaining ranks wait for the next
 * second.
 */
#define TICK_NS (10 * CW_NS_PER_MS)

struct cw_unregistered_ranks {
	struct cw_unregistered_ranks_config config;
	struct cw_children *children;
	struct search searches[CW_UNREGISTERED_RANKS_MAX_SEARCHES];
	unsigned first; /* index of the search that we refresh first in the next tick */
};

int cw_unregistered_ranks_new(const struct cw_unregistered_ranks_config *config,
			      struct cw_unregistered_ranks **ret)
{
	struct cw_unregistered_ranks *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->config = *config;
	r = cw_children_new(config->base, &u->children);
	if (r < 0) {
		free(u);
		return r;
	}
	*ret = u;
	return 0;
}

/* ---- one rank ---- */

static void rank_free(struct unregistered_rank *rank)
{
	closep(&rank->pidfd);
	closep(&rank->proc_fd);
	cw_host_activity_fini(&rank->host_activity);
	free(rank);
}

/*
 * Refreshes a rank. Returns false if its process has ended or its pid belongs to another process.
 */
static bool look_at(struct unregistered_rank *rank, int64_t now_ns)
{
	struct cw_host_activity_process process = { .proc_fd = rank->proc_fd,
						    .pid = rank->found.pid };
	struct cw_procstat st;
	int err = cw_pidfd_has_ended(rank->pidfd) ? -ESRCH : cw_procstat_read(rank->proc_fd, &st);

	if (err == -EBUSY)
		return true; /* execve() is in progress: try again in a second */
	if (err < 0 || st.start_ticks != rank->found.start_ticks)
		return false;
	cw_host_activity_step(&rank->host_activity, &process, &st, now_ns);
	rank->liveness = cw_liveness_of_state(st.state);
	return true;
}

static struct unregistered_rank *rank_new(const struct cw_unregistered_scan_found *found,
					  int64_t now_ns)
{
	struct unregistered_rank *rank = calloc(1, sizeof(*rank));
	struct cw_proc_pod pod;

	if (!rank)
		return NULL;
	rank->found = *found;
	cw_command_text(found->command, found->command_len, rank->command);
	cw_host_activity_init(&rank->host_activity);
	rank->pidfd = (int)syscall(SYS_pidfd_open, found->pid, 0);
	rank->proc_fd = cw_procstat_open(found->pid);
	if (rank->pidfd < 0 || rank->proc_fd < 0 || !look_at(rank, now_ns)) {
		rank_free(rank);
		return NULL;
	}
	cw_proc_pod_read(rank->proc_fd, &pod);
	cw_pod_complete(&rank->found.pod, &pod.ids);
	rank->own_pid = pod.own_pid;
	return rank;
}

/* ---- a search ---- */

static void drop_rank(struct search *search, uint32_t i)
{
	rank_free(search->ranks[i]);
	search->ranks[i] = search->ranks[--search->n_ranks];
}

static void forget(struct search *search)
{
	if (search->child)
		cw_child_cancel(search->child);
	while (search->n_ranks)
		drop_rank(search, search->n_ranks - 1);
	*search = (struct search){ .owner = search->owner };
}

struct cw_unregistered_ranks *cw_unregistered_ranks_free(struct cw_unregistered_ranks *u)
{
	if (!u)
		return NULL;
	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++)
		forget(&u->searches[i]);
	cw_children_free(u->children);
	free(u);
	return NULL;
}

/*
 * Checks one rank in the child's result, and terminates its strings. The child has read hostile
 * input, so the result may contain any bytes.
 */
static bool is_sound(struct cw_unregistered_scan_found *f)
{
	f->source[sizeof(f->source) - 1] = '\0';
	f->pod.name[sizeof(f->pod.name) - 1] = '\0';
	f->pod.ns[sizeof(f->pod.ns) - 1] = '\0';
	f->pod.container[sizeof(f->pod.container) - 1] = '\0';
	return f->rank >= 0 && f->pid > 1 && f->command_len <= sizeof(f->command);
}

static void take_found(struct search *search, const struct cw_unregistered_scan_found *found,
		       int64_t now_ns)
{
	for (uint32_t i = 0; i < search->n_ranks; i++)
		if (search->ranks[i]->found.pid == found->pid &&
		    search->ranks[i]->found.start_ticks == found->start_ticks) {
			search->ranks[i]->is_current = true;
			return;
		}
	if (search->n_ranks == CW_UNREGISTERED_SCAN_MAX_RANKS)
		return;
	search->ranks[search->n_ranks] = rank_new(found, now_ns);
	if (!search->ranks[search->n_ranks])
		/* The process has ended, or memory ran out and the next scan will find it. */
		return;
	search->ranks[search->n_ranks++]->is_current = true;
	log_info("job=%s: rank %d is here, pid %d, and has not called NCCL", search->query.label,
		 found->rank, found->pid);
}

static void on_scanned(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct search *search = user;
	int64_t now = cw_clock_awake_ns(search->owner->config.clock);
	struct cw_unregistered_scan_found found;

	search->child = NULL;
	for (uint32_t i = 0; i < search->n_ranks; i++)
		/* Keep all ranks if the scan was incomplete. */
		search->ranks[i]->is_current = end != CW_CHILD_EXITED;
	for (size_t at = 0; at + sizeof(found) <= len; at += sizeof(found)) {
		memcpy(&found, output + at, sizeof(found));
		if (is_sound(&found))
			take_found(search, &found, now);
	}
	for (uint32_t i = search->n_ranks; i-- > 0;)
		if (!search->ranks[i]->is_current)
			drop_rank(search, i);
	if (end != CW_CHILD_EXITED)
		log_info("job=%s: the search for ranks that never called NCCL failed",
			 search->query.label);
}

static void scan(struct search *search, int64_t now_ns)
{
	struct cw_child_config config = {
		.forks = search->owner->config.forks,
		.job = cw_unregistered_scan_child,
		.arg = &search->query,
		.arg_len = sizeof(search->query),
		.deadline_ms = CW_UNREGISTERED_RANKS_SCAN_MS,
		.max_output =
			CW_UNREGISTERED_SCAN_MAX_RANKS * sizeof(struct cw_unregistered_scan_found),
		.fn = on_scanned,
		.user = search,
		.uid = search->job.uid,
	};
	int r = -EBUSY;

	search->scanned_ns = now_ns;
	if (cw_children_abandoned_of(search->owner->children, search->job.uid) <
	    CW_CHILD_MAX_ABANDONED)
		r = cw_child_start(search->owner->children, &config, &search->child);
	if (r < 0)
		log_info("job=%s: no search for ranks that never called NCCL: %s",
			 search->query.label, strerror(-r));
}

/* ---- all searches ---- */

static bool is_used(const struct search *search)
{
	return *search->job.label;
}

/*
 * Returns a free search. If there is none, takes the search of a user above the quota.
 * NULL = neither exists.
 */
static struct search *get_unused(struct cw_unregistered_ranks *u, uint32_t uid)
{
	struct cw_quota_charge charges[CW_UNREGISTERED_RANKS_MAX_SEARCHES];
	struct search *unused = NULL;
	void *displaced = NULL;
	size_t n = 0;

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		struct search *search = &u->searches[i];

		if (is_used(search))
			charges[n++] = (struct cw_quota_charge){ .uid = search->job.uid,
								 .since_ns = search->since_ns,
								 .holder = search };
		else
			unused = search;
	}
	switch (cw_quota_charge_for(uid, charges, n, CW_UNREGISTERED_RANKS_MAX_SEARCHES,
				    &displaced)) {
	case CW_QUOTA_ADMIT:
		return unused;
	case CW_QUOTA_DISPLACE:
		forget(displaced);
		return displaced;
	default:
		return NULL;
	}
}

static struct search *find_or_add(struct cw_unregistered_ranks *u, const struct cw_job_id *job)
{
	struct search *unused;

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		struct search *search = &u->searches[i];

		if (is_used(search) && cw_job_id_is_equal(&search->job, job))
			return search;
	}
	unused = get_unused(u, job->uid);
	if (unused) {
		unused->owner = u;
		unused->since_ns = cw_clock_now_ns(u->config.clock);
		unused->job = *job;
		unused->query.uid = job->uid;
		memcpy(unused->query.label, job->label, sizeof(job->label));
		(void)snprintf(unused->query.socket, sizeof(unused->query.socket), "%s",
			       u->config.socket_path); /* a path that was cut matches no process */
	}
	return unused;
}

bool cw_unregistered_ranks_search(struct cw_unregistered_ranks *u,
				  const struct cw_msg_rank_search *q)
{
	struct cw_job_id job;
	struct search *search;

	if (cw_job_id_read(&q->job_key, q->uid, q->label, &job) != 0)
		return false;
	search = find_or_add(u, &job);
	if (search)
		search->asked_ns = cw_clock_awake_ns(u->config.clock);
	return search != NULL;
}

/* Refreshes the ranks of a search. Returns false if the CPU time ended before. */
static bool look_at_ranks(struct search *search, int64_t now_ns, int64_t end_cpu_ns)
{
	const struct cw_unregistered_ranks *u = search->owner;

	if (!search->n_to_look_at || search->n_to_look_at > search->n_ranks)
		search->n_to_look_at = search->n_ranks;
	while (search->n_to_look_at) {
		const struct unregistered_rank *rank = search->ranks[search->n_to_look_at - 1];

		if (cw_clock_cpu_ns() >= end_cpu_ns)
			return false;
		search->n_to_look_at--;
		if (!look_at(search->ranks[search->n_to_look_at], now_ns) ||
		    cw_processes_find(*u->config.table, rank->found.pid, rank->found.start_ticks))
			drop_rank(search, search->n_to_look_at);
	}
	return true;
}

static void look_at_searches(struct cw_unregistered_ranks *u, int64_t now_ns)
{
	int64_t end_cpu_ns = cw_clock_cpu_ns() + TICK_NS;
	unsigned first = u->first;

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		u->first = (first + i) % CW_UNREGISTERED_RANKS_MAX_SEARCHES;
		if (is_used(&u->searches[u->first]) &&
		    !look_at_ranks(&u->searches[u->first], now_ns, end_cpu_ns))
			return;
	}
}

void cw_unregistered_ranks_tick(struct cw_unregistered_ranks *u)
{
	int64_t now = cw_clock_awake_ns(u->config.clock);

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		struct search *search = &u->searches[i];

		if (is_used(search) && now - search->asked_ns > CW_UNREGISTERED_RANKS_KEEP_NS)
			forget(search);
	}
	look_at_searches(u, now);
	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		struct search *search = &u->searches[i];

		if (is_used(search) && !search->child &&
		    (!search->scanned_ns ||
		     now - search->scanned_ns >= CW_UNREGISTERED_RANKS_SCAN_EVERY_NS))
			scan(search, now);
	}
}

/* ---- results ---- */

const struct cw_job_id *cw_unregistered_ranks_job(const struct cw_unregistered_ranks *u, unsigned i)
{
	for (unsigned k = 0; k < CW_UNREGISTERED_RANKS_MAX_SEARCHES; k++)
		if (u->searches[k].n_ranks && i-- == 0)
			return &u->searches[k].job;
	return NULL;
}

static int fill_rank(const struct search *search, const struct unregistered_rank *rank,
		     int64_t now_ns, struct cw_arena *arena, struct cw_msg_rank *ret)
{
	*ret = (struct cw_msg_rank){
		.rank = rank->found.rank,
		.world_size = rank->found.world_size,
		.local_rank = rank->found.local_rank,
		.rank_source = cw_arena_strdup(arena, rank->found.source),
		.pid = rank->found.pid,
		.own_pid = rank->own_pid,
		.start_ticks = rank->found.start_ticks,
		.started_age_ns = (uint64_t)cw_procstat_age_ns(rank->found.start_ticks),
		.device = -1,
		.uid = search->query.uid,
		.liveness = rank->liveness,
		.host_activity_age_ns =
			rank->host_activity.has_base
				? cw_age_ns(now_ns, rank->host_activity.host_activity_ns)
				: -1,
		.host_activity_by = rank->host_activity.by,
		.command = cw_arena_strdup(arena, rank->command),
		.cause_command = "",
		.cause_group = "",
		.nonfinite_input = "",
		.pod = cw_arena_strdup(arena, rank->found.pod.name),
		.pod_namespace = cw_arena_strdup(arena, rank->found.pod.ns),
		.container = cw_arena_strdup(arena, rank->found.pod.container),
	};
	if (rank->host_activity.is_d_state)
		ret->flags |= CW_RANKF_D_STATE;
	if (rank->host_activity.is_child_busy)
		ret->flags |= CW_RANKF_BUSY_CHILD;
	return ret->rank_source && ret->command && ret->pod && ret->pod_namespace && ret->container
		       ? 0
		       : -ENOMEM;
}

int cw_unregistered_ranks_list(const struct cw_unregistered_ranks *u, const struct cw_job_id *job,
			       struct cw_arena *arena, struct cw_msg_rank *ret, uint32_t max,
			       uint32_t *ret_n)
{
	int64_t now = cw_clock_awake_ns(u->config.clock);

	*ret_n = 0;
	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		const struct search *search = &u->searches[i];

		if (!is_used(search) || !cw_job_id_is_equal(&search->job, job))
			continue;
		for (uint32_t k = 0; k < search->n_ranks && *ret_n < max; k++)
			if (fill_rank(search, search->ranks[k], now, arena, &ret[(*ret_n)++]) < 0)
				return -ENOMEM;
	}
	return 0;
}

bool cw_unregistered_ranks_find(const struct cw_unregistered_ranks *u, pid_t pid,
				uint64_t start_ticks, struct cw_node_process *ret)
{
	int64_t now = cw_clock_awake_ns(u->config.clock);

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		const struct search *search = &u->searches[i];

		for (uint32_t k = 0; k < search->n_ranks; k++) {
			const struct unregistered_rank *rank = search->ranks[k];

			if (rank->found.pid != pid || rank->found.start_ticks != start_ticks)
				continue;
			*ret = (struct cw_node_process){
				.pid = pid,
				.start_ticks = start_ticks,
				.uid = search->query.uid,
				.gid = rank->found.gid,
				.pidfd = rank->pidfd,
				.rank = rank->found.rank,
				.idle_ns =
					rank->host_activity.has_base
						? cw_age_ns(now, rank->host_activity.cpu_change_ns)
						: -1,
			};
			return true;
		}
	}
	return false;
}

bool cw_unregistered_ranks_is_of_another(const struct cw_unregistered_ranks *u, pid_t pid,
					 uint64_t start_ticks, const struct cw_job_id *job)
{
	bool is_of_another = false;

	for (unsigned i = 0; i < CW_UNREGISTERED_RANKS_MAX_SEARCHES; i++) {
		const struct search *search = &u->searches[i];

		for (uint32_t k = 0; k < search->n_ranks; k++) {
			if (search->ranks[k]->found.pid != pid ||
			    search->ranks[k]->found.start_ticks != start_ticks)
				continue;
			if (cw_job_id_is_equal(&search->job, job))
				return false;
			is_of_another = true;
		}
	}
	return is_of_another;
}
