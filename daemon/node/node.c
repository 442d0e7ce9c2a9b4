/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent socket and the registrar fill the table of processes. A tick samples the records four
 * times a second. It reads /proc and makes digests once a second. When a process ends, its pidfd
 * becomes readable, and we make a digest of its job at once. Queries return the last sampled state.
 * Only windows read the records again.
 */
#include "daemon/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/pidfd.h"
#include "common/unixsock.h"
#include "daemon/agents/agents.h"
#include "daemon/agents/registrar.h"
#include "daemon/node/digest_round.h"
#include "daemon/node/job_tensor_stats.h"
#include "daemon/node/lock_owners.h"
#include "daemon/node/python_requests.h"
#include "daemon/node/reading_budget.h"
#include "daemon/node/unregistered_ranks.h"
#include "daemon/process/fdstore_restore.h"
#include "daemon/process/process.h"
#include "daemon/process/process_memory.h"
#include "digest/window.h"
#include "identity/untracked.h"
#include "loop/conn_closer.h"
#include "loop/events.h"
#include "loop/sample_throttle.h"
#include "model/snapshot.h"

#define HELLO_MS 5000
#define MESSAGE_ID_NONFINITE_INPUT "8e3dfc1a6b6f4a0c9d1f7b0e54a6c2d7"
/*
 * CPU time of one tick for reading processes; there are four ticks a second. With thousands of
 * processes, we read each process less often than we want, so that the loop can still answer. The
 * budget is smaller in a tick that makes digests. It is smallest while agents wait for
 * registration, because a new rank matters more than a fresher sample of a known one. Even the
 * smallest budget suffices to read a hundred processes without delay.
 */
#define TICK_NS (40 * CW_NS_PER_MS)
#define TICK_WITH_DIGESTS_NS (15 * CW_NS_PER_MS)
#define TICK_REGISTERING_NS (5 * CW_NS_PER_MS)
/*
 * CPU time of an iteration for an urgent event. If it does not suffice, we continue in the next
 * iteration.
 */
#define URGENT_NS TICK_NS
/* CPU time of one request for windows. Windows beyond it are empty. */
#define WINDOWS_NS TICK_NS
/*
 * Connections beyond the number of processes. An agent may reconnect before we notice that its old
 * connection has closed.
 */
#define SPARE_CONNS_PER_UID 8
#define SPARE_CONNS 64
/*
 * Time that we remember a process that the full table refused. Its agent comes back every minute.
 */
#define UNTRACKED_KEEP_NS (150 * CW_NS_PER_S)
/*
 * We try END_ATTEMPTS times, every END_RETRY_MS, to learn how a process ended. This takes
 * CW_LIVENESS_PATIENCE_NS in all.
 */
#define END_RETRY_MS 20
#define END_ATTEMPTS (CW_LIVENESS_PATIENCE_NS / CW_NS_PER_MS / END_RETRY_MS)

struct cw_node {
	struct cw_node_config config;
	/* Path of the socket, which we remove at exit; NULL = the socket is not ours. */
	char *socket_path;
	char *node_name;
	struct cw_conn_closer *closer; /* closes agents' connections */
	struct cw_agents *agents;
	struct cw_registrar *registrar;
	struct cw_python_requests *python;
	struct cw_process *table;
	/* Process with which the next tick continues; NULL = the first one. */
	struct cw_process *next_look;
	struct event *tick, *urgent;
	struct cw_digest_rounds rounds;
	struct cw_unregistered_ranks *unregistered;
	struct cw_lock_owners *locks;
	struct cw_job_tensor_stats *tensor_stats;
	struct cw_untracked *untracked;
	struct cw_reading_budget *budget;
	int64_t digest_ns; /* time of the last round of digests for all jobs */
	struct cw_node_stats stats;
	struct cw_op_totals op_totals;
};

static int64_t now_of(const struct cw_node *node)
{
	return cw_clock_now_ns(node->config.clock);
}

/* Returns the total time that this daemon did not run, in ns. */
static int64_t held_of(const struct cw_node *node, int64_t now_ns)
{
	return now_ns - cw_clock_awake_ns(node->config.clock);
}

static bool is_rank(pid_t pid, void *user)
{
	const struct cw_node *node = user;

	return cw_processes_has_living(node->table, pid);
}

