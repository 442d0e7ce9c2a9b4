/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the fork server gets an order over the job's socket: the output pipe, its argument in
 * a memfd, and further descriptors. Its supervisor answers with the status at the end.
 *
 * The life of a child:
 *
 * 1. It runs. We collect its output, and the deadline runs. On time-out or overflow we kill it and
 * start the grace timer.
 *
 * 2. Its pidfd becomes readable and we reap it.
 *
 * 3. Its output ends, because none of its processes is left. We report the result and free the
 * child.
 *
 * If a child survives the grace timer, we abandon it. An abandoned or cancelled child has no
 * callback any more. It only waits for its pidfd and for the end of its output.
 */
#include "loop/children.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/close_from.h"
#include "common/log.h"
#include "loop/events.h"

/*
 * We abandon a killed child after this time. A killed child ends within milliseconds unless it
 * sleeps uninterruptibly.
 */
#define KILL_GRACE_MS 500u
/* cw_children_free() waits this long for the children that it has killed. */
#define FREE_WAIT_MS 200
#define READ_CHUNK 16384u
/*
 * Number of the output pipe in the child. It is the first above stdin, stdout and stderr, which are
 * /dev/null.
 */
#define OUT_FD 3

/* The output pipe, the argument, and the descriptors of the configuration. */
#define MAX_ORDER_FDS (2 + CW_CHILD_MAX_FDS)

/* The message to a job. The descriptors come with it. */
struct order {
	uint64_t arg_len;
	uint32_t n_fds, reserved;
};

union descriptors {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MAX_ORDER_FDS * sizeof(int))];
};

struct cw_child {
	struct cw_children *pool;
	struct cw_child *next, **link;
	pid_t pid; /* 0 = a child of the fork server */
	int pidfd, out_fd;
	struct cw_fork_request *request; /* NULL = the fork server has answered */
	/* Our end of the pair; when we close it, the supervisor ends. */
	int pair_fd;
	int order_fds[MAX_ORDER_FDS]; /* until the order is sent */
	struct event *on_output, *on_exit, *timer;
	struct cw_child_config config;
	enum cw_child_end end;
	bool is_killed, is_abandoned, is_reaped;
	char *output;
	size_t len;
};

struct cw_children {
	struct event_base *base;
	struct cw_child *list;
	uint32_t abandoned;
};

static void close_order_fds(struct cw_child *c)
{
	for (unsigned i = 0; i < MAX_ORDER_FDS; i++) {
		closep(&c->order_fds[i]);
		c->order_fds[i] = -1;
	}
}

static void child_free(struct cw_child *c)
{
	if (c->link) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
	}
	if (c->is_abandoned)
		c->pool->abandoned--;
	event_freep(&c->on_output);
	event_freep(&c->on_exit);
	event_freep(&c->timer);
	(void)cw_fork_request_cancel(c->request); /* always NULL */
	close_order_fds(c);
	closep(&c->pair_fd);
	closep(&c->pidfd);
	closep(&c->out_fd);
	free(c->output);
	free(c);
}

static void kill_child(struct cw_child *c)
{
	c->is_killed = true;
	if (c->request) {
		c->request = cw_fork_request_cancel(c->request);
		c->is_reaped = true;
		close_order_fds(c); /* ends the output */
		return;
	}
	if (!c->pid) {
		closep(&c->pair_fd);
		c->pair_fd = -1;
		return;
	}
	/*
	 * Also kill the child's process group, because the child may have children. The child is
	 * not reaped yet, so no other process can have its pid.
	 */
	(void)kill(-c->pid, SIGKILL); /* fails if the child has not made the group yet */
	(void)kill(c->pid, SIGKILL);  /* fails only for a zombie */
}

static void report(struct cw_child *c, enum cw_child_end end)
{
	cw_child_done_fn fn = c->config.fn;

	c->config.fn = NULL;
	if (fn)
		fn(end, c->output, c->len, c->config.user);
}

static void start_timer(struct cw_child *c, uint32_t ms)
{
	struct timeval tv = { ms / 1000, (suseconds_t)(ms % 1000 * 1000) };

	if (evtimer_add(c->timer, &tv) < 0)
		log_err("capture: no timer for a child");
}

static void kill_for(struct cw_child *c, enum cw_child_end end)
{
	c->end = end;
	kill_child(c);
	start_timer(c, KILL_GRACE_MS);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct cw_child *c = arg;

	if (!c->is_killed) {
		kill_for(c, CW_CHILD_TIMED_OUT);
		return;
	}
	if (c->is_abandoned)
		return;
	log_warn("capture: a child or a process of it survived SIGKILL, abandoning it");
	c->is_abandoned = true;
	c->pool->abandoned++;
	report(c, CW_CHILD_ABANDONED);
}

