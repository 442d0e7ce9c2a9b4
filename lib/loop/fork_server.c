/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon and the fork server talk over a pair of sockets that keeps packets whole. A request
 * carries one end of another pair, for the child. The server forks and answers with the pidfd of
 * the child. The server keeps no other state.
 *
 * A new server first sends a packet without a request, with its own pidfd; from then on it serves.
 * The process that we start is the keeper, and the server is its child. If the server ends, the
 * keeper forks another one, which says so by the same packet. If the server is silent while
 * requests wait, we kill it. In both cases we send the waiting requests once more.
 *
 * A keeper is lost if it has ended, if its server sends nonsense, or if no server serves in time.
 * We kill and replace a lost keeper. If keepers fail before they serve, we wait longer before each
 * start, and sometimes fork instead of executing the program.
 */
#include "loop/fork_server.h"

#include <cap-ng.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utlist.h>

#include "common/cleanup.h"
#include "common/close_from.h"
#include "common/log.h"
#include "common/unixsock.h"
#include "loop/events.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000 /* Linux 5.2 */
#endif

/* The server's name in ps. The kernel allows 15 characters. */
#define NAME "collwatchd-fork"
/*
 * Number of the server's end of the pair: the first above stdin, stdout and stderr, which are
 * /dev/null.
 */
#define CONTROL_FD 3
/* Status of a server that ends because the daemon has ended. */
#define DAEMON_HAS_ENDED 0
/*
 * Deadline of an answer. A fork takes a fraction of a millisecond. A server misses this deadline
 * only if it is stopped, or if the machine has hundreds of runnable tasks.
 */
#define ANSWER_MS 3000
/*
 * Deadline of a new server's first packet. The server sends it after the loader has done its work.
 */
#define START_MS 10000
/*
 * We replace a server that lived less than SHORT_LIFE_NS only after PAUSE_MS. Otherwise the daemon
 * would restart a server that crashes at once in a tight loop.
 */
#define SHORT_LIFE_NS (10 * CW_NS_PER_S)
#define PAUSE_MS 1000
/* The longest pause between two starts. The pause doubles after each server that never served. */
#define MAX_PAUSE_MS 60000
/*
 * After this many executed servers in a row that never served, we fork one server. After that fork
 * we execute again.
 */
#define TRIES 2
/* A request fails if we lost this many servers while it waited. */
#define MAX_ATTEMPTS 2
#define ANSWERS_PER_ITERATION 16
#define FREE_WAIT_MS 200

struct request_packet {
	uint64_t id;
	uint32_t job;
	uint32_t reserved;
};

/*
 * An answer of the server. Its first packet has id 0, which means that the server is ready. The
 * packet then carries the pidfd of the server itself.
 */
struct answer_packet {
	uint64_t id;
	int32_t error; /* 0 = success, and the packet carries the pidfd; else an errno */
	uint32_t pid;  /* pid of the server; 0 in all later packets */
};

/* A keeper that we have not reaped yet. It is the current keeper or a lost one. */
struct process {
	struct cw_fork_server *owner;
	pid_t pid;
	int pidfd, fd; /* fd = -1: we have lost the keeper */
	struct event *answer, *ended;
	pid_t server_pid;
	int server_pidfd;
	bool has_served; /* true if the current server of this keeper serves */
	int64_t started_ns;
	struct process *prev, *next;
};

struct cw_fork_request {
	struct cw_fork_server *server;
	uint64_t id; /* 0 = not sent yet */
	uint32_t job;
	unsigned attempts;
	int fd, child_fd; /* child_fd = -1: we have sent the child's end to the server */
	cw_forked_fn fn;
	void *user;
	struct cw_fork_request *prev, *next;
};

struct cw_fork_server {
	struct cw_fork_server_config config;
	struct process *processes; /* the current server and the dying ones */
	struct process *current;   /* NULL = there is no server now */
	struct cw_fork_request *requests;
	unsigned n_requests;
	uint64_t last_id, lost;
	bool has_ended;         /* there will be no other server */
	unsigned failures;      /* number of servers in a row that never served */
	uint32_t pause_ms;      /* pause before the next start, if servers never served */
	struct event *deadline; /* timer for the deadline of the next answer */
	struct event *restart;
};

/* ---- the server's own code ---- */

