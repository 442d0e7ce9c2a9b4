/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes, a made-up clock: the CPU time is burnt for real, then the step is told that two
 * seconds have passed.
 */
#include "daemon/headway.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define WINDOW_NS (2 * CW_NS_PER_S)
#define BURN_NS (100 * CW_NS_PER_MS) /* well above 1 % of a window and the tick of 10 ms */
#define DEADLINE_MS 20000

struct rank {
	pid_t pid;
	int proc_fd, to, from;
	int64_t now_ns;
	struct cw_headway headway;
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

/* Two seconds pass; true when they brought headway. */
static bool step(struct rank *rank, void *excluded)
{
	struct cw_headway_process process = {
		.proc_fd = rank->proc_fd, .pid = rank->pid, .is_rank = no_rank, .user = excluded
	};
	struct cw_procstat st;

	rank->now_ns += WINDOW_NS;
	cr_assert_eq(cw_procstat_read(rank->proc_fd, &st), 0);
	cw_headway_step(&rank->headway, &process, &st, rank->now_ns);
	return rank->headway.headway_ns == rank->now_ns;
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
	rank.proc_fd = cw_proc_open(rank.pid);
	cr_assert_geq(rank.proc_fd, 0);
	wait_answer(&rank);
	cw_headway_init(&rank.headway);
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
	cw_headway_fini(&rank->headway);
	cr_assert_eq(waitpid(rank->pid, NULL, 0), rank->pid);
}

Test(headway, none_while_blocked_in_read)
{
	struct rank rank = start();
	int64_t last_ns = rank.headway.headway_ns;

	for (int i = 0; i < 5; i++)
		cr_assert_not(step(&rank, NULL));
	cr_assert_eq(rank.headway.headway_ns, last_ns);
	cr_assert_eq(rank.now_ns - rank.headway.cpu_change_ns >= 5 * WINDOW_NS, true);
	stop(&rank);
}

/* Python stacks are asked for in a quiet process; its helper threads must not keep them away. */
Test(headway, forgives_a_tick_now_and_then)
{
	struct rank rank = start();
	struct cw_headway_process process = { .proc_fd = rank.proc_fd,
					      .pid = rank.pid,
					      .is_rank = no_rank };
	int64_t quiet_since_ns = rank.headway.cpu_change_ns;
	struct cw_procstat st;

	cr_assert_eq(cw_procstat_read(rank.proc_fd, &st), 0);
	st.cpu_ticks = rank.headway.quiet_ticks + 1;
	for (int i = 0; i < 2; i++)
		cw_headway_step(&rank.headway, &process, &st, rank.now_ns += WINDOW_NS);
	cr_assert_eq(rank.headway.cpu_change_ns, quiet_since_ns);
	st.cpu_ticks++;
	cw_headway_step(&rank.headway, &process, &st, rank.now_ns += WINDOW_NS);
	cr_assert_eq(rank.headway.cpu_change_ns, rank.now_ns);
	stop(&rank);
}

Test(headway, sees_cpu_of_the_main_thread)
{
	struct rank rank = start();

	command(&rank, 'c');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.headway.by, "cpu");
	cr_assert_eq(rank.headway.cpu_change_ns, rank.now_ns);
	cr_assert_not(step(&rank, NULL));
	stop(&rank);
}

Test(headway, sees_io)
{
	struct rank rank = start();

	command(&rank, 'w');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.headway.by, "io");
	cr_assert_not(step(&rank, NULL));
	stop(&rank);
}

Test(headway, sees_a_busy_child_of_a_waiting_parent)
{
	struct rank rank = start();

	command(&rank, 'k');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.headway.by, "child");
	cr_assert(rank.headway.is_child_busy);
	cr_assert_not(step(&rank, NULL));
	cr_assert_not(rank.headway.is_child_busy);
	stop(&rank);
}

Test(headway, leaves_out_descendants_that_are_ranks_of_their_own)
{
	struct rank rank = start();
	pid_t children[1];
	size_t n;

	cr_assert_eq(cw_proc_children(rank.proc_fd, children, 1, &n), 0);
	cr_assert_eq(n, 1);
	command(&rank, 'k');
	cr_assert_not(step(&rank, children));
	stop(&rank);
}

Test(headway, sees_other_threads_but_not_known_helpers)
{
	struct rank rank = start();

	/* The first such window only finds out who there is; the second compares. */
	command(&rank, 'h');
	(void)step(&rank, NULL);
	command(&rank, 'h');
	cr_assert_not(step(&rank, NULL));
	command(&rank, 't');
	cr_assert(step(&rank, NULL));
	cr_assert_str_eq(rank.headway.by, "cpu");
	stop(&rank);
}

Test(headway, takes_uninterruptible_sleep_for_storage)
{
	struct rank rank = start();
	struct cw_headway_process process = { .proc_fd = rank.proc_fd, .pid = rank.pid };
	struct cw_procstat st;

	cr_assert_eq(cw_procstat_read(rank.proc_fd, &st), 0);
	st.state = 'D';
	cw_headway_step(&rank.headway, &process, &st, rank.now_ns + CW_NS_PER_S);
	cr_assert_eq(rank.headway.headway_ns, rank.now_ns + CW_NS_PER_S);
	cr_assert(rank.headway.is_d_state);
	cr_assert_str_eq(rank.headway.by, "storage");
	stop(&rank);
}

Test(headway, knows_helper_threads_by_name)
{
	cr_assert(cw_headway_is_helper("collwatch"));
	cr_assert(cw_headway_is_helper("cuda-EvtHandlr"));
	cr_assert(cw_headway_is_helper("NCCL Progress 0"));
	cr_assert_not(cw_headway_is_helper("python3"));
	cr_assert_not(cw_headway_is_helper("pt_autograd_0"));
}
