/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child gets its connections through a socket pair and is made by a bare clone that shares the
 * table of descriptors, leaves it at once, and calls nothing that is not async-signal-safe. It
 * answers in packets, one for each agent in order, so what it had not come to when it was killed is
 * known to be untouched.
 */
#include "daemon/agents/agent_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
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
#include "common/close_from.h"
#include "common/unixsock.h"
#include "daemon/kernel/procstat.h"
#include "daemon/system/conn_closer.h"
#include "record/record_layout.h"

#define COMMAND_BYTES 512
/* Ranks with CUDA have some thousand mappings; 64 MiB of text would be half a million. */
#define MAX_MAPS_BYTES (64u << 20)
#define CHILD_CPU_S 2
/* A killed child is gone within a millisecond: every wait it can be in is a killable one. */
#define KILL_WAIT_MS 20
#define MAX_FRAME_BYTES 512
/*
 * Two for each agent, whose registration takes half a millisecond, and CW_PROBE_MAX times as long
 * in all. Fewer, and a flood of the socket would be let in more often than those who wait.
 */
#define PACKETS_PER_TURN 12
#define MAX_ABANDONED_USERS 32
/* CLOSE_RANGE_UNSHARE: newer than some headers. */
#define CLOSE_RANGE_UNSHARE_BIT 2u

/* Where a child's end of the pair lies: low, so that its own table of descriptors is a small one.
 */
#define LOW_FD 3

struct cw_agent_probe {
	pid_t child;
	uid_t uid;
	struct cw_conn_closer *closer;
	int pidfd, pair_fd; /* our end of the pair */
	unsigned place;
	bool was_killed, is_abandoned;
	unsigned n, next; /* agents; the first without a result */
	struct {
		int conn_fd, record_fd;
		size_t frame_len;
	} agents[CW_PROBE_MAX_AGENTS];
	struct timeval timeout;
	struct event *event;      /* the child's end, and the deadline */
	struct event *pair_event; /* results */
	cw_agent_probe_fn fn;     /* NULL = cancelled or abandoned */
	cw_agent_probe_done_fn done;
	void *user;
};

enum packet_type {
	PACKET_RECORD, /* with the descriptor */
	PACKET_NO_RECORD,
	PACKET_REPORT,
};

/* From the child. */
struct packet {
	uint32_t type, agent;
	uint32_t answer;
	uint32_t len;
	char command[COMMAND_BYTES];
};

/* The children's ends of the pairs: numbers that stay ours, so that they stay low. 0 = none yet. */
static struct {
	int fd;
	bool is_taken;
} places[CW_PROBE_MAX];

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

static enum cw_agent_probe_answer scan_maps(int proc_fd, dev_t dev, ino_t ino)
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
			if (line_is_record(line, dev, ino)) {
				closep(&fd);
				return CW_PROBE_MAPPED;
			}
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* longer than any path can be: not ours */
		if (total > MAX_MAPS_BYTES) {
			n = -1;
			break;
		}
	}
	closep(&fd);
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

/* As it was made: nothing in it points to the parent's heap. */
struct order {
	unsigned n;
	struct {
		size_t frame_len;
		pid_t pid;
	} agents[CW_PROBE_MAX_AGENTS];
};

/*
 * The table of descriptors is the daemon's own until the first call here: that makes one of the
 * child's with what lies below out_fd alone, without copying and closing thousands.
 */
static bool leave_table(int out_fd)
{
	unsigned first = (unsigned)out_fd + 1;

	if (syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_UNSHARE_BIT) < 0) {
		/* Before Linux 5.9: a copy of all of them, which stay open. */
		if (unshare(CLONE_FILES) < 0)
			return false;
	}
	if (out_fd > 0)
		(void)syscall(SYS_close_range, 0u, (unsigned)out_fd - 1, 0u);
	return true;
}

/* The connections, in their order. */
static bool take_connections(int out_fd, int *conns, unsigned n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CW_PROBE_MAX_AGENTS * sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	if (recvmsg(out_fd, &msg, MSG_CMSG_CLOEXEC) != 1)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(n * sizeof(int)))
		return false;
	memcpy(conns, CMSG_DATA(c), n * sizeof(int));
	return true;
}

