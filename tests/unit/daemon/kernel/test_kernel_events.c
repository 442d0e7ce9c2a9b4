/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of deaths, with real processes, signals and kernel: the node's sentence about each with
 * BPF, and the weaker one without.
 */
#include "daemon/kernel/kernel_events.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/snapshot.h"
#include "tests/support/node/node_fixture.h"

#define OOM_LIMIT (UINT64_C(48) << 20)
#define KILLER_UID 4321

struct dying_process {
	struct node_fixture f;
	struct cw_kernel_events *kernel;
	struct agent agent;
	pid_t killer; /* the pid in the sentence; 0 = none */
};

/* False: skipped. */
static bool dying_process_start(struct dying_process *s, bool with_bpf, pid_t (*fork_fn)(void))
{
	struct agent_options options = {
		.rank = 0, .job = "job-a", .comm_id = 0x11, .fork = fork_fn
	};
	struct cw_err err;

	*s = (struct dying_process){ 0 };
	if (with_bpf && cw_kernel_events_new(&s->kernel, &err) < 0) {
		cr_skip_test("no BPF here: %s", err.text);
		return false;
	}
	fixture_start(&s->f, 8, 8);
	s->f.config.kernel = s->kernel;
	fixture_restart(&s->f);
	s->agent = agent_register(&s->f, &options, 'W');
	fixture_next_digest(&s->f);
	cr_assert_eq(s->f.n_seen, 1);
	return true;
}

static void dying_process_stop(struct dying_process *s)
{
	agent_stop(&s->agent);
	fixture_stop(&s->f);
	(void)cw_kernel_events_free(s->kernel); /* always NULL */
}

static bool has_ended(struct node_fixture *f, void *arg)
{
	return f->n_seen == 1 && cw_liveness_is_dead(f->seen[0].rank.liveness);
}

static bool is_stopped(struct node_fixture *f, void *arg)
{
	return f->n_seen == 1 && f->seen[0].rank.liveness == CW_LIVE_STOPPED;
}

static bool is_alive(struct node_fixture *f, void *arg)
{
	return f->n_seen == 1 && f->seen[0].rank.liveness == CW_LIVE_ALIVE;
}

/* A process of that name and user sends the signal and ends. */
static void send_from(struct dying_process *s, const char *name, uid_t uid, int sig)
{
	pid_t target = s->f.seen[0].rank.pid;
	int status;

	s->killer = fork();
	if (s->killer == 0) {
		/* CAP_KILL is lost with uid 0: keep it by changing the real uid alone. */
		bool ok = prctl(PR_SET_NAME, name) == 0 &&
			  (uid == 0 || setresuid(uid, 0, 0) == 0) && kill(target, sig) == 0;

		_exit(ok ? 0 : 1);
	}
	cr_assert_eq(waitpid(s->killer, &status, 0), s->killer);
	cr_assert_eq(status, 0);
}

/* ---- forks ---- */

/* A named process between the test and the agent; it stays until it is killed. */
static pid_t fork_below(const char *name, bool in_container)
{
	pid_t outer = fork();

	if (outer != 0)
		return outer;
	if (in_container) {
		/* The next child is pid 1 of a new namespace. */
		if (unshare(CLONE_NEWPID) < 0)
			_exit(98);
		outer = fork();
		if (outer != 0) {
			(void)waitpid(outer, NULL, 0);
			_exit(0);
		}
	}
	if (prctl(PR_SET_NAME, name) < 0)
		_exit(98);
	if (fork() == 0) {
		if (!in_container && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(98);
		return 0;
	}
	for (;;)
		pause();
}

static pid_t fork_below_parent(void)
{
	return fork_below("torch-elastic", false);
}

static pid_t fork_in_container(void)
{
	return fork_below("tini", true);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	at = strrchr(text, ')');
	cr_assert_not_null(at);
	return (pid_t)strtol(at + 4, NULL, 10);
}

/* ---- a memory control group ---- */

struct group {
	char mount[64], dir[128];
	bool is_v2;
};

static bool write_file(const struct group *g, const char *name, const char *text)
{
	char path[192];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", g->dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

static void group_remove(struct group *g)
{
	if (*g->dir && rmdir(g->dir) < 0)
		cr_assert_eq(errno, ENOENT);
	cr_assert_eq(umount2(g->mount, MNT_DETACH), 0);
	cr_assert_eq(rmdir(g->mount), 0);
}

/* A mount of its own: nothing is presumed about those of the machine. */
static bool group_make(struct group *g)
{
	char limit[32];
	bool ok;

	*g = (struct group){ .mount = "/tmp/cw-group-XXXXXX" };
	cr_assert(mkdtemp(g->mount));
	if (mount("cgroup", g->mount, "cgroup", 0, "memory") < 0) {
		g->is_v2 = true;
		if (mount("cgroup2", g->mount, "cgroup2", 0, NULL) < 0) {
			cr_assert_eq(rmdir(g->mount), 0);
			return false;
		}
	}
	snprintf(g->dir, sizeof(g->dir), "%s/cw-test-%d", g->mount, (int)getpid());
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)OOM_LIMIT);
	ok = mkdir(g->dir, 0755) == 0 &&
	     write_file(g, g->is_v2 ? "memory.max" : "memory.limit_in_bytes", limit);
	if (!ok)
		group_remove(g);
	return ok;
}

