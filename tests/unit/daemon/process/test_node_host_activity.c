/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes, a made-up clock: the process burns CPU time for real, and then the step gets a
 * clock that is two seconds ahead.
 */
#include "daemon/process/host_activity.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/support/record/record_writer.h"

#define WINDOW_NS (2 * CW_NS_PER_S)
#define BURN_NS (100 * CW_NS_PER_MS) /* well above 1 % of a window and the tick of 10 ms */
#define DEADLINE_MS 120000

struct rank {
	pid_t pid;
	int proc_fd, to, from;
	int64_t now_ns;
	struct cw_host_activity host_activity;
	uint32_t helpers[2]; /* threads the agent names; 0 = none */
	pid_t own_pid;
	struct cw_rec_wait wait; /* inside of the driver, or of an NCCL call */
	const struct cw_record *record;
};

static void burn(clockid_t clock)
{
	struct timespec t0, t;

	clock_gettime(clock, &t0);
	do
		clock_gettime(clock, &t);
	while ((t.tv_sec - t0.tv_sec) * CW_NS_PER_S + t.tv_nsec - t0.tv_nsec < BURN_NS);
}

/* Burns on every byte it is sent; a thread that has ended would not be seen by a scan. */
static void *serve_thread(void *arg)
{
	int *fds = arg;
	char c;

	if (fds[2])
		prctl(PR_SET_NAME, "pt_nccl_watchdg");
	while (read(fds[0], &c, 1) == 1) {
		burn(CLOCK_THREAD_CPUTIME_ID);
		if (write(fds[1], "k", 1) != 1)
			_exit(1);
	}
	return NULL;
}

/*
 * The rank: answers every command byte when done. c: CPU; w: bytes written; k: a child of its own
 * burns (it stays alive); h, t: a helper or other thread burns.
 */