static bool send_packet(int out_fd, struct packet *packet, uint32_t type, int fd)
{
	packet->type = type;
	return cw_unix_send_fd(out_fd, packet, sizeof(*packet), fd) == (ssize_t)sizeof(*packet);
}

/* False: what came cannot be closed without asking its file system. That is the child's end. */
static bool probe_agent(int out_fd, int conn_fd, size_t frame_len, pid_t pid, uint32_t agent)
{
	struct packet packet = { .agent = agent };
	int record_fd = take_descriptor(conn_fd, frame_len), proc_fd, fd;
	struct stat st;
	ssize_t n;

	if (record_fd < 0)
		return send_packet(out_fd, &packet, PACKET_NO_RECORD, -1);
	if (fcntl(record_fd, F_GET_SEALS) < 0 || fstat(record_fd, &st) < 0) {
		(void)send_packet(out_fd, &packet, PACKET_NO_RECORD, -1); /* it ends anyway */
		return false;
	}
	if (!send_packet(out_fd, &packet, PACKET_RECORD, record_fd))
		return false;
	proc_fd = cw_procstat_open(pid);
	fd = proc_fd < 0 ? -1 : openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, packet.command, sizeof(packet.command));
	packet.len = n > 0 ? (uint32_t)n : 0;
	if (proc_fd >= 0)
		packet.answer = scan_maps(proc_fd, st.st_dev, st.st_ino);
	closep(&fd);
	closep(&proc_fd);
	closep(&record_fd);
	return send_packet(out_fd, &packet, PACKET_REPORT, -1);
}

static void run_child(const struct order *order, int out_fd)
{
	struct rlimit cpu = { CHILD_CPU_S, CHILD_CPU_S };
	int conns[CW_PROBE_MAX_AGENTS];

	if (!leave_table(out_fd))
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a dead daemon's child is nobody's */
	(void)setrlimit(RLIMIT_CPU, &cpu);      /* the deadline stands without it */
	if (!take_connections(out_fd, conns, order->n))
		_exit(1);
	for (unsigned i = 0; i < order->n; i++)
		if (!probe_agent(out_fd, conns[i], order->agents[i].frame_len, order->agents[i].pid,
				 i))
			break;
	_exit(0);
}

/* ---- in the daemon ---- */

unsigned cw_agent_probe_abandoned(uid_t uid)
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

/*
 * The place is for the next. Connections that the child did not come to lie in its end of the pair,
 * whose number stays open: they would be open, too, after they were closed here. So it becomes our
 * end, and what lies in it is closed as they are.
 */
static void free_place(const struct cw_agent_probe *probe)
{
	int *fd = &places[probe->place].fd, old = -1;

	if (probe->pair_fd >= 0 && *fd) {
		old = fcntl(*fd, F_DUPFD_CLOEXEC, LOW_FD);
		(void)dup3(probe->pair_fd, *fd, O_CLOEXEC); /* both are there */
	}
	if (old >= 0)
		cw_conn_closer_close(probe->closer, old);
	places[probe->place].is_taken = false;
}

static void probe_free(struct cw_agent_probe *probe)
{
	if (probe->is_abandoned)
		count_abandoned(probe->uid, -1);
	else
		free_place(probe);
	if (probe->event)
		event_free(probe->event);
	if (probe->pair_event)
		event_free(probe->pair_event);
	for (unsigned i = 0; i < probe->n; i++)
		closep(&probe->agents[i].record_fd);
	closep(&probe->pidfd);
	closep(&probe->pair_fd);
	free(probe);
}

/* Through the pidfd: nobody else's process, even if somebody reaped ours. */
static void kill_child(const struct cw_agent_probe *probe)
{
	(void)syscall(SYS_pidfd_send_signal, probe->pidfd, SIGKILL, NULL, 0u); /* or it has ended */
}

static bool has_ended(const struct cw_agent_probe *probe)
{
	struct pollfd ended = { .fd = probe->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) == 1;
}

static void reap(struct cw_agent_probe *probe)
{
	(void)waitpid(probe->child, NULL, WNOHANG); /* or somebody else has reaped it */
	probe_free(probe);
}

