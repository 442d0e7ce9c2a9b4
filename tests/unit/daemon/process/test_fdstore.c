/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/fdstore.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "loop/sd_notify.h"
#include "model/facts.h"
#include "tests/support/node/fake_manager.h"
#include "tests/support/node/node_fixture.h"

#define COMM 0xabcdef

static const struct agent_options rank_3 = { .rank = 3, .job = "test:kept", .comm_id = COMM };

struct world {
	struct node_fixture f;
	struct fake_manager m;
};

static void world_start(struct world *w)
{
	fake_manager_start(&w->m);
	fixture_start(&w->f, 8, 8);
	w->f.config.keeps_descriptors = true;
	fixture_restart(&w->f);
}

static void world_stop(struct world *w)
{
	fixture_stop(&w->f);
	fake_manager_stop(&w->m);
}

static void daemon_stop(struct world *w)
{
	cw_node_free(w->f.node);
	w->f.node = NULL;
}

static void daemon_start(struct world *w)
{
	struct cw_err err;

	fake_manager_pass(&w->m, &w->f.config.fdstore, &w->f.config.n_fdstore);
	cr_assert_eq(cw_node_new(&w->f.config, &w->f.node, &err), 0, "%s", err.text);
	w->f.config.fdstore = NULL;
	w->f.config.n_fdstore = 0;
}

static bool is_dead(struct node_fixture *f, void *arg)
{
	const struct seen_rank *seen = fixture_seen(f, arg);

	return seen && cw_liveness_is_dead(seen->rank.liveness);
}

Test(fdstore, keeps_the_last_ops_of_a_rank_that_dies_during_a_restart)
{
	const struct seen_rank *seen;
	struct world w;
	struct agent a;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	cr_assert_eq(agent_do(&w.f, &a, 'o'), 'k');
	daemon_stop(&w);
	cr_assert_eq(kill(a.pid, SIGKILL), 0);
	agent_stop(&a); /* killed and reaped: nothing in /proc tells of it */
	daemon_start(&w);
	cr_assert_eq(fixture_stats(&w.f).restored, 1);
	fixture_run_until(&w.f, is_dead, &a, "its end");
	seen = fixture_seen(&w.f, &a);
	cr_assert_eq(seen->rank.rank, 3);
	cr_assert_str_eq(w.f.label, "test:kept");
	cr_assert_eq(seen->member.comm_id, COMM);
	cr_assert(seen->has_pending);
	cr_assert_eq(seen->pending.op_index, 1);
	/* Linux 6.15 tells how, older kernels only that. */
	cr_assert(seen->rank.liveness == CW_LIVE_GONE ||
		  (seen->rank.liveness == CW_LIVE_KILLED && seen->rank.term_signal == SIGKILL));
	world_stop(&w);
}

Test(fdstore, watches_a_rank_that_cannot_come_back)
{
	const struct seen_rank *seen;
	struct world w;
	struct agent a;
	int status;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	cr_assert_eq(kill(a.pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(a.pid, &status, WUNTRACED), a.pid);
	daemon_stop(&w);
	daemon_start(&w);
	fixture_next_digest(&w.f);
	seen = fixture_seen(&w.f, &a);
	cr_assert(seen);
	cr_assert_eq(seen->rank.liveness, CW_LIVE_STOPPED);
	cr_assert_eq(fixture_stats(&w.f).connected, 0);
	/* And when it does come back, it is the same one. */
	cr_assert_eq(kill(a.pid, SIGCONT), 0);
	cr_assert_eq(agent_do(&w.f, &a, 'c'), 'W');
	cr_assert_eq(fixture_stats(&w.f).processes, 1);
	cr_assert_eq(fixture_stats(&w.f).connected, 1);
	agent_stop(&a);
	world_stop(&w);
}

Test(fdstore, remembers_an_end_it_has_seen)
{
	const struct seen_rank *seen;
	struct world w;
	struct agent a;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	agent_do(&w.f, &a, 'e');
	fixture_run_until(&w.f, is_dead, &a, "its end");
	agent_stop(&a);
	daemon_stop(&w);
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 1, "only the record of a dead process is kept");
	daemon_start(&w);
	fixture_next_digest(&w.f);
	seen = fixture_seen(&w.f, &a);
	cr_assert(seen);
	cr_assert_eq(seen->rank.liveness, CW_LIVE_EXITED);
	cr_assert_eq(seen->rank.exit_code, 3);
	world_stop(&w);
}

static bool has_none(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).processes == 0;
}

