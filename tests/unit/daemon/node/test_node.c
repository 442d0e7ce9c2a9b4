/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/node.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "model/snapshot.h"
#include "record/record_layout.h"
#include "tests/support/node/node_fixture.h"

#define COMM 0xc0ffeeu

static const struct agent_options rank0 = { .rank = 0, .job = "job-a", .comm_id = COMM };
static const struct agent_options rank1 = { .rank = 1, .job = "job-a", .comm_id = COMM };

struct wanted {
	const struct agent *agent;
	uint32_t liveness;
};

static bool has_liveness(struct node_fixture *f, void *arg)
{
	const struct wanted *wanted = arg;
	const struct seen_rank *seen = fixture_seen(f, wanted->agent);

	return seen && seen->rank.liveness == wanted->liveness;
}

static const struct seen_rank *wait_for(struct node_fixture *f, const struct agent *a,
					uint32_t liveness)
{
	struct wanted wanted = { a, liveness };

	fixture_run_until(f, has_liveness, &wanted, "a change of liveness");
	return fixture_seen(f, a);
}

/* ---- digests ---- */

/* The first argument, without its directory, as /proc shows it. */
static const char *my_program(void)
{
	static char line[256];
	int fd = open("/proc/self/cmdline", O_RDONLY);

	cr_assert_gt(read(fd, line, sizeof(line) - 1), 0);
	close(fd);
	return strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
}

Test(node, has_no_more_places_than_descriptors)
{
	cr_assert_eq(cw_node_room(65536, 4096), 4096);
	cr_assert_eq(cw_node_room(20000, 4096), (20000 - CW_NODE_OTHER_FDS) / CW_NODE_PROCESS_FDS);
	cr_assert_eq(cw_node_room(1024, 4096), (1024 - 256) / CW_NODE_PROCESS_FDS);
	cr_assert_eq(cw_node_room(4, 4096), 1);
	cr_assert_eq(cw_node_room(UINT64_MAX, 4096), 4096);
}

Test(node, digest_says_who_the_rank_is)
{
	struct node_fixture f;
	const struct seen_rank *seen;
	struct agent a;
	struct stat st;

	fixture_start(&f, 8, 8);
	cr_assert_eq(stat(f.path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0666);
	a = agent_register(&f, &rank0, 'W');
	fixture_next_digest(&f);
	seen = fixture_seen(&f, &a);
	cr_assert(seen);
	cr_assert_str_eq(f.label, "job-a");
	cr_assert_str_eq(f.job.label, "job-a");
	cr_assert_eq(f.job.uid, getuid());
	cr_assert_eq(seen->rank.rank, 0);
	cr_assert_eq(seen->rank.world_size, 8);
	cr_assert_eq(seen->rank.uid, getuid());
	cr_assert_eq(seen->rank.device, 5);
	cr_assert_eq(seen->rank.liveness, CW_LIVE_ALIVE);
	cr_assert(seen->rank.flags & CW_RANKF_HAS_RECORD);
	cr_assert(seen->rank.flags & CW_RANKF_PYTHON);
	/* A fork of this process: the same arguments. */
	cr_assert(strncmp(seen->command, my_program(), strlen(my_program())) == 0, "command '%s'",
		  seen->command);
	cr_assert_eq(seen->rank.n_members, 1);
	cr_assert_eq(seen->member.comm_id, COMM);
	cr_assert_eq(seen->member.nranks, 8);
	cr_assert_not(seen->has_pending);
	agent_stop(&a);
	fixture_stop(&f);
}

static bool pending_is_3_s_old(struct node_fixture *f, void *arg)
{
	const struct seen_rank *seen = fixture_seen(f, arg);

	return seen && seen->has_pending && seen->pending.enter_age_ns > 3 * CW_NS_PER_S;
}

Test(node, digest_follows_the_ops)
{
	struct node_fixture f;
	const struct seen_rank *seen;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	agent_do(&f, &a, 'o');
	fixture_run_until(&f, pending_is_3_s_old, &a, "an old pending op");
	seen = fixture_seen(&f, &a);
	cr_assert_eq(seen->pending.kind, CW_OP_ALL_REDUCE);
	cr_assert_eq(seen->pending.coll_seq, 1);
	cr_assert_eq(seen->member.coll_entered, 1);
	cr_assert_eq(seen->member.coll_returned, 0);
	cr_assert_not(seen->member.known & CW_KNOWN_COMPLETED, "no progress words");
	/* Nothing has moved since it was entered. */
	cr_assert_gt(seen->member.progress_age_ns, 2 * CW_NS_PER_S);
	cr_assert_leq(seen->member.progress_age_ns, seen->pending.enter_age_ns);
	agent_do(&f, &a, 'r');
	fixture_next_digest(&f);
	seen = fixture_seen(&f, &a);
	cr_assert_not(seen->has_pending);
	cr_assert_eq(seen->member.coll_returned, 1);
	cr_assert(seen->member.known & CW_KNOWN_HASH, "the counters stand still");
	cr_assert_eq(seen->member.hash, 12345);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node, label_separates_jobs)
{
	struct agent_options other = { .rank = 0, .job = "job-b", .comm_id = COMM + 1 };
	struct agent_options unnamed = { .rank = 0, .job = "", .comm_id = 0x77 };
	struct node_fixture f;
	struct agent a, b;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &other, 'W');
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a));
	agent_stop(&a);
	fixture_restart(&f);
	b = agent_register(&f, &unnamed, 'W');
	fixture_next_digest(&f);
	cr_assert_str_eq(f.label, "comm:0x0000000000000077");
	cr_assert_not(fixture_seen(&f, &a));
	agent_stop(&b);
	fixture_stop(&f);
}

