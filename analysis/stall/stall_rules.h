/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much patience each kind of verdict is given: the table of docs/design.md section 9, apart
 * from its first row (proofs, which need none). Pure functions of snapshot and verdict.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* Ages are counted from the moment the waiting began. */
struct stall_rule {
	const char *name;      /* for logs: "no headway", … */
	int64_t read_after_ns; /* start reading the evidence for confirmation */
	int64_t stall_ns;      /* T: a stall from here on */
	int64_t alert_ns;      /* a hang from here on, once confirmed */
	bool may_alert;
	enum cw_confidence confidence; /* at most */
};

struct stall_rule cw_stall_rule_for(const struct cw_snapshot *snap, const struct cw_verdict *v,
				    int64_t longest_recovered_ns);

/*
 * Hash of what must not have moved between two readings: class, culprits, the call in question and
 * the culprit's counters there (all members' where the class speaks of all). Who else has come to
 * wait in the meantime is left out: the rest of the job may move. O(members of one comm).
 */
uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v);
