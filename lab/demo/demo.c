/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence of the demo. Daemons start and report that they are ready. The ranks start and
 * report their steps. The fault happens, and an alert arrives. Each phase waits for an event, with
 * a deadline. No phase waits for a fixed time.
 */
#include "lab/demo/demo.h"

#include <errno.h>
#include <event2/event.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "lab/demo/demo_webhook.h"
#include "report/json_util.h"

/* Time for the daemons to shut down after SIGTERM. */
#define STOP_WITHIN_MS 3000
/*
 * We extend the demo by at most this many seconds, as long as the daemon inspects the job for a
 * stall.
 */
#define MAX_EXTENDED 15

void demo_say(const struct demo *demo, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("demo: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

void demo_end(struct demo *demo, enum demo_outcome outcome)
{
	if (demo->outcome == DEMO_RUNNING)
		demo->outcome = outcome;
	(void)event_base_loopbreak(demo->base); /* fails only if the base is NULL */
}

/* Arms the timer. False if memory ran out. */
static bool arm_deadline(struct demo *demo)
{
	int64_t left_ns = demo->deadline_ns - cw_clock_now_ns(&cw_clock_system);
	int64_t left_us = left_ns > 0 ? left_ns / 1000 + 1 : 0;
	struct timeval tv = { .tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000 };

	return event_add(demo->deadline, &tv) == 0;
}

/*
 * True if we cannot know yet whether the daemon finds a fault. On a busy machine, the daemon may
 * still inspect a late call, or may not see all ranks yet. Or a temporary fault still lasts.
 */
static bool is_undecided(struct demo *demo)
{
	const char *state;

	if (demo_job_ends(demo))
		return false;
	json_decref(demo->status);
	demo->status = demo_nodes_job_status(demo);
	state = cw_json_str(demo->status, "state", "");
	return demo->n_extended < MAX_EXTENDED &&
	       (strcmp(state, "suspect") == 0 ||
		cw_json_int(demo->status, "ranks", 0) < demo->opts.run.ranks ||
		(demo->opts.scenario->lasts_s && strcmp(state, "healthy") != 0));
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
	struct demo *demo = user;
	bool is_watched = demo->opts.scenario->fault ? demo->fault_ns != 0 : demo->job_is_running;

	/* libevent's clock is coarse: the timer may fire some milliseconds early. */
	if (cw_clock_now_ns(&cw_clock_system) < demo->deadline_ns && arm_deadline(demo))
		return;
	if (!is_watched || demo->opts.scenario->expected_class) {
		demo_end(demo, DEMO_TIMEOUT);
		return;
	}
	if (demo->outcome == DEMO_RUNNING && is_undecided(demo)) {
		demo->n_extended++;
		demo->deadline_ns += CW_NS_PER_S;
		if (arm_deadline(demo))
			return;
	}
	demo_end(demo, DEMO_WATCHED);
}

void demo_expect(struct demo *demo, int seconds, const char *what)
{
	(void)cw_err_set(&demo->err, ETIMEDOUT, "%s within %d s", what, seconds);
	demo->deadline_ns = cw_clock_now_ns(&cw_clock_system) + seconds * CW_NS_PER_S;
	if (!arm_deadline(demo))
		demo_end(demo, DEMO_FAILED);
}

static void on_alert(const json_t *incident, void *user)
{
	struct demo *demo = user;

	if (demo->incident)
		return;
	if (demo->opts.scenario->has_postmortem) {
		demo_say(demo, "an alert came before the job was over: %s",
			 cw_json_str(incident, "summary", "?"));
		return;
	}
	snprintf(demo->bundle, sizeof(demo->bundle), "%s", cw_json_str(incident, "bundle", ""));
	demo->incident = json_incref((json_t *)incident);
	demo->alert_ns = cw_clock_now_ns(&cw_clock_system);
	demo_end(demo, DEMO_ALERT);
}

static unsigned all_procs(struct demo *demo, struct demo_proc **procs)
{
	unsigned n = 0;

	for (int i = 0; i < demo->opts.run.nodes; i++)
		procs[n++] = &demo->nodes[i].daemon;
	for (int i = 0; i < demo->opts.run.ranks; i++)
		procs[n++] = &demo->ranks[i].proc;
	return n;
}

static void on_child(evutil_socket_t signo, short what, void *user)
{
	struct demo_proc *procs[2 * DEMO_MAX_RANKS];
	struct demo *demo = user;

	if (!demo_proc_reap(procs, all_procs(demo, procs)))
		return;
	demo_nodes_on_ended(demo);
	demo_job_on_ended(demo);
}

static void on_interrupt(evutil_socket_t signo, short what, void *user)
{
	struct demo *demo = user;

	demo->signo = (int)signo;
	demo_end(demo, DEMO_INTERRUPTED);
}

static int prepare(struct demo *demo, struct cw_err *err)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	int r;

	/* We adopt the orphans of our children, so that no process survives us. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return cw_err_set(err, errno, "prctl: %s", strerror(errno));
	demo->base = event_base_new();
	demo->deadline = demo->base ? evtimer_new(demo->base, on_deadline, demo) : NULL;
	for (int i = 0; demo->deadline && i < 4; i++) {
		demo->signals[i] = evsignal_new(demo->base, signals[i],
						i == 0 ? on_child : on_interrupt, demo);
		if (!demo->signals[i] || event_add(demo->signals[i], NULL) < 0)
			return cw_err_set(err, ENOMEM, "out of memory");
	}
	if (!demo->deadline)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = demo_nodes_plan(demo, err);
	if (r < 0)
		return r;
	return demo_webhook_new(demo->base, demo->net ? demo_net_take_alert_socket(demo->net) : -1,
				on_alert, demo, &demo->webhook, err);
}

void demo_run(struct demo *demo)
{
	demo->master_port_fd = -1;
	if (prepare(demo, &demo->err) < 0 || demo_nodes_start(demo, &demo->err) < 0) {
		demo->outcome = DEMO_FAILED;
		return;
	}
	while (demo->outcome == DEMO_RUNNING)
		if (event_base_dispatch(demo->base) < 0)
			demo->outcome = DEMO_FAILED;
}

static void on_look(evutil_socket_t fd, short what, void *user)
{
	/* the event only wakes the loop */
}

void demo_await(struct demo *demo, bool (*is_there)(const struct demo *demo), int seconds)
{
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + seconds * CW_NS_PER_S;
	const struct timeval often = { .tv_usec = 100 * 1000 };
	struct event *look = event_new(demo->base, -1, EV_PERSIST, on_look, NULL);

	if (look && event_add(look, &often) == 0)
		while (!demo->signo && !is_there(demo) &&
		       cw_clock_now_ns(&cw_clock_system) < end_ns)
			if (event_base_loop(demo->base, EVLOOP_ONCE) < 0)
				break;
	if (look)
		event_free(look);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path); /* if this fails, the file stays */
	return 0;
}