static void serve_child(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		burn(CLOCK_THREAD_CPUTIME_ID);
		if (write(out, "k", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void start_thread(int *to, int *from, bool is_helper)
{
	static int fds[2][3];
	int in[2], out[2];
	pthread_t thread;

	if (pipe(in) || pipe(out))
		_exit(1);
	fds[is_helper][0] = in[0];
	fds[is_helper][1] = out[1];
	fds[is_helper][2] = is_helper;
	if (pthread_create(&thread, NULL, serve_thread, fds[is_helper]))
		_exit(1);
	*to = in[1];
	*from = out[0];
}

static void relay(int to, int from)
{
	char c;

	if (write(to, "x", 1) != 1 || read(from, &c, 1) != 1)
		_exit(1);
}

static void serve(int in, int out)
{
	int helper_to, helper_from, thread_to, thread_from, child_in[2], child_out[2];
	char c, *bytes = calloc(1, 256 << 10);
	FILE *file = tmpfile();

	if (pipe(child_in) || pipe(child_out) || !bytes || !file)
		_exit(1);
	if (fork() == 0) {
		close(child_in[1]);
		close(in);
		serve_child(child_in[0], child_out[1]);
	}
	close(child_in[0]);
	start_thread(&helper_to, &helper_from, true);
	start_thread(&thread_to, &thread_from, false);
	if (write(out, "k", 1) != 1)
		_exit(1);
	while (read(in, &c, 1) == 1) {
		if (c == 'c')
			burn(CLOCK_THREAD_CPUTIME_ID);
		else if (c == 'w' && fwrite(bytes, 1, 256 << 10, file) == 0)
			_exit(1);
		else if (c == 'k')
			relay(child_in[1], child_out[0]);
		else if (c == 'h')
			relay(helper_to, helper_from);
		else if (c == 't')
			relay(thread_to, thread_from);
		if (write(out, "k", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void wait_answer(struct rank *rank)
{
	struct pollfd p = { .fd = rank->from, .events = POLLIN };
	char c;

	cr_assert_eq(poll(&p, 1, DEADLINE_MS), 1, "the rank did not answer");
	cr_assert_eq(read(rank->from, &c, 1), 1);
}

static void command(struct rank *rank, char c)
{
	cr_assert_eq(write(rank->to, &c, 1), 1);
	wait_answer(rank);
}

static bool no_rank(pid_t pid, void *user)
{
	return user && *(pid_t *)user == pid;
}

/* Two seconds pass; true when they brought host activity. */
static bool step(struct rank *rank, void *excluded)
{
	struct cw_host_activity_process process = {
		.proc_fd = rank->proc_fd,
		.pid = rank->pid,
		.is_rank = no_rank,
		.user = excluded,
		.helpers = rank->helpers,
		.n_helpers = 2,
		.own_pid = rank->own_pid,
		.waits = &rank->wait,
		.n_waits = 1,
		.record = rank->record,
	};
	struct cw_procstat st;

	rank->now_ns += WINDOW_NS;
	cr_assert_eq(cw_procstat_read(rank->proc_fd, &st), 0);
	cw_host_activity_step(&rank->host_activity, &process, &st, rank->now_ns);
	return rank->host_activity.host_activity_ns == rank->now_ns;
}

static struct rank start(void)
{
	struct rank rank = { .now_ns = 1000 * CW_NS_PER_S };
	int in[2], out[2];

	cr_assert_eq(pipe(in), 0);
	cr_assert_eq(pipe(out), 0);
	rank.pid = fork();
	if (rank.pid == 0) {
		close(in[1]);
		close(out[0]);
		serve(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	rank.to = in[1];
	rank.from = out[0];
	rank.proc_fd = cw_procstat_open(rank.pid);
	cr_assert_geq(rank.proc_fd, 0);
	wait_answer(&rank);
	cw_host_activity_init(&rank.host_activity);
	cr_assert(step(&rank, NULL), "the first look takes it for moving");
	/* Its start-up, and the base of the descendants, lie before what is tested. */
	(void)step(&rank, NULL);
	cr_assert_not(step(&rank, NULL));
	return rank;
}

static void stop(struct rank *rank)
{
	close(rank->to);
	close(rank->from);
	close(rank->proc_fd);
	cw_host_activity_fini(&rank->host_activity);
	cr_assert_eq(waitpid(rank->pid, NULL, 0), rank->pid);
}

Test(host_activity, none_while_blocked_in_read)
{
	struct rank rank = start();
	int64_t last_ns = rank.host_activity.host_activity_ns;

	for (int i = 0; i < 5; i++)
		cr_assert_not(step(&rank, NULL));
	cr_assert_eq(rank.host_activity.host_activity_ns, last_ns);
	cr_assert_eq(rank.now_ns - rank.host_activity.cpu_change_ns >= 5 * WINDOW_NS, true);
	stop(&rank);
}

/* We take Python stacks of quiet processes only; helper threads must not count as activity. */
Test(host_activity, forgives_a_tick_now_and_then)
{
	struct rank rank = start();
	struct cw_host_activity_process process = { .proc_fd = rank.proc_fd,
						    .pid = rank.pid,
						    .is_rank = no_rank };
	int64_t quiet_since_ns = rank.host_activity.cpu_change_ns;
	struct cw_procstat st;

	cr_assert_eq(cw_procstat_read(rank.proc_fd, &st), 0);
	st.cpu_ticks = rank.host_activity.quiet_ticks + 1;
	for (int i = 0; i < 2; i++)
		cw_host_activity_step(&rank.host_activity, &process, &st, rank.now_ns += WINDOW_NS);
	cr_assert_eq(rank.host_activity.cpu_change_ns, quiet_since_ns);
	st.cpu_ticks++;
	cw_host_activity_step(&rank.host_activity, &process, &st, rank.now_ns += WINDOW_NS);
	cr_assert_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
	stop(&rank);
}

/* Their use adds up over minutes without a look at threads: it is theirs all the same. */
Test(host_activity, what_helpers_use_now_and_then_is_theirs_however_long_ago_threads_were_looked_at)
{
	struct rank rank = start();
	int64_t quiet_since_ns;

	/* Once whose it was is known. */
	command(&rank, 't');
	(void)step(&rank, NULL);
	(void)step(&rank, NULL);
	quiet_since_ns = rank.host_activity.cpu_change_ns;
	for (int i = 0; i < 3; i++) {
		for (int quiet = 0; quiet < 4; quiet++)
			cr_assert_not(step(&rank, NULL));
		command(&rank, 'h');
		cr_assert_not(step(&rank, NULL));
		cr_expect_eq(rank.host_activity.cpu_change_ns, quiet_since_ns, "after %d", i);
	}
	command(&rank, 't');
	(void)step(&rank, NULL);
	cr_expect_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
	stop(&rank);
}

Test(host_activity, sees_cpu_of_the_main_thread)
{
	struct rank rank = start();

	command(&rank, 'c');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "cpu");
	cr_assert_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
	cr_assert_not(step(&rank, NULL));
	stop(&rank);
}

Test(host_activity, sees_io)
{
	struct rank rank = start();

	command(&rank, 'w');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "io");
	cr_assert_not(step(&rank, NULL));
	stop(&rank);
}

/* 'w' writes a quarter of a MiB. */
Test(host_activity, what_the_agent_writes_is_not_the_program_s)
{
	struct cw_test_record *rec = cw_test_record_new();
	struct rank rank = start();
	struct cw_record *record;

	cr_assert_eq(cw_record_open_memory(rec->header, rec->bytes, &record, NULL), 0);
	rank.record = record;
	rec->header->own_io_begun = rec->header->own_io_done = 1 << 20; /* before the window */
	(void)step(&rank, NULL);
	rec->header->own_io_begun += 256 << 10;
	command(&rank, 'w');
	cr_assert_not(step(&rank, NULL));
	rec->header->own_io_done = rec->header->own_io_begun;
	cr_assert_not(step(&rank, NULL));
	/* Both write. */
	rec->header->own_io_begun += 256 << 10;
	command(&rank, 'w');
	rec->header->own_io_done = rec->header->own_io_begun;
	command(&rank, 'w');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "io");
	/* It has begun, and the agent has written nothing yet: written bytes are the program's. */
	rec->header->own_io_begun = UINT64_MAX;
	rec->header->own_io_done = 0; /* and a liar hides but itself */
	(void)step(&rank, NULL);
	cr_assert_not(step(&rank, NULL));
	stop(&rank);
	cw_record_close(record);
	cw_test_record_free(rec);
}

Test(host_activity, sees_a_busy_child_of_a_waiting_parent)
{
	struct rank rank = start();

	command(&rank, 'k');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "child");
	cr_assert(rank.host_activity.is_child_busy);
	cr_assert_not(step(&rank, NULL));
	cr_assert_not(rank.host_activity.is_child_busy);
	stop(&rank);
}

Test(host_activity, leaves_out_descendants_that_are_ranks_of_their_own)
{
	struct rank rank = start();
	pid_t children[1];
	size_t n;

	cr_assert_eq(cw_procstat_children(rank.proc_fd, children, 1, &n), 0);
	cr_assert_eq(n, 1);
	command(&rank, 'k');
	cr_assert_not(step(&rank, children));
	stop(&rank);
}

Test(host_activity, sees_other_threads_but_not_known_helpers)
{
	struct rank rank = start();

	/* The first such window only finds out who there is; the second compares. */
	command(&rank, 'h');
	(void)step(&rank, NULL);
	command(&rank, 'h');
	cr_assert_not(step(&rank, NULL));
	command(&rank, 't');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "cpu");
	stop(&rank);
}

/* The thread that answers 't': the last that was started. */
static pid_t thread_of(const struct rank *rank)
{
	pid_t tids[8];
	size_t n;

	cr_assert_eq(cw_procstat_threads(rank->proc_fd, tids, 8, &n), 0);
	cr_assert_eq(n, 3);
	return tids[2];
}

/* Two windows: the first only finds out who there is. */
static bool burn_in_windows(struct rank *rank, char what)
{
	command(rank, what);
	(void)step(rank, NULL);
	command(rank, what);
	return step(rank, NULL);
}

/* NCCL's proxy has the name of the program. */
Test(host_activity, leaves_out_threads_that_the_agent_names)
{
	struct rank rank = start();

	cr_assert(burn_in_windows(&rank, 't'));
	rank.helpers[1] = (uint32_t)thread_of(&rank);
	(void)burn_in_windows(&rank, 't');
	for (int i = 0; i < 5; i++) {
		int64_t quiet_since_ns = rank.host_activity.cpu_change_ns;

		command(&rank, 't');
		cr_assert_not(step(&rank, NULL));
		cr_expect_eq(rank.host_activity.cpu_change_ns, quiet_since_ns,
			     "Python may be asked while it runs");
	}
	stop(&rank);
}

Test(host_activity, sees_work_beside_threads_that_the_agent_names)
{
	struct rank rank = start();

	rank.helpers[0] = (uint32_t)thread_of(&rank);
	(void)burn_in_windows(&rank, 't');
	command(&rank, 't');
	command(&rank, 'c');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.host_activity.by, "cpu");
	cr_assert_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
	stop(&rank);
}

/* Regardless of the agent's list: the main thread is no helper. */
Test(host_activity, sees_the_main_thread_though_it_is_named)
{
	struct rank rank = start();

	rank.helpers[0] = (uint32_t)rank.pid;
	cr_assert(burn_in_windows(&rank, 'c'));
	cr_assert_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
	stop(&rank);
}

/* The driver polls, in the main thread as elsewhere. */
Test(host_activity, leaves_out_threads_that_wait_inside_of_the_driver)
{
	struct rank rank = start();
	pid_t tids[] = { rank.pid, thread_of(&rank) };

	for (unsigned i = 0; i < 2; i++) {
		char what = i ? 't' : 'c';

		rank.wait.tid = (uint32_t)tids[i];
		rank.wait.since_ns = (uint64_t)rank.now_ns;
		(void)burn_in_windows(&rank, what);
		command(&rank, what);
		cr_expect_not(step(&rank, NULL));
		cr_expect_lt(rank.host_activity.cpu_change_ns, rank.now_ns);
		/* It has been there only for a part of the window. */
		rank.wait.since_ns = (uint64_t)rank.now_ns + 1;
		command(&rank, what);
		cr_expect(step(&rank, NULL));
		cr_expect_eq(rank.host_activity.cpu_change_ns, rank.now_ns);
		/* Begun, but since when is not written yet. */
		rank.wait.since_ns = 0;
		cr_expect(burn_in_windows(&rank, what));
	}
	stop(&rank);
}

/* The numbers are those of another pid namespace. */
Test(host_activity, does_not_take_numbers_of_another_namespace_for_its_own)
{
	struct rank rank = start();

	rank.helpers[0] = (uint32_t)thread_of(&rank);
	rank.own_pid = rank.pid + 1; /* elsewhere; its status file says the same number as here */
	(void)burn_in_windows(&rank, 't');
	command(&rank, 't');
	cr_assert_not(step(&rank, NULL), "the last number of NSpid is the thread's own");
	rank.helpers[0]++;
	command(&rank, 't');
	cr_assert(step(&rank, NULL));
	stop(&rank);
}

Test(host_activity, asks_a_thread_for_its_number_in_its_own_namespace)
{
	int in[2], out[2], fd;
	char line[64] = "";
	FILE *children;
	pid_t middle, own, inner = 0;
	char c;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert_eq(pipe(in), 0);
	cr_assert_eq(pipe(out), 0);
	middle = fork();
	if (middle == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(2);
		if (fork() == 0) {
			close(in[1]);
			if (write(out[1], "k", 1) != 1)
				_exit(1);
			_exit(read(in[0], &c, 1) != 0);
		}
		close(in[1]);
		_exit(wait(NULL) < 0);
	}
	close(in[0]);
	close(out[1]);
	cr_assert_eq(read(out[0], &c, 1), 1);
	(void)snprintf(line, sizeof(line), "/proc/%d/task/%d/children", (int)middle, (int)middle);
	children = fopen(line, "re");
	cr_assert(children && fscanf(children, "%d", &inner) == 1);
	fclose(children);
	fd = cw_procstat_open(inner);
	cr_assert_eq(cw_procstat_own_tid(fd, inner, &own), 0);
	cr_expect_eq(own, 1, "the first there, not %d", (int)own);
	close(fd);
	close(in[1]);
	close(out[0]);
	cr_assert_eq(waitpid(middle, NULL, 0), middle);
}

/* A second passes; at its end the main thread appears to sleep uninterruptibly. */
static bool step_in_storage(struct rank *rank)
{
	struct cw_host_activity_process process = { .proc_fd = rank->proc_fd, .pid = rank->pid };
	struct cw_procstat st;

	rank->now_ns += CW_NS_PER_S;
	cr_assert_eq(cw_procstat_read(rank->proc_fd, &st), 0);
	st.state = 'D';
	cw_host_activity_step(&rank->host_activity, &process, &st, rank->now_ns);
	return rank->host_activity.host_activity_ns == rank->now_ns;
}

Test(host_activity, takes_uninterruptible_sleep_of_one_who_runs_for_storage)
{
	struct rank rank = start();

	command(&rank, 'x');
	cr_assert(step_in_storage(&rank));
	cr_assert(rank.host_activity.is_d_state);
	cr_assert_str_eq(rank.host_activity.by, "storage");
	stop(&rank);
}

Test(host_activity, takes_nobody_who_does_not_run_for_one_that_storage_serves)
{
	struct rank rank = start();

	for (int i = 0; i < 6; i++) {
		cr_assert_not(step_in_storage(&rank), "second %d", i);
		cr_assert(rank.host_activity.is_d_state);
	}
	command(&rank, 'x');
	cr_assert(step_in_storage(&rank), "an answer has come");
	stop(&rank);
}

/* vfork() lets the parent sleep uninterruptibly until the child ends. */
static pid_t start_child_in_d_state(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		_exit(0);
	}
	return pid;
}

static char state_of(pid_t pid)
{
	int fd = cw_procstat_open(pid);
	struct cw_procstat st = { 0 };

	cr_assert_geq(fd, 0);
	cr_assert_eq(cw_procstat_read(fd, &st), 0);
	(void)close(fd);
	return st.state;
}

/* A loader's worker whose file server is gone. */
Test(host_activity, takes_no_descendant_that_storage_does_not_answer_for_busy, .timeout = 300)
{
	struct rank rank = { .pid = getpid(), .now_ns = 1000 * CW_NS_PER_S };
	pid_t child = start_child_in_d_state();
	struct cw_host_activity_process process = { .pid = getpid() };
	struct cw_procstat st;

	cr_assert_gt(child, 0);
	for (int i = 0; i < DEADLINE_MS && state_of(child) != 'D'; i++)
		(void)usleep(1000);
	cr_assert_eq(state_of(child), 'D');
	process.proc_fd = rank.proc_fd = cw_procstat_open(getpid());
	cw_host_activity_init(&rank.host_activity);
	/* This process itself runs, and we hide that. */
	cr_assert_eq(cw_procstat_read(rank.proc_fd, &st), 0);
	st.cpu_ticks = 1;
	st.child_cpu_ticks = 0;
	st.state = 'S';
	for (int i = 0; i < 4; i++) {
		rank.now_ns += WINDOW_NS;
		cw_host_activity_step(&rank.host_activity, &process, &st, rank.now_ns);
	}
	cr_expect_not(rank.host_activity.is_child_busy);
	cr_expect_neq(rank.host_activity.host_activity_ns, rank.now_ns);
	cr_assert_eq(kill(child, SIGKILL), 0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cw_host_activity_fini(&rank.host_activity);
	(void)close(rank.proc_fd);
}

/* Calls of openat(): files that a look opens in /proc. */
static unsigned opened, opened_io, opened_schedstat;

int __real_openat64(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);

int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
	opened++;
	opened_io += strcmp(path, "io") == 0;
	opened_schedstat += strcmp(path, "schedstat") == 0;
	return __real_openat64(dir_fd, path, flags);
}

#define MANY_CHILDREN 60
#define MANY_THREADS 60

static void *sleep_thread(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void start_sleepers(unsigned n)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&thread, &attr, sleep_thread, NULL) != 0)
			_exit(1);
}

