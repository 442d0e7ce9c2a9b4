/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: a training job on the simulated device, a fault, and collwatch's report on it. It has a
 * small site of its own (daemons, webhook receiver, sockets, state) under a private directory. The
 * demo does not touch the site's own collwatch. One thread, one event loop.
 *
 *	verb_demo.c      options; the output at the end
 *	demo.c           the sequence of events
 *	demo_nodes.c      directory, daemons
 *	demo_net.c       nodes as network namespaces
 *	demo_job.c       the ranks
 *	demo_postmortem.c  the post-mortem of a failed job
 *	demo_event.c     events from outside
 *	demo_cgroup.c    a memory limit for one rank
 *	demo_freeze.c    a file system that can freeze
 *	demo_proc.c      processes: start, output, end
 *	demo_webhook.c   receiver of alerts
 *	demo_scenario.c  the scenarios
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

#define DEMO_MAX_RANKS DEMO_NET_MAX_NODES /* at most a node per rank */
#define DEMO_JOB "demo"

struct event;
struct event_base;

struct demo_options {
	const struct demo_scenario *scenario;
	struct demo_case run;
	int seconds;      /* healthy: for how long we watch */
	int timeout_s;    /* from the fault until the alert */
	const char *keep; /* directory for a copy of the bundle; NULL = no copy */
	bool json, check, all_frames, no_namespaces, has_call_stacks;
	bool is_torch; /* run real PyTorch, in another program */
};

struct demo_node {
	struct demo_proc daemon;
	char name[16];
	char dir[PATH_MAX / 2];
	const char *address;
	int port;    /* port for the peers */
	int port_fd; /* reserves the port; -1 = no other process uses this address */
	int notify_fd;
	struct event *on_notify;
	bool is_ready;
	bool is_lost;       /* the node is lost with all its processes */
	bool is_restarting; /* we asked the daemon to end */
	struct demo *demo;
};

struct demo_rank {
	struct demo_proc proc;
	int rank, node;
	long step; /* the newest step that the rank has reported */
	struct demo *demo;
};

enum demo_outcome {
	DEMO_RUNNING = 0,
	DEMO_ALERT,       /* the alert arrived: demo.incident */
	DEMO_WATCHED,     /* healthy: the time is over, and no report came */
	DEMO_TIMEOUT,     /* an expected event did not come; demo.err names it */
	DEMO_FAILED,      /* demo.err has the reason */
	DEMO_INTERRUPTED, /* demo.signo has the signal */
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
	int64_t deadline_ns; /* of the expected event, CLOCK_MONOTONIC */
	int n_extended;      /* number of times that we waited a second longer */
	struct event *look;  /* polls for a post-mortem */
	json_t *status;      /* job's status when the time was over; NULL = not asked */
	int n_cancelled;
	bool has_launcher_acted;    /* the launcher has ended the ranks of the failed node */
	int n_restarts;             /* restarts of the whole job */
	bool is_restarting;         /* we asked all ranks of the job to end */
	char cgroup[PATH_MAX / 4];  /* cgroup of the culprit, if its memory is limited; "" = none */
	struct demo_freeze *freeze; /* NULL = none */

	bool site_is_up, job_is_running;
	int64_t fault_ns;    /* monotonic time of the fault; 0 = not yet */
	int64_t watching_ns; /* monotonic time at which all ranks ran */

	enum demo_outcome outcome;
	int signo;
	int64_t alert_ns;
	json_t *incident;          /* the incident that the webhook received, or the post-mortem */
	char bundle[PATH_MAX * 2]; /* path of its bundle */
	struct cw_err err;
};

/* ---- demo.c ---- */

/*
 * Runs the demo to an outcome; blocks. Afterwards all started processes still run, until the caller
 * calls demo_stop().
 */
void demo_run(struct demo *demo);
/*
 * Stops all processes and removes the directory. Also works for a demo that started only in part.
 */
void demo_stop(struct demo *demo);
/*
 * Call it after the outcome. Runs the loop until is_there() is true, for at most this many seconds.
 */
void demo_await(struct demo *demo, bool (*is_there)(const struct demo *demo), int seconds);
/* Ends the loop with this outcome. If there is an outcome already, it stays. */
void demo_end(struct demo *demo, enum demo_outcome outcome);
/* Prints a line of progress on stderr. */
void demo_say(const struct demo *demo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Sets the only deadline. If no event comes within this many seconds, the demo reports that `what`
 * is missing.
 */
void demo_expect(struct demo *demo, int seconds, const char *what);

/* ---- demo_nodes.c ---- */

/* Names the nodes and gives them addresses. If possible, they get a network of their own. */
int demo_nodes_plan(struct demo *demo, struct cw_err *err);
int demo_nodes_start(struct demo *demo, struct cw_err *err);
/*
 * Call it after children have ended. Finds daemons that ended unexpectedly. Restarts a daemon if
 * the scenario says so.
 */
void demo_nodes_on_ended(struct demo *demo);
void demo_nodes_fini(struct demo *demo);
/*
 * Finds a loopback port. The port stays reserved while *ret_fd is open, but users with SO_REUSEADDR
 * may bind it.
 */
int demo_free_port(int *ret_port, int *ret_fd);
/* Asks the daemon of the job's leader for the job's status (new reference). NULL = no status. */
json_t *demo_nodes_job_status(struct demo *demo);

/* ---- demo_cgroup.c ---- */

/* Makes demo.cgroup with this memory limit. Needs root and the version 1 memory hierarchy. */
int demo_cgroup_make(struct demo *demo, int memory_mb, struct cw_err *err);
/* Removes the cgroup if it exists. Its process must have ended. */
void demo_cgroup_remove(struct demo *demo);

/* ---- demo_freeze.c ---- */

/* Makes a small, frozen file system at PATH. Needs root, mkfs.ext4 and a loop device. */
int demo_freeze_make(const char *path, struct demo_freeze **ret, struct cw_err *err);
void demo_freeze_thaw(struct demo_freeze *freeze);
/* Thaws and removes the file system; takes NULL. If the demo dies, a separate process does this. */
void demo_freeze_remove(struct demo_freeze *freeze);

/* ---- demo_event.c ---- */

/*
 * Schedules the scenario's event, if there is one. Call the first function when the job runs, and
 * the second after the fault.
 */
void demo_event_on_running(struct demo *demo);
void demo_event_on_fault(struct demo *demo);
/*
 * Call it when a rank, and with it the job, has failed. Starts the launcher's reaction, and waits
 * for the post-mortem.
 */
void demo_event_on_failure(struct demo *demo);
/*
 * Fills path with the name of a file. If this file exists, the simulated network stalls, or the
 * culprit's device dies.
 */
void demo_event_break_file(const struct demo *demo, char path[PATH_MAX]);

/* ---- demo_postmortem.c ---- */

/* Ends the demo at the first post-mortem from a daemon. */
void demo_postmortem_await(struct demo *demo);

/* ---- demo_job.c ---- */

int demo_job_start(struct demo *demo, struct cw_err *err);
/* Call it when the scenario's fault has happened. Prints the fault, and waits for the alert. */
void demo_job_fault_happened(struct demo *demo);
/* Call it after children have ended. Checks how they ended against the scenario. */
void demo_job_on_ended(struct demo *demo);
/* True if the scenario's ranks end without a fault, by themselves or by a launcher. */
bool demo_job_ends(const struct demo *demo);
