/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node/node_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/agents/agent_probe.h"
#include "daemon/kernel/procstat.h"
#include "daemon/node/lock_owners.h"
#include "daemon/node/unregistered_scan.h"
#include "loop/conn_closer.h"
#include "model/cause.h"
#include "numerics/node/numerics_extension.h"

#define DEADLINE_S 120

static int64_t clock_offset_ns, held_ns; /* held_ns 0 = the clock runs */

static int64_t fast_ns(void *user)
{
	struct timespec t;

	if (held_ns)
		return held_ns;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec * CW_NS_PER_S + t.tv_nsec) * TEST_SPEED + clock_offset_ns;
}

static const struct cw_clock fast_clock = { .monotonic_ns = fast_ns, .wall_ns = fast_ns };

struct agent agent_start(struct node_fixture *f, const struct agent_options *options)
{
	struct cw_procstat st;
	struct agent a;
	int in[2], out[2], proc_fd;

	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	a.pid = options->fork ? options->fork() : fork();
	if (a.pid == 0) {
		close(in[1]);
		close(out[0]);
		fake_agent_main(options, f->path, &fast_clock, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	a.to = in[1];
	a.from = out[0];
	cr_assert_eq(fcntl(a.from, F_SETFL, O_NONBLOCK), 0);
	proc_fd = cw_procstat_open(a.pid);
	cr_assert_eq(cw_procstat_read(proc_fd, &st), 0);
	a.start_ticks = st.start_ticks;
	close(proc_fd);
	return a;
}

struct answer {
	struct agent *agent;
	char c;
};

static bool has_answered(struct node_fixture *f, void *arg)
{
	struct answer *answer = arg;
	ssize_t n = read(answer->agent->from, &answer->c, 1);

	cr_assert(n == 1 || (n < 0 && errno == EAGAIN), "the agent died");
	return n == 1;
}

char agent_do(struct node_fixture *f, struct agent *a, char command)
{
	struct answer answer = { .agent = a };

	cr_assert_eq(write(a->to, &command, 1), 1);
	if (strchr("e01asg", command))
		return 'k';
	fixture_run_until(f, has_answered, &answer, "the agent's answer");
	return answer.c;
}

struct agent agent_register(struct node_fixture *f, const struct agent_options *options,
			    char expected)
{
	struct agent a = agent_start(f, options);

	cr_assert_eq(agent_do(f, &a, 'c'), expected);
	return a;
}

void agent_stop(struct agent *a)
{
	close(a->to);
	close(a->from);
	(void)kill(a->pid, SIGKILL); /* fails if the process has ended */
	cr_assert_eq(waitpid(a->pid, NULL, 0), a->pid);
}

static void on_digest(const struct cw_msg_digest *digest, void *user)
{
	struct node_fixture *f = user;

	f->digests++;
	cr_assert_eq(cw_job_id_read(&digest->job_key, digest->uid, digest->label, &f->job), 0);
	cr_assert(cw_job_key_is_set(&digest->job_key));
	cr_assert_eq(digest->job_hash, cw_job_hash(digest->label, digest->uid));
	snprintf(f->label, sizeof(f->label), "%s", digest->label);
	f->n_seen = 0;
	if (digest->untracked) {
		snprintf(f->untracked_label, sizeof(f->untracked_label), "%s", digest->label);
		f->untracked = digest->untracked;
		f->untracked_ranks = digest->n_ranks;
	}
	for (uint32_t i = 0; i < digest->n_ranks && i < MAX_SEEN; i++) {
		const struct cw_msg_rank *r = &digest->ranks[i];
		struct seen_rank *to = &f->seen[f->n_seen++];

		*to = (struct seen_rank){ .rank = *r };
		snprintf(to->command, sizeof(to->command), "%s", r->command);
		cw_cause_text(&r->cause_facts, r->cause_command, r->cause_group, r->exit_code,
			      to->cause, sizeof(to->cause));
		if (r->n_members)
			to->member = r->members[0];
		if (r->n_members && r->members[0].pending) {
			to->pending = *r->members[0].pending;
			to->has_pending = true;
		}
	}
}

void fixture_start(struct node_fixture *f, uint32_t max_processes, uint32_t max_per_uid)
{
	static const struct cw_fork_job jobs[] = {
		{ cw_agent_probe_child, CW_FORK_ALL_CAPABILITIES },
		{ cw_conn_closer_child, 0 },
		{ cw_lock_owner_child, CW_FORK_ALL_CAPABILITIES },
		{ cw_unregistered_scan_child, CW_FORK_ALL_CAPABILITIES },
	};
	struct cw_fork_server_config forks = { .clock = &cw_clock_system,
					       .jobs = jobs,
					       .n_jobs = sizeof(jobs) / sizeof(*jobs) };
	struct cw_err err;

	*f = (struct node_fixture){ .base = event_base_new() };
	forks.base = f->base;
	cr_assert_eq(cw_fork_server_new(&forks, &f->forks), 0);
	strcpy(f->dir, "/tmp/cw-node-XXXXXX");
	cr_assert(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/agent.sock", f->dir);
	f->config = (struct cw_node_config){
		.base = f->base,
		.clock = &fast_clock,
		.forks = f->forks,
		.socket_path = f->path,
		.listen_fd = -1,
		.node_name = "node-a",
		.extension = &cw_numerics_extension,
		.epoch = 1,
		.sample_ms = 200 / TEST_SPEED,
		.digest_ms = 1000 / TEST_SPEED,
		.max_processes = max_processes,
		.max_processes_per_uid = max_per_uid,
		.on_digest = on_digest,
		.user = f,
	};
	cr_assert_eq(cw_node_new(&f->config, &f->node, &err), 0);
}

void fixture_restart(struct node_fixture *f)
{
	struct cw_err err;

	cw_node_free(f->node);
	cr_assert_eq(cw_node_new(&f->config, &f->node, &err), 0);
}

void fixture_stop(struct node_fixture *f)
{
	cw_node_free(f->node);
	cw_fork_server_free(f->forks);
	event_base_free(f->base);
	cr_assert_eq(rmdir(f->dir), 0, "the socket must be gone");
}

void fixture_skip_ns(int64_t ns)
{
	clock_offset_ns += ns;
}

void fixture_hold_clock(bool is_held)
{
	int64_t now = fast_ns(NULL);

	if (!is_held && held_ns) {
		held_ns = 0;
		clock_offset_ns += now - fast_ns(NULL);
	} else if (is_held) {
		held_ns = now;
	}
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("waited %d s for %s", DEADLINE_S, (const char *)arg);
}

void fixture_run_until(struct node_fixture *f, bool (*done)(struct node_fixture *, void *),
		       void *arg, const char *what)
{
	struct event *deadline = evtimer_new(f->base, on_deadline, (void *)(uintptr_t)what);
	struct timeval tv = { .tv_sec = DEADLINE_S };

	event_add(deadline, &tv);
	while (!done(f, arg))
		cr_assert_geq(event_base_loop(f->base, EVLOOP_ONCE), 0);
	event_free(deadline);
}

static bool digests_reach(struct node_fixture *f, void *arg)
{
	return f->digests >= *(unsigned *)arg;
}

void fixture_next_digest(struct node_fixture *f)
{
	unsigned wanted = f->digests + 2;

	fixture_run_until(f, digests_reach, &wanted, "a digest");
}

const struct seen_rank *fixture_seen(const struct node_fixture *f, const struct agent *a)
{
	for (unsigned i = 0; i < f->n_seen; i++)
		if (f->seen[i].rank.pid == a->pid && f->seen[i].rank.start_ticks == a->start_ticks)
			return &f->seen[i];
	return NULL;
}

struct cw_node_stats fixture_stats(const struct node_fixture *f)
{
	struct cw_node_stats stats;

	cw_node_stats(f->node, &stats);
	return stats;
}