static void on_sigchld(int sig)
{
	/* The handler does nothing but interrupt ppoll(). */
}

/*
 * Sets the server's signals. Only ppoll() unblocks SIGCHLD, so no SIGCHLD is lost. The server
 * ignores the signals that end the daemon, because it ends when the daemon ends.
 */
static void set_signals(sigset_t *ret_waiting)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t chld;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &sa, NULL); /* fails for some signals, which cannot be set */
	sa.sa_handler = SIG_IGN;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)sigaction(ignored[i], &sa, NULL);
	sa.sa_handler = on_sigchld;
	(void)sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(ret_waiting);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &chld, NULL);
}

/* Undoes set_signals() in a child of the server. */
static void reset_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL); /* fails for some signals, which cannot be set */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Moves the server's end of the pair to CONTROL_FD and closes all other descriptors
 * except /dev/null.
 */
static int keep_only(int fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), last = 2;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1); /* a number above CONTROL_FD */
	if (fd < 0 || null_fd < 0)
		return -errno;
#ifdef __SANITIZE_ADDRESS__ /* keep stderr: the sanitizer reports there */
	last = 1;
#endif
	for (int i = 0; i <= last; i++)
		if (dup2(null_fd, i) < 0)
			return -errno;
	if (dup3(fd, CONTROL_FD, O_CLOEXEC) < 0)
		return -errno;
	return cw_close_from(CONTROL_FD + 1);
}

/*
 * Drops all capabilities that are not in the set. The child cannot gain others by execve() later.
 * Returns 0, or -EPERM if other capabilities would remain.
 */
static int keep_capabilities(uint64_t set)
{
	uint64_t kept = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || capng_get_caps_process() < 0)
		return -EPERM;
	if (set == CW_FORK_ALL_CAPABILITIES)
		return 0;
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (set >> cap & 1 && capng_have_capability(CAPNG_EFFECTIVE, cap))
			kept |= UINT64_C(1) << cap;
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (kept >> cap & 1)
			/* Cannot fail: the capability exists. */
			(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, cap);
	return capng_apply(CAPNG_SELECT_CAPS) < 0 ? -EPERM : 0;
}

static _Noreturn void run_job(const struct cw_fork_job *job, int fd)
{
	reset_signals();
	(void)close(CONTROL_FD);
	/* Other processes of the daemon's user must not read or trace a child with a secret. */
	if (!job->capabilities)
		(void)prctl(PR_SET_DUMPABLE, 0);
	if (keep_capabilities(job->capabilities) < 0)
		_exit(1);
	_exit(job->run(fd));
}

static void serve_one(const struct request_packet *packet, int fd, const struct cw_fork_job *jobs)
{
	struct answer_packet answer = { .id = packet->id };
	int pidfd = -1;
	long pid;

	/*
	 * Like fork(), but also gives the pidfd. Only this server can reap the child, so no other
	 * process gets the child's pid before.
	 */
	pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
	if (pid == 0)
		run_job(&jobs[packet->job], fd);
	if (pid < 0)
		answer.error = errno;
	/*
	 * Close fd before we answer. The process that closes the last copy of a socket also closes
	 * all descriptors inside it, which may block. That process must be the daemon or the child.
	 */
	(void)close(fd);
	if (cw_unix_send_fd(CONTROL_FD, &answer, sizeof(answer), pidfd) != sizeof(answer))
		_exit(0); /* the daemon has ended, or has replaced this server */
	closep(&pidfd);
}

static _Noreturn void serve(const struct cw_fork_job *jobs, unsigned n_jobs,
			    const sigset_t *waiting)
{
	const struct answer_packet hello = { .pid = (uint32_t)getpid() };
	struct pollfd control = { .fd = CONTROL_FD, .events = POLLIN };
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct request_packet packet;
	ssize_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the server must not outlive its keeper */
	if (cw_unix_send_fd(CONTROL_FD, &hello, sizeof(hello), pidfd) != sizeof(hello))
		_exit(1);
	closep(&pidfd);
	for (;;) {
		int fd = -1;

		if (ppoll(&control, 1, NULL, waiting) < 0 && errno != EINTR)
			_exit(1);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!control.revents)
			continue;
		n = cw_unix_recv_fd(CONTROL_FD, &packet, sizeof(packet), &fd);
		control.revents = 0;
		if (n == 0)
			_exit(DAEMON_HAS_ENDED);
		if (n != sizeof(packet) || packet.job >= n_jobs || fd < 0)
			_exit(1);
		serve_one(&packet, fd, jobs);
	}
}