/*
 * Reads the pipe until it is empty. Returns true if no process can write to it any more, and false
 * if more output may come.
 */
static bool read_all(struct cw_child *c, bool *ret_is_too_much)
{
	char chunk[READ_CHUNK];

	*ret_is_too_much = false;
	for (;;) {
		ssize_t n = read(c->out_fd, chunk, sizeof(chunk));
		size_t room = c->config.max_output - c->len;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0)
			return true;
		if ((size_t)n > room)
			*ret_is_too_much = true;
		memcpy(c->output + c->len, chunk, (size_t)n < room ? (size_t)n : room);
		c->len += (size_t)n < room ? (size_t)n : room;
		if (*ret_is_too_much)
			/*
			 * Leave the rest to the next event: the child may write faster than we
			 * read.
			 */
			return false;
	}
}

static bool drain(struct cw_child *c, bool *ret_is_too_much)
{
	size_t before = c->len;
	bool has_ended = read_all(c, ret_is_too_much);

	if (c->len > before && c->config.fn && c->config.on_more)
		c->config.on_more(c->output, c->len, c->config.user);
	return has_ended;
}

static void finish(struct cw_child *c)
{
	report(c, c->end);
	child_free(c);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
	struct cw_child *c = arg;
	bool is_too_much;

	if (drain(c, &is_too_much))
		event_freep(&c->on_output); /* from now on the pidfd alone reports the end */
	if (is_too_much && !c->is_killed)
		kill_for(c, CW_CHILD_OVERFLOW);
	if (c->is_reaped && !c->on_output)
		finish(c);
}

/* Reads the status of a child that has ended. Returns false if the child has not ended. */
static bool reap(struct cw_child *c, int *ret_status)
{
	if (!c->pid) {
		/* A supervisor that was killed sends no status. */
		if (recv(c->pair_fd, ret_status, sizeof(*ret_status), MSG_DONTWAIT) !=
		    sizeof(*ret_status))
			*ret_status = SIGKILL;
		return true;
	}
	/*
	 * Kill the processes that the child left behind. Until we reap the child, no other process
	 * group can have its pid.
	 */
	(void)kill(-c->pid, SIGKILL);
	*ret_status = 0;
	return waitpid(c->pid, ret_status, WNOHANG) != 0;
}

static void on_exit_seen(evutil_socket_t fd, short what, void *arg)
{
	struct cw_child *c = arg;
	bool is_too_much = false;
	int status;

	if (!reap(c, &status))
		return;
	c->is_reaped = true;
	event_freep(&c->on_exit);
	/* Read the output that arrived between the last event and the end. */
	if (c->on_output && drain(c, &is_too_much))
		event_freep(&c->on_output);
	if (!c->is_killed)
		c->end = is_too_much                                     ? CW_CHILD_OVERFLOW
			 : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CW_CHILD_EXITED
									 : CW_CHILD_CRASHED;
	if (!c->on_output) {
		finish(c);
		return;
	}
	/*
	 * A process that the child started still holds the pipe. We have killed that process, so it
	 * dies at once, or it hangs.
	 */
	c->is_killed = true;
	if (!c->is_abandoned)
		start_timer(c, KILL_GRACE_MS);
}

static void limit(int resource, rlim_t value)
{
	struct rlimit old, rl = { value, value };

	if (getrlimit(resource, &old) < 0 || old.rlim_max < value)
		return;                 /* the limit is already stricter */
	(void)setrlimit(resource, &rl); /* lowering does not fail */
}

/* Gives the descriptors of a child their final numbers, and closes all others. */
static int place_descriptors(int out_fd, const int *fds, unsigned n_fds)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), high[CW_CHILD_MAX_FDS] = { -1 };

	if (null_fd < 0)
		return -errno;
	/*
	 * First move all descriptors out of the final range. Otherwise a dup2() could overwrite one
	 * of them.
	 */
	out_fd = fcntl(out_fd, F_DUPFD_CLOEXEC, 16);
	for (unsigned i = 0; i < n_fds; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
		if (high[i] < 0)
			return -errno;
	}
	if (out_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(out_fd, OUT_FD) < 0)
		return -errno;
#ifndef __SANITIZE_ADDRESS__ /* keep stderr: the sanitizer reports there */
	if (dup2(null_fd, 2) < 0)
		return -errno;