Test(fdstore, forgets_the_long_dead_at_a_restart_and_without_one)
{
	struct world w;
	struct agent a, b;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	agent_stop(&a);
	fixture_run_until(&w.f, is_dead, &a, "its end");
	daemon_stop(&w);
	fixture_skip_ns(CW_PROCESS_KEEP_DEAD_NS + CW_NS_PER_S);
	daemon_start(&w);
	cr_assert_eq(fixture_stats(&w.f).restored, 0);
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 0);

	b = agent_register(&w.f, &rank_3, 'W');
	agent_stop(&b);
	fixture_run_until(&w.f, is_dead, &b, "its end");
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 1);
	fixture_skip_ns(CW_PROCESS_KEEP_DEAD_NS + CW_NS_PER_S);
	fixture_run_until(&w.f, has_none, NULL, "the dead to go");
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 0);
	world_stop(&w);
}

Test(fdstore, keeps_the_new_record_of_a_process_and_nothing_twice)
{
	struct world w;
	struct agent a;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(agent_do(&w.f, &a, 'd'), 'k');
		cr_assert_eq(agent_do(&w.f, &a, 'c'), 'W');
	}
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.stored, 1, "coming back changes nothing");
	cr_assert_eq(agent_do(&w.f, &a, 'n'), 'k');
	cr_assert_eq(agent_do(&w.f, &a, 'o'), 'k');
	cr_assert_eq(agent_do(&w.f, &a, 'c'), 'W');
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.stored, 2);
	cr_assert_eq(w.m.n, 2);
	daemon_stop(&w);
	daemon_start(&w);
	fixture_next_digest(&w.f);
	cr_assert(fixture_seen(&w.f, &a)->has_pending, "the new record");
	agent_stop(&a);
	world_stop(&w);
}

static int64_t fake_now(void *user)
{
	return *(int64_t *)user;
}

/* The queue of its socket is full: the daemon does not wait for it, and catches up later. */
Test(fdstore, does_not_hang_on_a_manager_that_does_not_read)
{
	int fds[] = { memfd_create("x", MFD_CLOEXEC) };
	int64_t now_ns = 1;
	const struct cw_clock clock = { .monotonic_ns = fake_now, .user = &now_ns };
	struct fake_manager m;
	int r = 0;

	fake_manager_start(&m);
	for (int i = 0; i < 5000 && r == 0; i++)
		r = cw_notify_store_fds(&clock, "rank.1.2.3.4.5", fds, 1);
	cr_assert_eq(r, -EAGAIN);
	for (int i = 0; i < 5000; i++) /* would take minutes if each waited */
		cr_assert_eq(cw_notify_remove_fds(&clock, "rank.1.2.3.4.5"), -EAGAIN);
	while (recv(m.sock, (char[8]){ 0 }, 8, MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(cw_notify_remove_fds(&clock, "rank.1.2.3.4.5"), -EAGAIN, "it is left alone");
	now_ns += 10 * CW_NS_PER_S;
	cr_assert_eq(cw_notify_remove_fds(&clock, "rank.1.2.3.4.5"), 0, "and asked again");
	while (recv(m.sock, (char[8]){ 0 }, 8, MSG_DONTWAIT) > 0)
		;
	close(fds[0]);
	fake_manager_stop(&m);
}

static bool is_kept(struct node_fixture *f, void *arg)
{
	struct fake_manager *m = arg;

	fake_manager_read(m);
	return m->n == 2;
}

Test(fdstore, stores_later_what_it_could_not_store_at_once)
{
	struct world w;
	struct agent a;

	world_start(&w);
	cr_assert_eq(setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1), 0);
	a = agent_register(&w.f, &rank_3, 'W');
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 0);
	cr_assert_eq(setenv("NOTIFY_SOCKET", w.m.path, 1), 0);
	fixture_run_until(&w.f, is_kept, &w.m, "being kept");
	agent_stop(&a);
	world_stop(&w);
}

/* ---- descriptors from others ---- */

static struct cw_passed_fd passed(int fd, const char *name)
{
	cr_assert_geq(fd, 0);
	return (struct cw_passed_fd){ fd, strdup(name) };
}

static int unsealed_memfd(void)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, 4096), 0);
	return fd;
}