/* ---- sampling ---- */

static void log_nonfinite_input(const struct cw_process *p)
{
	int32_t number = cw_record_header(p->record)->rank_label;
	char what[256], text[512], job[192], rank[48], pid[32];
	const char *fields[] = { job, rank, pid, NULL };

	cw_nonfinite_input_format(&p->nonfinite_input, number, what, sizeof(what));
	(void)snprintf(text, sizeof(text), "job=%s pid=%d: %s, the first there", p->label,
		       (int)cw_process_pid(p), what);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", p->label);
	(void)snprintf(rank, sizeof(rank), "COLLWATCH_RANK=%d", (int)number);
	(void)snprintf(pid, sizeof(pid), "COLLWATCH_PID=%d", (int)cw_process_pid(p));
	cw_log_event(CW_LOG_WARN, MESSAGE_ID_NONFINITE_INPUT, text, fields);
}

/* Counts the ops of a process. The counts are only for users; no verdict depends on them. */
static void count_ops(struct cw_node *node, struct cw_process *p)
{
	cw_op_stats_sample(&p->ops, p->record, now_of(node), &node->op_totals);
	if (!cw_nonfinite_input_find(&p->nonfinite_input, p->record, now_of(node)))
		return;
	node->stats.nonfinite_inputs_total++;
	log_nonfinite_input(p);
}

static void find_label(struct cw_process *p)
{
	const struct cw_record_comm *comms;
	size_t n;

	if (cw_process_has_job(p))
		return;
	comms = cw_record_comms(p->record, &n);
	if (cw_job_label(cw_record_header(p->record), comms, n, p->label))
		/* If this fails, the next sample tries again. */
		(void)cw_job_key_make(p->uid, p->label, &p->job_key);
}

/*
 * Samples one process, and returns the CPU time that this took. If the user's budget is spent,
 * marks p as owing a sample, and returns 0.
 */
static int64_t sample(struct cw_node *node, struct cw_process *p)
{
	int64_t start_ns = cw_clock_cpu_ns(), cost_ns;

	if (cw_process_is_dead(p) && !p->owes_sample)
		return 0; /* we have sampled it when it ended */
	p->is_wanted = false;
	if (!cw_reading_budget_allows(node->budget, p->uid)) {
		p->owes_sample = true;
		return 0;
	}
	p->owes_sample = false;
	node->stats.samples_total++;
	if (cw_sampler_sample(&p->sampler, p->record, now_of(node)) < 0)
		node->stats.record_errors_total++;
	count_ops(node, p);
	find_label(p);
	cost_ns = cw_clock_cpu_ns() - start_ns;
	cw_reading_budget_charge(node->budget, p->uid, cost_ns);
	return cost_ns;
}

static void sample_in_turn(struct cw_node *node, struct cw_process *p)
{
	int64_t now_ns = now_of(node);

	if (now_ns < p->next_sample_ns && !p->owes_sample)
		return;
	p->next_sample_ns =
		cw_sample_throttle_next_ns(now_ns, sample(node, p), HASH_COUNT(node->table));
}

static void remove_process(struct cw_node *node, struct cw_process *p)
{
	if (p->conn)
		cw_agent_conn_close(p->conn);
	cw_python_requests_agent_gone(node->python, p);
	cw_fdstore_remove(p, node->config.clock);
	if (node->next_look == p)
		node->next_look = p->hh.next;
	HASH_DEL(node->table, p);
	(void)cw_process_free(p); /* always NULL */
}

static void keep(struct cw_node *node, struct cw_process *p)
{
	if (node->config.keeps_descriptors)
		/* If this fails, keep_all() tries again. */
		(void)cw_fdstore_put(p, node->config.clock);
}

/*
 * Stores the processes that we could not store before, because the service manager was busy. Stops
 * at the first failure, so that a busy manager gets one request instead of thousands.
 */
static void keep_all(struct cw_node *node)
{
	if (!node->config.keeps_descriptors)
		return;
	for (struct cw_process *p = node->table; p; p = p->hh.next)
		if (cw_fdstore_put(p, node->config.clock) < 0)
			return;
}