/* A child with threads; on request, a thread other than the first has a child of its own. */
static void *spawn_from_thread(void *arg)
{
	int *fds = arg;

	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_child(fds[0], fds[1]);
	}
	return sleep_thread(NULL);
}

/* The rank's child; its sleepers report when they are there. */
static pid_t start_sleeping_child(int ready, unsigned n_threads, int *grandchild_fds)
{
	pthread_t thread;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (grandchild_fds && pthread_create(&thread, NULL, spawn_from_thread, grandchild_fds) != 0)
		_exit(1);
	start_sleepers(n_threads);
	if (write(ready, "k", 1) != 1)
		_exit(1);
	sleep_thread(NULL);
	_exit(0);
}

/* This process is the rank. */
static struct rank be_rank(void)
{
	struct rank rank = { .pid = getpid(), .now_ns = 1000 * CW_NS_PER_S };

	rank.proc_fd = cw_procstat_open(rank.pid);
	cr_assert_geq(rank.proc_fd, 0);
	cw_host_activity_init(&rank.host_activity);
	return rank;
}

/* Not the first thread's CPU time: that one looks. */
static void quiet_step(struct rank *rank)
{
	struct cw_host_activity_process process = { .proc_fd = rank->proc_fd, .pid = rank->pid };
	struct cw_procstat st;

	rank->now_ns += WINDOW_NS;
	cr_assert_eq(cw_procstat_read(rank->proc_fd, &st), 0);
	/* Only the descendants can show activity. */
	rank->host_activity.base_ticks = rank->host_activity.quiet_ticks = st.cpu_ticks;
	rank->host_activity.has_base_sched = rank->host_activity.has_base_io = false;
	cw_host_activity_step(&rank->host_activity, &process, &st, rank->now_ns);
}

