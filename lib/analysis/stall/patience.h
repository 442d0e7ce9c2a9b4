/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patience that each kind of evidence gets: the table of docs/design/patience.md, without its
 * proofs, which need no patience. The verdict says for which rank the others wait. Whether this is
 * a hang depends on the rank's activity, on the waits that the job has survived before, and on the
 * job's own watchdog. Pure functions.
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
	int64_t since_ns;      /* ages count from here: needed and inactive since then */
	int64_t read_after_ns; /* from this age on, read the evidence for confirmation */
	int64_t notice_ns;     /* from this age on, send a notice */
	int64_t page_ns;       /* from this age on, a hang, once confirmed */
	int64_t stall_ns;      /* T, counted from the beginning of the waiting */
	enum cw_hang hang, hang_at_page;
	enum cw_confidence confidence; /* at most */
	bool may_page;
	bool is_no_proof; /* overrides the verdict's is_proof */
	bool is_source;   /* the rank hands out work to the others and waits for work itself */
	/*
	 * gives_work: the source hands out work by the very call that the others wait in.
	 * proposes_serving: the job looks like a server, and no notice has said so yet.
	 */
	bool gives_work, proposes_serving;
	bool is_held;  /* held by a person; we learn nothing from such a wait */
	bool is_pause; /* times of later rows count from the end of this pause */
};

/* sites: the longest waits that the job has survived; NULL = none. */
struct patience cw_patience(const struct cw_snapshot *snap, const struct cw_verdict *v,
			    const struct wait_sites *sites);

/*
 * Returns a hash of the facts that must not change between two readings: class, culprits, the call
 * in question and the culprit's counters there. If the class concerns all members, it includes the
 * counters of all. It leaves out ranks that began to wait in the meantime: the rest of the job may
 * move. O(members of one comm).
 */
uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v);
