/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alerts of a job so far, and whom they concern: as a leader keeps its incidents
 * (leader/job_incidents.c), while one is open, whatever else befalls its ranks is a consequence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/stall.h"
#include "model/verdict_types.h"
#include "suite/scenario/scenario.h"

struct alert {
	struct cw_verdict_key key;
	bool is_open;
	uint32_t n_labels;
	bool *concerns; /* by rank label; owned */
};

struct alerts {
	struct alert v[CW_VERDICT_LIST_MAX];
	uint32_t n;
};

/* The verdict is about nothing that has been told, nor a consequence of it, and there is room. */
bool alerts_is_new(const struct alerts *a, const struct cw_snapshot *snap,
		   const struct cw_verdict *v, const struct cw_stall_decision *d);
/* 0 or -ENOMEM. */
int alerts_add(struct alerts *a, const struct suite_scenario *s, const struct cw_snapshot *snap,
	       const struct cw_verdict *v, const struct cw_stall_decision *d);
/* What this one was about has resolved; 0 = nothing has. */
void alerts_close(struct alerts *a, const struct cw_verdict_key *key);
void alerts_fini(struct alerts *a);
