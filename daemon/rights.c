/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights.h"

#include <cap-ng.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/kernel/closed_files.h"
#include "loop/events.h"
#include "loop/fork_server.h"

/* We kill a child that has not answered a request for this long. */
#define LATE_S 3
/* Pause before we start another child. */
#define PAUSE_S 1
/*
 * Number of tries before the daemon gives up its own start. The fork server needs three seconds if
 * its program cannot be executed.
 */
#define MAX_TRIES 10u

struct cw_rights {
	struct event_base *base;
	struct cw_fork_server *forks;
	struct cw_fork_request *request;
	int fd, pidfd; /* socket and pidfd of the child; -1 = there is none */
	bool has_dropped;
	unsigned failures; /* number of requests without a child */
	struct event *ended, *late, *restart;
};

static bool has_any(void)
{
	return capng_get_caps_process() == 0 &&
	       capng_have_capabilities(CAPNG_SELECT_CAPS) > CAPNG_NONE;
}

static void on_late(void *user)
{
	const struct timeval deadline = { .tv_sec = LATE_S };
	struct cw_rights *r = user;

	/* Begins anew, because the child has answered all earlier requests. Cannot fail. */
	(void)event_add(r->late, &deadline);
}

static void use_child(struct cw_rights *r)
{
	if (r->has_dropped)
		cw_closed_files_use(r->fd, on_late, r);
}

static void forget_child(struct cw_rights *r)
{
	event_freep(&r->ended);
	closep(&r->fd);
	closep(&r->pidfd);
	r->fd = r->pidfd = -1;
	use_child(r);
}

static void start_again(struct cw_rights *r)
{
	const struct timeval pause = { .tv_sec = PAUSE_S };

	forget_child(r);
	r->failures++;
	(void)event_add(r->restart, &pause); /* cannot fail: the event exists */
}

static void on_ended(evutil_socket_t fd, short what, void *user)
{
	log_warn("the reader of /proc has ended, starting another one");
	start_again(user);
}

/* The child hangs in a file of a process. When it has ended, we start another one. */
static void on_late_for_long(evutil_socket_t fd, short what, void *user)
{
	struct cw_rights *r = user;

	if (r->pidfd >= 0 && cw_closed_files_is_late())
		/* Fails if the child has ended. */
		(void)syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0u);
}

static void on_forked(int result, int fd, int pidfd, void *user)
{
	struct cw_rights *r = user;

	r->request = NULL;
	r->fd = fd;
	r->pidfd = pidfd;
	r->ended = pidfd < 0 ? NULL : event_new(r->base, pidfd, EV_READ, on_ended, r);
	if (!r->ended || event_add(r->ended, NULL) < 0) {
		start_again(r);
		return;
	}
	use_child(r);
}

static void ask(struct cw_rights *r)
{
	if (cw_fork_server_ask(r->forks, cw_closed_files_child, on_forked, r, &r->request) < 0)
		start_again(r);
}

static void on_restart(evutil_socket_t fd, short what, void *user)
{
	ask(user);
}

int cw_rights_new(struct event_base *base, struct cw_fork_server *forks, struct cw_rights **ret,
		  struct cw_err *err)
{
	struct cw_rights *r = calloc(1, sizeof(*r));
	bool has_failed = false;

	if (!r)
		return cw_err_set(err, ENOMEM, "out of memory");
	*r = (struct cw_rights){ .base = base, .forks = forks, .fd = -1, .pidfd = -1 };
	r->late = evtimer_new(base, on_late_for_long, r);
	r->restart = evtimer_new(base, on_restart, r);
	if (!r->late || !r->restart) {
		(void)cw_rights_free(r); /* always NULL */
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	if (has_any()) {
		ask(r);
		while (r->fd < 0 && r->failures < MAX_TRIES && !has_failed)
			has_failed = event_base_loop(base, EVLOOP_ONCE) < 0;
		has_failed = r->fd < 0;
	}
	if (has_failed) {
		(void)cw_rights_free(r); /* always NULL */
		return cw_err_set(err, EAGAIN, "the reader of /proc does not start");
	}
	*ret = r;
	return 0;
}

/* Limits the capabilities that execve() can give. Needs CAP_SETPCAP, which the unit does not give.
 */
static void drop_bounding_set(void)
{
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP))
		return;
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* cannot fail: the capability exists */
}

int cw_rights_drop(struct cw_rights *rights, struct cw_err *err)
{
	if (!has_any())
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cw_err_set(err, errno, "capabilities not dropped: %s", strerror(errno));
	drop_bounding_set();
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0 || has_any())
		return cw_err_set(err, EPERM, "capabilities not dropped");
	rights->has_dropped = true;
	use_child(rights);
	return 0;
}

bool cw_rights_are_dropped(const struct cw_rights *rights)
{
	return rights->has_dropped;
}

struct cw_rights *cw_rights_free(struct cw_rights *rights)
{
	if (!rights)
		return NULL;
	(void)cw_fork_request_cancel(rights->request); /* always NULL */
	forget_child(rights);
	event_freep(&rights->late);
	event_freep(&rights->restart);
	free(rights);
	return NULL;
}