/* ---- ends and stops ---- */

Test(node, exit_code_of_a_rank_and_its_last_op)
{
	struct node_fixture f;
	const struct seen_rank *seen;
	struct agent a, b;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	b = agent_register(&f, &rank1, 'W');
	agent_do(&f, &a, 'o');
	agent_do(&f, &a, 'e');
	seen = wait_for(&f, &a, CW_LIVE_EXITED);
	cr_assert_eq(seen->rank.exit_code, 3);
	cr_assert(seen->has_pending, "the op it died in");
	cr_assert(seen->rank.flags & CW_RANKF_HAS_RECORD);
	cr_assert_not(seen->rank.flags & CW_RANKF_SHUTDOWN, "it crashed alone");
	cr_assert_eq(fixture_seen(&f, &b)->rank.liveness, CW_LIVE_ALIVE);
	/* It stays, reaped or not. */
	cr_assert_eq(waitpid(a.pid, NULL, WNOHANG) >= 0, true);
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending);
	cr_assert_eq(fixture_stats(&f).dead, 1);
	cr_assert_eq(fixture_stats(&f).processes, 2);
	kill(b.pid, SIGKILL);
	agent_stop(&b);
	fixture_stop(&f);
}

Test(node, signal_that_killed_a_rank)
{
	struct node_fixture f;
	const struct seen_rank *seen;
	struct agent a, b;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	b = agent_register(&f, &rank1, 'W');
	kill(a.pid, SIGKILL);
	seen = wait_for(&f, &a, CW_LIVE_KILLED);
	cr_assert_eq(seen->rank.term_signal, SIGKILL);
	cr_assert_not(seen->rank.flags & CW_RANKF_SHUTDOWN);
	kill(b.pid, SIGTERM);
	seen = wait_for(&f, &b, CW_LIVE_KILLED);
	cr_assert_eq(seen->rank.term_signal, SIGTERM);
	cr_assert(seen->rank.flags & CW_RANKF_SHUTDOWN);
	agent_stop(&a);
	agent_stop(&b);
	fixture_stop(&f);
}

/* Long digest period: only the end itself can have caused the digest. */
static void on_later(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)arg = true;
}

static bool is_set(struct node_fixture *f, void *arg)
{
	return *(bool *)arg;
}

/* A timer that is due after the node's first one, which makes digests. */
static void run_first_tick(struct node_fixture *f)
{
	struct timeval later = { .tv_usec = (f->config.sample_ms + 1) * 1000 };
	bool is_later = false;

	cr_assert_eq(event_base_once(f->base, -1, EV_TIMEOUT, on_later, &is_later, &later), 0);
	fixture_run_until(f, is_set, &is_later, "the node's first tick");
}

Test(node, end_makes_a_digest_at_once)
{
	struct node_fixture f;
	struct agent a;
	unsigned before;

	fixture_start(&f, 8, 8);
	f.config.digest_ms = 3600 * 1000;
	fixture_restart(&f);
	run_first_tick(&f);
	a = agent_register(&f, &rank0, 'W');
	before = f.digests;
	kill(a.pid, SIGKILL);
	(void)wait_for(&f, &a, CW_LIVE_KILLED);
	cr_assert_eq(f.digests, before + 1);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node, stopped_rank_and_its_return)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	kill(a.pid, SIGSTOP);
	(void)wait_for(&f, &a, CW_LIVE_STOPPED);
	kill(a.pid, SIGCONT);
	(void)wait_for(&f, &a, CW_LIVE_ALIVE);
	agent_stop(&a);
	fixture_stop(&f);
}

