/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/job_env.h"
#include "daemon/node/unregistered_ranks.h"
#include "daemon/node/unregistered_scan.h"
#include "daemon/process/host_activity.h"
#include "identity/job_label.h"
#include "model/facts.h"
#include "tests/support/node/node_fixture.h"

/* ---- the environment of a process ---- */

static bool matches(const char *environment, size_t len, const char *label)
{
	struct cw_unregistered_scan_query query = { .uid = 1000,
						    .socket = CW_DEFAULT_AGENT_SOCKET };
	struct cw_unregistered_scan_found found = { 0 };

	(void)snprintf(query.label, sizeof(query.label), "%s", label);
	if (!cw_unregistered_scan_env_matches(environment, len, &query, &found))
		return false;
	cr_assert_eq(found.rank, 5);
	cr_assert_eq(found.world_size, 8);
	cr_assert_str_eq(found.source, "RANK");
	return true;
}

#define ENVIRONMENT "PATH=/bin\0COLLWATCH_JOB=a\0RANK=5\0WORLD_SIZE=8"

Test(unregistered_ranks, environment_tells_job_and_rank)
{
	static const char good[] = ENVIRONMENT, off[] = ENVIRONMENT "\0COLLWATCH_DISABLE=1",
			  off_too[] = ENVIRONMENT "\0COLLWATCH_DISABLE=Yes",
			  off_by_name[] = ENVIRONMENT "\0COLLWATCH=false",
			  on[] = ENVIRONMENT "\0COLLWATCH_DISABLE=off",
			  there[] = ENVIRONMENT "\0COLLWATCH_SOCKET=" CW_DEFAULT_AGENT_SOCKET,
			  elsewhere[] = ENVIRONMENT "\0COLLWATCH_SOCKET=/tmp/agent.sock",
			  no_rank[] = "COLLWATCH_JOB=a\0WORLD_SIZE=8",
			  prefix[] = "XRANK=5\0RANKS=1";

	cr_assert(matches(good, sizeof(good), "name:a"));
	cr_assert_not(matches(good, sizeof(good), "name:b"), "another job");
	cr_assert(matches(there, sizeof(there), "name:a"));
	cr_assert_not(matches(elsewhere, sizeof(elsewhere), "name:a"), "another daemon's");
	cr_assert_not(matches(off, sizeof(off), "name:a"), "its agent is switched off");
	cr_assert_not(matches(off_too, sizeof(off_too), "name:a"), "by another word");
	cr_assert_not(matches(off_by_name, sizeof(off_by_name), "name:a"), "the other switch");
	cr_assert(matches(on, sizeof(on), "name:a"));
	cr_assert_not(matches(no_rank, sizeof(no_rank), "name:a"));
	cr_assert_not(matches(prefix, sizeof(prefix), "name:a"));
}

Test(unregistered_ranks, environment_that_a_process_has_overwritten_is_no_match)
{
	static const char good[] = ENVIRONMENT;

	cr_assert_not(matches(good, sizeof(good) - 1, "name:a"), "no end");
	cr_assert_not(matches(good, 0, "name:a"));
	cr_assert_not(matches("\0\0\0", 3, ""), "no label is no job");
}

Test(unregistered_ranks, mappings_tell_agent_and_record)
{
	struct cw_unregistered_scan_candidate c = { 0 };

	cw_unregistered_scan_read_map(
		"7f00-7f01 r-xp 0 08:01 7   /opt/libcollwatch.so.debug-notes\n", &c);
	cw_unregistered_scan_read_map("7f00-7f01 r-xp 0 08:01 7   /opt/libcollwatch.some\n", &c);
	cr_assert_not(c.has_record);
	c.has_agent = false;
	cw_unregistered_scan_read_map("7f00-7f01 r-xp 0 08:01 7   /opt/libcollwatch.some\n", &c);
	cr_assert_not(c.has_agent);
	cw_unregistered_scan_read_map("7f00-7f01 r-xp 0 08:01 7   /opt/libcollwatch.so\n", &c);
	cr_assert(c.has_agent && !c.has_record);
	cw_unregistered_scan_read_map(
		"7f00-7f01 rw-s 0 00:01 9   /memfd:collwatch-record (deleted)\n", &c);
	cr_assert(c.has_record);
}

/* ---- which process is the rank ---- */

static struct cw_unregistered_scan_candidate process(int32_t rank, int32_t pid, pid_t ppid)
{
	return (struct cw_unregistered_scan_candidate){
		.found = { .rank = rank, .pid = pid, .start_ticks = (uint64_t)pid },
		.ppid = ppid,
		.has_agent = true,
	};
}