static void expire_dead(struct cw_node *node)
{
	int64_t now_ns = now_of(node);
	struct cw_process *p, *tmp;

	HASH_ITER (hh, node->table, p, tmp) {
		if (cw_process_is_dead(p) && now_ns - p->ended_ns > CW_PROCESS_KEEP_DEAD_NS)
			remove_process(node, p);
	}
}

static struct cw_untracked_item untracked_item(const struct cw_process *p)
{
	return (struct cw_untracked_item){ .uid = p->uid,
					   .label = p->label,
					   .pid = cw_process_pid(p),
					   .start_ticks = p->key.start_ticks };
}

/*
 * Stops watching a process that still runs. Its agent gets the reason, and tries again in a minute.
 */
static void stop_watching(struct cw_node *node, struct cw_process *p, const char *reason)
{
	const struct cw_untracked_item item = untracked_item(p);

	cw_untracked_note(node->untracked, &item, steal_fd(&p->pidfd), now_of(node));
	if (p->conn)
		cw_agent_conn_refuse(p->conn, reason);
	p->conn = NULL;
	remove_process(node, p);
}

static void limit_memory(struct cw_node *node)
{
	struct cw_process *p;

	while ((p = cw_processes_largest_memory_user(node->table, CW_PROCESSES_MAX_BYTES))) {
		log_warn("rank process pid=%d uid=%u is not watched: its record takes %zu MiB of "
			 "memory",
			 (int)cw_process_pid(p), (unsigned)p->uid, cw_process_memory(p) >> 20);
		node->stats.too_costly_total++;
		if (cw_process_is_dead(p))
			remove_process(node, p);
		else
			stop_watching(node, p, "records of this user take too much memory");
	}
}

/* ---- digests ---- */

static int compare_jobs(const void *a, const void *b)
{
	const struct cw_process *x = *(struct cw_process *const *)a;
	const struct cw_process *y = *(struct cw_process *const *)b;
	int r = memcmp(&x->job_key, &y->job_key, sizeof(x->job_key));

	if (r == 0)
		r = (x->uid > y->uid) - (x->uid < y->uid);
	return r ? r : strcmp(x->label, y->label);
}

/*
 * Marks every process of each job with an urgent event, so that we sample it first. If memory runs
 * out, the urgent digests have older samples.
 */
static void want_urgent(struct cw_node *node)
{
	_cleanup_(freep) struct cw_process **urgent =
		calloc(HASH_COUNT(node->table) + 1, sizeof(struct cw_process *));
	size_t n = 0;

	for (struct cw_process *p = node->table; urgent && p; p = p->hh.next) {
		if (!p->is_urgent || p->is_urgent_seen)
			continue;
		p->is_wanted = p->is_urgent_seen = true;
		if (cw_process_has_job(p))
			urgent[n++] = p;
	}
	if (!n)
		return;
	qsort(urgent, n, sizeof(struct cw_process *), compare_jobs);
	for (struct cw_process *p = node->table; p; p = p->hh.next)
		if (cw_process_has_job(p) &&
		    bsearch(&p, urgent, n, sizeof(struct cw_process *), compare_jobs))
			p->is_wanted = true;
}

/* Samples the marked processes. Returns false if the budget of CPU time ended before. */
static bool sample_wanted(struct cw_node *node)
{
	int64_t end_ns = cw_clock_cpu_ns() + URGENT_NS;

	for (struct cw_process *p = node->table; p; p = p->hh.next) {
		if (!p->is_wanted)
			continue;
		if (cw_clock_cpu_ns() >= end_ns)
			return false;
		(void)sample(node, p);
		p->is_wanted = false;
	}
	return true;
}

static void digest_round(struct cw_node *node, bool only_urgent)
{
	int64_t now_ns = now_of(node);

	node->rounds.held_ns = held_of(node, now_ns);
	cw_digest_round(&node->rounds, node->table, only_urgent, now_ns);
}

static void on_urgent(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval next_iteration = { 0, 0 };
	struct cw_node *node = arg;

	want_urgent(node);
	/* Use a timer, because event_active() would call us again before all other events. */
	if (!sample_wanted(node) && event_add(node->urgent, &next_iteration) == 0)
		return;
	digest_round(node, true);
}

static void hurry(struct cw_node *node, struct cw_process *p)
{
	p->is_urgent = true;
	event_active(node->urgent, EV_TIMEOUT, 0);
}