/* ---- the table ---- */

static void by_itself(struct dying_process *s, char command)
{
	agent_do(&s->f, &s->agent, command);
}

static void end_exit_0(struct dying_process *s)
{
	by_itself(s, '0');
}

static void end_exit_1(struct dying_process *s)
{
	by_itself(s, '1');
}

static void end_segv(struct dying_process *s)
{
	by_itself(s, 's');
}

static void end_abort(struct dying_process *s)
{
	by_itself(s, 'a');
}

static void end_by_stranger(struct dying_process *s)
{
	send_from(s, "python3", KILLER_UID, SIGKILL);
}

static void end_by_job_manager(struct dying_process *s)
{
	send_from(s, "slurmstepd", 0, SIGKILL);
}

/* The last process above the agent ends; the kernel ends the agent for it. */
static void end_above(struct dying_process *s)
{
	s->killer = parent_of(s->f.seen[0].rank.pid);
	cr_assert_eq(kill(s->killer, SIGKILL), 0);
}

#define KILLER "KILLER" /* stands for the killer's pid, */
#define OWN_USER "OWN"  /* and for the test's user, at the end */

struct death {
	const char *name;
	pid_t (*fork)(void);
	void (*end)(struct dying_process *s);
	uint32_t liveness;
	int code; /* exit status or signal */
	const char *says;
};

static const struct death deaths[] = {
	{ "exit 0", NULL, end_exit_0, CW_LIVE_EXITED, 0, "exited with status 0" },
	{ "exit 1", NULL, end_exit_1, CW_LIVE_EXITED, 1, "exited with status 1" },
	{ "SIGSEGV", NULL, end_segv, CW_LIVE_KILLED, SIGSEGV, "killed by SIGSEGV from the kernel" },
	{ "SIGABRT", NULL, end_abort, CW_LIVE_KILLED, SIGABRT,
	  "killed itself (SIGABRT sent by its own pid)" },
	{ "SIGKILL by another process", NULL, end_by_stranger, CW_LIVE_KILLED, SIGKILL,
	  "killed by SIGKILL sent by python3 (pid " KILLER ", uid 4321)" },
	{ "SIGKILL by the job manager", NULL, end_by_job_manager, CW_LIVE_KILLED, SIGKILL,
	  "killed by SIGKILL sent by slurmstepd (pid " KILLER ", " OWN_USER },
	{ "parent killed", fork_below_parent, end_above, CW_LIVE_KILLED, SIGKILL,
	  "killed by SIGKILL as its parent or session leader ended: torch-elastic (pid " KILLER
	  ", " OWN_USER },
	{ "container's pid 1 killed", fork_in_container, end_above, CW_LIVE_KILLED, SIGKILL,
	  "killed by SIGKILL as pid 1 of its container ended: tini (pid " KILLER ", " OWN_USER },
};

static const char *expected_text(const struct death *d, const struct dying_process *s,
				 char buf[160])
{
	const char *at = strstr(d->says, KILLER);
	char *own;

	if (!at)
		return d->says;
	(void)snprintf(buf, 160, "%.*s%d%s", (int)(at - d->says), d->says, (int)s->killer,
		       at + strlen(KILLER));
	own = strstr(buf, OWN_USER);
	if (own && geteuid() == 0)
		(void)snprintf(own, 160 - (size_t)(own - buf), "root)");
	else if (own)
		(void)snprintf(own, 160 - (size_t)(own - buf), "uid %u)", (unsigned)geteuid());
	return buf;
}

