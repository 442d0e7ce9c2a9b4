/* SPDX-License-Identifier: Apache-2.0 */
/* The server is a fork of the test, but where the test is about what is executed. */
#include "loop/fork_server.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longer than a test may take. */
#define LIMIT_S 60

static struct event_base *base;
static struct cw_fork_server *server;

/* ---- jobs ---- */

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", "..", and its own */
}

/* Says its number of descriptors and its name, and waits for the end. */
static int answer_and_wait(int fd)
{
	char text[64], name[16] = "", byte;
	int len;

	(void)prctl(PR_GET_NAME, name);
	len = snprintf(text, sizeof(text), "%d %s", descriptors(), name);
	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return 1;
	return (int)recv(fd, &byte, 1, 0);
}

static int end_at_once(int fd)
{
	return 7;
}

static int stay(int fd)
{
	return pause();
}

static int end_the_server(int fd)
{
	return kill(getppid(), SIGKILL) + pause();
}

static int end_reserved(int fd)
{
	return 0;
}

/* Sends its capabilities: effective, permitted, inheritable. */
static int list_capabilities(int fd)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return 1;
	return send(fd, data, sizeof(data), MSG_NOSIGNAL) == sizeof(data) ? 0 : 1;
}

/* Not among the jobs. */
static int unknown(int fd)
{
	return 0;
}

static const struct cw_fork_job jobs[] = {
	{ answer_and_wait, CW_FORK_ALL_CAPABILITIES },
	{ end_at_once, 0 },
	{ stay, 0 },
	{ end_the_server, CW_FORK_ALL_CAPABILITIES },
	{ list_capabilities, 1u << CAP_SYS_PTRACE },
	{ .run = end_reserved, .is_reserved = true },
};

static struct cw_fork_server_config config = {
	.clock = &cw_clock_system,
	.jobs = jobs,
	.n_jobs = sizeof(jobs) / sizeof(jobs[0]),
};

static void set_up(void)
{
	config.base = base = event_base_new();
	cr_assert_eq(cw_fork_server_new(&config, &server), 0);
}

static void tear_down(void)
{
	server = cw_fork_server_free(server);
	event_base_free(base);
	/* It has reaped all of its children, except servers that it had lost. */
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TestSuite(fork_server, .init = set_up, .fini = tear_down, .timeout = LIMIT_S);

/* ---- asking ---- */

struct answer {
	struct cw_fork_request *request;
	bool has_come;
	int r, fd, pidfd;
};

static void on_forked(int r, int fd, int pidfd, void *user)
{
	struct answer *a = user;

	*a = (struct answer){ .has_come = true, .r = r, .fd = fd, .pidfd = pidfd };
}

static void ask(cw_fork_child_fn job, struct answer *ret)
{
	*ret = (struct answer){ .fd = -1, .pidfd = -1 };
	cr_assert_eq(cw_fork_server_ask(server, job, on_forked, ret, &ret->request), 0);
}

static void wait_for(const struct answer *a)
{
	while (!a->has_come)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
}

static void wait_for_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, LIMIT_S * 1000), 1);
}

static void drop(struct answer *a)
{
	close(a->fd);
	close(a->pidfd);
}

static void listen_to(const struct answer *a, char *text, size_t size)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	ssize_t n;

	cr_assert_eq(poll(&p, 1, LIMIT_S * 1000), 1);
	n = recv(a->fd, text, size - 1, 0);
	cr_assert_gt(n, 0);
	text[n] = '\0';
}

static struct cw_fork_server_stats stats(void)
{
	struct cw_fork_server_stats s;

	cw_fork_server_stats(server, &s);
	return s;
}

static void expect_it_serves(void)
{
	struct answer a;
	char text[64];

	ask(answer_and_wait, &a);
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	listen_to(&a, text, sizeof(text));
	drop(&a);
}