/* Waits for the daemons to end. The event loop has stopped, so we poll for their signals. */
static void wait_for_daemons(struct demo *demo)
{
	struct demo_proc *procs[2 * DEMO_MAX_RANKS];
	unsigned n = all_procs(demo, procs);

	for (;;) {
		int running = 0;

		(void)demo_proc_reap(procs, n);
		for (int i = 0; i < demo->opts.run.nodes; i++)
			running += procs[i]->pid && !procs[i]->has_ended;
		if (!running || cw_clock_now_ns(&cw_clock_system) >= demo->deadline_ns)
			return;
		/* returns at SIGCHLD or at the deadline */
		(void)event_base_loop(demo->base, EVLOOP_ONCE);
	}
}

void demo_stop(struct demo *demo)
{
	for (int i = 0; i < demo->opts.run.ranks; i++)
		demo_proc_signal(&demo->ranks[i].proc, SIGKILL);
	for (int i = 0; i < demo->opts.run.nodes; i++)
		demo_proc_signal(&demo->nodes[i].daemon, SIGTERM);
	demo->deadline_ns = cw_clock_now_ns(&cw_clock_system) + STOP_WITHIN_MS * CW_NS_PER_MS;
	if (demo->deadline && arm_deadline(demo))
		wait_for_daemons(demo);
	for (int i = 0; i < demo->opts.run.nodes; i++)
		demo_proc_signal(&demo->nodes[i].daemon, SIGKILL);
	/* A process that sleeps in this file system cannot end while it is frozen. */
	demo_freeze_remove(demo->freeze);
	demo_proc_kill_all_children();
	demo_cgroup_remove(demo);
	demo_nodes_fini(demo);
	for (int i = 0; i < demo->opts.run.ranks; i++)
		demo_proc_fini(&demo->ranks[i].proc);
	demo->webhook = demo_webhook_free(demo->webhook);
	json_decref(demo->status);
	for (int i = 0; i < 4; i++)
		if (demo->signals[i])
			event_free(demo->signals[i]);
	if (demo->deadline)
		event_free(demo->deadline);
	if (demo->event)
		event_free(demo->event);
	if (demo->look)
		event_free(demo->look);
	if (demo->base)
		event_base_free(demo->base);
	closep(&demo->master_port_fd);
	demo->net = demo_net_free(demo->net);
	if (demo->dir[0])
		(void)nftw(demo->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	json_decref(demo->incident);
	demo->incident = NULL;
}
