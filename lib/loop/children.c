/* SPDX-License-Identifier: Apache-2.0 */
/*
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
#include <sys/prctl.h>
#include <sys/resource.h>
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

struct cw_child {
	struct cw_children *pool;
	struct cw_child *next, **link;
	pid_t pid;
	int pidfd, out_fd;
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
	closep(&c->pidfd);
	closep(&c->out_fd);
	free(c->output);
	free(c);
}

static void kill_child(struct cw_child *c)
{
	/*
	 * Also kill the child's process group, because the child may have children. The child is
	 * not reaped yet, so no other process can have its pid.
	 */
	(void)kill(-c->pid, SIGKILL); /* fails if the child has not made the group yet */
	(void)kill(c->pid, SIGKILL);  /* fails only for a zombie */
	c->is_killed = true;
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
		log_err("capture: no timer for child %d", (int)c->pid);
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
	log_warn("capture: child %d or a process of it survived SIGKILL, abandoning it",
		 (int)c->pid);
	c->is_abandoned = true;
	c->pool->abandoned++;
	report(c, CW_CHILD_ABANDONED);
}

/*
 * Reads the pipe until it is empty. Returns true if no process can write to it any more, and false
 * if more output may come.
 */
static bool drain(struct cw_child *c, bool *ret_is_too_much)
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

static void on_exit_seen(evutil_socket_t fd, short what, void *arg)
{
	struct cw_child *c = arg;
	bool is_too_much = false;
	int status = 0;

	/*
	 * Kill the processes that the child left behind. Until we reap the child, no other process
	 * group can have its pid.
	 */
	(void)kill(-c->pid, SIGKILL);
	if (waitpid(c->pid, &status, WNOHANG) == 0)
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

/* Sets up a child. From the daemon it keeps only memory and credentials. */
static int enter_child(int out_fd, pid_t parent)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int null_fd, r;
	sigset_t none;

	(void)setpgid(0, 0); /* cannot fail: only a session leader cannot change its group */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return -ESRCH;
	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL); /* fails for SIGKILL and SIGSTOP */
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	/*
	 * First move the pipe out of the range 0 to 2, then put all descriptors in their final
	 * places. Otherwise a dup2() could overwrite the pipe.
	 */
	out_fd = fcntl(out_fd, F_DUPFD_CLOEXEC, 16);
	if (out_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(out_fd, OUT_FD) < 0)
		return -errno;
#ifndef __SANITIZE_ADDRESS__ /* keep stderr: the sanitizer reports there */
	if (dup2(null_fd, 2) < 0)
		return -errno;
#endif
	r = cw_close_from(OUT_FD + 1);
	if (r < 0)
		return r;
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 20);
	return 0;
}

static void cw_run_child(int out_fd, pid_t parent, const struct cw_child_config *config)
{
	if (enter_child(out_fd, parent) < 0)
		_exit(127);
	_exit(config->main(OUT_FD, config->arg));
}

static int watch(struct cw_child *c)
{
	struct event_base *base = c->pool->base;

	c->on_output = event_new(base, c->out_fd, EV_READ | EV_PERSIST, on_output, c);
	c->on_exit = event_new(base, c->pidfd, EV_READ | EV_PERSIST, on_exit_seen, c);
	c->timer = evtimer_new(base, on_timer, c);
	if (!c->on_output || !c->on_exit || !c->timer || event_add(c->on_output, NULL) < 0 ||
	    event_add(c->on_exit, NULL) < 0)
		return -ENOMEM;
	start_timer(c, c->config.deadline_ms);
	return 0;
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
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (c->pid == 0)
		cw_run_child(out_fd, parent, &c->config);
	/* Parent and child both call it, because either may run first. */
	(void)setpgid(c->pid, c->pid);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	r = c->pidfd < 0 ? -errno : watch(c);
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
	c->pidfd = c->out_fd = -1;
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
		if (r > 0)
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
