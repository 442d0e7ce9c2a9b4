/* SPDX-License-Identifier: Apache-2.0 */
/* The reports on a scenario: its pages, one after the other, and its notices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/verdict_types.h"

struct cw_snapshot;

/* A wait of more than a minute that ended by itself, and the number of reports during it. */
struct outcome_wait {
	int64_t length_ns;
	uint32_t pages, notices;
};

/*
 * What happened to a rank, by the cluster's own account. Times are on the cluster's clock; 0 =
 * never.
 */
struct outcome_rank {
	int64_t hit_ns; /* last time that a fault struck it */
	/* It was stuck in a call from stood_ns on, until it ended or we watched it no more. */
	int64_t stood_ns, until_ns;
	uint32_t group; /* equal for all ranks that communicators connect */
};

/* A report. lab/cli/suite_workers.c passes its lists between processes, line by line. */
struct outcome {
	bool is_alert;               /* true: a page; false: silence */
	bool is_notice;              /* one of `notices` */
	bool is_slow;                /* silence, and at the end a rank comes late */
	bool is_well;                /* silence, and at the end all ranks make progress */
	bool went_on;                /* a page, and the waiting ranks made progress afterwards */
	enum cw_class verdict_class; /* class of the page, the notice or the late rank */
	enum cw_detail detail;
	enum cw_confidence confidence;
	enum cw_hang hang; /* how sure the report is that a rank hangs */
	int32_t *culprits; /* labels, ascending; owned */
	uint32_t n_culprits;
	int64_t after_ns; /* time from the first fault (or the start) to the alert */
	/*
	 * Time from when the fault could be known to the alert: from the culprits' fault, or from
	 * the first wait that it caused.
	 */
	int64_t known_for_ns;
	/*
	 * Times of a page on the cluster's clock: when it was sent, and when its incident first
	 * said that the hang is proven. 0 = never.
	 */
	int64_t alerted_ns, proven_ns;
	char summary[512];
	bool is_fault_missing; /* some fault of the scenario never happened, so this is no test */
	bool is_recorded;      /* the reports on ops came from flight records */
	uint32_t n_checks;
	int64_t fast_forwarded_ns; /* time that we skipped in a scenario that fast-forwards */
	/* In the first outcome only: waits that ended by themselves; owned. */
	struct outcome_wait *healthy_waits;
	uint32_t n_healthy_waits;
	/* In the first outcome only: all ranks of the job; owned. */
	struct outcome_rank *ranks;
	uint32_t n_ranks;
	/* The next alert, if we wait for more than the first; owned. */
	struct outcome *also;
	/*
	 * In the first outcome only: the notices, one for each incident that began as a notice;
	 * owned.
	 */
	struct outcome *notices;
	/* In the first outcome only: the post-mortems of the job; owned. */
	struct outcome *postmortems;
};

/* Returns the outcome for the next alert: o itself, or a new one at the end of its list. */
struct outcome *outcome_next(struct outcome *o);
/* Like outcome_next(), but for the next notice, and for the next post-mortem. */
struct outcome *outcome_next_notice(struct outcome *o);
struct outcome *outcome_next_postmortem(struct outcome *o);

/* Adds a wait that ended by itself. */
void outcome_add_wait(struct outcome *o, const struct outcome_wait *wait);

static inline bool cw_outcome_says(const struct outcome *o)
{
	return o->is_alert || o->is_slow;
}

void cw_outcome_fini(struct outcome *o);
/* Notes the ranks that come late in a snapshot with all windows. 0 or -ENOMEM. */
int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap);