/*
 * Logs that the process was stopped. We do it at once, because the leader's alert may come much
 * later.
 */
static void say_stopped(const struct cw_process *p)
{
	char cause[CW_CAUSE_BYTES];

	cw_process_format_cause(p, cause);
	/* Do not log a short trace: a capture of stacks traces a rank for an instant. */
	if (p->liveness != CW_LIVE_TRACED && *cause)
		log_notice("job=%s pid=%d rank=%d: %s", p->label, (int)cw_process_pid(p),
			   (int)cw_record_header(p->record)->rank_label, cause);
}

/*
 * Reads as many processes as the budget of CPU time allows. The next tick continues with the rest.
 */
static void look_at_processes(struct cw_node *node, int64_t budget_ns, int64_t now_ns)
{
	int64_t half_ns = node->config.sample_ms * CW_NS_PER_MS / 2;
	int64_t start_ns = cw_clock_cpu_ns();
	struct cw_process *p = node->next_look;
	unsigned n = HASH_COUNT(node->table);

	while (n-- > 0 && cw_clock_cpu_ns() - start_ns < budget_ns) {
		int64_t look_ns;
		uint64_t cut;

		if (!p)
			p = node->table;
		if (!cw_reading_budget_allows(node->budget, p->uid)) {
			p = p->hh.next;
			continue;
		}
		cut = p->host_activity.cut;
		sample_in_turn(node, p);
		look_ns = cw_clock_cpu_ns();
		if (now_ns - p->stat_ns >= CW_NS_PER_S - half_ns &&
		    cw_process_look(p, is_rank, node, node->config.clock)) {
			say_stopped(p);
			hurry(node, p);
		}
		node->stats.scans_cut_total += p->host_activity.cut - cut;
		cw_lock_owners_look(node->locks, p, cw_clock_awake_ns(node->config.clock));
		cw_reading_budget_charge(node->budget, p->uid, cw_clock_cpu_ns() - look_ns);
		p = p->hh.next;
	}
	node->next_look = p;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct cw_node *node = arg;
	int64_t now_ns = now_of(node), half_ns = node->config.sample_ms * CW_NS_PER_MS / 2;
	bool is_digest_due =
		now_ns - node->digest_ns >= node->config.digest_ms * CW_NS_PER_MS - half_ns;
	int64_t budget_ns = cw_registrar_waiting(node->registrar) ? TICK_REGISTERING_NS
			    : is_digest_due                       ? TICK_WITH_DIGESTS_NS
								  : TICK_NS;

	look_at_processes(node, budget_ns, now_ns);
	expire_dead(node);
	if (!cw_registrar_waiting(node->registrar))
		cw_job_tensor_stats_tick(node->tensor_stats, now_ns);
	if (is_digest_due) {
		node->digest_ns = now_ns;
		limit_memory(node);
		keep_all(node);
		cw_unregistered_ranks_tick(node->unregistered);
		cw_untracked_tick(node->untracked, now_ns);
		digest_round(node, false);
	}
}

/* ---- exits ---- */

static void end_process(struct cw_node *node, struct cw_process *p, const struct cw_ending *end)
{
	int64_t now_ns = now_of(node);
	char cause[CW_CAUSE_BYTES];

	p->ops.sampled_ns = 0; /* makes sample() count the ops without waiting for a second */
	(void)sample(node, p); /* read the last ops */
	cw_process_look_at_launcher(p, now_ns);
	cw_process_end(p, end, now_ns);
	keep(node, p);
	cw_process_format_cause(p, cause);
	log_debug("rank process pid=%d of job=%s ended: code %d signal %d %s",
		  (int)cw_process_pid(p), p->label, end->exit_code, end->term_signal, cause);
	hurry(node, p);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	struct timeval retry = { .tv_usec = END_RETRY_MS * 1000 };
	struct cw_ending end = { .liveness = CW_LIVE_GONE };
	struct cw_process *p = arg;
	struct cw_node *node = p->node;

	if (!p->ending_ns)
		p->ending_ns = now_of(node);
	if (cw_process_ending(p, now_of(node), cw_clock_now_ns(&cw_clock_system), &end) ==
		    CW_LIVENESS_AGAIN &&
	    ++p->end_attempts <= END_ATTEMPTS) {
		/*
		 * Replace the event by a timer. The pidfd stays readable, so its event would fire
		 * all the time.
		 */
		if (p->end_attempts == 1) {
			event_free(p->end_event);
			p->end_event = evtimer_new(node->config.base, on_end, p);
		}
		if (p->end_event && event_add(p->end_event, &retry) == 0)
			return;
		/* Out of memory: we know only that the process has gone. */
		end.liveness = CW_LIVE_GONE;
	}
	end_process(node, p, &end);
}

