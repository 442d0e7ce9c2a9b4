/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: a small site of its own (daemons, webhook receiver, sockets, state) under a private
 * directory, a training job on the simulated device, a fault, and what collwatch says about it.
 * Nothing of the site's own collwatch is touched. One thread, one event loop.
 *
 *	verb_demo.c      options; what is printed at the end
 *	demo.c           the course of events
 *	demo_nodes.c      directory, daemons
 *	demo_net.c       nodes as network namespaces
 *	demo_job.c       the ranks
 *	demo_epitaph.c   what is said of a job that has failed
 *	demo_event.c     what happens to them from outside
 *	demo_cgroup.c    a limit of memory for one rank
 *	demo_freeze.c    a file system that can be frozen
 *	demo_proc.c      processes: start, output, end
 *	demo_webhook.c   receiver of alerts
 *	demo_scenario.c  what can be shown
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "lab/demo/demo_net.h"
#include "lab/demo/demo_proc.h"
#include "lab/demo/demo_scenario.h"
#include "report/bundle.h"

#define DEMO_MAX_RANKS DEMO_NET_MAX_NODES /* a node each, at most */
#define DEMO_JOB "demo"

struct event;
struct event_base;

struct demo_options {
	const struct demo_scenario *scenario;
	struct demo_case run;
	int seconds;      /* healthy: how long to watch */
	int timeout_s;    /* until the alert, from the fault */
	const char *keep; /* directory the bundle is copied to; NULL = not kept */
	bool json, check, all_frames, is_quiet, no_namespaces, has_call_stacks;
	bool is_torch; /* real PyTorch instead, in a program of its own */
};

struct demo_node {
	struct demo_proc daemon;
	char name[16];
	char dir[PATH_MAX / 2];
	const char *address;
	int port;    /* of the peers */
	int port_fd; /* keeps the port from being given to others; -1 = nobody else is there */
	int notify_fd;
	struct event *on_notify;
	bool is_ready;
	bool is_lost;       /* with all that ran there */
	bool is_restarting; /* it was asked to end */
	struct demo *demo;
};

struct demo_rank {
	struct demo_proc proc;
	int rank, node;
	long step; /* newest it has told of */
	struct demo *demo;
};

enum demo_outcome {
	DEMO_RUNNING = 0,
	DEMO_ALERT,       /* demo.incident arrived */
	DEMO_WATCHED,     /* healthy: the time is over and nothing was reported */
	DEMO_TIMEOUT,     /* something expected did not come: demo.err says what */
	DEMO_FAILED,      /* demo.err */
	DEMO_INTERRUPTED, /* demo.signo */
};

struct demo {
	struct demo_options opts;
	struct event_base *base;
	char dir[PATH_MAX / 4];
	struct demo_net *net; /* NULL = nodes are daemons on loopback */
	struct demo_webhook *webhook;
	struct demo_node nodes[DEMO_MAX_RANKS];
	struct demo_rank ranks[DEMO_MAX_RANKS];
	int master_port, master_port_fd;
	struct event *deadline, *event, *signals[4];
	int64_t deadline_ns; /* when it is due, CLOCK_MONOTONIC */
	int n_extended;      /* times it was put off by a second */
	struct event *look;  /* for an epitaph */
	json_t *status;      /* of the job when its time was over; NULL = not asked */
	int n_cancelled;
	bool has_launcher_acted;    /* it has ended the ranks of the node that failed */
	int n_restarts;             /* of the whole job */
	bool is_restarting;         /* the job: its ranks were asked to end */
	char cgroup[PATH_MAX / 4];  /* of the culprit, where its memory is limited; "" = none */
	struct demo_freeze *freeze; /* NULL = none */

	bool site_is_up, job_is_running;
	int64_t fault_ns;    /* monotonic; 0 = not yet */
	int64_t watching_ns; /* since when the job runs */

	enum demo_outcome outcome;
	int signo;
	int64_t alert_ns;
	json_t *incident;          /* as it arrived at the webhook; or the epitaph */
	char bundle[PATH_MAX * 2]; /* where that lies */
	struct cw_err err;
};

/* ---- demo.c ---- */

/* Runs to an outcome; blocks. Everything started still runs afterwards: demo_stop(). */
void demo_run(struct demo *demo);
/* Stops all processes and removes the directory. Takes a half-started demo. */
void demo_stop(struct demo *demo);
/* After the outcome: lets things go on until it is there, at most this long. */
void demo_await(struct demo *demo, bool (*is_there)(const struct demo *demo), int seconds);
/* Ends the loop with this outcome, unless it has one already. */
void demo_end(struct demo *demo, enum demo_outcome outcome);
/* A line of progress for people, on stderr. */
void demo_say(const struct demo *demo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The one deadline: `what` is missed if it does not come within seconds. */
void demo_expect(struct demo *demo, int seconds, const char *what);

/* ---- demo_nodes.c ---- */

/* Names the nodes and gives them addresses, in a network of their own where one can be had. */
int demo_nodes_plan(struct demo *demo, struct cw_err *err);
int demo_nodes_start(struct demo *demo, struct cw_err *err);
/* After children have ended: had the daemons to? Starts those anew that restart. */
void demo_nodes_on_ended(struct demo *demo);
void demo_nodes_fini(struct demo *demo);
/* A loopback port nobody else gets while *ret_fd is open and SO_REUSEADDR users may bind. */
int demo_free_port(int *ret_port, int *ret_fd);
/* The job as the daemon that leads it sees it (new reference), or NULL. */
json_t *demo_nodes_job_status(struct demo *demo);

/* ---- demo_cgroup.c ---- */

/* Makes demo.cgroup with that limit. Needs root and the version 1 hierarchy of memory. */
int demo_cgroup_make(struct demo *demo, int memory_mb, struct cw_err *err);
/* Removes it, if it is there; its process must have ended. */
void demo_cgroup_remove(struct demo *demo);

/* ---- demo_freeze.c ---- */

/* A small file system at PATH, frozen. Needs root, mkfs.ext4 and a loop device. */
int demo_freeze_make(const char *path, struct demo_freeze **ret, struct cw_err *err);
void demo_freeze_thaw(struct demo_freeze *freeze);
/* Thaws and removes it; NULL is fine. Also done, by a process of its own, when the demo dies. */
void demo_freeze_remove(struct demo_freeze *freeze);

/* ---- demo_event.c ---- */

/* Plans the scenario's event, if it has one: call it when the job runs and after the fault. */
void demo_event_on_running(struct demo *demo);
void demo_event_on_fault(struct demo *demo);
/* A rank has failed, and the job with it: what a launcher does then, and who writes of it. */
void demo_event_on_failure(struct demo *demo);
/* The file that stalls the simulated network, or ends the culprit's device, once it is there. */
void demo_event_break_file(const struct demo *demo, char path[PATH_MAX]);

/* ---- demo_epitaph.c ---- */

/* Ends the demo with the first epitaph that a daemon writes. */
void demo_epitaph_await(struct demo *demo);

/* ---- demo_job.c ---- */

int demo_job_start(struct demo *demo, struct cw_err *err);
/* The scenario's fault is there: people are told, and the alert is waited for. */
void demo_job_fault_happened(struct demo *demo);
/* After children have ended: is it what the scenario wants? */
void demo_job_on_ended(struct demo *demo);
/* Whether the scenario's ranks end by themselves, or are ended, without anything being wrong. */
bool demo_job_ends(const struct demo *demo);
