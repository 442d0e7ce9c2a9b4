/* SPDX-License-Identifier: Apache-2.0 */
/* The reports on a scenario: a list of its pages, and a list of its notices. */
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
 * The true events of a rank, as the virtual cluster knows them. Times are on the cluster's clock; 0
 * = never.
 */
struct outcome_rank {
	int64_t hit_ns; /* last time that a fault struck it */
	/*
	 * The rank was stuck in a call from stood_ns on, until it ended or we stopped watching it.
	 */
	int64_t stood_ns, until_ns;
	uint32_t group; /* equal for all ranks that communicators connect */
};

/* A report. lab/cli/suite_workers.c passes its lists between processes, line by line. */
struct outcome {
	bool is_alert;  /* true: a page; false: silence */
	bool is_notice; /* one of `notices` */
	bool is_slow;   /* the report is silence, and at the end a rank comes late */
	/* the report is silence, and at the end all ranks make progress */
	bool is_well;
	/* the report is a page, and the waiting ranks made progress afterwards */
	bool went_on;
	enum cw_class verdict_class; /* class of the page, the notice or the late rank */
	enum cw_detail detail;
	enum cw_confidence confidence;
	enum cw_hang hang; /* how certain the report is that a rank hangs */
	int32_t *culprits; /* labels, ascending; owned */
	uint32_t n_culprits;
	int64_t after_ns; /* time from the first fault (or the start) to the alert */
	/*
	 * Time from when the fault could be known to the alert. It counts from the fault of the
	 * culprits, or from the first wait that the fault caused.
	 */
	int64_t known_for_ns;
	/*
	 * Times of a page on the cluster's clock: when it was sent, and when its incident first
	 * said that the hang is proven. 0 = never.
	 */
	int64_t alerted_ns, proven_ns;
	char summary[512];
	/* some fault of the scenario never happened, so the scenario tests nothing */
	bool is_fault_missing;
	bool is_recorded; /* the reports on ops came from flight records */
	uint32_t n_checks;
	int64_t fast_forwarded_ns; /* time that we skipped in a scenario that fast-forwards */
	/* Only in the first outcome: the waits that ended by themselves; owned. */
	struct outcome_wait *healthy_waits;
	uint32_t n_healthy_waits;
	/* Only in the first outcome: all ranks of the job; owned. */
	struct outcome_rank *ranks;
	uint32_t n_ranks;
	/* The next alert, if we watch beyond the first one; owned. */
	struct outcome *also;
	/*
	 * Only in the first outcome: the notices, one per incident that began as a notice; owned.
	 */
	struct outcome *notices;
	/* Only in the first outcome: the post-mortems of the job; owned. */
	struct outcome *postmortems;
};

/* Returns the outcome for the next alert: o itself, or a new one at the end of its list. */
struct outcome *outcome_next(struct outcome *o);
/* Return the outcome for the next notice, and for the next post-mortem, like outcome_next(). */
struct outcome *outcome_next_notice(struct outcome *o);
struct outcome *outcome_next_postmortem(struct outcome *o);

/* Adds a wait that ended by itself. */
void outcome_add_wait(struct outcome *o, const struct outcome_wait *wait);

static inline bool cw_outcome_says(const struct outcome *o)
{
	return o->is_alert || o->is_slow;
}

void cw_outcome_fini(struct outcome *o);
/* Records which ranks come late in a snapshot with all windows. Returns 0 or -ENOMEM. */
int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap);