/* ---- agents ---- */

static int on_registered(struct cw_process *p, void *user)
{
	struct cw_node *node = user;
	const struct cw_untracked_item item = untracked_item(p);

	p->node = node;
	p->end_event = event_new(node->config.base, p->pidfd, EV_READ, on_end, p);
	if (!p->end_event || event_add(p->end_event, NULL) < 0)
		return -ENOMEM;
	if (!cw_pidfd_has_ended(p->pidfd)) /* a restored process may have ended already */
		cw_process_watch(p, node->config.kernel);
	(void)sample(node, p);
	/* Ignore the result: this first reading cannot show a change. */
	(void)cw_process_look(p, is_rank, node, node->config.clock);
	keep(node, p);
	cw_untracked_forget(node->untracked, &item);
	return 0;
}

static void on_returned(struct cw_process *p, void *user)
{
	(void)sample(user, p);
	keep(user, p); /* store it again, because the agent may have made a new record */
}

static void on_restored_dead(struct cw_process *p, const struct cw_ending *end, void *user)
{
	p->node = user;
	end_process(user, p, end);
}

static void on_evict(struct cw_process *p, void *user)
{
	struct cw_node *node = user;

	if (cw_process_is_dead(p)) {
		remove_process(node, p);
		return;
	}
	node->stats.displaced_total++;
	stop_watching(node, p, CW_OVER_QUOTA);
}

static void on_other_user(struct cw_process *p, void *user)
{
	log_info("rank process pid=%d of uid=%u runs as another user now", (int)cw_process_pid(p),
		 (unsigned)p->uid);
	remove_process(user, p);
}

static void on_over_quota(struct cw_process *p, void *user)
{
	struct cw_node *node = user;
	struct cw_untracked_item item;

	node->stats.over_quota_total++;
	(void)sample(node, p); /* only to find the label of its job */
	item = untracked_item(p);
	cw_untracked_note(node->untracked, &item, steal_fd(&p->pidfd), now_of(node));
}

static bool may_read(uid_t uid, void *user)
{
	return cw_reading_budget_allows(((struct cw_node *)user)->budget, uid);
}

static void on_read(uid_t uid, int64_t cpu_ns, void *user)
{
	cw_reading_budget_charge(((struct cw_node *)user)->budget, uid, cpu_ns);
}

static bool has_incident(const struct cw_process *p, void *user)
{
	const struct cw_node_config *config = &((const struct cw_node *)user)->config;
	struct cw_job_id job;

	if (!config->has_incident || !cw_process_has_job(p))
		return false;
	job = cw_process_job_id(p);
	return config->has_incident(&job, config->user);
}

static struct cw_process_quota quota_of(struct cw_node *node)
{
	return (struct cw_process_quota){ .max = node->config.max_processes,
					  .max_per_uid = node->config.max_processes_per_uid,
					  .has_incident = has_incident,
					  .user = node };
}

static void on_hello(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
		     size_t frame_len, void *user)
{
	struct cw_node *node = user;

	cw_registrar_hello(node->registrar, conn, hello, frame_len);
}

static void on_message(struct cw_agent_conn *conn, const struct cw_message *msg, void *user)
{
	struct cw_process *p = cw_agent_conn_owner(conn);
	struct cw_node *node = user;

	if (!cw_python_requests_answer(node->python, p, &msg->python_stacks_reply))
		log_debug("late Python stacks from pid=%d, ignoring", (int)cw_process_pid(p));
}

