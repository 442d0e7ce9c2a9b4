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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/cleanup.h"
#include "common/record_layout.h"
#include "common/unixsock.h"
#include "daemon/procstat.h"

#define COMMAND_BYTES 512
/* Ranks with CUDA have some thousand mappings; 64 MiB of text would be half a million. */
#define MAX_MAPS_BYTES (64u << 20)
#define CHILD_CPU_S 2
/* A killed child is gone within a millisecond: every wait it can be in is a killable one. */
#define KILL_WAIT_MS 20
#define MAX_FRAME_BYTES 512
#define MAX_ABANDONED_USERS 32

struct cw_probe {
	pid_t child;
	uid_t uid;
	int pidfd, pair_fd; /* our end of the pair: first the record, then the report */
	bool is_abandoned;
	struct event *event;
	cw_probe_fn fn;
	void *user;
};

struct report {
	uint32_t answer;
	uint32_t len;
	char command[COMMAND_BYTES];
};

/* Of this process, as its children are. More users than entries: then all count as one. */
static struct {
	uid_t uid;
	unsigned n;
} abandoned[MAX_ABANDONED_USERS];

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

/* Takes the hello out of the connection. The descriptor that came with it, or -1. */
static int take_descriptor(int conn_fd, size_t frame_len)
{
	char frame[MAX_FRAME_BYTES];
	int fd = -1;

	if (frame_len > sizeof(frame) ||
	    cw_unix_recv_fd(conn_fd, frame, frame_len, &fd) != (ssize_t)frame_len)
		return -1;
	return fd;
}

enum { CHILD_CONN = 3, CHILD_OUT, CHILD_PROC, CHILD_FREE };

/* Puts the two where the child expects them and closes all others. */
static bool strip_descriptors(int conn_fd, int out_fd)
{
	/* Both land above first, so that neither overwrites the other. */
	conn_fd = fcntl(conn_fd, F_DUPFD, 16);
	out_fd = fcntl(out_fd, F_DUPFD, 16);
	if (conn_fd < 0 || out_fd < 0 || dup2(conn_fd, CHILD_CONN) < 0 ||
	    dup2(out_fd, CHILD_OUT) < 0)
		return false;
	(void)syscall(SYS_close_range, (unsigned)CHILD_PROC, ~0u, 0u); /* or they stay open */
	return true;
}

static void run_child(const struct cw_probe_request *request, int out_fd)
{
	struct rlimit cpu = { CHILD_CPU_S, CHILD_CPU_S };
	struct report report = { 0 };
	int record_fd, proc_fd, fd;
	struct stat st;
	ssize_t n;

	if (!strip_descriptors(request->conn_fd, out_fd))
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a dead daemon's child is nobody's */
	(void)setrlimit(RLIMIT_CPU, &cpu);      /* the deadline stands without it */
	record_fd = take_descriptor(CHILD_CONN, request->frame_len);
	if (record_fd < 0 || fcntl(record_fd, F_GET_SEALS) < 0 || fstat(record_fd, &st) < 0)
		_exit(1);
	if (cw_unix_send_fd(CHILD_OUT, "r", 1, record_fd) != 1)
		_exit(1);
	proc_fd = cw_proc_open(request->pid);
	fd = proc_fd < 0 ? -1 : openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, report.command, sizeof(report.command));
	report.len = n > 0 ? (uint32_t)n : 0;
	if (proc_fd >= 0)
		report.answer = scan_maps(proc_fd, st.st_dev, st.st_ino);
	n = send(CHILD_OUT, &report, sizeof(report), MSG_NOSIGNAL);
	_exit(n == (ssize_t)sizeof(report) ? 0 : 1);
}

/* ---- in the daemon ---- */

unsigned cw_probe_abandoned(uid_t uid)
{
	for (size_t i = 0; i < MAX_ABANDONED_USERS; i++)
		if (abandoned[i].n && abandoned[i].uid == uid)
			return abandoned[i].n;
	return 0;
}