static void check(const struct death *d, bool with_bpf)
{
	const struct seen_rank *seen;
	char expected[160];
	struct dying_process s;

	if (!dying_process_start(&s, with_bpf, d->fork))
		return;
	d->end(&s);
	fixture_run_until(&s.f, has_ended, NULL, d->name);
	seen = &s.f.seen[0];
	/* Without BPF, an orphan that init has reaped may be no more than gone. */
	if (with_bpf || seen->rank.liveness != CW_LIVE_GONE) {
		cr_assert_eq(seen->rank.liveness, d->liveness, "%s", d->name);
		cr_assert_eq(d->liveness == CW_LIVE_EXITED ? seen->rank.exit_code
							   : seen->rank.term_signal,
			     d->code, "%s", d->name);
	}
	cr_assert_str_eq(seen->cause, with_bpf ? expected_text(d, &s, expected) : "");
	cr_assert_not(seen->rank.flags & CW_RANKF_OOM_KILLED, "%s", d->name);
	dying_process_stop(&s);
}

Test(kernel_events, table_of_deaths, .timeout = 300)
{
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		if (geteuid() == 0 || deaths[i].fork != fork_in_container) /* only root makes one */
			check(&deaths[i], true);
}

Test(kernel_events, table_of_deaths_without_bpf, .timeout = 300)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: uids and namespaces");
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		check(&deaths[i], false);
}

static void die_for_memory(bool with_bpf)
{
	struct group group;
	char pid[16];
	struct dying_process s;
	double rss, limit;

	if (!dying_process_start(&s, with_bpf, NULL))
		return;
	if (!group_make(&group)) {
		dying_process_stop(&s);
		cr_skip_test("no memory control group can be made here");
		return;
	}
	snprintf(pid, sizeof(pid), "%d", (int)s.agent.pid);
	cr_assert(write_file(&group, "cgroup.procs", pid));
	by_itself(&s, 'g');
	fixture_run_until(&s.f, has_ended, NULL, "the OOM killer");
	cr_assert_eq(s.f.seen[0].rank.term_signal, SIGKILL);
	if (with_bpf) {
		cr_assert_eq(s.f.seen[0].rank.flags & CW_RANKF_OOM_KILLED, CW_RANKF_OOM_KILLED);
		cr_assert_eq(sscanf(s.f.seen[0].cause,
				    "OOM-killed (cgroup limit of %lf MiB reached, %lf MiB resident",
				    &limit, &rss),
			     2, "%s", s.f.seen[0].cause);
		cr_assert_float_eq(limit, OOM_LIMIT >> 20, 0.1);
		/* Files it maps are not charged to its group; a sanitizer's shadow is. */
		cr_assert_geq(rss, 24, "%s", s.f.seen[0].cause);
		cr_assert_leq(rss, 128, "%s", s.f.seen[0].cause);
	} else {
		cr_assert_str_eq(s.f.seen[0].cause, "");
	}
	dying_process_stop(&s);
	group_remove(&group);
}

Test(kernel_events, oom_kill_with_its_memory, .timeout = 300)
{
	die_for_memory(true);
}

Test(kernel_events, oom_kill_without_bpf, .timeout = 300)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: control groups");
	die_for_memory(false);
}

Test(kernel_events, who_stopped_a_rank, .timeout = 300)
{
	char expected[160];
	struct dying_process s;

	if (!dying_process_start(&s, true, NULL))
		return;
	send_from(&s, "debug.sh", KILLER_UID, SIGSTOP);
	fixture_run_until(&s.f, is_stopped, NULL, "the stop");
	snprintf(expected, sizeof(expected), "stopped by SIGSTOP sent by debug.sh (pid %d, uid %d)",
		 (int)s.killer, KILLER_UID);
	cr_assert_str_eq(s.f.seen[0].cause, expected);
	send_from(&s, "debug.sh", KILLER_UID, SIGCONT);
	fixture_run_until(&s.f, is_alive, NULL, "its going on");
	cr_assert_str_eq(s.f.seen[0].cause, "");
	dying_process_stop(&s);
}
