/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seconds before a hang is confirmed. While a wait grows towards the stall limit T, we read the
 * Python stacks of the suspects, and of one waiting rank, at T/4, T/2 and T. A stuck process shows
 * no change from one reading to the next, and a slow one shows a change.
 *
 * We only read memory: no process is held. One child per node reads all of its targets, behind the
 * captures of alerts. A job gets CW_EARLIER_STACKS_PER_WINDOW readings in
 * CW_EARLIER_STACKS_WINDOW_NS. We do not ask again if no target has a Python stack.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/stall.h"
#include "common/clock.h"
#include "identity/job_id.h"
#include "leader/incident/evidence_set.h"
#include "leader/incident/leader_effects.h"
#include "model/incident_list.h"
#include "report/doc/earlier_doc.h"

#define CW_EARLIER_STACKS 3u
/* A wait for a slow start may come shortly before the wait that matters. */
#define CW_EARLIER_STACKS_PER_WINDOW (2 * CW_EARLIER_STACKS)
#define CW_EARLIER_STACKS_WINDOW_NS (30 * CW_NS_PER_S)
/* The request of a reading (enum cw_evidence). */
#define CW_EVIDENCE_EARLIER (CW_EVIDENCE_PROC | CW_EVIDENCE_PYTHON_READ | CW_EVIDENCE_BRIEF)
/* Time of the nodes for one reading. The next one may start before the end. */
#define CW_EARLIER_STACKS_MS 4000u

struct cw_earlier_stacks_config {
	const struct cw_clock *clock;
	const struct cw_leader_effects *effects;
	const struct cw_job_id *job;
};

/* One reading: its requests in flight, and for each of its targets the stack. */
struct cw_earlier_reading {
	struct cw_earlier_stacks *owner;
	struct cw_evidence_set set;
	struct cw_stack_reading seen[CW_EVIDENCE_MAX_TARGETS];
};

struct cw_earlier_stacks {
	struct cw_earlier_stacks_config config;
	struct cw_verdict_key key; /* the wait; not set = none */
	int64_t since_ns;          /* begin of the wait */
	struct cw_earlier_reading readings[CW_EARLIER_STACKS];
	uint32_t n;        /* number of readings that we have requested */
	uint32_t stage;    /* number of the ages T/4, T/2 and T that have passed */
	uint32_t n_stacks; /* number of stacks that we have got */
	bool has_answer;
	/* Begin of the time in which we count readings, and their number; both outlive a reset. */
	int64_t window_ns;
	uint32_t n_in_window;
};

/* Borrows what config points to. */
void cw_earlier_stacks_init(struct cw_earlier_stacks *e,
			    const struct cw_earlier_stacks_config *config);
/* Cancels all requests in flight and frees the readings. */
void cw_earlier_stacks_reset(struct cw_earlier_stacks *e);
/* Takes one evaluation. Requests a reading if one is due. Drops the readings of another wait. */
void cw_earlier_stacks_step(struct cw_earlier_stacks *e, const struct cw_snapshot *snap,
			    const struct cw_verdict *v, const struct cw_stall_decision *d);
/* True if the readings are those of the wait with this key. */
bool cw_earlier_stacks_are_of(const struct cw_earlier_stacks *e, const struct cw_verdict_key *key);
/* Returns the number of stacks so far. If it grows, cw_earlier_stacks_add() adds more. */
uint32_t cw_earlier_stacks_readings(const struct cw_earlier_stacks *e);
/*
 * Sets facts->earlier_stacks, which lives as long as the arena. Returns 0 or -ENOMEM; then the
 * facts have no earlier stacks.
 */
int cw_earlier_stacks_add(const struct cw_earlier_stacks *e, struct cw_incident_facts *facts,
			  struct cw_arena *arena);
