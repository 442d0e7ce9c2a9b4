/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agent_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/cleanup.h"
#include "common/record_layout.h"

#define COMMAND_BYTES 512
/* Ranks with CUDA have some thousand mappings; 64 MiB of text would be half a million. */
#define MAX_MAPS_BYTES (64u << 20)
#define CHILD_CPU_S 2
/* A killed child is gone within a millisecond: every wait it can be in is a killable one. */
#define CANCEL_WAIT_MS 20

struct cw_probe {
	pid_t child;
	int pidfd, pipe_fd;
	struct event *event;
	cw_probe_fn fn;
	void *user;
};

struct report { /* what the child writes, at once: smaller than PIPE_BUF */
	uint32_t answer;
	uint32_t len;
	char command[COMMAND_BYTES];
};

/* ---- in the child: async-signal-safe calls only, nothing of the parent's heap ---- */

static uint64_t parse_number(const char **text, unsigned base)
{
	uint64_t v = 0;

	for (;; (*text)++) {
		char c = **text;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 99;

		if (digit >= base)
			return v;
		v = v * base + digit;
	}
}

/* "start-end perms offset maj:min inode   path" */
static bool line_is_record(const char *line, dev_t dev, ino_t ino)
{
	const char *p = line;
	uint64_t major_nr, minor_nr;

	if (!strstr(line, "/memfd:" CW_RECORD_NAME))
		return false;
	for (int blanks = 0; blanks < 3; p++) {
		if (!*p)
			return false;
		blanks += *p == ' ';
	}
	major_nr = parse_number(&p, 16);
	if (*p++ != ':')
		return false;
	minor_nr = parse_number(&p, 16);
	if (*p++ != ' ')
		return false;
	return makedev((unsigned)major_nr, (unsigned)minor_nr) == dev &&
	       parse_number(&p, 10) == (uint64_t)ino;
}

static enum cw_probe_answer scan_maps(int proc_fd, dev_t dev, ino_t ino)
{
	char buf[8192];
	size_t have = 0, total = 0;
	ssize_t n;
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return CW_PROBE_UNKNOWN;
	while ((n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *end;

		have += (size_t)n;
		total += (size_t)n;
		buf[have] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (line_is_record(line, dev, ino))
				return CW_PROBE_MAPPED;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* longer than any path can be: not ours */
		if (total > MAX_MAPS_BYTES)
			return CW_PROBE_UNKNOWN;
	}
	return n < 0 || total == 0 ? CW_PROBE_UNKNOWN : CW_PROBE_NOT_MAPPED;
}

static void run_child(int proc_fd, dev_t dev, ino_t ino, int out_fd)
{
	struct rlimit cpu = { CHILD_CPU_S, CHILD_CPU_S };
	struct report report = { 0 };
	ssize_t n;
	int fd;

	/* dup2 in an order that overwrites neither: both land above first. */
	proc_fd = fcntl(proc_fd, F_DUPFD, 16);
	out_fd = fcntl(out_fd, F_DUPFD, 16);
	if (proc_fd < 0 || out_fd < 0 || dup2(proc_fd, 3) < 0 || dup2(out_fd, 4) < 0)
		_exit(1);
	(void)syscall(SYS_close_range, 5u, ~0u, 0u); /* old kernel: then they stay open */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);      /* a dead daemon's child is nobody's */
	(void)setrlimit(RLIMIT_CPU, &cpu);           /* the deadline stands without it */

	fd = openat(3, "cmdline", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, report.command, sizeof(report.command));
	report.len = n > 0 ? (uint32_t)n : 0;
	report.answer = scan_maps(3, dev, ino);
	n = write(4, &report, sizeof(report));
	_exit(n == (ssize_t)sizeof(report) ? 0 : 1);
}

/* ---- in the daemon ---- */

static void probe_free(struct cw_probe *probe)
{
	if (probe->event)
		event_free(probe->event);
	closep(&probe->pidfd);
	closep(&probe->pipe_fd);
	free(probe);
}

/* Through the pidfd: nobody else's process, even if somebody reaped ours. */
static void kill_child(const struct cw_probe *probe)
{
	(void)syscall(SYS_pidfd_send_signal, probe->pidfd, SIGKILL, NULL, 0u); /* or it has ended */
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
	struct cw_probe *probe = arg;
	struct report report = { 0 };
	cw_probe_fn fn = probe->fn;
	void *user = probe->user;

	if (what & EV_TIMEOUT) {
		kill_child(probe);
		if (fn) {
			probe->fn = NULL;
			(void)event_add(probe->event, NULL); /* wait for its end without limit */
			fn(CW_PROBE_UNKNOWN, NULL, 0, user);
			return;
		}
	}
	if (waitpid(probe->child, NULL, WNOHANG) == 0)
		return; /* cannot be: the pidfd said it has ended */
	if (read(probe->pipe_fd, &report, sizeof(report)) != (ssize_t)sizeof(report) ||
	    report.len > sizeof(report.command))
		report = (struct report){ 0 };
	probe_free(probe);
	if (fn)
		fn((enum cw_probe_answer)report.answer, report.command, report.len, user);
}

static int start_child(struct cw_probe *probe, int proc_fd, dev_t dev, ino_t ino)
{
	_cleanup_(closep) int write_fd = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	probe->pipe_fd = fds[0];
	write_fd = fds[1];
	probe->child = fork();
	if (probe->child < 0)
		return -errno;
	if (probe->child == 0)
		run_child(proc_fd, dev, ino, write_fd);
	probe->pidfd = (int)syscall(SYS_pidfd_open, probe->child, 0);
	return probe->pidfd < 0 ? -errno : 0;
}

int cw_probe_start(struct event_base *base, int proc_fd, dev_t dev, ino_t ino, unsigned timeout_ms,
		   cw_probe_fn fn, void *user, struct cw_probe **ret)
{
	struct timeval timeout = { .tv_sec = timeout_ms / 1000,
				   .tv_usec = timeout_ms % 1000 * 1000 };
	struct cw_probe *probe = calloc(1, sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	probe->pidfd = probe->pipe_fd = -1;
	probe->fn = fn;
	probe->user = user;
	r = start_child(probe, proc_fd, dev, ino);
	if (r == 0) {
		probe->event = event_new(base, probe->pidfd, EV_READ, on_child, probe);
		if (!probe->event || event_add(probe->event, &timeout) < 0)
			r = -ENOMEM;
	}
	if (r < 0) {
		if (probe->child > 0) {
			(void)kill(probe->child, SIGKILL);
			(void)waitpid(probe->child, NULL, 0); /* just forked: dies at once */
		}
		probe_free(probe);
		return r;
	}
	*ret = probe;
	return 0;
}

struct cw_probe *cw_probe_cancel(struct cw_probe *probe)
{
	struct pollfd ended = { .events = POLLIN };

	if (!probe)
		return NULL;
	ended.fd = probe->pidfd;
	probe->fn = NULL;
	kill_child(probe);
	if (poll(&ended, 1, CANCEL_WAIT_MS) == 1) {
		(void)waitpid(probe->child, NULL, WNOHANG); /* or somebody else has reaped it */
		probe_free(probe);
	}
	return NULL; /* else its event stays and reaps it later */
}
