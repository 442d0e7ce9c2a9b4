/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall or hang: proof first, patience second (docs/design/patience.md#patience). The tracker
 * watches the verdicts on one job over time. It decides when to look closer, when a wait is a
 * stall, and when to raise an alert.
 *
 * Pure like the rest of analysis/: time comes from snapshot.now_ns. The caller owns one tracker per
 * job. Not thread-safe; never blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/verdict.h"
#include "model/snapshot.h"

struct cw_stall;

enum cw_stall_phase {
	CW_STALL_QUIET = 0,   /* nothing pending long enough to look at */
	CW_STALL_SUSPECT = 1, /* look closer: fetch windows, sample the ranks of the chain */
	CW_STALL_STALLED = 2, /* an op is pending for longer than T; may still resolve */
	CW_STALL_HANG = 3,    /* confirmed: raise an incident */
};

struct cw_stall_decision {
	enum cw_stall_phase phase;
	struct cw_verdict_key key; /* the matter of this decision; not set when quiet */
	int64_t since_ns;          /* when the waiting began */
	int64_t stall_ns;          /* when it became a stall; 0 = not yet */
	int64_t confirmed_ns;      /* 0 = not yet */
	int64_t next_ns;           /* time of the next evaluation, at the latest */
	bool want_windows;         /* request the windows of verdict.wanted */
	/* A notice on this stall was sent, but no page: see enum cw_severity. */
	bool is_noticed;
	int64_t noticed_ns; /* 0 = not yet */
	/*
	 * The notice says that the job looks like a server and proposes COLLWATCH_POLICY=serving.
	 */
	bool proposes_serving;
	/* Set for a stall or more. The value for a page was fixed when the hang was confirmed. */
	enum cw_hang hang;
	/* Confidence after patience: may be lower than the verdict's. */
	enum cw_confidence confidence;
	/* The key of an open stall that has resolved, and how long it lasted. Not set = none. */
	/*
	 * The matter `key` continues this older matter, including its notices. Not set = it is new.
	 */
	struct cw_verdict_key moved_from;
	struct cw_verdict_key resolved_key;
	int64_t resolved_after_ns;
	char resolved_what[256]; /* summary of the verdict on it, as last seen */
	char why[160];           /* for logs: "pending 12 s on tp_group, confirmed twice" */
};

/* cw_stall_new() returns NULL if out of memory. cw_stall_free() accepts NULL and returns NULL. */
struct cw_stall *cw_stall_new(void);
struct cw_stall *cw_stall_free(struct cw_stall *s);

/* Snapshots must come with non-decreasing now_ns; an older one is ignored (phase unchanged). */
void cw_stall_step(struct cw_stall *s, const struct cw_snapshot *snap, const struct cw_verdict *v,
		   struct cw_stall_decision *ret);

/*
 * Like cw_stall_step(), but takes n verdicts on one snapshot (at most CW_VERDICT_LIST_MAX) and
 * fills one decision for each. A resolved stall is reported in the first decision.
 */
void cw_stall_step_all(struct cw_stall *s, const struct cw_snapshot *snap,
		       const struct cw_verdict *v, uint32_t n, struct cw_stall_decision *ret);

/* True if a notice on this job has proposed COLLWATCH_POLICY=serving. */
bool cw_stall_has_proposed_serving(const struct cw_stall *s);

/* Returns the severity by this one snapshot alone, as if it had read the same for long enough. */
enum cw_severity cw_stall_severity(const struct cw_snapshot *snap, const struct cw_verdict *v,
				   enum cw_hang *ret_hang);

/*
 * Returns T, the stall limit of one member of one comm, in ns: clamp(factor × median interval, min,
 * max), and at least 4 × bytes over the worst bandwidth. For the first op and initialisation:
 * first_op + per_rank × nranks.
 */
int64_t cw_stall_limit_ns(const struct cw_snapshot *snap, uint32_t comm, uint32_t member);