/* A user may have as many processes as he likes, with as many threads: the loop looks at them. */
Test(host_activity, opens_no_more_files_of_descendants_than_there_is_time_for, .timeout = 300)
{
	pid_t children[MANY_CHILDREN];
	struct rank rank = be_rank();
	int ready[2];
	char c;

	cr_assert_eq(pipe(ready), 0);
	for (unsigned i = 0; i < MANY_CHILDREN; i++)
		children[i] = start_sleeping_child(ready[1], MANY_THREADS, NULL);
	for (unsigned i = 0; i < MANY_CHILDREN; i++)
		cr_assert_eq(read(ready[0], &c, 1), 1);
	quiet_step(&rank);
	opened = 0;
	quiet_step(&rank);
	cr_expect_leq(opened, CW_HOST_ACTIVITY_MAX_FILES + 100);
	cr_expect_gt(opened, MANY_CHILDREN * 4, "all descendants are read");
	cr_expect_eq(rank.host_activity.family.n, MANY_CHILDREN);
	cr_expect_eq(rank.host_activity.cut, 1);
	for (unsigned i = 0; i < MANY_CHILDREN; i++)
		(void)kill(children[i], SIGKILL);
	cw_host_activity_fini(&rank.host_activity);
	close(rank.proc_fd);
}

