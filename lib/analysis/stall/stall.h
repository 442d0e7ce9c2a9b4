/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stall or hang: proof first, patience second (docs/design/patience.md#patience). The tracker
 * follows the verdicts on one job over time. It decides when we need more data, when a wait is a
 * stall, and when we raise an alert.
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
	CW_STALL_QUIET = 0,   /* nothing is pending for long enough to matter */
	CW_STALL_SUSPECT = 1, /* fetch windows, and sample the ranks of the chain */
	CW_STALL_STALLED = 2, /* an op is pending for longer than T, but may still complete */
	CW_STALL_HANG = 3,    /* confirmed: raise an incident */
};

struct cw_stall_decision {
	enum cw_stall_phase phase;
	struct cw_verdict_key key; /* the trouble that this decision is about; not set when quiet */
	int64_t since_ns;          /* when the waiting began */
	int64_t stall_ns;          /* when the wait became a stall; 0 = not yet */
	int64_t confirmed_ns;      /* when the wait became a hang; 0 = not yet */
	int64_t limit_ns;          /* T: at this age, a wait becomes a stall */
	int64_t next_ns;           /* time of the next evaluation, at the latest */
	bool want_windows;         /* request the windows of verdict.wanted */
	/* We sent a notice on this stall, but no page; enum cw_severity. */
	bool is_noticed;
	int64_t noticed_ns; /* when we sent the notice; 0 = not yet */
	/*
	 * The notice says that the job looks like a server, and proposes COLLWATCH_POLICY=serving.
	 */
	bool proposes_serving;
	/* Set for a stall or a hang. For a hang, the value is the one at its confirmation. */
	enum cw_hang hang;
	/* The confidence after patience, which may be lower than the verdict's. */
	enum cw_confidence confidence;
	/*
	 * The trouble `key` continues this older trouble, including its notices. Not set = it is
	 * new.
	 */
	struct cw_verdict_key moved_from;
	/* The key of an open stall that has resolved, and how long it lasted. Not set = none. */
	struct cw_verdict_key resolved_key;
	int64_t resolved_after_ns;
	char resolved_what[256]; /* summary of the last verdict on the resolved stall */
	char why[160];           /* for logs: "pending 12 s on tp_group, confirmed twice" */
};

/* cw_stall_new() returns NULL if out of memory. cw_stall_free() accepts NULL and returns NULL. */
struct cw_stall *cw_stall_new(void);
struct cw_stall *cw_stall_free(struct cw_stall *s);

/*
 * Takes the verdict on the next snapshot and fills *ret. now_ns of the snapshots must not decrease.
 * We ignore an older snapshot and repeat the last decision.
 */
void cw_stall_step(struct cw_stall *s, const struct cw_snapshot *snap, const struct cw_verdict *v,
		   struct cw_stall_decision *ret);

/*
 * Like cw_stall_step(), but takes n verdicts on one snapshot (at most CW_VERDICT_LIST_MAX). Fills
 * one decision for each verdict. The first decision reports a resolved stall.
 */
void cw_stall_step_all(struct cw_stall *s, const struct cw_snapshot *snap,
		       const struct cw_verdict *v, uint32_t n, struct cw_stall_decision *ret);

/* True if a notice on this job has proposed COLLWATCH_POLICY=serving. */
bool cw_stall_has_proposed_serving(const struct cw_stall *s);

/*
 * Returns the severity by this one snapshot alone. We assume that the evidence has been the same
 * for long enough.
 */
enum cw_severity cw_stall_severity(const struct cw_snapshot *snap, const struct cw_verdict *v,
				   enum cw_hang *ret_hang);

/*
 * Returns T, the stall limit of one member of one comm, in ns. T is clamp(factor × median interval,
 * min, max), and at least 4 × bytes over the worst bandwidth. For the first op and for
 * initialisation T is first_op + per_rank × nranks.
 */
int64_t cw_stall_limit_ns(const struct cw_snapshot *snap, uint32_t comm, uint32_t member);