static void count_abandoned(uid_t uid, int change)
{
	size_t place = 0; /* when all are taken, the first user's bill grows */

	for (size_t i = 0; i < MAX_ABANDONED_USERS; i++) {
		if (abandoned[i].n && abandoned[i].uid == uid) {
			place = i;
			break;
		}
		if (!abandoned[i].n && abandoned[place].n)
			place = i;
	}
	if (change > 0 && !abandoned[place].n)
		abandoned[place].uid = uid;
	if (change > 0 || abandoned[place].n)
		abandoned[place].n += (unsigned)change;
}

static void probe_free(struct cw_probe *probe)
{
	if (probe->is_abandoned)
		count_abandoned(probe->uid, -1);
	if (probe->event)
		event_free(probe->event);
	closep(&probe->pidfd);
	closep(&probe->pair_fd);
	free(probe);
}

/* Through the pidfd: nobody else's process, even if somebody reaped ours. */
static void kill_child(const struct cw_probe *probe)
{
	(void)syscall(SYS_pidfd_send_signal, probe->pidfd, SIGKILL, NULL, 0u); /* or it has ended */
}

/* Reaps a child that has ended, and frees; else leaves it to its event, without a callback. */
static void reap_or_abandon(struct cw_probe *probe)
{
	struct pollfd ended = { .fd = probe->pidfd, .events = POLLIN };

	probe->fn = NULL;
	if (poll(&ended, 1, KILL_WAIT_MS) == 1) {
		(void)waitpid(probe->child, NULL, WNOHANG); /* or somebody else has reaped it */
		probe_free(probe);
		return;
	}
	probe->is_abandoned = true;
	count_abandoned(probe->uid, 1);
	closep(&probe->pair_fd);
	probe->pair_fd = -1;
	(void)event_add(probe->event, NULL); /* has memory already */
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
	struct cw_probe_result result = { .record_fd = -1 };
	struct cw_probe *probe = arg;
	cw_probe_fn fn = probe->fn;
	void *user = probe->user;
	struct report report = { 0 };
	char byte;

	if (!fn) { /* abandoned or cancelled, and now it has ended */
		reap_or_abandon(probe);
		return;
	}
	if (what & EV_TIMEOUT)
		kill_child(probe);
	/* What it has sent is there, whether or not it lives. */
	if (cw_unix_recv_fd(probe->pair_fd, &byte, 1, &result.record_fd) == 1 &&
	    recv(probe->pair_fd, &report, sizeof(report), MSG_DONTWAIT) == sizeof(report) &&
	    report.len <= sizeof(report.command)) {
		result.answer = (enum cw_probe_answer)report.answer;
		result.command = report.command;
		result.command_len = report.len;
	}
	reap_or_abandon(probe);
	fn(&result, user);
}

static int start_child(struct cw_probe *probe, const struct cw_probe_request *request)
{
	_cleanup_(closep) int child_end = -1;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	probe->pair_fd = pair[0];
	child_end = pair[1];
	probe->child = fork();
	if (probe->child < 0)
		return -errno;
	if (probe->child == 0)
		run_child(request, child_end);
	probe->pidfd = (int)syscall(SYS_pidfd_open, probe->child, 0);
	return probe->pidfd < 0 ? -errno : 0;
}

int cw_probe_start(const struct cw_probe_request *request, struct cw_probe **ret)
{
	struct timeval timeout = { .tv_sec = request->timeout_ms / 1000,
				   .tv_usec = request->timeout_ms % 1000 * 1000 };
	struct cw_probe *probe = calloc(1, sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	probe->pidfd = probe->pair_fd = -1;
	probe->uid = request->uid;
	probe->fn = request->fn;
	probe->user = request->user;
	r = start_child(probe, request);
	if (r == 0) {
		probe->event = event_new(request->base, probe->pidfd, EV_READ, on_child, probe);
		if (!probe->event || event_add(probe->event, &timeout) < 0)
			r = -ENOMEM;
	}
	if (r < 0) {
		if (probe->child > 0)
			(void)kill(probe->child, SIGKILL); /* just forked, not reaped */
		probe_free(probe);
		return r;
	}
	*ret = probe;
	return 0;
}

struct cw_probe *cw_probe_cancel(struct cw_probe *probe)
{
	if (!probe)
		return NULL;
	kill_child(probe);
	reap_or_abandon(probe);
	return NULL;
}