/* It goes on as nobody's: its place is free, and its event reaps it when it ends. */
static void abandon(struct cw_agent_probe *probe)
{
	probe->fn = NULL;
	probe->is_abandoned = true;
	free_place(probe);
	count_abandoned(probe->uid, 1);
	(void)event_del(probe->pair_event); /* it is set up */
	closep(&probe->pair_fd);
	probe->pair_fd = -1;
	(void)event_add(probe->event, NULL); /* has memory already */
}

/* Hands out the result of the agent whose turn it is. */
static void deliver(struct cw_agent_probe *probe, struct cw_agent_probe_result *result)
{
	unsigned agent = probe->next++;

	result->record_fd = steal_fd(&probe->agents[agent].record_fd);
	probe->fn(agent, result, probe->user);
}

/* A packet, if there is one, of the agent whose turn it is. False: there is none. */
static bool take_packet(struct cw_agent_probe *probe)
{
	struct cw_agent_probe_result result = { .record_fd = -1 };
	_cleanup_(closep) int fd = -1;
	struct packet packet;

	if (probe->next == probe->n ||
	    cw_unix_recv_fd(probe->pair_fd, &packet, sizeof(packet), &fd) != sizeof(packet) ||
	    packet.agent != probe->next || packet.len > sizeof(packet.command))
		return false;
	/* The deadline is for each: it begins again. */
	if (!probe->was_killed)
		(void)event_add(probe->event, &probe->timeout); /* has memory already */
	switch (packet.type) {
	case PACKET_RECORD:
		closep(&probe->agents[probe->next].record_fd);
		probe->agents[probe->next].record_fd = steal_fd(&fd);
		return true;
	case PACKET_REPORT:
		result.answer = (enum cw_agent_probe_answer)packet.answer;
		if (probe->agents[probe->next].record_fd < 0)
			result.answer = CW_PROBE_LOST; /* no descriptor to be had here */
		result.command = packet.command;
		result.command_len = packet.len;
		deliver(probe, &result);
		return true;
	default:
		deliver(probe, &result);
		return true;
	}
}

/* Whether its hello still waits in the connection. */
static bool is_untouched(const struct cw_agent_probe *probe, unsigned agent)
{
	char frame[MAX_FRAME_BYTES];

	return recv(probe->agents[agent].conn_fd, frame, sizeof(frame), MSG_PEEK | MSG_DONTWAIT) >=
	       (ssize_t)probe->agents[agent].frame_len;
}

/* The child does no more, and what it sent has been taken: what becomes of the others. */
static void finish(struct cw_agent_probe *probe)
{
	cw_agent_probe_done_fn done = probe->done;
	bool was_killed = probe->was_killed;
	void *user = probe->user;

	while (probe->next < probe->n) {
		struct cw_agent_probe_result result = { .record_fd = -1 };

		if (probe->agents[probe->next].record_fd >= 0)
			result.answer = CW_PROBE_UNKNOWN;
		else
			result.answer = is_untouched(probe, probe->next) ? CW_PROBE_NOT_TAKEN
									 : CW_PROBE_LOST;
		deliver(probe, &result);
	}
	if (has_ended(probe))
		reap(probe);
	else
		abandon(probe);
	done(was_killed, user);
}

static void on_packet(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_probe *probe = arg;

	/* Our copy of its end is open: no end of file, only packets. */
	for (unsigned i = 0; i < PACKETS_PER_TURN && take_packet(probe); i++)
		;
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
	struct timeval kill_wait = { .tv_usec = KILL_WAIT_MS * 1000 };
	struct cw_agent_probe *probe = arg;

	if (!probe->fn) { /* abandoned or cancelled, and now it has ended */
		if (has_ended(probe))
			reap(probe);
		return;
	}
	/* What it has sent is there, whether or not it lives, and however late we are. */
	if (!probe->was_killed && take_packet(probe))
		return;
	if (!has_ended(probe) && !probe->was_killed) {
		kill_child(probe);
		probe->was_killed = true;
		(void)event_add(probe->event, &kill_wait); /* has memory already */
		return;
	}
	while (take_packet(probe))
		;
	finish(probe);
}

/* ---- start ---- */

static int find_place(unsigned *ret)
{
	for (unsigned i = 0; i < CW_PROBE_MAX; i++) {
		if (places[i].is_taken)
			continue;
		*ret = i;
		return 0;
	}
	return -EAGAIN;
}