Test(host_activity, sees_whom_another_thread_of_a_descendant_has_started, .timeout = 300)
{
	int ready[2], to[2], from[2], fds[2];
	struct rank rank = be_rank();
	pid_t child;
	char c;

	cr_assert(pipe(ready) == 0 && pipe(to) == 0 && pipe(from) == 0);
	fds[0] = to[0];
	fds[1] = from[1];
	child = start_sleeping_child(ready[1], 3, fds);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_assert_eq(write(to[1], "x", 1), 1); /* it is there */
	cr_assert_eq(read(from[0], &c, 1), 1);
	quiet_step(&rank);
	quiet_step(&rank);
	cr_expect_eq(rank.host_activity.family.n, 2);
	cr_assert_eq(write(to[1], "x", 1), 1);
	cr_assert_eq(read(from[0], &c, 1), 1);
	quiet_step(&rank);
	cr_expect(rank.host_activity.is_child_busy);
	cr_expect_eq(rank.host_activity.cut, 0);
	(void)kill(child, SIGKILL);
	cw_host_activity_fini(&rank.host_activity);
	close(rank.proc_fd);
}

/* One reading ends a window and begins the next one. */
Test(host_activity, opens_io_and_schedstat_once_per_step)
{
	struct rank rank = be_rank();
	struct cw_host_activity_process process = { .proc_fd = rank.proc_fd, .pid = rank.pid };
	struct cw_procstat st;

	for (unsigned i = 1; i < 4; i++) {
		rank.now_ns += WINDOW_NS;
		cr_assert_eq(cw_procstat_read(rank.proc_fd, &st), 0);
		cw_host_activity_step(&rank.host_activity, &process, &st, rank.now_ns);
		cr_expect_eq(opened_io, i);
		cr_expect_eq(opened_schedstat, i);
		cr_expect(rank.host_activity.has_base_io && rank.host_activity.has_base_sched);
	}
	cw_host_activity_fini(&rank.host_activity);
	close(rank.proc_fd);
}

Test(host_activity, knows_helper_threads_by_name)
{
	cr_assert(cw_host_activity_is_helper("collwatch"));
	cr_assert(cw_host_activity_is_helper("cuda-EvtHandlr"));
	cr_assert(cw_host_activity_is_helper("NCCL Progress 0"));
	cr_assert_not(cw_host_activity_is_helper("python3"));
	cr_assert_not(cw_host_activity_is_helper("pt_autograd_0"));
}