Test(unregistered_ranks, rank_is_the_topmost_process_that_is_no_shell)
{
	struct cw_unregistered_scan_candidate v[] = { process(1, 13, 12), process(1, 11, 10),
						      process(1, 12, 11), process(2, 20, 1) };

	v[1].is_shell = true;
	cr_assert_eq(cw_unregistered_scan_choose(v, 4), 2);
	cr_assert_eq(v[0].found.pid, 12, "not its worker, not its shell");
	cr_assert_eq(v[1].found.pid, 20);
}

Test(unregistered_ranks, of_several_on_top_the_oldest_is_the_rank)
{
	struct cw_unregistered_scan_candidate v[] = { process(1, 15, 1), process(1, 12, 1) };

	cr_assert_eq(cw_unregistered_scan_choose(v, 2), 1);
	cr_assert_eq(v[0].found.pid, 12);
}

Test(unregistered_ranks, rank_with_a_record_or_without_an_agent_is_not_unregistered)
{
	struct cw_unregistered_scan_candidate v[] = { process(1, 11, 1), process(1, 12, 11),
						      process(2, 20, 1) };

	v[1].has_record = true;
	v[2].has_agent = false;
	cr_assert_eq(cw_unregistered_scan_choose(v, 3), 0);
}

/* ---- on a node ---- */

struct waiter {
	pid_t pid;
	int stdin_fd;
};

/* AddressSanitizer's start-up calls dlsym(), which is the agent's own. */
static bool can_preload(void)
{
#ifdef __SANITIZE_ADDRESS__
	return false;
#else
	return true;
#endif
}

/* A program that waits for its input with the agent preloaded, as a rank that never gets to NCCL.
 */
static struct waiter start_waiter(const struct node_fixture *f, const char *job, const char *rank)
{
	struct waiter w;
	char job_env[64], rank_env[32], socket_env[128];
	int fds[2];

	(void)snprintf(job_env, sizeof(job_env), "COLLWATCH_JOB=%s", job);
	(void)snprintf(rank_env, sizeof(rank_env), "RANK=%s", rank);
	(void)snprintf(socket_env, sizeof(socket_env), "COLLWATCH_SOCKET=%s", f->path);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	w.pid = fork();
	if (w.pid == 0) {
		const char *argv[] = { "cat", NULL };
		const char *env[] = {
			job_env, rank_env, socket_env, "WORLD_SIZE=2", "LD_PRELOAD=" CW_TEST_AGENT,
			NULL
		};

		if (dup2(fds[0], 0) == 0)
			(void)execve("/bin/cat", (char **)argv, (char **)env);
		_exit(99);
	}
	cr_assert_gt(w.pid, 0);
	(void)close(fds[0]);
	w.stdin_fd = fds[1];
	return w;
}

static void stop_waiter(struct waiter *w)
{
	(void)close(w->stdin_fd);
	cr_assert_eq(waitpid(w->pid, NULL, 0), w->pid);
}

static const struct seen_rank *seen(const struct node_fixture *f, const struct waiter *w)
{
	for (unsigned i = 0; i < f->n_seen; i++)
		if (f->seen[i].rank.pid == w->pid)
			return &f->seen[i];
	return NULL;
}

static bool search(struct node_fixture *f, const char *label, uint32_t uid)
{
	struct cw_msg_rank_search q = { .label = label, .uid = uid };

	return cw_node_search(f->node, &q);
}

/* A leader asks again and again. */
static bool is_seen(struct node_fixture *f, void *arg)
{
	(void)search(f, "name:unregistered-test", getuid());
	return seen(f, arg) != NULL;
}

struct process {
	pid_t pid;
	uint64_t start_ticks;
};

static bool has_lost(struct node_fixture *f, void *arg)
{
	const struct process *process = arg;
	struct cw_node_process p;

	return !cw_node_find(f->node, process->pid, process->start_ticks, &p);
}

Test(unregistered_ranks, rank_that_never_called_nccl_is_in_the_digest_when_asked_for)
{
	struct waiter w, other;
	const struct seen_rank *rank;
	struct cw_node_process p;
	struct node_fixture f;

	if (!can_preload())
		cr_skip_test("an agent built with AddressSanitizer cannot be preloaded");
	fixture_start(&f, 16, 16);
	w = start_waiter(&f, "unregistered-test", "1");
	other = start_waiter(&f, "other", "1");
	fixture_run_until(&f, is_seen, &w, "the rank without a record");
	rank = seen(&f, &w);
	cr_assert_str_eq(f.label, "name:unregistered-test");
	cr_assert_eq(rank->rank.rank, 1);
	cr_assert_eq(rank->rank.world_size, 2);
	cr_assert_str_eq(rank->command, "cat");
	cr_assert_eq(rank->rank.n_members, 0);
	cr_assert_not(rank->rank.flags & CW_RANKF_HAS_RECORD);
	cr_assert_null(seen(&f, &other));
	/* Its stacks can be taken. */
	cr_assert(cw_node_find(f.node, w.pid, rank->rank.start_ticks, &p));
	cr_assert_eq(p.uid, getuid());
	cr_assert_eq(p.rank, 1);
	cr_assert_geq(p.pidfd, 0);
	cr_assert_not(p.is_dead);
	stop_waiter(&w);
	stop_waiter(&other);
	fixture_stop(&f);
}

