/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the counters of all parts at one moment. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/metrics/metrics.h"

/*
 * Returns the daemon's resident memory. Its own /proc files are short, and reading them never
 * blocks.
 */
static uint64_t rss_bytes(void)
{
	unsigned long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	(void)fclose(f); /* harmless: we only read the file */
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		(void)closedir(dir); /* harmless: we only read the directory */
	return n ? n - 1 : 0;        /* without the descriptor of dir itself */
}

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static double cpu_seconds(void)
{
	struct rusage self, children;

	if (getrusage(RUSAGE_SELF, &self) < 0 || getrusage(RUSAGE_CHILDREN, &children) < 0)
		return 0;
	return seconds(&self.ru_utime) + seconds(&self.ru_stime) + seconds(&children.ru_utime) +
	       seconds(&children.ru_stime);
}

static void add_late(struct cw_metrics *m, const struct cw_slow *said)
{
	double share = said->percent / 100.0;

	m->late_ranks++;
	if (share < m->late_share || (share == m->late_share && m->late_wait_s > 0))
		return;
	m->late_share = share;
	m->late_wait_s = (double)said->late_ns / CW_NS_PER_S;
}

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct cw_metrics *m = user;
	uint32_t phase = job->view.phase <= CW_STALL_HANG ? job->view.phase : CW_STALL_SUSPECT;

	m->jobs[phase]++;
	m->ranks += job->view.ranks;
	m->ranks_expected += job->view.ranks_expected;
	for (uint32_t i = 0; i < job->late.n; i++)
		if (cw_late_rank_is_confirmed(&job->late.v[i]))
			add_late(m, &job->late.v[i].said);
}

static void count_peers(const struct cw_transport *t, struct cw_metrics *m)
{
	const struct cw_peer *peers;
	unsigned n;

	peers = cw_transport_peers(t, &n);
	m->peers = n;
	for (unsigned i = 0; i < n; i++)
		m->peers_connected += peers[i].state == CW_PEER_CONNECTED &&
				      cw_transport_is_alive(t, peers[i].name);
}

static void count_bundles(struct cw_store *store, struct cw_metrics *m)
{
	struct cw_store_stats stats;

	cw_store_stats(store, &stats);
	m->bundles_in_memory = stats.waiting;
	m->bundles_lost = stats.lost;
	m->bundles_removed = stats.removed;
	m->bundles_refused = stats.refused;
	m->state_writable = !stats.error;
}

void cw_metrics_collect(const struct cw_metrics_parts *parts, struct cw_metrics *ret)
{
	int64_t up_ns = cw_clock_now_ns(parts->clock) - parts->started_ns;
	struct cw_fork_server_stats forks;

	memset(ret, 0, sizeof(*ret));
	ret->extension = parts->extension;
	ret->start_time_s = (double)(cw_clock_wall_ns(parts->clock) - up_ns) / CW_NS_PER_S;
	cw_fork_server_stats(parts->forks, &forks);
	/* cpu_seconds() includes fork servers that have ended */
	ret->cpu_s = cpu_seconds() + forks.cpu_s;
	ret->fork_servers_lost = forks.lost;
	ret->held_up_max_s = (double)parts->held_up_max_ns / CW_NS_PER_S;
	ret->rss_bytes = rss_bytes();
	ret->fds = count_fds();
	ret->is_shadow = cw_alerts_is_shadow(parts->alerts);
	ret->reload_ok = !parts->reload || parts->reload->result <= CW_RELOAD_DONE;
	ret->reload_failures = parts->reload ? parts->reload->failures : 0;
	count_bundles(parts->store, ret);
	ret->requests_refused = cw_responder_refused(parts->responder);
	for (unsigned k = 0; k < CW_PEER_ASK__MAX; k++)
		ret->peer_too_often += cw_peer_rate_refused(parts->peer_rate, k);
	ret->digests_lost = parts->digests_lost;
	ret->messages_without_job = parts->messages_without_job;
	ret->lateness = *parts->lateness;
	cw_accept_pause_stats(&ret->accept);
	cw_leader_jobs(parts->leader, on_job, ret);
	count_peers(parts->transport, ret);
	cw_node_stats(parts->node, &ret->node);
	ret->ops = *cw_node_op_totals(parts->node);
	cw_leader_stats(parts->leader, &ret->leader);
	cw_transport_stats(parts->transport, &ret->transport);
	if (parts->tcp)
		cw_tcp_stats(parts->tcp, &ret->tcp);
	cw_capture_stats(parts->capture, &ret->capture);
	cw_alerts_stats(parts->alerts, &ret->alerts);
	ret->mutes_unconfirmed = parts->mutes_unconfirmed;
	ret->log_lost = cw_log_lost();
	cw_control_socket_stats(parts->control, &ret->control);
	if (ret->node.processes > ret->node.connected + ret->node.dead)
		ret->processes_unconnected =
			ret->node.processes - ret->node.connected - ret->node.dead;
}