/* A debugger: it holds the process until it is killed. */
static pid_t start_tracer(pid_t of)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_NAME, "a debugger\x07");
	if (ptrace(PTRACE_ATTACH, of, NULL, NULL) < 0 || waitpid(of, &status, __WALL) != of)
		_exit(1);
	for (;;)
		pause();
}

struct wanted_cause {
	const struct agent *agent;
	const char *text;
};

static bool has_cause(struct node_fixture *f, void *arg)
{
	const struct wanted_cause *wanted = arg;
	const struct seen_rank *seen = fixture_seen(f, wanted->agent);

	return seen && strcmp(seen->cause, wanted->text) == 0;
}

Test(node, tells_which_debugger_holds_a_rank)
{
	struct node_fixture f;
	struct agent a;
	struct wanted_cause wanted = { .agent = &a };
	char text[80], user[24];
	pid_t tracer;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	tracer = start_tracer(a.pid);
	(void)snprintf(user, sizeof(user), getuid() ? "uid %d" : "root", (int)getuid());
	(void)snprintf(text, sizeof(text), "held by a debugger? (pid %d, %s)", (int)tracer, user);
	wanted.text = text;
	fixture_run_until(&f, has_cause, &wanted, text);
	cr_expect_eq(fixture_seen(&f, &a)->rank.liveness, CW_LIVE_TRACED);
	(void)kill(tracer, SIGKILL);
	cr_assert_eq(waitpid(tracer, NULL, 0), tracer);
	wanted.text = "";
	fixture_run_until(&f, has_cause, &wanted, "that it goes on");
	cr_expect_eq(fixture_seen(&f, &a)->rank.liveness, CW_LIVE_ALIVE);
	agent_stop(&a);
	fixture_stop(&f);
}

static const struct freezer {
	const char *root, *file, *frozen, *thawed;
} freezers[] = {
	{ "/sys/fs/cgroup", "cgroup.freeze", "1", "0" },
	{ "/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0" },
	{ "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED" },
};

static bool put(const char *dir, const char *file, const char *text)
{
	char path[256];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : write(fd, text, strlen(text));
	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text);
}

/* A group that the process is put into; NULL = none can be made here. */
static const struct freezer *make_group(pid_t pid, char *dir, size_t len)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", (int)pid);
	for (size_t i = 0; i < sizeof(freezers) / sizeof(*freezers); i++) {
		const struct freezer *f = &freezers[i];
		struct stat st;

		(void)snprintf(dir, len, "%s/cgroup.procs", f->root);
		if (stat(dir, &st) < 0)
			continue;
		(void)snprintf(dir, len, "%s/collwatch-node-%d", f->root, (int)getpid());
		if (mkdir(dir, 0755) == 0 && put(dir, "cgroup.procs", number) &&
		    put(dir, f->file, f->thawed))
			return f;
		(void)rmdir(dir);
	}
	return NULL;
}

Test(node, tells_which_group_is_frozen_with_a_rank, .timeout = 120)
{
	const struct freezer *freezer;
	struct node_fixture f;
	struct agent a;
	struct wanted_cause wanted = { .agent = &a };
	char dir[128] = "", text[160];

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	freezer = make_group(a.pid, dir, sizeof(dir));
	if (freezer) {
		(void)snprintf(text, sizeof(text), "frozen with its control group %s",
			       strrchr(dir, '/'));
		wanted.text = text;
		cr_expect(put(dir, freezer->file, freezer->frozen));
		fixture_run_until(&f, has_cause, &wanted, text);
		cr_expect(fixture_seen(&f, &a)->rank.flags & CW_RANKF_FROZEN);
		cr_expect(put(dir, freezer->file, freezer->thawed));
		wanted.text = "";
		fixture_run_until(&f, has_cause, &wanted, "that it goes on");
	}
	agent_stop(&a);
	if (freezer)
		cr_expect_eq(rmdir(dir), 0);
	fixture_stop(&f);
	if (!freezer)
		cr_skip_test("no control group can be made here");
}

