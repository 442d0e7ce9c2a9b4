/* SPDX-License-Identifier: Apache-2.0 */
/* The test is the agent, too: it maps a record, and looks at itself. */
#include "daemon/agents/agent_probe.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "loop/fork_server.h"
#include "record/record_layout.h"

#define LIMIT_S 60
#define HELLO "hello"
#define N 3u

static struct event_base *base;
static struct cw_fork_server *forks;
static int record_fd;
static void *record;

static struct {
	int other_fd, conn_fd;
	struct cw_agent_probe_result result;
	bool has_come;
} agents[N];
static bool is_done, was_killed;

static void set_up(void)
{
	static const struct cw_fork_job jobs[] = { { cw_agent_probe_child,
						     CW_FORK_ALL_CAPABILITIES } };
	struct cw_fork_server_config config = { .clock = &cw_clock_system,
						.jobs = jobs,
						.n_jobs = 1 };

	config.base = base = event_base_new();
	cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
	record_fd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_geq(record_fd, 0);
	cr_assert_eq(ftruncate(record_fd, 4096), 0);
	record = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, record_fd, 0);
	cr_assert_neq(record, MAP_FAILED);
	for (unsigned i = 0; i < N; i++) {
		int pair[2];

		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		agents[i].other_fd = pair[0];
		agents[i].conn_fd = pair[1];
	}
}

static void tear_down(void)
{
	forks = cw_fork_server_free(forks);
	for (unsigned i = 0; i < N; i++) {
		close(agents[i].other_fd);
		close(agents[i].conn_fd);
	}
	munmap(record, 4096);
	close(record_fd);
	event_base_free(base);
}

TestSuite(agent_probe, .init = set_up, .fini = tear_down, .timeout = LIMIT_S);

static void on_result(unsigned agent, const struct cw_agent_probe_result *result, void *user)
{
	cr_assert_lt(agent, N);
	cr_assert_not(agents[agent].has_come);
	agents[agent].has_come = true;
	agents[agent].result = *result;
	if (result->record_fd >= 0)
		close(result->record_fd);
}

static void on_done(bool killed, void *user)
{
	is_done = true;
	was_killed = killed;
}

static void say_hello(unsigned agent, int fd)
{
	cr_assert_eq(cw_unix_send_fd(agents[agent].other_fd, HELLO, strlen(HELLO), fd),
		     (ssize_t)strlen(HELLO));
	agents[agent].has_come = false;
}

static struct cw_agent_probe *start(unsigned n)
{
	struct cw_agent_probe_agent them[N];
	struct cw_agent_probe_request request = {
		.base = base,
		.forks = forks,
		.agents = them,
		.n = n,
		.timeout_ms = LIMIT_S * 1000,
		.fn = on_result,
		.done = on_done,
	};
	struct cw_agent_probe *probe;

	for (unsigned i = 0; i < n; i++)
		them[i] = (struct cw_agent_probe_agent){
			.conn_fd = agents[i].conn_fd,
			.frame_len = strlen(HELLO),
			.pid = getpid(),
		};
	is_done = false;
	cr_assert_eq(cw_agent_probe_start(&request, &probe), 0);
	return probe;
}

static void finish(void)
{
	while (!is_done)
		cr_assert_geq(event_base_loop(base, EVLOOP_ONCE), 0);
}

Test(agent_probe, tells_of_each_agent_what_it_sent)
{
	int other = memfd_create("other", MFD_CLOEXEC);

	say_hello(0, record_fd);
	say_hello(1, other); /* a descriptor that no process maps */
	say_hello(2, -1);
	(void)start(3);
	finish();
	cr_assert_not(was_killed);
	cr_assert_eq(agents[0].result.answer, CW_PROBE_MAPPED);
	cr_assert_geq(agents[0].result.record_fd, 0);
	cr_assert_gt(agents[0].result.command_len, 0);
	cr_assert_eq(agents[1].result.answer, CW_PROBE_NOT_MAPPED);
	cr_assert_eq(agents[2].result.record_fd, -1);
	close(other);
}

static pid_t server_pid(void)
{
	struct cw_fork_server_stats stats;

	cw_fork_server_stats(forks, &stats);
	return stats.pid;
}

Test(agent_probe, a_fork_server_that_is_lost_meanwhile_costs_nobody_a_registration)
{
	pid_t old;

	say_hello(0, record_fd);
	(void)start(1);
	finish(); /* it serves */
	old = server_pid();
	cr_assert_eq(kill(old, SIGSTOP), 0);
	say_hello(0, record_fd);
	(void)start(1);
	cr_assert_eq(kill(old, SIGKILL), 0);
	finish();
	cr_assert_eq(agents[0].result.answer, CW_PROBE_MAPPED);
}

Test(agent_probe, what_was_asked_of_no_server_is_untouched)
{
	struct cw_agent_probe *probe;
	pid_t old;

	say_hello(0, record_fd);
	(void)start(1);
	finish();
	old = server_pid();
	cr_assert_eq(kill(old, SIGSTOP), 0);
	say_hello(0, record_fd);
	probe = start(1);
	probe = cw_agent_probe_cancel(probe);
	cr_assert_eq(kill(old, SIGCONT), 0);
	(void)start(1); /* after what is left of that one */
	finish();
	cr_assert_eq(agents[0].result.answer, CW_PROBE_MAPPED);
}

/* As one of a leader of thousands of ranks. Measured against a fork, so that no clock decides. */
Test(agent_probe, is_started_without_a_copy_of_a_large_heaps_page_tables)
{
	const size_t bytes = 512u << 20;
	int64_t of_fork_ns = INT64_MAX, of_start_ns = INT64_MAX;
	char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(heap, MAP_FAILED);
	(void)madvise(heap, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		heap[i] = 1;
	for (unsigned i = 0; i < 5; i++) {
		int64_t began = cw_clock_cpu_ns();
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (cw_clock_cpu_ns() - began < of_fork_ns)
			of_fork_ns = cw_clock_cpu_ns() - began;
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		say_hello(0, record_fd);
		began = cw_clock_cpu_ns();
		(void)start(1);
		if (cw_clock_cpu_ns() - began < of_start_ns)
			of_start_ns = cw_clock_cpu_ns() - began;
		finish();
		cr_assert_eq(agents[0].result.answer, CW_PROBE_MAPPED);
	}
	munmap(heap, bytes);
	cr_assert_lt(of_start_ns, of_fork_ns / 4, "a start took %lld ns, a fork %lld",
		     (long long)of_start_ns, (long long)of_fork_ns);
}
