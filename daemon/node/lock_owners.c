/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user may have many ranks that wait for mutexes, as many as its quota allows. For each of them a
 * fork of the daemon would copy the daemon's page tables. So the fork server makes the child. When
 * the daemon has the child's pidfd and can kill it, it sends the question. The child answers with
 * the owner, or exits without an answer.
 */
#include "daemon/node/lock_owners.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/procstat.h"
#include "daemon/process/lock_wait.h"
#include "daemon/process/process.h"
#include "loop/events.h"

struct question {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t address;
	bool is_inherited;
};

struct cw_lock_owners {
	struct event_base *base;
	struct cw_fork_server *forks;
	struct cw_process **table;
	struct cw_fork_request *request;
	int fd, pidfd;        /* socket and pidfd of the child; -1 = there is no child */
	struct event *answer; /* fires when the child has answered, or at the deadline */
	/*
	 * Fires at the end of a child that we killed. The kill may take long, because the child may
	 * hang in another process's memory.
	 */
	struct event *has_ended;
	struct question question;
};

/* ---- in the child ---- */

static bool is_there(const struct question *q)
{
	_cleanup_(closep) int fd = cw_procstat_open(q->pid);
	struct cw_procstat st;

	return fd >= 0 && cw_procstat_read(fd, &st) == 0 && st.start_ticks == q->start_ticks;
}

/*
 * Reads the owner of the lock. Checks the start time of the process before and after the read: if
 * both are right, the pid was not reused in between.
 */
int cw_lock_owner_child(int fd)
{
	struct question q;
	pid_t owner;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child must not outlive the fork server */
	if (recv(fd, &q, sizeof(q), 0) != sizeof(q))
		return 0;
	owner = is_there(&q) ? cw_lock_wait_read(q.pid, q.address, q.is_inherited) : 0;
	if (!owner || !is_there(&q))
		return 0;
	return send(fd, &owner, sizeof(owner), MSG_NOSIGNAL) == sizeof(owner) ? 0 : 1;
}

/* ---- in the daemon ---- */

static void forget_child(struct cw_lock_owners *o)
{
	event_freep(&o->answer);
	event_freep(&o->has_ended);
	closep(&o->fd);
	closep(&o->pidfd);
	o->fd = o->pidfd = -1;
}

static void on_ended(evutil_socket_t fd, short what, void *user)
{
	forget_child(user);
}

/* Kills the child. We send no other question until the child has ended. */
static void kill_child(struct cw_lock_owners *o)
{
	event_freep(&o->answer);
	/* Fails if the child has ended. */
	(void)syscall(SYS_pidfd_send_signal, o->pidfd, SIGKILL, NULL, 0u);
	o->has_ended = event_new(o->base, o->pidfd, EV_READ, on_ended, o);
	if (!o->has_ended || event_add(o->has_ended, NULL) < 0)
		forget_child(o);
}

static void on_answer(evutil_socket_t fd, short what, void *user)
{
	struct cw_lock_owners *o = user;
	struct cw_process *p =
		cw_processes_find(*o->table, o->question.pid, o->question.start_ticks);
	pid_t owner;

	if (!(what & EV_READ)) {
		kill_child(o);
		return;
	}
	if (recv(o->fd, &owner, sizeof(owner), 0) == sizeof(owner) && p)
		cw_lock_wait_answer(&p->host_activity.lock, o->question.address, owner);
	forget_child(o);
}

static void on_forked(int r, int fd, int pidfd, void *user)
{
	const struct timeval within = { .tv_sec = CW_LOCK_OWNERS_MS / 1000 };
	struct cw_lock_owners *o = user;

	o->request = NULL;
	if (r < 0)
		return; /* no child: the next try is in ten seconds */
	o->fd = fd;
	o->pidfd = pidfd;
	o->answer = event_new(o->base, fd, EV_READ, on_answer, o);
	if (!o->answer || event_add(o->answer, &within) < 0 ||
	    send(fd, &o->question, sizeof(o->question), MSG_NOSIGNAL) != sizeof(o->question))
		forget_child(o); /* closing the socket makes the child exit */
}

void cw_lock_owners_look(struct cw_lock_owners *o, struct cw_process *p, int64_t awake_ns)
{
	struct cw_lock_wait *w = &p->host_activity.lock;

	if (o->request || o->fd >= 0 || !cw_lock_wait_must_ask(w, awake_ns))
		return;
	o->question = (struct question){ .pid = p->key.pid,
					 .start_ticks = p->key.start_ticks,
					 .address = w->on.address,
					 .is_inherited = w->on.is_inherited };
	w->asked_ns = awake_ns;
	(void)cw_fork_server_ask(o->forks, cw_lock_owner_child, on_forked, o,
				 &o->request); /* if this fails, the next try is in ten seconds */
}

int cw_lock_owners_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_process **table, struct cw_lock_owners **ret)
{
	struct cw_lock_owners *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	*o = (struct cw_lock_owners){
		.base = base, .forks = forks, .table = table, .fd = -1, .pidfd = -1
	};
	*ret = o;
	return 0;
}

struct cw_lock_owners *cw_lock_owners_free(struct cw_lock_owners *o)
{
	if (!o)
		return NULL;
	(void)cw_fork_request_cancel(o->request); /* always NULL */
	if (o->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, o->pidfd, SIGKILL, NULL, 0u);
	forget_child(o);
	free(o);
	return NULL;
}