Test(node, forgets_the_dead_after_a_while)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	kill(a.pid, SIGKILL);
	(void)wait_for(&f, &a, CW_LIVE_KILLED);
	fixture_skip_ns(500 * CW_NS_PER_S);
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a));
	cr_assert_gt(fixture_seen(&f, &a)->rank.ended_age_ns, 499 * CW_NS_PER_S);
	fixture_skip_ns(200 * CW_NS_PER_S);
	while (fixture_stats(&f).processes)
		cr_assert_geq(event_base_loop(f.base, EVLOOP_ONCE), 0);
	agent_stop(&a);
	fixture_stop(&f);
}

static bool host_activity_is_older_than_10_s(struct node_fixture *f, void *arg)
{
	const struct seen_rank *seen = fixture_seen(f, arg);

	return seen && seen->rank.host_activity_age_ns > 10 * CW_NS_PER_S;
}

static bool host_activity_is_fresh(struct node_fixture *f, void *arg)
{
	const struct seen_rank *seen = fixture_seen(f, arg);

	return seen && seen->rank.host_activity_age_ns < 5 * CW_NS_PER_S;
}

/*
 * Again and again: on a busy machine the sign may be old before a digest is made. No time passes
 * while it works: there it gets so little of a core that it would count for nothing.
 */
static void work_until_seen(struct node_fixture *f, struct agent *a, char command, const char *by)
{
	do {
		fixture_hold_clock(true);
		agent_do(f, a, command);
		fixture_hold_clock(false);
		fixture_next_digest(f);
	} while (!host_activity_is_fresh(f, a));
	cr_assert_str_eq(fixture_seen(f, a)->rank.host_activity_by, by); /* static text */
}

Test(node, host_activity_ages_while_a_rank_only_blocks)
{
	struct cw_node_process facts;
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	fixture_run_until(&f, host_activity_is_older_than_10_s, &a, "host activity to age");
	cr_assert(cw_node_find(f.node, a.pid, a.start_ticks, &facts));
	cr_assert_gt(facts.idle_ns, 5 * CW_NS_PER_S);
	work_until_seen(&f, &a, 'b', "cpu");
	fixture_run_until(&f, host_activity_is_older_than_10_s, &a, "host activity to age");
	work_until_seen(&f, &a, 'o', "nccl");
	agent_stop(&a);
	fixture_stop(&f);
}

static void work_once(struct node_fixture *f, struct agent *a)
{
	fixture_hold_clock(true);
	agent_do(f, a, 'b');
	fixture_hold_clock(false);
	fixture_next_digest(f);
}

/* NCCL spins on the host while it connects to peers that do not come. */
Test(node, cpu_that_nccl_uses_inside_of_a_call_is_no_host_activity)
{
	struct cw_node_process facts;
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	agent_do(&f, &a, 'o');
	fixture_run_until(&f, host_activity_is_older_than_10_s, &a, "host activity to age");
	do {
		work_once(&f, &a);
		cr_assert(host_activity_is_older_than_10_s(&f, &a));
		cr_assert(cw_node_find(f.node, a.pid, a.start_ticks, &facts));
	} while (facts.idle_ns < 3 * CW_NS_PER_S); /* until we may request Python stacks */
	agent_do(&f, &a, 'r');
	fixture_run_until(&f, host_activity_is_fresh, &a, "the return to be seen");
	fixture_run_until(&f, host_activity_is_older_than_10_s, &a, "host activity to age");
	work_until_seen(&f, &a, 'b', "cpu");
	agent_stop(&a);
	fixture_stop(&f);
}

/* ---- agents of other versions ---- */

Test(node, watches_a_rank_whose_agent_is_of_the_next_version)
{
	struct agent_options next = rank0;
	struct node_fixture f;
	struct agent a;

	next.flaw = AGENT_NEXT_VERSION;
	fixture_start(&f, 8, 8);
	a = agent_register(&f, &next, 'W');
	agent_do(&f, &a, 'o');
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending);
	cr_assert_eq(fixture_stats(&f).unreadable_total, 0);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node, counts_records_it_cannot_read)
{
	struct agent_options newer = rank0;
	struct node_fixture f;
	struct agent a;

	newer.flaw = AGENT_NEWER_RECORD;
	fixture_start(&f, 8, 8);
	a = agent_register(&f, &newer, 'R');
	cr_assert_eq(fixture_stats(&f).unreadable_total, 1);
	agent_stop(&a);
	fixture_stop(&f);
}

/* ---- coming again ---- */