/* The child's end moves to its place's number, which stays open for the next. */
static int settle(unsigned place, int fd)
{
	if (!places[place].fd) {
		places[place].fd = fcntl(fd, F_DUPFD_CLOEXEC, LOW_FD);
		if (places[place].fd >= 0)
			return 0;
		places[place].fd = 0;
		return -errno;
	}
	return dup3(fd, places[place].fd, O_CLOEXEC) < 0 ? -errno : 0;
}

static int send_connections(int fd, const struct cw_agent_probe_request *request)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CW_PROBE_MAX_AGENTS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (char[]){ 'c' }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(request->n * sizeof(int)) };
	struct cmsghdr *c = &control.align;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(request->n * sizeof(int));
	for (unsigned i = 0; i < request->n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &request->agents[i].conn_fd, sizeof(int));
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

static int start_child(struct cw_agent_probe *probe, const struct cw_agent_probe_request *request)
{
	_cleanup_(closep) int child_end = -1;
	struct order order = { .n = request->n };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	probe->pair_fd = pair[0];
	child_end = pair[1];
	if (fcntl(probe->pair_fd, F_SETFL, O_NONBLOCK) < 0) /* the child may wait, we not */
		return -errno;
	for (unsigned i = 0; i < request->n; i++) {
		order.agents[i].frame_len = request->agents[i].frame_len;
		order.agents[i].pid = request->agents[i].pid;
	}
	r = send_connections(probe->pair_fd, request);
	if (r == 0)
		r = settle(probe->place, child_end);
	if (r < 0)
		return r;
	/* As fork(), but that the table of descriptors is shared; it touches nothing of the C
	 * library's. */
	probe->child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (probe->child < 0)
		return -errno;
	if (probe->child == 0)
		run_child(&order, places[probe->place].fd);
	probe->pidfd = (int)syscall(SYS_pidfd_open, probe->child, 0);
	return probe->pidfd < 0 ? -errno : 0;
}

static int watch_child(struct cw_agent_probe *probe, struct event_base *base)
{
	probe->event = event_new(base, probe->pidfd, EV_READ, on_child, probe);
	probe->pair_event = event_new(base, probe->pair_fd, EV_READ | EV_PERSIST, on_packet, probe);
	if (!probe->event || !probe->pair_event || event_add(probe->event, &probe->timeout) < 0 ||
	    event_add(probe->pair_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

int cw_agent_probe_start(const struct cw_agent_probe_request *request, struct cw_agent_probe **ret)
{
	struct cw_agent_probe *probe;
	unsigned place;
	int r = find_place(&place);

	if (r < 0)
		return r;
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->pidfd = probe->pair_fd = -1;
	probe->place = place;
	places[place].is_taken = true;
	probe->uid = request->uid;
	probe->closer = request->closer;
	probe->n = request->n;
	for (unsigned i = 0; i < request->n; i++) {
		probe->agents[i].conn_fd = request->agents[i].conn_fd;
		probe->agents[i].frame_len = request->agents[i].frame_len;
		probe->agents[i].record_fd = -1;
	}
	probe->timeout = (struct timeval){ .tv_sec = request->timeout_ms / 1000,
					   .tv_usec = request->timeout_ms % 1000 * 1000 };
	probe->fn = request->fn;
	probe->done = request->done;
	probe->user = request->user;
	r = start_child(probe, request);
	if (r == 0)
		r = watch_child(probe, request->base);
	if (r < 0) {
		if (probe->child > 0)
			(void)kill(probe->child, SIGKILL); /* just made, not reaped */
		probe_free(probe);
		return r;
	}
	*ret = probe;
	return 0;
}

struct cw_agent_probe *cw_agent_probe_cancel(struct cw_agent_probe *probe)
{
	struct pollfd ended = { .fd = -1, .events = POLLIN };

	if (!probe)
		return NULL;
	kill_child(probe);
	ended.fd = probe->pidfd;
	(void)poll(&ended, 1, KILL_WAIT_MS); /* whoever has not ended is abandoned */
	if (has_ended(probe))
		reap(probe);
	else
		abandon(probe);
	return NULL;
}
