/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of the demo. A scenario is a row of a table, with the verdict that is right for it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/verdict_types.h"

enum demo_program {
	DEMO_C,      /* run the C program; both programs know the fault */
	DEMO_EITHER, /* run either program; the Python program shows more */
	DEMO_PYTHON, /* run the Python program; only this one knows the fault */
};

enum demo_blame {
	DEMO_BLAME_CULPRIT, /* only the faulty rank */
	DEMO_BLAME_LINK,    /* the faulty rank, and the rank at the other end of its connection */
	DEMO_BLAME_CYCLE,   /* if the communicator has two ranks: both; otherwise the faulty rank */
	DEMO_BLAME_NODE,    /* all ranks of the culprit's node */
};

/* Events from outside of the job. */
enum demo_event {
	DEMO_EVENT_NONE = 0,
	DEMO_EVENT_NETWORK_STALL,  /* the link between the culprit and the next rank stalls */
	DEMO_EVENT_CANCEL,         /* a job manager ends the ranks, one by one */
	DEMO_EVENT_NODE_LOSS,      /* the culprit's node is lost: link, daemon and ranks */
	DEMO_EVENT_JOB_RESTART,    /* a launcher ends all ranks and starts them again */
	DEMO_EVENT_DAEMON_RESTART, /* all daemons restart during the fault */
	DEMO_EVENT_THAW,           /* the file system that the culprit writes to is thawed */
	DEMO_EVENT_LAUNCHER,       /* a launcher ends the remaining ranks after a failure */
	DEMO_EVENT__MAX,
};

struct demo_scenario {
	const char *name;
	const char *summary; /* description that --list prints */
	const char *fault;   /* option --fault of the training program; NULL = none */
	const char *happens; /* words after "rank 3 " that describe the fault */
	const char *why;     /* reason why a report would be wrong; NULL = obvious */
	/* Class of the incident; CW_CLASS_HEALTHY = there must be no report. */
	enum cw_class expected_class;
	enum cw_detail expected_detail; /* CW_DETAIL_NONE = any */
	enum demo_program program;
	enum demo_blame blame;
	enum demo_event event;
	const char *options[2];   /* further options of the training program; NULL = none */
	int steps;                /* number of steps of the program; 0 = endless */
	int memory_mb;            /* limit of the culprit's control group; 0 = no limit */
	int lasts_s;              /* duration of a temporary fault; 0 = the program's choice */
	int watch_s;              /* minimum time to watch for reports */
	int no_progress_after_s;  /* this setting of the daemons; 0 = the demo's default */
	bool is_in_pairs;         /* the scenario needs an even number of ranks */
	bool has_postmortem;      /* the job fails, and the verdict is in its post-mortem */
	bool needs_host_wait;     /* needs a daemon that can see what a rank sleeps in */
	int min_ranks, min_nodes; /* 0 = 1 */
	/* the alert must come within this time after the fault; 0 = no alert */
	int alert_within_s;
};

/* Returns the scenario of this name; NULL = there is none. */
const struct demo_scenario *demo_scenario_find(const char *name);
const struct demo_scenario *demo_scenario_default(void);
void demo_scenario_list(FILE *out);
/* Returns the name of the i-th scenario; NULL = i is beyond the last. */
const char *demo_scenario_name(unsigned i);

/* The parameters of a run. */
struct demo_case {
	int ranks, nodes, culprit;
};

/* Returns the node of a rank. We place ranks in blocks, like launchers. */
static inline int demo_case_node(const struct demo_case *c, int rank)
{
	return (int)((long)rank * c->nodes / c->ranks);
}

/* True if doc (an incident, a post-mortem, or a healthy document) is right in this case. */
bool demo_scenario_is_right(const struct demo_scenario *s, const json_t *doc,
			    const struct demo_case *c);
