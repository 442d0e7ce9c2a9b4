/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fork server creates the child (loop/fork_server.h). When we have the child's pidfd and can
 * kill it, we send it one message with the connections and the facts about them. The child answers
 * in order, with one or two packets per agent. If we have to kill the child, we therefore know
 * which agents it has not touched.
 */
#include "daemon/agents/agent_probe.h"

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
#include <unistd.h>

#include <event2/event.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/unixsock.h"
#include "daemon/kernel/procstat.h"
#include "loop/events.h"
#include "loop/fork_server.h"
#include "record/record_layout.h"

#define COMMAND_BYTES 512
/*
 * Limit of text that we read from maps. A rank with CUDA has some thousand mappings, and 64 MiB
 * would hold half a million.
 */
#define MAX_MAPS_BYTES (64u << 20)
#define CHILD_CPU_S 2
/*
 * Time that we wait for a killed child. It usually ends within a millisecond, because all its waits
 * are killable.
 */
#define KILL_WAIT_MS 20
#define MAX_FRAME_BYTES 512
/*
 * Maximum number of packets of one child per iteration of the loop. An agent gives two packets, so
 * this is six registrations, of half a millisecond each. At most CW_PROBE_MAX children send packets
 * at the same time. With a smaller limit, we would accept connections of a flood faster than we
 * finish waiting agents.
 */
#define PACKETS_PER_ITERATION 12

struct cw_agent_probe {
	struct event_base *base;
	struct cw_fork_request *request; /* NULL = the fork server has answered */
	uid_t uid;
	int pidfd, pair_fd; /* pair_fd: our end of the socket pair with the child */
	bool was_killed, is_abandoned;
	unsigned n, next; /* n: number of agents; next: index of the first agent without a result */
	struct {
		int conn_fd, record_fd;
		size_t frame_len;
		pid_t pid;
	} agents[CW_PROBE_MAX_AGENTS];
	struct timeval timeout;
	struct event *event;      /* fires at the end of the child, or at the deadline */
	struct event *pair_event; /* fires when the child has sent a packet */
	cw_agent_probe_fn fn;     /* NULL = the probe is cancelled or its child is abandoned */
	cw_agent_probe_done_fn done;
	void *user;
	struct cw_agent_probe *next_abandoned, *prev_abandoned;
};

enum packet_type {
	PACKET_RECORD, /* this packet carries the descriptor */
	PACKET_NO_RECORD,
	PACKET_REPORT,
};

/* One packet from the child to the daemon. */
struct packet {
	uint32_t type, agent;
	uint32_t answer;
	uint32_t len;
	char command[COMMAND_BYTES];
};

/*
 * The message from the daemon to the child. The connections come with it, in the order of agents.
 */
struct order {
	uint32_t n, reserved;
	struct {
		uint64_t frame_len;
		int64_t pid;
	} agents[CW_PROBE_MAX_AGENTS];
};

union descriptors {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(CW_PROBE_MAX_AGENTS * sizeof(int))];
};

/* Number of children at work, without abandoned ones. */
static unsigned n_probes;

/* Probes whose child survived SIGKILL. The caller limits their number per user. */
static struct cw_agent_probe *abandoned;

/* ---- in the child ---- */

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

/*
 * Parses one line "start-end perms offset maj:min inode   path" of maps. Returns true if the line
 * is a mapping of the record.
 */
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
			have = 0; /* no path is that long, so this line is not our record */
		if (total > MAX_MAPS_BYTES) {
			n = -1;
			break;
		}
	}
	closep(&fd);
	return n < 0 || total == 0 ? CW_PROBE_UNKNOWN : CW_PROBE_NOT_MAPPED;
}

/* Receives the hello from the connection. Returns the hello's descriptor, or -1. */
static int take_descriptor(int conn_fd, size_t frame_len)
{
	char frame[MAX_FRAME_BYTES];
	int fd = -1;

	if (frame_len > sizeof(frame) ||
	    cw_unix_recv_fd(conn_fd, frame, frame_len, &fd) != (ssize_t)frame_len)
		return -1;
	return fd;
}

/*
 * Receives the order from the daemon. Returns false if the order is incomplete, because the rest
 * will not come.
 */
static bool take_order(int fd, struct order *order, int *conns)
{
	union descriptors control;
	struct iovec iov = { order, sizeof(*order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*order) || order->n > CW_PROBE_MAX_AGENTS)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(order->n * sizeof(int)))
		return false;
	memcpy(conns, CMSG_DATA(c), order->n * sizeof(int));
	return true;
}

static bool send_packet(int out_fd, struct packet *packet, uint32_t type, int fd)
{
	packet->type = type;
	return cw_unix_send_fd(out_fd, packet, sizeof(*packet), fd) == (ssize_t)sizeof(*packet);
}

/*
 * Probes one agent. Returns false if closing the descriptor could block in its file system. The
 * child must then exit without a further probe.
 */