#define N_COSTLY 4u

/* Looks that cost 20 ms each, as at a rank with a large family; those of one tick have one time. */
static struct {
	bool is_on;
	pid_t pids[N_COSTLY];
	unsigned looks[N_COSTLY]; /* at each, but for the first one */
	int64_t tick_ns;
	unsigned in_tick, most_in_tick;
} costly;

void __real_cw_host_activity_step(struct cw_host_activity *h,
				  const struct cw_host_activity_process *process,
				  const struct cw_procstat *st, int64_t now_ns);
void __wrap_cw_host_activity_step(struct cw_host_activity *h,
				  const struct cw_host_activity_process *process,
				  const struct cw_procstat *st, int64_t now_ns);

void __wrap_cw_host_activity_step(struct cw_host_activity *h,
				  const struct cw_host_activity_process *process,
				  const struct cw_procstat *st, int64_t now_ns)
{
	int64_t end_ns = cw_clock_cpu_ns() + 20 * CW_NS_PER_MS;

	for (unsigned i = 0; costly.is_on && h->has_base && i < N_COSTLY; i++) {
		if (process->pid != costly.pids[i])
			continue;
		costly.looks[i]++;
		costly.in_tick = now_ns == costly.tick_ns ? costly.in_tick + 1 : 1;
		costly.tick_ns = now_ns;
		if (costly.in_tick > costly.most_in_tick)
			costly.most_in_tick = costly.in_tick;
		while (cw_clock_cpu_ns() < end_ns)
			continue;
	}
	__real_cw_host_activity_step(h, process, st, now_ns);
}

static bool are_looked_at_twice(struct node_fixture *f, void *arg)
{
	(void)search(f, "name:unregistered-test", getuid());
	for (unsigned i = 0; i < N_COSTLY; i++)
		if (costly.looks[i] < 2)
			return false;
	return true;
}

/* A user may have as many as he likes of them. */
Test(unregistered_ranks, ranks_that_are_costly_to_look_at_have_turns)
{
	struct waiter w[N_COSTLY];
	struct node_fixture f;
	char rank[4];

	if (!can_preload())
		cr_skip_test("an agent built with AddressSanitizer cannot be preloaded");
	fixture_start(&f, 16, 16);
	for (unsigned i = 0; i < N_COSTLY; i++) {
		(void)snprintf(rank, sizeof(rank), "%u", i);
		w[i] = start_waiter(&f, "unregistered-test", rank);
		costly.pids[i] = w[i].pid;
	}
	for (unsigned i = 0; i < N_COSTLY; i++)
		fixture_run_until(&f, is_seen, &w[i], "a rank without a record");
	costly.is_on = true;
	fixture_run_until(&f, are_looked_at_twice, NULL, "two looks at each");
	cr_expect_eq(costly.most_in_tick, 1);
	for (unsigned i = 0; i < N_COSTLY; i++)
		stop_waiter(&w[i]);
	fixture_stop(&f);
}

Test(unregistered_ranks, rank_that_has_ended_is_forgotten)
{
	struct waiter w;
	struct node_fixture f;
	struct process process;

	if (!can_preload())
		cr_skip_test("an agent built with AddressSanitizer cannot be preloaded");
	fixture_start(&f, 16, 16);
	w = start_waiter(&f, "unregistered-test", "1");
	fixture_run_until(&f, is_seen, &w, "the rank without a record");
	process = (struct process){ w.pid, seen(&f, &w)->rank.start_ticks };
	stop_waiter(&w);
	fixture_run_until(&f, has_lost, &process, "its end");
	fixture_stop(&f);
}

Test(unregistered_ranks, search_under_a_key_that_is_not_the_labels_is_refused)
{
	struct cw_msg_rank_search q = { .job_key = { { 7 } },
					.label = "name:unregistered-test",
					.uid = getuid() };
	struct node_fixture f;
	char label[32];

	fixture_start(&f, 16, 16);
	cr_assert_not(cw_node_search(f.node, &q));
	/* One user alone gets all but an eighth. */
	for (unsigned i = 0;
	     i < CW_UNREGISTERED_RANKS_MAX_SEARCHES - CW_UNREGISTERED_RANKS_MAX_SEARCHES / 8; i++) {
		(void)snprintf(label, sizeof(label), "name:job-%u", i);
		cr_assert(search(&f, label, getuid()));
		cr_assert(search(&f, label, getuid()), "once more is no other search");
	}
	cr_assert_not(search(&f, "name:one-too-many", getuid()));
	for (uint32_t uid = 30001; uid < 30006; uid++)
		cr_assert(search(&f, "name:of-another", uid), "uid %u", uid);
	fixture_stop(&f);
}