static void on_closed(struct cw_agent_conn *conn, void *user)
{
	struct cw_process *p = cw_agent_conn_owner(conn);
	struct cw_node *node = user;

	if (!p) {
		/* Does nothing if no hello came. */
		(void)cw_registrar_forget(node->registrar, conn);
		return;
	}
	p->conn = NULL;
	cw_python_requests_agent_gone(node->python, p);
}

/* ---- queries ---- */

static bool is_past(void *user)
{
	return cw_clock_cpu_ns() >= *(const int64_t *)user;
}

int cw_node_windows(struct cw_node *node, const struct cw_job_id *job,
		    const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret)
{
	_cleanup_(freep) struct cw_digest_rank *ranks =
		calloc(HASH_COUNT(node->table) + 1, sizeof(*ranks));
	int64_t now_ns, start_ns = cw_clock_cpu_ns(), end_ns = start_ns + WINDOWS_NS, read_ns;
	const struct cw_window_time time = { is_past, &end_ns };
	uint32_t n = 0;
	int r;

	if (!ranks)
		return -ENOMEM;
	/* Sample first, so that we know the newest ops and communicators. */
	for (struct cw_process *p = node->table; p; p = p->hh.next)
		if (cw_process_is_of(p, job) && cw_clock_cpu_ns() - start_ns < WINDOWS_NS / 2)
			(void)sample(node, p);
	now_ns = now_of(node);
	for (struct cw_process *p = node->table; p; p = p->hh.next)
		if (cw_process_is_of(p, job))
			ranks[n++] = cw_process_facts(p, now_ns, held_of(node, now_ns));
	read_ns = cw_clock_cpu_ns();
	r = cw_window_collect_within(ranks, n, request, &time, ret);
	cw_reading_budget_charge(node->budget, job->uid, cw_clock_cpu_ns() - read_ns);
	return r;
}

void cw_node_windows_fini(struct cw_msg_window_reply *reply)
{
	cw_window_fini(reply);
}

bool cw_node_search(struct cw_node *node, const struct cw_msg_rank_search *q)
{
	return cw_unregistered_ranks_search(node->unregistered, q);
}

static struct cw_node_process describe(const struct cw_node *node, const struct cw_process *p)
{
	const struct cw_rec_header *header = cw_record_header(p->record);

	return (struct cw_node_process){
		.pid = cw_process_pid(p),
		.start_ticks = p->key.start_ticks,
		.uid = p->uid,
		.gid = p->gid,
		.pidfd = p->pidfd,
		.rank = header->rank_label,
		.is_dead = cw_process_is_dead(p),
		.is_crashed = cw_process_is_dead(p) && cw_ending_is_fault(&p->end),
		.ended_ns = p->ended_ns,
		.own_pid = p->pod.own_pid,
		.cwd = p->cwd ? p->cwd : "",
		.has_python = header->has & CW_REC_HAS_PYTHON,
		.idle_ns = p->host_activity.has_base
				   ? cw_age_ns(cw_clock_awake_ns(node->config.clock),
					       p->host_activity.cpu_change_ns)
				   : -1,
	};
}

bool cw_node_find(struct cw_node *node, pid_t pid, uint64_t start_ticks,
		  struct cw_node_process *ret)
{
	const struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p)
		return cw_unregistered_ranks_find(node->unregistered, pid, start_ticks, ret);
	*ret = describe(node, p);
	return true;
}

bool cw_node_is_of_another(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
			   const struct cw_job_id *job)
{
	const struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p)
		return cw_unregistered_ranks_is_of_another(node->unregistered, pid, start_ticks,
							   job);
	return !cw_process_is_of(p, job);
}

void cw_node_each(struct cw_node *node, cw_node_process_fn fn, void *user)
{
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		struct cw_node_process process = describe(node, p);

		fn(&process, p->label, user);
	}
}

void cw_node_each_ops(const struct cw_node *node, cw_node_ops_fn fn, void *user)
{
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		struct cw_node_process process = describe(node, p);

		fn(&process, p->label, &p->ops, &p->nonfinite_input, user);
	}
}

const struct cw_op_totals *cw_node_op_totals(const struct cw_node *node)
{
	return &node->op_totals;
}

int cw_node_python_stacks(struct cw_node *node, pid_t pid, uint64_t start_ticks,
			  uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			  uint64_t *ret_handle)
{
	struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p || cw_process_is_dead(p))
		return -ENOENT;
	return cw_python_requests_ask(node->python, p, deadline_ms, fn, user, ret_handle);
}

