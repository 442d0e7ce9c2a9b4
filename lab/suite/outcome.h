/* SPDX-License-Identifier: Apache-2.0 */
/* What was told of a scenario: its pages, one after the other, and its notices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/verdict_types.h"

struct cw_snapshot;

/* A wait of more than a minute that came to an end by itself, and what was told of it meanwhile. */
struct outcome_wait {
	int64_t length_ns;
	uint32_t pages, notices;
};

/* What befell a rank, by the cluster's own account; times on its clock, 0 = never. */
struct outcome_rank {
	int64_t hit_ns; /* when a fault did last */
	/* It stood in a call from then on, until it ended or was watched no more. */
	int64_t stood_ns, until_ns;
	uint32_t group; /* the same of all that communicators join */
};

/* What it points to is handed between processes by lab/cli/suite_workers.c, line by line. */
struct outcome {
	bool is_alert;               /* a page; false: silence */
	bool is_notice;              /* one of `notices` */
	bool is_slow;                /* silence, and somebody is late at the end */
	bool is_well;                /* silence, and at the end everybody gets on */
	bool went_on;                /* a page, and those who waited got on afterwards */
	enum cw_class verdict_class; /* of either */
	enum cw_detail detail;
	enum cw_confidence confidence;
	enum cw_hang hang; /* how sure it is that anything hangs */
	int32_t *culprits; /* labels, ascending; owned */
	uint32_t n_culprits;
	int64_t after_ns; /* from the first fault (or the start) to the alert */
	/* … from when it could be known: its culprits' fault, or the first wait because of it. */
	int64_t known_for_ns;
	/* On the cluster's clock: of a page, when it was told, and when its incident first said
	 * that it is proven to hang; 0 = it never did. */
	int64_t alerted_ns, proven_ns;
	char summary[512];
	bool is_fault_missing; /* some fault of the scenario never happened: it is not a test */
	bool is_recorded;      /* what was told of ops came out of flight records */
	uint32_t n_checks;
	int64_t fast_forwarded_ns; /* left out of a scenario that fast-forwards */
	/* Of the first: waits that came to an end by themselves; owned. */
	struct outcome_wait *healthy_waits;
	uint32_t n_healthy_waits;
	/* Of the first: all ranks of the job; owned. */
	struct outcome_rank *ranks;
	uint32_t n_ranks;
	/* The alert after this one, where more than the first are waited for; owned. */
	struct outcome *also;
	/* Of the first: the notices, one for each incident that had one first; owned. */
	struct outcome *notices;
	/* Of the first: what was said of the job when it had died; owned. */
	struct outcome *postmortems;
};

/* Where the next alert is noted: it, or a new one behind those there are. NULL = no memory. */
struct outcome *outcome_next(struct outcome *o);
/* The same for the next notice, and the next post-mortem. */
struct outcome *outcome_next_notice(struct outcome *o);
struct outcome *outcome_next_postmortem(struct outcome *o);

/* 0 or -ENOMEM. */
int outcome_add_wait(struct outcome *o, const struct outcome_wait *wait);

static inline bool cw_outcome_says(const struct outcome *o)
{
	return o->is_alert || o->is_slow;
}

void cw_outcome_fini(struct outcome *o);
/* Who comes late in a snapshot with all windows, if anybody does. 0 or -ENOMEM. */
int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap);