#endif
	for (unsigned i = 0; i < n_fds; i++)
		if (dup2(high[i], CW_CHILD_FD + (int)i) < 0)
			return -errno;
	return cw_close_from(CW_CHILD_FD + n_fds);
}

static int enter(int out_fd, const int *fds, unsigned n_fds, pid_t parent)
{
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return -ESRCH;
	r = place_descriptors(out_fd, fds, n_fds);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 20);
	return r;
}

/* Sets up a fork of this process. From the daemon it keeps only memory and credentials. */
static int enter_fork(int out_fd, pid_t parent, const struct cw_child_config *config)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	(void)setpgid(0, 0); /* cannot fail: only a session leader cannot change its group */
	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL); /* fails for SIGKILL and SIGSTOP */
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	return enter(out_fd, config->fds, config->n_fds, parent);
}

static void cw_run_child(int out_fd, pid_t parent, const struct cw_child_config *config)
{
	if (enter_fork(out_fd, parent, config) < 0)
		_exit(127);
	_exit(config->main(OUT_FD, config->arg));
}

/* ---- a child of the fork server ---- */

/* Receives the order. Returns false if the daemon has cancelled it. */
static bool take_order(int fd, struct order *order, int fds[MAX_ORDER_FDS])
{
	union descriptors control;
	struct iovec iov = { order, sizeof(*order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*order) ||
	    order->n_fds > CW_CHILD_MAX_FDS)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN((2 + order->n_fds) * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(c), (2 + order->n_fds) * sizeof(int));
	return true;
}

static _Noreturn void run_ordered(const struct order *order, const int *fds, pid_t parent,
				  cw_child_main_fn main)
{
	const void *arg = NULL;

	if (order->arg_len)
		arg = mmap(NULL, order->arg_len, PROT_READ, MAP_PRIVATE, fds[1], 0);
	if (arg == MAP_FAILED || enter(fds[0], fds + 2, order->n_fds, parent) < 0)
		_exit(127);
	_exit(main(OUT_FD, arg));
}

