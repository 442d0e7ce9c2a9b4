/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exit_status.h"
#include "cli/run/run_tag.h"
#include "common/cleanup.h"
#include "common/clock.h"

/*
 * The program's children may hold its pipes long after the program's end. So after its end we read
 * until there was no output for this long.
 */
#define SILENCE_MS 5000
#define SECOND_MS 1000

static const int passed_on[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT, SIGCONT };

struct run {
	const struct run_child *config;
	pid_t pid;
	int signal_fd;
	int status;
	bool has_ended;
	struct run_tag streams[2];
	int64_t next_second_ns;
	sigset_t old_mask;
};

static int block_signals(struct run *r)
{
	sigset_t mask;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		(void)sigaddset(&mask, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &mask, &r->old_mask) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? -errno : 0;
}

static void become(const struct run *r, const int write_ends[2])
{
	int error;

	for (int i = 0; i < 2; i++)
		if (write_ends[i] >= 0 && dup2(write_ends[i], STDOUT_FILENO + i) < 0)
			_exit(CW_EXIT_ERROR);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	execvp(r->config->command[0], r->config->command);
	error = errno;
	dprintf(STDERR_FILENO, "collwatch: cannot run %s: %s\n", r->config->command[0],
		strerror(error));
	_exit((int)cw_exit_of_exec(error));
}

static int start(struct run *r)
{
	int write_ends[2] = { -1, -1 }, ends[2];

	for (int i = 0; i < 2 && r->config->prefix; i++) {
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		write_ends[i] = ends[1];
		run_tag_init(&r->streams[i], ends[0], STDOUT_FILENO + i, r->config->prefix);
	}
	r->pid = fork();
	if (r->pid == 0)
		become(r, write_ends);
	closep(&write_ends[0]);
	closep(&write_ends[1]);
	return r->pid < 0 ? -errno : 0;
}

/*
 * True if the terminal sent the signal, for example because of Ctrl-C. The program then has it too,
 * because it is in our process group, and we must not send it a second time.
 */
static bool is_from_terminal(const struct signalfd_siginfo *info)
{
	return (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT) && info->ssi_code > 0;
}

static void take_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD && !is_from_terminal(&info) && !r->has_ended)
			(void)kill(r->pid, (int)info.ssi_signo); /* fails if the program is gone */
	if (!r->has_ended && waitpid(r->pid, &r->status, WNOHANG) == r->pid)
		r->has_ended = true;
}

static void pass_second(struct run *r)
{
	int64_t now = cw_clock_now_ns(&cw_clock_system);

	if (!r->config->on_second || r->has_ended || now < r->next_second_ns)
		return;
	r->next_second_ns = now + SECOND_MS * CW_NS_PER_MS;
	r->config->on_second(r->config->user);
}

static bool is_open(const struct run *r)
{
	return r->streams[0].from >= 0 || r->streams[1].from >= 0;
}

static void watch(struct run *r)
{
	while (!r->has_ended || is_open(r)) {
		struct pollfd fds[3] = {
			{ .fd = r->signal_fd, .events = POLLIN },
			{ .fd = r->streams[0].from, .events = POLLIN },
			{ .fd = r->streams[1].from, .events = POLLIN },
		};
		int timeout = r->has_ended ? SILENCE_MS : r->config->on_second ? SECOND_MS : -1;
		int n = poll(fds, 3, timeout);

		if (n == 0 && r->has_ended)
			break;
		for (int i = 0; i < 2; i++)
			if (fds[1 + i].revents)
				run_tag_read(&r->streams[i]);
		take_signals(r);
		pass_second(r);
	}
}

int cw_run_child(const struct run_child *child)
{
	struct run r = { .config = child, .signal_fd = -1 };
	int error;

	r.streams[0].from = r.streams[1].from = -1;
	error = block_signals(&r);
	if (error == 0)
		error = start(&r);
	if (error == 0)
		watch(&r);
	for (int i = 0; i < 2; i++)
		run_tag_fini(&r.streams[i]);
	closep(&r.signal_fd);
	return error < 0 ? error : r.status;
}

void run_end_like(int wait_status)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t mask;

	if (WIFEXITED(wait_status))
		exit(WEXITSTATUS(wait_status));
	/* The program may have written a core file, and ours would overwrite it. */
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(WTERMSIG(wait_status), SIG_DFL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, WTERMSIG(wait_status));
	(void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
	(void)raise(WTERMSIG(wait_status));
	exit(128 + WTERMSIG(wait_status));
}