void cw_node_python_cancel(struct cw_node *node, uint64_t handle)
{
	cw_python_requests_cancel(node->python, handle);
}

const struct cw_job_tensor_stats *cw_node_tensor_stats(const struct cw_node *node)
{
	return node->tensor_stats;
}

const struct cw_untracked *cw_node_untracked(const struct cw_node *node)
{
	return node->untracked;
}

void cw_node_stats(const struct cw_node *node, struct cw_node_stats *ret)
{
	struct cw_agents_stats agents;

	*ret = node->stats;
	cw_agents_stats(node->agents, &agents);
	ret->digests_total = node->rounds.number;
	ret->registered_total = cw_registrar_total(node->registrar);
	ret->refused_total = agents.refused;
	ret->deferred_total = agents.deferred;
	ret->waiting = cw_registrar_waiting(node->registrar);
	ret->probes_repeated_total = cw_registrar_repeated(node->registrar);
	ret->unreadable_total = cw_registrar_unreadable(node->registrar);
	ret->no_record_total = cw_registrar_no_record(node->registrar, &ret->no_record_error);
	ret->bad_messages_total = agents.bad_messages;
	ret->untracked = cw_untracked_count(node->untracked);
	ret->untracked_dropped_total = cw_untracked_dropped(node->untracked);
	ret->postponed_total = cw_reading_budget_postponed(node->budget);
	cw_job_tensor_stats_totals(node->tensor_stats, ret->findings_total);
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		ret->processes++;
		ret->connected += p->conn != NULL;
		ret->dead += cw_process_is_dead(p);
	}
}

/* ---- life cycle ---- */

uint32_t cw_node_room(uint64_t descriptors, uint32_t wanted)
{
	uint64_t others = descriptors / 4 < CW_NODE_OTHER_FDS ? descriptors / 4 : CW_NODE_OTHER_FDS;
	uint64_t room = (descriptors - others) / CW_NODE_PROCESS_FDS;

	if (room > wanted)
		return wanted;
	return room > 0 ? (uint32_t)room : 1;
}

static int open_socket(struct cw_node *node, int *ret_fd, struct cw_err *err)
{
	const struct cw_node_config *config = &node->config;
	int fd = config->listen_fd;

	if (fd >= 0) {
		int flags = fcntl(fd, F_GETFL);

		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
			return cw_err_set(err, errno, "agent socket %d: %m", fd);
		*ret_fd = fd;
		return 0;
	}
	fd = cw_unix_listen(config->socket_path, 0666, (gid_t)-1, err);
	if (fd < 0)
		return fd;
	node->socket_path = strdup(config->socket_path);
	*ret_fd = fd;
	return 0;
}

static void log_untracked(void *user, int level, const char *line)
{
	cw_log(level, "%s", line);
}

