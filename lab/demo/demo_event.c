/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events from outside of a job. A table has one function per event. An event happens some seconds
 * after the work has begun. If it must occur during a hang, it happens after the fault.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "lab/demo/demo.h"

/* Interval at which a job manager ends the ranks, one after the other. */
#define CANCEL_EVERY_US 400000
/* Seconds of work before an outside event. */
#define AFTER_RUNNING_S 3
/*
 * Seconds from the fault to an event during the fault. By then the other ranks wait, and they still
 * wait.
 */
#define AFTER_FAULT_S 8
/*
 * Seconds until a launcher notices a failure on its own node, and until launchers of other nodes
 * learn of it.
 */
#define OWN_NODE_AFTER_S 1
#define OTHER_NODES_AFTER_S 3

void demo_event_break_file(const struct demo *demo, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/broken", demo->dir);
}

/* Stalls the simulated network, which checks whether this file exists. */
static void stall_network(struct demo *demo)
{
	_cleanup_(closep) int file = -1;
	char path[PATH_MAX];

	demo_event_break_file(demo, path);
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0) {
		(void)cw_err_set(&demo->err, errno, "%s: %s", path, strerror(errno));
		demo_end(demo, DEMO_FAILED);
		return;
	}
	demo_job_fault_happened(demo);
}

static void cancel(struct demo *demo)
{
	struct timeval tv = { .tv_usec = CANCEL_EVERY_US };

	if (demo->n_cancelled == 0)
		demo_say(demo, "ending the ranks, one by one");
	demo_proc_signal(&demo->ranks[demo->n_cancelled++].proc, SIGTERM);
	if (demo->n_cancelled < demo->opts.run.ranks && event_add(demo->event, &tv) < 0)
		demo_end(demo, DEMO_FAILED);
}

/*
 * Loses a node. It cuts the link before it stops the daemon. Otherwise the daemon could report how
 * the ranks ended.
 */
static void lose_node(struct demo *demo)
{
	int lost = demo->ranks[demo->opts.run.culprit].node;

	demo->nodes[lost].is_lost = true;
	if (demo->net && demo_net_cut(demo->net, lost, &demo->err) < 0) {
		demo_end(demo, DEMO_FAILED);
		return;
	}
	demo_proc_signal(&demo->nodes[lost].daemon, SIGKILL);
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (demo->ranks[i].node == lost)
			demo_proc_signal(&demo->ranks[i].proc, SIGKILL);
	demo_job_fault_happened(demo);
}

static void restart_job(struct demo *demo)
{
	demo_say(demo, "ending all ranks, to start them anew");
	demo->is_restarting = true;
	for (int i = 0; i < demo->opts.run.ranks; i++)
		demo_proc_signal(&demo->ranks[i].proc, SIGTERM);
}

static void restart_daemons(struct demo *demo)
{
	demo_say(demo, "restarting all daemons");
	for (int i = 0; i < demo->opts.run.nodes; i++) {
		demo->nodes[i].is_restarting = true;
		demo_proc_signal(&demo->nodes[i].daemon, SIGTERM);
	}
}

static void thaw(struct demo *demo)
{
	demo_say(demo, "the file system can be written to again");
	demo_freeze_thaw(demo->freeze);
}

static bool has_failed_on(const struct demo *demo, int node)
{
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (demo->ranks[i].node == node && demo->ranks[i].proc.has_ended)
			return true;
	return false;
}

/*
 * The first call ends the ranks on nodes that have a failed rank. The next call ends all remaining
 * ranks.
 */
static void end_what_is_left(struct demo *demo)
{
	const struct timeval later = { .tv_sec = OTHER_NODES_AFTER_S };
	bool is_all = demo->has_launcher_acted;

	demo->has_launcher_acted = true;
	demo_say(demo, is_all ? "the launchers end all ranks that are left"
			      : "its launcher ends the ranks of its node");
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (!demo->ranks[i].proc.has_ended &&
		    (is_all || has_failed_on(demo, demo->ranks[i].node)))
			demo_proc_signal(&demo->ranks[i].proc, SIGTERM);
	if (!is_all && event_add(demo->event, &later) < 0)
		demo_end(demo, DEMO_FAILED);
}

static void (*const happen[DEMO_EVENT__MAX])(struct demo *demo) = {
	[DEMO_EVENT_NETWORK_STALL] = stall_network,
	[DEMO_EVENT_CANCEL] = cancel,
	[DEMO_EVENT_NODE_LOSS] = lose_node,
	[DEMO_EVENT_JOB_RESTART] = restart_job,
	[DEMO_EVENT_DAEMON_RESTART] = restart_daemons,
	[DEMO_EVENT_THAW] = thaw,
	[DEMO_EVENT_LAUNCHER] = end_what_is_left,
};

static void on_event(evutil_socket_t fd, short what, void *user)
{
	struct demo *demo = user;

	happen[demo->opts.scenario->event](demo);
}

static void plan(struct demo *demo, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	demo->event = evtimer_new(demo->base, on_event, demo);
	if (!demo->event || event_add(demo->event, &tv) < 0)
		demo_end(demo, DEMO_FAILED);
}

static bool comes_after_the_fault(enum demo_event event)
{
	return event == DEMO_EVENT_DAEMON_RESTART || event == DEMO_EVENT_THAW;
}

void demo_event_on_failure(struct demo *demo)
{
	if (demo->opts.scenario->event == DEMO_EVENT_LAUNCHER && !demo->event)
		plan(demo, OWN_NODE_AFTER_S);
	demo_postmortem_await(demo);
}

void demo_event_on_running(struct demo *demo)
{
	enum demo_event event = demo->opts.scenario->event;

	if (event != DEMO_EVENT_NONE && event != DEMO_EVENT_LAUNCHER &&
	    !comes_after_the_fault(event) && !demo->event)
		plan(demo, AFTER_RUNNING_S);
}

void demo_event_on_fault(struct demo *demo)
{
	const struct demo_scenario *s = demo->opts.scenario;

	if (comes_after_the_fault(s->event))
		plan(demo, s->event == DEMO_EVENT_THAW ? s->lasts_s : AFTER_FAULT_S);
}
