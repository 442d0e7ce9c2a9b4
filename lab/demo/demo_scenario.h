/* SPDX-License-Identifier: Apache-2.0 */
/* What can be shown: one row per scenario, and the verdict that is right for it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/verdict_types.h"

enum demo_program {
	DEMO_C,      /* the C program; both know the fault */
	DEMO_EITHER, /* the Python program shows more, the C program will do */
	DEMO_PYTHON, /* only the Python program knows the fault */
	DEMO_SUITE,  /* ranks of a labelled scenario: options are its file and its number in it */
};

enum demo_blame {
	DEMO_BLAME_CULPRIT, /* the rank that goes wrong, nobody else */
	DEMO_BLAME_NOBODY,  /* what is seen does not say who */
	DEMO_BLAME_CYCLE,   /* of a communicator of two both, else the rank that goes wrong */
	DEMO_BLAME_NODE,    /* all ranks of the culprit's node */
};

/* What happens to the job from outside. */
enum demo_event {
	DEMO_EVENT_NONE = 0,
	DEMO_EVENT_NETWORK_STALL,  /* between the culprit and the next rank */
	DEMO_EVENT_CANCEL,         /* a job manager ends the ranks, one by one */
	DEMO_EVENT_NODE_LOSS,      /* of the culprit's node: link, daemon and ranks */
	DEMO_EVENT_JOB_RESTART,    /* a launcher ends all ranks and starts them anew */
	DEMO_EVENT_DAEMON_RESTART, /* of all, while the fault lasts */
	DEMO_EVENT_THAW,           /* of the file system that the culprit writes to */
	DEMO_EVENT_LAUNCHER,       /* ends those that are left once a rank has failed */
	DEMO_EVENT__MAX,
};

struct demo_scenario {
	const char *name;
	const char *summary; /* for --list */
	const char *fault;   /* --fault of the training program; NULL = none */
	const char *happens; /* "rank 3 …" */
	const char *why;     /* nothing is to be reported; NULL = that is plain */
	/* Of the incident; CW_CLASS_HEALTHY = nothing must be reported. */
	enum cw_class expected_class;
	enum cw_detail expected_detail; /* CW_DETAIL_NONE = any */
	enum demo_program program;
	enum demo_blame blame;
	enum demo_event event;
	const char *options[2];   /* of the training program; NULL = none */
	int steps;                /* the program ends after so many; 0 = it does not end */
	int memory_mb;            /* of the culprit, by a control group; 0 = no limit */
	int lasts_s;              /* the fault, where it passes; 0 = as the program likes */
	int watch_s;              /* at least, to see that nothing is reported */
	int no_headway_s;         /* of the daemons; 0 = as in all others */
	bool is_in_pairs;         /* an even number of ranks */
	bool has_epitaph;         /* the job fails: the verdict is that of its epitaph */
	bool needs_host_wait;     /* a daemon must be able to see in what a rank sleeps */
	int min_ranks, min_nodes; /* 0 = 1 */
	int alert_within_s;       /* of the fault: what is promised; 0 = no alert */
};

/* NULL = there is none of that name. */
const struct demo_scenario *demo_scenario_find(const char *name);
const struct demo_scenario *demo_scenario_default(void);
void demo_scenario_list(FILE *out);
/* Of the i-th; NULL = there are no more. */
const char *demo_scenario_name(unsigned i);

/* How it is run. */
struct demo_case {
	int ranks, nodes, culprit;
};

/* Ranks are placed in blocks, as launchers do. */
static inline int demo_case_node(const struct demo_case *c, int rank)
{
	return (int)((long)rank * c->nodes / c->ranks);
}

/* Whether doc (of an incident, an epitaph, or that all is well) is the right verdict on that case.
 */
bool demo_scenario_is_right(const struct demo_scenario *s, const json_t *doc,
			    const struct demo_case *c);