static bool probe_agent(int out_fd, int conn_fd, size_t frame_len, pid_t pid, uint32_t agent)
{
	struct packet packet = { .agent = agent };
	int record_fd = take_descriptor(conn_fd, frame_len), proc_fd, fd;
	struct stat st;
	ssize_t n;

	if (record_fd < 0)
		return send_packet(out_fd, &packet, PACKET_NO_RECORD, -1);
	if (fcntl(record_fd, F_GET_SEALS) < 0 || fstat(record_fd, &st) < 0) {
		/* We ignore an error, because the child exits next. */
		(void)send_packet(out_fd, &packet, PACKET_NO_RECORD, -1);
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

int cw_agent_probe_child(int fd)
{
	struct rlimit cpu = { CHILD_CPU_S, CHILD_CPU_S };
	int conns[CW_PROBE_MAX_AGENTS];
	struct order order;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child must not outlive the fork server */
	/* If this fails, the deadline still limits the child. */
	(void)setrlimit(RLIMIT_CPU, &cpu);
	if (!take_order(fd, &order, conns))
		return 1;
	for (uint32_t i = 0; i < order.n; i++)
		if (!probe_agent(fd, conns[i], (size_t)order.agents[i].frame_len,
				 (pid_t)order.agents[i].pid, i))
			break;
	return 0;
}

/* ---- in the daemon ---- */

unsigned cw_agent_probe_abandoned(uid_t uid)
{
	const struct cw_agent_probe *probe;
	unsigned n = 0;

	DL_FOREACH2 (abandoned, probe, next_abandoned)
		n += probe->uid == uid;
	return n;
}

static void probe_free(struct cw_agent_probe *probe)
{
	if (probe->is_abandoned)
		DL_DELETE2(abandoned, probe, prev_abandoned, next_abandoned);
	else
		n_probes--;
	event_freep(&probe->event);
	event_freep(&probe->pair_event);
	for (unsigned i = 0; i < probe->n; i++)
		closep(&probe->agents[i].record_fd);
	closep(&probe->pidfd);
	closep(&probe->pair_fd);
	free(probe);
}

/*
 * Kills the child by its pidfd. A pidfd never refers to another process, even after the child was
 * reaped.
 */
static void kill_child(const struct cw_agent_probe *probe)
{
	/* Fails if the child has ended. */
	(void)syscall(SYS_pidfd_send_signal, probe->pidfd, SIGKILL, NULL, 0u);
}

/* True if the child has ended, or if the fork server gave us no child. */
static bool has_ended(const struct cw_agent_probe *probe)
{
	struct pollfd ended = { .fd = probe->pidfd, .events = POLLIN };

	return probe->pidfd < 0 || poll(&ended, 1, 0) == 1;
}

/*
 * Stops waiting for the child, so that another child can start. The event stays, and fires when the
 * child ends.
 */
static void abandon(struct cw_agent_probe *probe)
{
	probe->fn = NULL;
	probe->is_abandoned = true;
	n_probes--;
	DL_APPEND2(abandoned, probe, prev_abandoned, next_abandoned);
	(void)event_del(probe->pair_event); /* cannot fail: the event exists */
	closep(&probe->pair_fd);
	probe->pair_fd = -1;
	(void)event_add(probe->event, NULL); /* cannot fail: the event needs no more memory */
}

/* Reports the result of the next agent to the caller. */
static void deliver(struct cw_agent_probe *probe, struct cw_agent_probe_result *result)
{
	unsigned agent = probe->next++;

	result->record_fd = steal_fd(&probe->agents[agent].record_fd);
	probe->fn(agent, result, probe->user);
}

/* Handles the packet of the next agent. Returns false if there is no valid packet. */
static bool take_packet(struct cw_agent_probe *probe)
{
	struct cw_agent_probe_result result = { .record_fd = -1 };
	_cleanup_(closep) int fd = -1;
	struct packet packet;
	ssize_t n;

	if (probe->next == probe->n)
		return false;
	n = cw_unix_recv_fd(probe->pair_fd, &packet, sizeof(packet), &fd);
	if (n == 0) /* the child has closed its end, and the pidfd will report its end */
		(void)event_del(probe->pair_event);
	if (n != sizeof(packet) || packet.agent != probe->next ||
	    packet.len > sizeof(packet.command))
		return false;
	/* Restart the timer, because each agent has its own deadline. */
	if (!probe->was_killed)
		/* Cannot fail: the event needs no more memory. */
		(void)event_add(probe->event, &probe->timeout);
	switch (packet.type) {
	case PACKET_RECORD:
		closep(&probe->agents[probe->next].record_fd);
		probe->agents[probe->next].record_fd = steal_fd(&fd);
		return true;
	case PACKET_REPORT:
		result.answer = (enum cw_agent_probe_answer)packet.answer;
		if (probe->agents[probe->next].record_fd < 0)
			result.answer = CW_PROBE_LOST; /* the descriptor did not reach us */
		result.command = packet.command;
		result.command_len = packet.len;
		deliver(probe, &result);
		return true;
	default:
		deliver(probe, &result);
		return true;
	}
}

/* True if the agent's hello is still in the connection. */
static bool is_untouched(const struct cw_agent_probe *probe, unsigned agent)
{
	char frame[MAX_FRAME_BYTES];

	return recv(probe->agents[agent].conn_fd, frame, sizeof(frame), MSG_PEEK | MSG_DONTWAIT) >=
	       (ssize_t)probe->agents[agent].frame_len;
}

/*
 * Gives results to the agents that have none yet. Call this when the child has ended or was killed,
 * and all its packets are read.
 */
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
		probe_free(probe);
	else
		abandon(probe);
	done(was_killed, user);
}

static void on_packet(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_probe *probe = arg;

	for (unsigned i = 0; i < PACKETS_PER_ITERATION && take_packet(probe); i++)
		;
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
	struct timeval kill_wait = { .tv_usec = KILL_WAIT_MS * 1000 };
	struct cw_agent_probe *probe = arg;

	if (!probe->fn) { /* we abandoned the child, or the caller cancelled */
		if (has_ended(probe))
			probe_free(probe);
		return;
	}
	/*
	 * Read the child's packets first. They may have arrived before its end, or before a
	 * deadline that we handle late.
	 */
	if (!probe->was_killed && take_packet(probe))
		return;
	if (!has_ended(probe) && !probe->was_killed) {
		kill_child(probe);
		probe->was_killed = true;
		/* Cannot fail: the event needs no more memory. */
		(void)event_add(probe->event, &kill_wait);
		return;
	}
	while (take_packet(probe))
		;
	finish(probe);
}

/* ---- start ---- */

static int send_order(const struct cw_agent_probe *probe)
{
	struct order order = { .n = probe->n };
	union descriptors control = { 0 };
	struct iovec iov = { &order, sizeof(order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(probe->n * sizeof(int)) };
	struct cmsghdr *c = &control.align;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(probe->n * sizeof(int));
	for (unsigned i = 0; i < probe->n; i++) {
		order.agents[i].frame_len = probe->agents[i].frame_len;
		order.agents[i].pid = probe->agents[i].pid;
		memcpy(CMSG_DATA(c) + i * sizeof(int), &probe->agents[i].conn_fd, sizeof(int));
	}
	return sendmsg(probe->pair_fd, &msg, MSG_NOSIGNAL) == sizeof(order) ? 0 : -errno;
}

static int watch_child(struct cw_agent_probe *probe)
{
	probe->event = event_new(probe->base, probe->pidfd, EV_READ, on_child, probe);
	probe->pair_event =
		event_new(probe->base, probe->pair_fd, EV_READ | EV_PERSIST, on_packet, probe);
	if (!probe->event || !probe->pair_event || event_add(probe->event, &probe->timeout) < 0 ||
	    event_add(probe->pair_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void on_forked(int r, int fd, int pidfd, void *user)
{
	struct cw_agent_probe *probe = user;

	probe->request = NULL;
	probe->pair_fd = fd;
	probe->pidfd = pidfd;
	if (r == 0)
		r = watch_child(probe);
	if (r == 0)
		r = send_order(probe);
	if (r == 0)
		return;
	/* Do not wait for the child: without an order it touches nothing and exits. */
	closep(&probe->pidfd);
	probe->pidfd = -1;
	finish(probe);
}

int cw_agent_probe_start(const struct cw_agent_probe_request *request, struct cw_agent_probe **ret)
{
	struct cw_agent_probe *probe;
	int r;

	if (n_probes == CW_PROBE_MAX)
		return -EAGAIN;
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	n_probes++;
	probe->pidfd = probe->pair_fd = -1;
	probe->base = request->base;
	probe->uid = request->uid;
	probe->n = request->n;
	for (unsigned i = 0; i < request->n; i++) {
		probe->agents[i].conn_fd = request->agents[i].conn_fd;
		probe->agents[i].frame_len = request->agents[i].frame_len;
		probe->agents[i].pid = request->agents[i].pid;
		probe->agents[i].record_fd = -1;
	}
	probe->timeout = (struct timeval){ .tv_sec = request->timeout_ms / 1000,
					   .tv_usec = request->timeout_ms % 1000 * 1000 };
	probe->fn = request->fn;
	probe->done = request->done;
	probe->user = request->user;
	r = cw_fork_server_ask(request->forks, cw_agent_probe_child, on_forked, probe,
			       &probe->request);
	if (r < 0) {
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
	probe->request = cw_fork_request_cancel(probe->request);
	kill_child(probe);
	ended.fd = probe->pidfd;
	if (probe->pidfd >= 0)
		/* If the child does not end in time, we abandon it below. */
		(void)poll(&ended, 1, KILL_WAIT_MS);
	if (has_ended(probe))
		probe_free(probe);
	else
		abandon(probe);
	return NULL;
}