/* Runs the keeper in this process. fd is the server's end of the pair. */
static _Noreturn void keep_server(int fd, const struct cw_fork_job *jobs, unsigned n_jobs)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t waiting;
	int status;

	(void)prctl(PR_SET_NAME, NAME);
	/* If the daemon ends, the end of the socket also ends the server. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CORE, &no_core); /* the systemd unit sets this limit, too */
	set_signals(&waiting);
	if (keep_only(fd) < 0)
		_exit(1);
	for (;;) {
		struct timespec now, started;
		pid_t pid;

		(void)clock_gettime(CLOCK_MONOTONIC, &started); /* cannot fail */
		pid = fork();
		if (pid == 0)
			serve(jobs, n_jobs, &waiting);
		if (pid < 0)
			_exit(1);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_HAS_ENDED)
			_exit(0);
		(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
		/* Do not restart in a tight loop a server that crashes at once. */
		if ((now.tv_sec - started.tv_sec) * CW_NS_PER_S < SHORT_LIFE_NS)
			(void)poll(NULL, 0, PAUSE_MS);
	}
}

bool cw_fork_server_is_wanted(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], CW_FORK_SERVER_OPTION);
}

int cw_fork_server_main(const struct cw_fork_job *jobs, unsigned n_jobs)
{
	socklen_t len = sizeof(int);
	int type;

	if (getsockopt(CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    type != SOCK_SEQPACKET) {
		fputs(CW_FORK_SERVER_OPTION " is for collwatchd's own use\n", stderr);
		return 1;
	}
	keep_server(CONTROL_FD, jobs, n_jobs);
}

/* ---- starting a server ---- */

/*
 * Executes the server. posix_spawn() copies no page tables. It makes us wait until the new process
 * has memory of its own.
 */
static pid_t spawn(const char *program, int fd)
{
	char *argv[] = { (char[]){ "collwatchd" }, (char[]){ CW_FORK_SERVER_OPTION }, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid = -1;
	int r;

	sigemptyset(&none);
	if (posix_spawnattr_init(&attr) != 0)
		return -ENOMEM;
	if (posix_spawn_file_actions_init(&actions) != 0) {
		(void)posix_spawnattr_destroy(&attr); /* cannot fail */
		return -ENOMEM;
	}
	/*
	 * The server gets a session of its own. Signals from a terminal then reach only the daemon.
	 */
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn_file_actions_adddup2(&actions, fd, CONTROL_FD);
	if (r == 0)
		r = posix_spawn(&pid, program, &actions, &attr, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* neither of the two calls can fail */
	(void)posix_spawnattr_destroy(&attr);
	return r == 0 ? pid : -r;
}

static pid_t fork_server(struct cw_fork_server *s, int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid(); /* a session of its own, as in spawn() */
		keep_server(fd, s->config.jobs, s->config.n_jobs);
	}
	return pid < 0 ? -errno : pid;
}

static void kill_process(int pidfd)
{
	/* pidfd_send_signal() fails if the process is dead. */
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0u);
}

/*
 * Returns the CPU time of a process and its reaped children, in seconds; 0 = unknown. A read of its
 * /proc file waits for no other process.
 */
static double cpu_s(pid_t pid)
{
	unsigned long long t[4] = { 0 };
	char path[32], text[1024], *p;
	_cleanup_(closep) int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strrchr(text, ')');
	/*
	 * The field utime, in ticks, is the twelfth after the name. stime, cutime and cstime
	 * follow.
	 */
	for (unsigned i = 0; p && i < 12; i++)
		p = strchr(p + 1, ' ');
	for (unsigned i = 0; p && i < 4; i++)
		t[i] = strtoull(p, &p, 10);
	return (double)(t[0] + t[1] + t[2] + t[3]) / (double)sysconf(_SC_CLK_TCK);
}

static void process_free(struct process *p)
{
	struct cw_fork_server *s = p->owner;

	(void)waitpid(p->pid, NULL, WNOHANG); /* the process has ended, or we leave it to init */
	DL_DELETE(s->processes, p);
	event_freep(&p->answer);
	event_freep(&p->ended);
	closep(&p->fd);
	closep(&p->pidfd);
	closep(&p->server_pidfd);
	free(p);
}

static void on_answer(evutil_socket_t fd, short what, void *arg);
static void on_process_ended(evutil_socket_t fd, short what, void *arg);

static int watch_process(struct process *p)
{
	struct event_base *base = p->owner->config.base;

	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return -errno;
	p->answer = event_new(base, p->fd, EV_READ | EV_PERSIST, on_answer, p);
	p->ended = event_new(base, p->pidfd, EV_READ, on_process_ended, p);
	if (!p->answer || !p->ended || event_add(p->answer, NULL) < 0 ||
	    event_add(p->ended, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* Starts a server and makes it the current server. Returns 0 or -errno. */
static int start_process(struct cw_fork_server *s)
{
	_cleanup_(closep) int server_fd = -1;
	struct process *p = calloc(1, sizeof(*p));
	bool is_forked = !s->config.program || s->failures % (TRIES + 1) == TRIES;
	int pair[2], r;

	if (!p)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		free(p);
		return r;
	}
	p->owner = s;
	p->fd = pair[0];
	p->pidfd = p->server_pidfd = -1;
	server_fd = pair[1];
	p->started_ns = cw_clock_now_ns(s->config.clock);
	DL_APPEND(s->processes, p);
	p->pid = fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno
		 : is_forked                           ? fork_server(s, server_fd)
						       : spawn(s->config.program, server_fd);
	r = p->pid < 0 ? p->pid : watch_process(p);
	if (r == 0) {
		s->current = p;
		return 0;
	}
	if (p->pid > 0) {
		/*
		 * The kill is safe: we have not reaped the process, so no other process has its
		 * pid.
		 */
		(void)kill(p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
	}
	process_free(p);
	return r;
}

/* ---- requests ---- */

static void request_free(struct cw_fork_request *q)
{
	DL_DELETE(q->server->requests, q);
	q->server->n_requests--;
	closep(&q->fd);
	closep(&q->child_fd);
	free(q);
}

static void report(struct cw_fork_request *q, int r, int pidfd)
{
	int fd = r == 0 ? steal_fd(&q->fd) : -1;
	cw_forked_fn fn = q->fn;
	void *user = q->user;

	request_free(q);
	fn(r, fd, pidfd, user);
}

/* Fails all requests for which we lost at least min_attempts servers. */
static void fail_requests(struct cw_fork_server *s, unsigned min_attempts)
{
	struct cw_fork_request *q;

	/* Start at the head each time, because a callback may add and cancel requests. */
	for (;;) {
		DL_FOREACH (s->requests, q)
			if (q->attempts >= min_attempts)
				break;
		if (!q)
			return;
		report(q, -EAGAIN, -1);
	}
}

static int make_pair(struct cw_fork_request *q)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	closep(&q->fd);
	closep(&q->child_fd);
	q->fd = pair[0];
	q->child_fd = pair[1];
	q->id = 0;
	return fcntl(q->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static void set_deadline(struct cw_fork_server *s)
{
	uint32_t ms = s->current && s->current->has_served ? ANSWER_MS : START_MS;
	struct timeval tv = { .tv_sec = ms / 1000 };

	if (!s->current || (!s->requests && s->current->has_served))
		(void)event_del(s->deadline); /* cannot fail */
	else if (event_add(s->deadline, &tv) < 0)
		log_err("fork server: no timer");
}

/*
 * Sends as many requests as the socket takes. The next answer triggers the sending of the others.
 */
static void send_requests(struct cw_fork_server *s)
{
	struct cw_fork_request *q;

	if (!s->current)
		return;
	DL_FOREACH (s->requests, q) {
		struct request_packet packet = { .id = s->last_id + 1, .job = q->job };

		if (q->id)
			continue;
		if (cw_unix_send_fd(s->current->fd, &packet, sizeof(packet), q->child_fd) !=
		    sizeof(packet))
			return; /* if the server has ended, its events report that */
		q->id = ++s->last_id;
		closep(&q->child_fd);
		q->child_fd = -1;
	}
}

/* ---- losing a server ---- */

/* Notes that a server is lost, and gives its requests a new pair and number. */
static void count_loss(struct cw_fork_server *s)
{
	struct cw_fork_request *q;

	s->lost++;
	DL_FOREACH (s->requests, q) {
		q->attempts++;
		if (q->id && make_pair(q) < 0)
			q->attempts = MAX_ATTEMPTS;
	}
}

static void start_again(struct cw_fork_server *s, uint32_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000 };

	if (event_add(s->restart, &tv) < 0)
		log_err("fork server: no timer");
}

/*
 * Handles a server that never served or did not start. Fails the requests, and starts the next
 * server after a pause.
 */
static void start_later(struct cw_fork_server *s)
{
	uint32_t ms = s->pause_ms ? 2 * s->pause_ms : PAUSE_MS;

	s->failures++;
	s->pause_ms = ms > MAX_PAUSE_MS ? MAX_PAUSE_MS : ms;
	start_again(s, s->pause_ms);
	fail_requests(s, 0);
}

static void start(struct cw_fork_server *s)
{
	int r = start_process(s);

	if (r < 0) {
		log_err("fork server not started, agents wait for it: %s", strerror(-r));
		start_later(s);
		return;
	}
	set_deadline(s);
	send_requests(s);
}

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
	start(arg);
}

static void lose(struct process *p, const char *why)
{
	struct cw_fork_server *s = p->owner;
	int64_t lived_ns = cw_clock_now_ns(s->config.clock) - p->started_ns;
	bool has_served = p->server_pid > 0;

	log_warn("fork server (pid %d) %s, starting another one", (int)p->pid, why);
	s->current = NULL;
	event_freep(&p->answer);
	closep(&p->fd);
	p->fd = -1;
	kill_process(p->pidfd); /* on_process_ended() reaps the process */
	count_loss(s);
	set_deadline(s);
	if (s->config.may_replace && !s->config.may_replace(s->config.user)) {
		s->has_ended = true;
		fail_requests(s, 0);
		return;
	}
	if (!has_served) {
		start_later(s);
		return;
	}
	start_again(s, lived_ns < SHORT_LIFE_NS ? PAUSE_MS : 0);
	fail_requests(s, MAX_ATTEMPTS);
}

/* Kills a silent server. Its keeper then forks another one. */
static void kill_server(struct process *p)
{
	log_warn("fork server (pid %d) does not answer, starting another one", (int)p->server_pid);
	kill_process(p->server_pidfd);
	p->has_served = false;
	set_deadline(p->owner);
}

static void on_process_ended(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;

	if (p == p->owner->current)
		lose(p, "has ended");
	process_free(p);
}

/* ---- answers ---- */

static struct cw_fork_request *find_request(const struct cw_fork_server *s, uint64_t id)
{
	struct cw_fork_request *q;

	DL_FOREACH (s->requests, q)
		if (q->id == id)
			return q;
	return NULL;
}

/* Handles one answer. Returns false if the answer is nonsense. Takes ownership of pidfd. */
static bool take_answer(struct process *p, const struct answer_packet *answer, int pidfd)
{
	_cleanup_(closep) int fd = pidfd;
	struct cw_fork_server *s = p->owner;
	struct cw_fork_request *q;

	if (!answer->id) {
		if (p->server_pid > 0) {
			count_loss(s);
			fail_requests(s, MAX_ATTEMPTS);
		}
		closep(&p->server_pidfd);
		p->server_pidfd = steal_fd(&fd);
		p->server_pid = (pid_t)answer->pid;
		p->has_served = true;
		s->failures = 0;
		s->pause_ms = 0;
		return p->server_pid > 0;
	}
	if (answer->id > s->last_id || answer->error < 0 || (!answer->error && fd < 0))
		return false;
	q = find_request(s, answer->id);
	if (q)
		report(q, -answer->error, answer->error ? -1 : steal_fd(&fd));
	/*
	 * If the caller has cancelled the request, q is NULL. We close our end of the child's
	 * socket, and the child ends.
	 */
	return true;
}

/*
 * Reads and handles one answer. Returns 1 if there was an answer, 0 if there is none, -errno if the
 * server is lost.
 */
static int read_answer(struct process *p)
{
	struct answer_packet answer;
	int pidfd = -1;
	ssize_t n = cw_unix_recv_fd(p->fd, &answer, sizeof(answer), &pidfd);

	if (n == -EAGAIN)
		return 0;
	/* This process had no free number for the pidfd. The child ends when its socket closes. */
	if (n == -EMFILE) {
		answer.error = EMFILE;
		n = sizeof(answer);
	}
	if (n == sizeof(answer) && take_answer(p, &answer, pidfd))
		return 1;
	return n <= 0 ? -ESRCH : -EBADMSG; /* ECONNRESET: the server ended with unread requests */
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;
	int r = 1;

	for (unsigned i = 0; i < ANSWERS_PER_ITERATION && r > 0; i++)
		r = read_answer(p);
	if (r < 0) {
		lose(p, r == -ESRCH ? "has ended" : "sent an invalid message");
		return;
	}
	set_deadline(p->owner);
	send_requests(p->owner);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct cw_fork_server *s = arg;
	struct process *p = s->current;
	int r = p ? read_answer(p) : 1;

	if (r > 0)
		set_deadline(s); /* the answer was in time, but this process was late */
	else if (r == 0 && p->has_served && p->server_pidfd >= 0)
		kill_server(p);
	else
		lose(p, r == 0 ? "does not answer" : "has ended");
}

/* ---- the rest ---- */

int cw_fork_server_ask(struct cw_fork_server *s, cw_fork_child_fn job, cw_forked_fn fn, void *user,
		       struct cw_fork_request **ret)
{
	unsigned max = CW_FORK_REQUESTS - CW_FORK_RESERVED;
	struct cw_fork_request *q;
	uint32_t number = 0;
	int r;

	while (number < s->config.n_jobs && s->config.jobs[number].run != job)
		number++;
	if (number == s->config.n_jobs)
		return -EINVAL;
	if (s->config.jobs[number].is_reserved)
		max = CW_FORK_REQUESTS;
	if (s->n_requests >= max || (!s->current && (s->pause_ms || s->has_ended)))
		return -EAGAIN;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	*q = (struct cw_fork_request){
		.server = s, .job = number, .fd = -1, .child_fd = -1, .fn = fn, .user = user
	};
	DL_APPEND(s->requests, q);
	s->n_requests++;
	r = make_pair(q);
	if (r < 0) {
		request_free(q);
		return r;
	}
	if (!event_pending(s->deadline, EV_TIMEOUT, NULL))
		set_deadline(s);
	send_requests(s);
	*ret = q;
	return 0;
}

struct cw_fork_request *cw_fork_request_cancel(struct cw_fork_request *request)
{
	if (request)
		request_free(request);
	return NULL;
}

void cw_fork_server_stats(const struct cw_fork_server *s, struct cw_fork_server_stats *ret)
{
	*ret = (struct cw_fork_server_stats){ .lost = s->lost };
	if (!s->current || !s->current->server_pid)
		return;
	ret->pid = s->current->server_pid;
	ret->cpu_s = cpu_s(ret->pid);
}

int cw_fork_server_new(const struct cw_fork_server_config *config, struct cw_fork_server **ret)
{
	struct cw_fork_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->deadline = evtimer_new(config->base, on_deadline, s);
	s->restart = evtimer_new(config->base, on_restart, s);
	if (!s->deadline || !s->restart) {
		(void)cw_fork_server_free(s); /* returns NULL */
		return -ENOMEM;
	}
	start(s);
	*ret = s;
	return 0;
}

struct cw_fork_server *cw_fork_server_free(struct cw_fork_server *s)
{
	struct process *p, *tmp;

	if (!s)
		return NULL;
	while (s->requests)
		request_free(s->requests);
	DL_FOREACH_SAFE (s->processes, p, tmp) {
		struct pollfd ended = { .fd = p->pidfd, .events = POLLIN };

		closep(&p->fd);
		p->fd = -1;
		if (poll(&ended, 1, FREE_WAIT_MS) == 0)
			kill_process(p->pidfd); /* the server is stopped, or very late */
		(void)poll(&ended, 1, FREE_WAIT_MS);
		process_free(p);
	}
	event_freep(&s->deadline);
	event_freep(&s->restart);
	free(s);
	return NULL;
}