static int own_pidfd(void)
{
	return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

Test(fdstore, is_not_taken_in_by_foreign_descriptors)
{
	struct cw_passed_fd *list = calloc(16, sizeof(*list));
	char own[64], dead[64];
	struct world w;
	struct cw_err err;
	size_t n = 0;

	world_start(&w);
	daemon_stop(&w);
	snprintf(own, sizeof(own), "rank.1.%d.5.0.0", (int)getpid());
	snprintf(dead, sizeof(dead), "rank.1.%d.6.0.0.4.3.0.1", (int)getpid());
	list[n++] = passed(unsealed_memfd(), own);
	list[n++] = passed(own_pidfd(), own);
	list[n++] = passed(own_pidfd(), own); /* one more than there is place for */
	list[n++] = passed(unsealed_memfd(), dead);
	list[n++] = passed(open("/dev/null", O_RDWR | O_CLOEXEC), "rank.1.77.5.0.0");
	list[n++] = passed(own_pidfd(), "rank.1.78.5.0.0"); /* no record */
	list[n++] = passed(unsealed_memfd(), "rank.2.79.5.0.0");
	list[n++] = passed(unsealed_memfd(), "rank.");
	cr_assert_eq(cw_fdstore_group(list, n, w.f.config.clock, &w.f.config.fdstore,
				      &w.f.config.n_fdstore),
		     0);
	cr_assert_eq(w.f.config.n_fdstore, 4);
	cr_assert_eq(cw_node_new(&w.f.config, &w.f.node, &err), 0);
	cr_assert_eq(fixture_stats(&w.f).restored, 0);
	cr_assert_eq(fixture_stats(&w.f).processes, 0);
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.removed, 6, "all of them are given up: %u", w.m.removed);
	world_stop(&w);
}

/* The name has another start time: the kernel has given the pid to another process. */
Test(fdstore, does_not_take_one_process_for_another)
{
	char name[CW_FDSTORE_NAME_BYTES];
	struct world w;
	struct agent a;

	world_start(&w);
	a = agent_register(&w.f, &rank_3, 'W');
	daemon_stop(&w);
	fake_manager_read(&w.m);
	cr_assert_eq(w.m.n, 2);
	snprintf(name, sizeof(name), "rank.1.%d.%llu.%u.%u", (int)a.pid,
		 (unsigned long long)a.start_ticks + 1, getuid(), getgid());
	strcpy(w.m.kept[0].name, name);
	strcpy(w.m.kept[1].name, name);
	daemon_start(&w);
	cr_assert_eq(fixture_stats(&w.f).restored, 0);
	agent_stop(&a);
	world_stop(&w);
}

Test(fdstore, reads_only_names_it_writes)
{
	static const char *const bad[] = {
		"",
		"rank",
		"rank.1.2.3.4",
		"rank.1.2.3.4.5.6",
		"rank.1.2.3.4.5.",
		"rank.1.0.3.4.5",
		"rank.1.-2.3.4.5",
		"rank.1.2147483648.3.4.5",
		"rank.1.2.3.4294967296.5",
		"rank.1.2.3.4.5.1.0.0.7", /* alive is no end */
		"rank.1.2.3.4.5.9.0.0.7",
		"rank.1.2.3.4.5.4.256.0.7",
		"rank.1.2.3.4.5.5.0.128.7",
		"rank.1.2.3.4.5.4.0.0.7.8",
		"rank.1.2.3.4.5.4.0.0.9223372036854775808",
		"rank.1.2.3.4.5 ",
		"Rank.1.2.3.4.5",
	};
	struct cw_fdstore_entry kept;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_lt(cw_fdstore_parse(bad[i], &kept), 0, "%s", bad[i]);
	cr_assert_eq(cw_fdstore_parse("rank.1.2.3.4.5", &kept), 0);
	cr_assert(!kept.is_dead && kept.pid == 2 && kept.start_ticks == 3 && kept.uid == 4 &&
		  kept.gid == 5);
	cr_assert_eq(cw_fdstore_parse("rank.1.2.3.4.5.5.0.9.77", &kept), 0);
	cr_assert(kept.is_dead && kept.end.liveness == CW_LIVE_KILLED &&
		  kept.end.term_signal == 9 && kept.ended_ns == 77);
}

/* As systemd passes them: from descriptor 3 on, named in the environment of this very process. */
Test(fdstore, takes_what_the_manager_passes)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct cw_fdstore_entry *list;
		char pid[16];
		size_t n;
		int a = fcntl(unsealed_memfd(), F_DUPFD, 100);
		int b = fcntl(own_pidfd(), F_DUPFD, 100);

		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "3", 1);
		setenv("LISTEN_FDNAMES", "agent:rank.1.2.3.4.5:rank.1.2.3.4.5", 1);
		if (dup2(open("/dev/null", O_RDONLY), 3) < 0 || dup2(a, 4) < 0 || dup2(b, 5) < 0)
			_exit(1);
		if (cw_fdstore_take(&cw_clock_system, &list, &n) < 0 || n != 1)
			_exit(2);
		_exit(list[0].record_fd == 4 && list[0].pidfd == 5 ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}
