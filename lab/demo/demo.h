/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: a training job on the simulated device, a fault, and collwatch's report on it. The demo
 * has its own small site (daemons, webhook receiver, sockets, state) in a private directory, and
 * does not touch the collwatch of the real site. One thread, one event loop.
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

#define DEMO_MAX_RANKS DEMO_NET_MAX_NODES /* each rank may be on its own node */
#define DEMO_JOB "demo"

struct event;
struct event_base;

struct demo_options {
	const struct demo_scenario *scenario;
	struct demo_case run;
	int seconds;      /* for the scenario `healthy`: time that we watch */
	int timeout_s;    /* longest time from the fault to the alert */
	const char *keep; /* directory for a copy of the bundle; NULL = no copy */
	bool json, check, all_frames, no_namespaces, has_call_stacks;
	/* run real PyTorch, or NVIDIA's NCCL, by another program */
	bool is_torch, is_real_nccl;
};

struct demo_node {
	struct demo_proc daemon;
	char name[16];
	char dir[PATH_MAX / 2];
	const char *address;
	int port; /* port for the peers */
	/*
	 * reserves the port; -1 = only this node uses the address, so no reservation is necessary
	 */
	int port_fd;
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
	long step; /* the newest step number that the rank has reported */
	struct demo *demo;
};

enum demo_outcome {
	DEMO_RUNNING = 0,
	DEMO_ALERT,       /* the alert arrived: demo.incident */
	DEMO_WATCHED,     /* scenario `healthy`: the time is over, and no report came */
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
	int64_t deadline_ns; /* deadline of the expected event, CLOCK_MONOTONIC */
	int n_extended;      /* number of times that we extended the deadline by a second */
	struct event *look;  /* timer of the search for a post-mortem */
	json_t *status;      /* the job's status at the deadline; NULL = we have not queried it */
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
	/* the incident that the webhook received, or the post-mortem that we found */
	json_t *incident;
	char bundle[PATH_MAX * 2]; /* path of the incident's bundle */
	struct cw_err err;
};

/* ---- demo.c ---- */

/*
 * Runs the demo until it has an outcome; blocks. The processes that it started still run
 * afterwards, until the caller calls demo_stop().
 */
void demo_run(struct demo *demo);
/*
 * Stops all processes and removes the directory. Call it also if the demo has started only in part.
 */
void demo_stop(struct demo *demo);
/* Runs the event loop after the outcome until is_there() is true, for at most this many seconds. */
void demo_await(struct demo *demo, bool (*is_there)(const struct demo *demo), int seconds);
/* Ends the event loop with this outcome. An earlier outcome stays. */
void demo_end(struct demo *demo, enum demo_outcome outcome);
/* Prints a line of progress on stderr. */
void demo_say(const struct demo *demo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Sets the only deadline. If no expected event comes within this many seconds, the demo reports
 * that `what` is missing.
 */
void demo_expect(struct demo *demo, int seconds, const char *what);

/* ---- demo_nodes.c ---- */

/* Gives the nodes names and addresses and, if possible, their own network. */
int demo_nodes_plan(struct demo *demo, struct cw_err *err);
int demo_nodes_start(struct demo *demo, struct cw_err *err);
/*
 * Finds daemons that ended unexpectedly, and restarts a daemon if the scenario says so. Call it
 * when child processes have ended.
 */
void demo_nodes_on_ended(struct demo *demo);
void demo_nodes_fini(struct demo *demo);
/*
 * Finds a free port on loopback. No other program can bind the port while *ret_fd is open, unless
 * it uses SO_REUSEADDR, as daemons do.
 */
int demo_free_port(int *ret_port, int *ret_fd);
/* Queries the daemon of the job's leader for the job's status. New reference; NULL = no status. */
json_t *demo_nodes_job_status(struct demo *demo);

/* ---- demo_cgroup.c ---- */

/*
 * Makes the cgroup demo.cgroup with this memory limit. Needs root and the memory hierarchy of
 * cgroup version 1.
 */
int demo_cgroup_make(struct demo *demo, int memory_mb, struct cw_err *err);
/* Removes the cgroup if it exists. Its process must have ended. */
void demo_cgroup_remove(struct demo *demo);

/* ---- demo_freeze.c ---- */

/* Makes a small, frozen file system at PATH. Needs root, mkfs.ext4 and a loop device. */
int demo_freeze_make(const char *path, struct demo_freeze **ret, struct cw_err *err);
void demo_freeze_thaw(struct demo_freeze *freeze);
/*
 * Thaws and removes the file system. Accepts NULL. If the demo dies, a separate process does this.
 */
void demo_freeze_remove(struct demo_freeze *freeze);

/* ---- demo_event.c ---- */

/*
 * Schedule the scenario's event, if it has one. Call the first function when the job runs, and the
 * second after the fault.
 */
void demo_event_on_running(struct demo *demo);
void demo_event_on_fault(struct demo *demo);
/*
 * Starts the launcher's reaction to a failed rank, and waits for the post-mortem. Call it when a
 * rank, and with it the job, has failed.
 */
void demo_event_on_failure(struct demo *demo);
/*
 * Fills path with the name of a file. As soon as the file exists, the simulated network stalls, or
 * the culprit's device dies.
 */
void demo_event_break_file(const struct demo *demo, char path[PATH_MAX]);

/* ---- demo_postmortem.c ---- */

/* Ends the demo at the first post-mortem from a daemon. */
void demo_postmortem_await(struct demo *demo);

/* ---- demo_job.c ---- */

int demo_job_start(struct demo *demo, struct cw_err *err);
/* Prints the fault and waits for the alert. Call it when the scenario's fault has happened. */
void demo_job_fault_happened(struct demo *demo);
/* Compares the ends of ranks with the scenario. Call it when child processes have ended. */
void demo_job_on_ended(struct demo *demo);
/*
 * True if the ranks of the scenario end without a fault, either by themselves or because a launcher
 * ends them.
 */
bool demo_job_ends(const struct demo *demo);
