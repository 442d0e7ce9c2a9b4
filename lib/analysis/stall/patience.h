/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patience that each kind of evidence gets: the table of docs/design/patience.md, except for
 * proofs, which need no patience. The verdict names the rank for which the others wait. Whether the
 * job hangs depends on this rank's activity, on the waits that the job has survived before, and on
 * the job's own watchdog. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/wait_sites.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

#define PATIENCE_NEVER INT64_MAX

struct patience {
	const char *name; /* name of the table's row, for logs: "idle", … */
	/* Ages count from this time on: the rank is needed and inactive since then. */
	int64_t since_ns;
	int64_t read_after_ns; /* from this age on, we read the evidence to confirm it */
	int64_t notice_ns;     /* from this age on, we send a notice */
	int64_t page_ns;       /* from this age on, a confirmed wait is a hang */
	int64_t stall_ns;      /* T, counted from the beginning of the waiting */
	enum cw_hang hang, hang_at_page;
	enum cw_confidence confidence; /* the highest confidence that the row allows */
	bool may_page;
	bool is_no_proof; /* the verdict does not count as a proof, even if its is_proof is true */
	bool is_source;   /* the rank hands out work to the others and waits for work itself */
	/*
	 * gives_work: the others wait in the call by which the source hands out work.
	 * proposes_serving: the job looks like a server, and no notice has said so yet.
	 */
	bool gives_work, proposes_serving;
	/*
	 * True if a culprit is held, or its node is lost. We learn nothing from the length of the
	 * wait.
	 */
	bool is_held;
	bool is_pause; /* true if the time of this hold does not count in later evaluations */
};

/*
 * Returns the patience with a verdict. sites: the longest waits that the job has survived; NULL =
 * none.
 */
struct patience cw_patience(const struct cw_snapshot *snap, const struct cw_verdict *v,
			    const struct wait_sites *sites);

/*
 * Returns a hash of the facts that must not change between two readings: class, culprits, the call
 * in question and the culprit's counters there. If the class concerns all members, the hash
 * includes the counters of all members. It omits ranks that began to wait in the meantime, because
 * the rest of the job may move. O(members of one comm).
 */
uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v);