static bool nobody_connected(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).connected == 0;
}

Test(node, process_outlives_its_connection)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	agent_do(&f, &a, 'o');
	agent_do(&f, &a, 'd');
	fixture_run_until(&f, nobody_connected, NULL, "the end of the connection");
	cr_assert_eq(fixture_stats(&f).processes, 1);
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending);
	cr_assert_eq(agent_do(&f, &a, 'c'), 'W');
	cr_assert_eq(fixture_stats(&f).processes, 1);
	cr_assert_eq(fixture_stats(&f).connected, 1);
	cr_assert_eq(fixture_stats(&f).registered_total, 2);
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node, new_record_of_a_process_replaces_the_old)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	agent_do(&f, &a, 'o');
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending);
	agent_do(&f, &a, 'n');
	cr_assert_eq(agent_do(&f, &a, 'c'), 'W'); /* while the old connection is still open */
	cr_assert_eq(fixture_stats(&f).processes, 1);
	fixture_next_digest(&f);
	cr_assert_not(fixture_seen(&f, &a)->has_pending);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node, agents_come_back_to_a_restarted_daemon)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	agent_do(&f, &a, 'o');
	fixture_restart(&f);
	cr_assert_eq(fixture_stats(&f).processes, 0);
	cr_assert_eq(agent_do(&f, &a, 'c'), 'W');
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a)->has_pending, "the record was kept by the agent");
	agent_stop(&a);
	fixture_stop(&f);
}

/* ---- windows ---- */

Test(node, windows_of_the_communicators_asked_for)
{
	uint64_t ids[] = { 1, COMM };
	struct cw_msg_window_request request = {
		.id = 9, .comm_ids = ids, .n_comm_ids = 2, .max_ops = 2
	};
	struct cw_msg_window_reply reply;
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	for (int i = 0; i < 3; i++) {
		agent_do(&f, &a, 'o');
		agent_do(&f, &a, 'r');
	}
	agent_do(&f, &a, 'o');
	fixture_next_digest(&f);
	cr_assert_eq(cw_node_windows(f.node, &f.job, &request, &reply), 0);
	cr_assert_eq(reply.id, 9);
	cr_assert_eq(reply.n_windows, 1);
	cr_assert_eq(reply.windows[0].comm_id, COMM);
	cr_assert_eq(reply.windows[0].pid, a.pid);
	cr_assert_eq(reply.windows[0].n_ops, 2);
	cr_assert_eq(reply.windows[0].lost, 2);
	cr_assert_eq(reply.windows[0].ops[1].coll_seq, 4);
	cr_assert_geq(reply.windows[0].ops[0].enter_age_ns, reply.windows[0].ops[1].enter_age_ns,
		      "ages: the older op first");
	cw_node_windows_fini(&reply);
	f.job.uid++; /* another user's job, of the same key */
	cr_assert_eq(cw_node_windows(f.node, &f.job, &request, &reply), 0);
	cr_assert_eq(reply.n_windows, 0);
	cw_node_windows_fini(&reply);
	agent_stop(&a);
	fixture_stop(&f);
}

/* ---- places ---- */

static pid_t fork_as(uid_t uid)
{
	pid_t pid = fork();

	if (pid == 0 && setresuid(uid, uid, uid) < 0)
		_exit(99);
	return pid;
}

static pid_t fork_first(void)
{
	return fork_as(20001);
}

static pid_t fork_second(void)
{
	return fork_as(20002);
}

static pid_t fork_late(void)
{
	return fork_as(20003);
}

Test(node, two_users_who_fill_all_places_leave_one_for_a_third)
{
	static pid_t (*const forks[])(void) = { fork_first, fork_first,  fork_first,
						fork_first, fork_second, fork_second };
	struct agent_options options = { .job = "job-a", .comm_id = COMM };
	struct agent agents[6], late;
	struct node_fixture f;

	if (geteuid() != 0)
		cr_skip_test("needs to be several users");
	fixture_start(&f, 6, 4);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	for (unsigned i = 0; i < 6; i++) {
		options.rank = (int32_t)i;
		options.fork = forks[i];
		agents[i] = agent_register(&f, &options, 'W');
	}
	options.fork = fork_late;
	late = agent_register(&f, &options, 'W');
	cr_expect_eq(fixture_stats(&f).processes, 6);
	agent_stop(&late);
	for (unsigned i = 0; i < 6; i++)
		agent_stop(&agents[i]);
	fixture_stop(&f);
}