int cw_child_run(int fd, cw_child_main_fn main)
{
	struct pollfd wait[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	int fds[MAX_ORDER_FDS], status;
	pid_t own = getpid(), pid;
	struct order order;

	if (!take_order(fd, &order, fds))
		return 1;
	(void)setpgid(0, 0); /* cannot fail: only a session leader cannot change its group */
	pid = fork();
	if (pid == 0)
		run_ordered(&order, fds, own, main);
	if (pid < 0)
		return 1;
	for (unsigned i = 0; i < 2 + order.n_fds; i++)
		(void)close(fds[i]);
	wait[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (wait[1].fd >= 0 && poll(wait, 2, -1) < 0 && errno == EINTR)
		;
	if (wait[1].revents && waitpid(pid, &status, WNOHANG) == pid)
		(void)send(fd, &status, sizeof(status), MSG_NOSIGNAL); /* fails without a daemon */
	/* Kill the child, or the processes that it left behind, and this one. */
	return kill(0, SIGKILL);
}

/* ---- the daemon's side ---- */

static int watch_output(struct cw_child *c)
{
	struct event_base *base = c->pool->base;

	c->on_output = event_new(base, c->out_fd, EV_READ | EV_PERSIST, on_output, c);
	c->timer = evtimer_new(base, on_timer, c);
	if (!c->on_output || !c->timer || event_add(c->on_output, NULL) < 0)
		return -ENOMEM;
	start_timer(c, c->config.deadline_ms);
	return 0;
}

static int watch_exit(struct cw_child *c)
{
	c->on_exit = event_new(c->pool->base, c->pidfd, EV_READ | EV_PERSIST, on_exit_seen, c);
	return c->on_exit && event_add(c->on_exit, NULL) == 0 ? 0 : -ENOMEM;
}

static int send_order(struct cw_child *c)
{
	struct order order = { .arg_len = c->config.arg_len, .n_fds = c->config.n_fds };
	size_t n = (2 + c->config.n_fds) * sizeof(int);
	union descriptors control = { 0 };
	struct iovec iov = { &order, sizeof(order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n) };

	control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(n) };
	memcpy(CMSG_DATA(&control.align), c->order_fds, n);
	return sendmsg(c->pair_fd, &msg, MSG_NOSIGNAL) == sizeof(order) ? 0 : -errno;
}

static void on_forked(int r, int fd, int pidfd, void *user)
{
	struct cw_child *c = user;

	c->request = NULL;
	c->pair_fd = fd;
	c->pidfd = pidfd;
	if (r == 0)
		r = watch_exit(c);
	if (r == 0)
		r = send_order(c);
	close_order_fds(c);
	if (r < 0) {
		c->end = CW_CHILD_CRASHED;
		finish(c); /* closes the socket; without an order the child ends */
	}
}

/* Puts the argument into a memfd. */
static int make_arg(const struct cw_child_config *config)
{
	_cleanup_(closep) int fd = memfd_create("collwatch-child", MFD_CLOEXEC);
	const char *at = config->arg;

	if (fd < 0)
		return -errno;
	for (size_t left = config->arg_len; left > 0;) {
		ssize_t n = write(fd, at, left);

		if (n < 0)
			return -errno;
		at += n;
		left -= (size_t)n;
	}
	return steal_fd(&fd);
}

static int ask_server(struct cw_child *c, int out_fd)
{
	int r = 0;

	c->order_fds[0] = out_fd;
	c->order_fds[1] = make_arg(&c->config);
	for (unsigned i = 0; i < c->config.n_fds; i++)
		c->order_fds[2 + i] = fcntl(c->config.fds[i], F_DUPFD_CLOEXEC, 0);
	for (unsigned i = 0; i < 2 + c->config.n_fds; i++)
		if (c->order_fds[i] < 0)
			r = -EMFILE;
	if (r == 0)
		r = watch_output(c);
	return r < 0 ? r
		     : cw_fork_server_ask(c->config.forks, c->config.job, on_forked, c,
					  &c->request);
}

static int spawn(struct cw_child *c)
{
	_cleanup_(closep) int out_fd = -1;
	pid_t parent = getpid();
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	c->out_fd = fds[0];
	out_fd = fds[1];
	if (fcntl(c->out_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (c->config.forks)
		return ask_server(c, steal_fd(&out_fd));
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (c->pid == 0)
		cw_run_child(out_fd, parent, &c->config);
	/* Parent and child both call it, because either may run first. */
	(void)setpgid(c->pid, c->pid);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	r = c->pidfd < 0 ? -errno : watch_exit(c);
	if (r == 0)
		r = watch_output(c);
	if (r < 0) {
		kill_child(c);
		(void)waitpid(c->pid, NULL, 0); /* the child has only just begun and dies at once */
	}
	return r;
}

int cw_child_start(struct cw_children *pool, const struct cw_child_config *config,
		   struct cw_child **ret_child)
{
	struct cw_child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pool = pool;
	c->pidfd = c->out_fd = c->pair_fd = -1;
	for (unsigned i = 0; i < MAX_ORDER_FDS; i++)
		c->order_fds[i] = -1;
	c->config = *config;
	c->output = malloc(config->max_output);
	r = c->output ? spawn(c) : -ENOMEM;
	if (r < 0) {
		child_free(c);
		return r;
	}
	c->config.arg = NULL;
	c->next = pool->list;
	c->link = &pool->list;
	if (c->next)
		c->next->link = &c->next;
	pool->list = c;
	*ret_child = c;
	return 0;
}

void cw_child_cancel(struct cw_child *child)
{
	child->config.fn = NULL;
	if (!child->is_killed)
		kill_for(child, CW_CHILD_TIMED_OUT);
}

uint32_t cw_children_abandoned(const struct cw_children *pool)
{
	return pool->abandoned;
}

uint32_t cw_children_abandoned_of(const struct cw_children *pool, uid_t uid)
{
	uint32_t n = 0;

	for (const struct cw_child *c = pool->list; c; c = c->next)
		n += c->is_abandoned && c->config.uid == uid;
	return n;
}

int cw_children_new(struct event_base *base, struct cw_children **ret)
{
	struct cw_children *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->base = base;
	*ret = pool;
	return 0;
}

struct cw_children *cw_children_free(struct cw_children *pool)
{
	int wait_ms = FREE_WAIT_MS, r;

	if (!pool)
		return NULL;
	for (struct cw_child *c = pool->list; c; c = c->next)
		if (!c->is_reaped) /* after reaping, another process may have the pid */
			kill_child(c);
	while (pool->list) {
		struct cw_child *c = pool->list;
		struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

		r = c->is_reaped ? -1 : poll(&p, 1, c->is_abandoned ? 0 : wait_ms);
		if (r > 0 && c->pid)
			(void)waitpid(c->pid, NULL, WNOHANG); /* poll() says that it has ended */
		/*
		 * We leave a child that does not die to init. We killed all of them together, so
		 * the others have had the same time.
		 */
		if (r == 0)
			wait_ms = 0;
		child_free(c);
	}
	free(pool);
	return NULL;
}