static void turn_until_replaced(pid_t old)
{
	while (stats().pid == old || stats().pid == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* ---- a child's state ---- */

/* 0, 1, 2 and its end of the pair. */
#define STANDARD 4

Test(fork_server, a_child_has_its_end_of_the_pair_and_nothing_else)
{
	char text[64], expected[64];
	struct answer a;
	int more[3];

	for (unsigned i = 0; i < 3;
	     i++) /* not inherited, as they came later; nor are earlier ones */
		more[i] = open("/dev/null", O_RDONLY);
	ask(answer_and_wait, &a);
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	listen_to(&a, text, sizeof(text));
	snprintf(expected, sizeof(expected), "%d collwatchd-fork", STANDARD);
	cr_assert_str_eq(text, expected);
	close(a.fd);
	wait_for_end(a.pidfd); /* it sees that */
	close(a.pidfd);
	for (unsigned i = 0; i < 3; i++)
		close(more[i]);
}

Test(fork_server, a_child_that_ends_at_once_has_a_pidfd_that_says_so)
{
	struct answer a;

	ask(end_at_once, &a);
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	wait_for_end(a.pidfd);
	drop(&a);
}

Test(fork_server, its_pidfd_kills_it)
{
	struct answer a;

	ask(stay, &a);
	wait_for(&a);
	cr_assert_eq(syscall(SYS_pidfd_send_signal, a.pidfd, SIGKILL, NULL, 0), 0);
	wait_for_end(a.pidfd);
	drop(&a);
}

static unsigned zombies_of(pid_t parent)
{
	char path[64], line[512];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	if (fgets(line, sizeof(line), f))
		for (char *save, *word = strtok_r(line, " \n", &save); word;
		     word = strtok_r(NULL, " \n", &save))
			n++;
	fclose(f);
	return n;
}

Test(fork_server, children_that_ended_are_reaped_without_another_request)
{
	struct answer a[8];

	for (unsigned i = 0; i < 8; i++)
		ask(end_at_once, &a[i]);
	for (unsigned i = 0; i < 8; i++) {
		wait_for(&a[i]);
		wait_for_end(a[i].pidfd);
		drop(&a[i]);
	}
	while (zombies_of(stats().pid) > 0)
		sched_yield();
}

Test(fork_server, a_child_keeps_the_capabilities_of_its_job_only)
{
	struct __user_cap_data_struct data[2];
	struct pollfd p = { .events = POLLIN };
	struct answer a;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	ask(list_capabilities, &a);
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	p.fd = a.fd;
	cr_assert_eq(poll(&p, 1, LIMIT_S * 1000), 1);
	cr_assert_eq(recv(a.fd, data, sizeof(data), 0), sizeof(data));
	cr_assert_eq(data[0].effective, 1u << CAP_SYS_PTRACE);
	cr_assert_eq(data[0].permitted, 1u << CAP_SYS_PTRACE);
	cr_assert_eq(data[1].effective | data[1].permitted, 0);
	drop(&a);
}

/* ---- requests ---- */

Test(fork_server, refuses_more_requests_than_it_has_places_for)
{
	struct answer a[CW_FORK_REQUESTS], more;
	struct cw_fork_request *request;

	for (unsigned i = 0; i < CW_FORK_REQUESTS - CW_FORK_RESERVED; i++)
		ask(end_at_once, &a[i]);
	cr_assert_eq(cw_fork_server_ask(server, answer_and_wait, on_forked, &more, &request),
		     -EAGAIN);
	for (unsigned i = CW_FORK_REQUESTS - CW_FORK_RESERVED; i < CW_FORK_REQUESTS; i++)
		ask(end_reserved, &a[i]);
	cr_assert_eq(cw_fork_server_ask(server, end_reserved, on_forked, &more, &request), -EAGAIN);
	for (unsigned i = 0; i < CW_FORK_REQUESTS; i++) {
		wait_for(&a[i]);
		cr_assert_eq(a[i].r, 0);
		drop(&a[i]);
	}
	expect_it_serves();
}

Test(fork_server, knows_its_jobs_only)
{
	struct cw_fork_request *request;

	cr_assert_eq(cw_fork_server_ask(server, unknown, on_forked, NULL, &request), -EINVAL);
}

Test(fork_server, a_request_that_was_cancelled_is_not_answered)
{
	struct answer a;

	ask(stay, &a);
	a.request = cw_fork_request_cancel(a.request);
	expect_it_serves(); /* after it */
	cr_assert_not(a.has_come);
}

/* ---- a server that is lost ---- */

Test(fork_server, one_that_was_killed_is_replaced)
{
	pid_t old;

	expect_it_serves();
	old = stats().pid;
	cr_assert_eq(kill(old, SIGKILL), 0);
	turn_until_replaced(old);
	expect_it_serves();
	cr_assert_eq(stats().lost, 1);
}

Test(fork_server, requests_under_way_are_made_of_the_next_one)
{
	struct answer a;
	pid_t old;

	expect_it_serves();
	old = stats().pid;
	cr_assert_eq(kill(old, SIGSTOP), 0);
	ask(answer_and_wait, &a);
	cr_assert_eq(kill(old, SIGKILL), 0);
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	cr_assert_neq(stats().pid, old);
	drop(&a);
}

Test(fork_server, one_that_is_stopped_is_killed_and_nobody_blocks)
{
	struct answer a;
	pid_t old;

	expect_it_serves();
	old = stats().pid;
	cr_assert_eq(kill(old, SIGSTOP), 0);
	ask(answer_and_wait, &a);
	wait_for(&a); /* the deadline passes, another one is started */
	cr_assert_eq(a.r, 0);
	cr_assert_eq(stats().lost, 1);
	cr_assert_neq(stats().pid, old);
	drop(&a);
}

/* It answers the requests from before it was stopped: it does not count as silent. */
Test(fork_server, an_answer_that_this_process_was_late_for_counts)
{
	struct timespec deadline = { .tv_sec = 4 };
	struct answer a;

	expect_it_serves();
	ask(answer_and_wait, &a);
	nanosleep(&deadline, NULL); /* the loop does not turn: longer than a server may take */
	wait_for(&a);
	cr_assert_eq(a.r, 0);
	cr_assert_eq(stats().lost, 0);
	drop(&a);
}

Test(fork_server, one_that_a_child_ends_is_replaced)
{
	struct answer a;
	pid_t old;

	expect_it_serves();
	old = stats().pid;
	ask(end_the_server, &a);
	turn_until_replaced(old);
	wait_for(&a); /* before its end, or of the next one, which it ends, too, or not at all */
	if (a.r == 0)
		drop(&a);
	cr_assert_geq(stats().lost, 1);
}

static pid_t parent_of(pid_t pid)
{
	char path[32], text[512], *end;
	FILE *f;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	cr_assert_not_null(fgets(text, sizeof(text), f));
	fclose(f);
	end = strrchr(text, ')');
	cr_assert_eq(sscanf(end + 1, " %*c %d", &parent), 1);
	return parent;
}

static unsigned n_lost;

static bool may_replace(void *user)
{
	n_lost++;
	return false;
}

/* A new keeper would have the capabilities that the daemon has left. */
Test(fork_server, a_lost_keeper_is_not_replaced_if_the_daemon_says_so)
{
	struct cw_fork_server_config other = config;
	struct cw_fork_request *request;
	struct answer a;

	server = cw_fork_server_free(server);
	other.may_replace = may_replace;
	cr_assert_eq(cw_fork_server_new(&other, &server), 0);
	expect_it_serves();
	cr_assert_eq(kill(parent_of(stats().pid), SIGKILL), 0);
	while (n_lost == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	cr_assert_eq(stats().pid, 0);
	cr_assert_eq(cw_fork_server_ask(server, answer_and_wait, on_forked, &a, &request), -EAGAIN);
}

/* ---- a server that speaks nonsense ---- */

/* A program that serves, and then says this. */
static void write_program(char path[32], const char *text)
{
	int fd;

	strcpy(path, "/tmp/cw-fork-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, 0700), 0);
	close(fd);
}

static void start_with(const char *program)
{
	struct cw_fork_server_config other = config;

	server = cw_fork_server_free(server);
	other.program = program;
	cr_assert_eq(cw_fork_server_new(&other, &server), 0);
}

Test(fork_server, one_that_says_what_makes_no_sense_is_replaced)
{
	char path[32];

	write_program(path, "#!/bin/sh\nprintf 'no packet of the server' >&3; read line <&3\n");
	start_with(path);
	while (stats().lost == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	unlink(path);
}

/* Twice, then it does without. */
Test(fork_server, where_the_program_cannot_be_executed_it_is_a_fork)
{
	struct cw_fork_request *request;
	struct answer a;

	start_with("/nonexistent/collwatchd");
	cr_assert_eq(cw_fork_server_ask(server, answer_and_wait, on_forked, &a, &request), -EAGAIN);
	while (stats().pid == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	expect_it_serves();
}

Test(fork_server, a_program_that_is_none_is_tried_twice)
{
	start_with("/bin/false");
	while (stats().lost < 2 || stats().pid == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	expect_it_serves();
	cr_assert_eq(stats().lost, 2);
}

/* The other way round: it ends, and is replaced. */
Test(fork_server, ends_at_a_request_that_makes_no_sense)
{
	struct sockaddr_storage name;
	pid_t old;

	expect_it_serves();
	old = stats().pid;
	/* The only connected pair of SOCK_SEQPACKET that this process has now is its own. */
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t len = sizeof(int), name_len = sizeof(name);
		int type = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
		    type == SOCK_SEQPACKET &&
		    getpeername(fd, (struct sockaddr *)&name, &name_len) == 0)
			cr_assert_eq(send(fd, "nonsense", 8, MSG_NOSIGNAL), 8);
	}
	turn_until_replaced(old);
	expect_it_serves();
	cr_assert_eq(stats().lost, 1);
}

/* ---- the end ---- */

Test(fork_server, signals_that_end_the_daemon_do_not_end_it_first)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

	expect_it_serves();
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(kill(stats().pid, signals[i]), 0);
	expect_it_serves();
	cr_assert_eq(stats().lost, 0);
}

Test(fork_server, ends_with_the_daemon)
{
	struct pollfd p = { .events = POLLIN };

	expect_it_serves();
	p.fd = (int)syscall(SYS_pidfd_open, stats().pid, 0);
	cr_assert_geq(p.fd, 0);
	server = cw_fork_server_free(server);
	cr_assert_eq(poll(&p, 1, 0), 1);
	close(p.fd);
}

/* ---- its purpose ---- */

/* A fork copies the page tables. Measured against one, so that no clock decides. */
Test(fork_server, a_large_heap_costs_nothing)
{
	const size_t bytes = 512u << 20;
	int64_t of_fork_ns = INT64_MAX, of_ask_ns = INT64_MAX;
	char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(heap, MAP_FAILED);
	(void)madvise(heap, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		heap[i] = 1;
	expect_it_serves();
	for (unsigned i = 0; i < 5; i++) {
		int64_t began = cw_clock_cpu_ns();
		pid_t pid = fork();
		struct answer a;

		if (pid == 0)
			_exit(0);
		if (cw_clock_cpu_ns() - began < of_fork_ns)
			of_fork_ns = cw_clock_cpu_ns() - began;
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		began = cw_clock_cpu_ns();
		ask(end_at_once, &a);
		if (cw_clock_cpu_ns() - began < of_ask_ns)
			of_ask_ns = cw_clock_cpu_ns() - began;
		wait_for(&a);
		drop(&a);
	}
	munmap(heap, bytes);
	cr_assert_lt(of_ask_ns, of_fork_ns / 4, "asking took %lld ns, a fork %lld",
		     (long long)of_ask_ns, (long long)of_fork_ns);
}