static int start_agents(struct cw_node *node, struct cw_err *err)
{
	int r = cw_conn_closer_new(node->config.base, node->config.forks, &node->closer);
	struct cw_agents_config agents = {
		.base = node->config.base,
		.clock = node->config.clock,
		.closer = node->closer,
		.daemon = "collwatchd " CW_VERSION,
		.max_conns = node->config.max_processes + SPARE_CONNS,
		.max_conns_per_uid = node->config.max_processes_per_uid + SPARE_CONNS_PER_UID,
		.hello_ms = HELLO_MS,
		.on_hello = on_hello,
		.on_message = on_message,
		.on_closed = on_closed,
		.user = node,
	};
	struct cw_registrar_config registrar = {
		.base = node->config.base,
		.forks = node->config.forks,
		.table = &node->table,
		.quota = quota_of(node),
		.on_registered = on_registered,
		.on_over_quota = on_over_quota,
		.on_evict = on_evict,
		.on_other_user = on_other_user,
		.on_returned = on_returned,
		.may_read = may_read,
		.on_read = on_read,
		.user = node,
	};
	struct cw_unregistered_ranks_config unregistered = {
		.base = node->config.base,
		.forks = node->config.forks,
		.clock = node->config.clock,
		.socket_path = node->config.socket_path,
		.table = &node->table,
	};

	static const struct cw_untracked_config untracked = {
		.one = "rank process",
		.many = "rank processes",
		.why = "this node watches as many as its limit and its memory allow",
		.keep_ns = UNTRACKED_KEEP_NS,
		.log = log_untracked,
	};

	if (r < 0 || cw_registrar_new(&registrar, &node->registrar) < 0 ||
	    cw_python_requests_new(node->config.base, &node->python) < 0 ||
	    cw_unregistered_ranks_new(&unregistered, &node->unregistered) < 0 ||
	    cw_lock_owners_new(node->config.base, node->config.forks, &node->table, &node->locks) <
		    0 ||
	    cw_job_tensor_stats_new(node->config.extension, &node->table, node->budget,
				    &node->tensor_stats) < 0 ||
	    cw_untracked_new(&untracked, &node->untracked) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = open_socket(node, &agents.listen_fd, err);
	if (r < 0)
		return r;
	node->rounds.unregistered = node->unregistered;
	node->rounds.untracked = node->untracked;
	r = cw_agents_new(&agents, &node->agents);
	return r < 0 ? cw_err_set(err, -r, "out of memory") : 0;
}

static void restore(struct cw_node *node)
{
	struct cw_fdstore_restore_config config = {
		.table = &node->table,
		.quota = quota_of(node),
		.clock = node->config.clock,
		.on_living = on_registered,
		.on_dead = on_restored_dead,
		.user = node,
	};

	node->stats.restored =
		cw_fdstore_restore(&config, node->config.fdstore, node->config.n_fdstore);
	node->config.fdstore = NULL;
	node->config.n_fdstore = 0;
}

static int start_timers(struct cw_node *node)
{
	struct timeval period = { .tv_sec = node->config.sample_ms / 1000,
				  .tv_usec = node->config.sample_ms % 1000 * 1000 };

	node->tick = event_new(node->config.base, -1, EV_PERSIST, on_tick, node);
	node->urgent = evtimer_new(node->config.base, on_urgent, node);
	if (!node->tick || !node->urgent || event_add(node->tick, &period) < 0)
		return -ENOMEM;
	return 0;
}

int cw_node_new(const struct cw_node_config *config, struct cw_node **ret, struct cw_err *err)
{
	struct cw_node *node = calloc(1, sizeof(*node));
	int r;

	if (!node) {
		cw_fdstore_free(config->fdstore, config->n_fdstore);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	node->config = *config;
	node->node_name = strdup(config->node_name);
	node->rounds = (struct cw_digest_rounds){ .node = node->node_name,
						  .epoch = config->epoch,
						  .on_digest = config->on_digest,
						  .user = config->user };
	r = node->node_name ? 0 : cw_err_set(err, ENOMEM, "out of memory");
	if (r == 0 &&
	    (start_timers(node) < 0 || cw_reading_budget_new(config->clock, &node->budget) < 0))
		r = cw_err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = start_agents(node, err);
	if (r < 0) {
		(void)cw_node_free(node); /* always NULL */
		return r;
	}
	restore(node);
	*ret = node;
	return 0;
}

struct cw_node *cw_node_free(struct cw_node *node)
{
	struct cw_process *p, *tmp;

	if (!node)
		return NULL;
	if (node->socket_path)
		(void)unlink(node->socket_path); /* fails if another process has removed it */
	node->registrar = cw_registrar_free(node->registrar);
	node->agents = cw_agents_free(node->agents);
	node->closer = cw_conn_closer_free(node->closer);
	node->python = cw_python_requests_free(node->python);
	node->unregistered = cw_unregistered_ranks_free(node->unregistered);
	node->locks = cw_lock_owners_free(node->locks);
	node->tensor_stats = cw_job_tensor_stats_free(node->tensor_stats);
	node->untracked = cw_untracked_free(node->untracked);
	HASH_ITER (hh, node->table, p, tmp) {
		HASH_DEL(node->table, p);
		(void)cw_process_free(p); /* always NULL */
	}
	node->budget = cw_reading_budget_free(node->budget);
	event_freep(&node->tick);
	event_freep(&node->urgent);
	cw_fdstore_free(node->config.fdstore, node->config.n_fdstore);
	free(node->socket_path);
	free(node->node_name);
	free(node);
	return NULL;
}
