/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much patience each kind of evidence is given: the table of docs/design/patience.md, apart
 * from its proofs, which need none. Whom somebody waits for is settled in the verdict; whether that
 * is a hang depends on what he is seen to do, on what this job has got over before, and on its own
 * watchdog. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/wait_sites.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

#define PATIENCE_NEVER INT64_MAX

struct patience {
	const char *name;      /* of the row, for logs: "idle", … */
	int64_t since_ns;      /* ages of the row count from here: needed, and no life since */
	int64_t read_after_ns; /* start reading the evidence for confirmation */
	int64_t notice_ns;     /* told of from here on */
	int64_t page_ns;       /* a hang from here on, once confirmed */
	int64_t stall_ns;      /* T, counted from the beginning of the waiting */
	enum cw_hang hang, hang_at_page;
	enum cw_confidence confidence; /* at most */
	bool may_page;
	bool is_no_proof; /* whatever the verdict calls it */
	bool is_source;   /* somebody who gives the others work, and waits for it */
	/* … by the very call they wait in; it looks like a server, which nobody was told yet. */
	bool gives_work, proposes_serving;
	bool is_held;  /* by a person: nothing is learnt from it */
	bool is_pause; /* ages of other rows count from when this one fits no more */
};

/* sites: what the job has got over; NULL = nothing. */
struct patience cw_patience(const struct cw_snapshot *snap, const struct cw_verdict *v,
			    const struct wait_sites *sites);

/*
 * Hash of what must not have moved between two readings: class, culprits, the call in question and
 * the culprit's counters there (all members' where the class speaks of all). Who else has come to
 * wait in the meantime is left out: the rest of the job may move. O(members of one comm).
 */
uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v);
