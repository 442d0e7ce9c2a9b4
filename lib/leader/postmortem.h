/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A post-mortem is the document about a job that ended by failure (docs/schemas.md,
 * collwatch.postmortem/1). It describes how each rank ended, the first death and its cause, the
 * last wait, and the calls open at that time. We write it with or without an alert: a job's own
 * watchdog may be quicker than our patience. A job that ended well, or that a user cancelled, has
 * no post-mortem.
 *
 * When the last rank of a job is dead, we still need the other nodes' reports about the deaths. So
 * we write a post-mortem CW_POSTMORTEM_SETTLE_NS after the last death that we learn of, and at the
 * latest CW_POSTMORTEM_MAX_NS after the job was over. If we have sent an alert of the job, the
 * post-mortem has the alert's id. Otherwise we derive the id from facts that every leader sees
 * alike, as for an incident.
 *
 * There is one list of post-mortems per job key. Loop thread only; blocks only to write one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "leader/incident/incident_id.h"
#include "leader/incident/leader_effects.h"
#include "leader/job_digests.h"
#include "leader/postmortem_first.h"
#include "model/death.h"
#include "model/verdict_types.h"

#define CW_POSTMORTEM_SETTLE_NS (3 * CW_NS_PER_S)
#define CW_POSTMORTEM_MAX_NS (10 * CW_NS_PER_S)
/*
 * A new leader writes nothing about jobs that ended longer ago than this, because another leader
 * did.
 */
#define CW_POSTMORTEM_OLD_NS (60 * CW_NS_PER_S)
/* If a rank died after a shorter wait, it may have died of anything. */
#define CW_POSTMORTEM_WAIT_NS CW_GIVES_UP_AFTER_NS
/*
 * Evaluations come once a second, and less often if the daemon gets no processor. If the last one
 * was longer than this before the first death, the wait that it saw may be over. If the wait's call
 * was still open at the end, the wait is not over.
 */
#define CW_POSTMORTEM_BLIND_NS (5 * CW_NS_PER_S)
/*
 * The instant at which a rank entered a call, read twice by the clocks of its node, may differ by
 * this much.
 */
#define CW_POSTMORTEM_SAME_NS (100 * CW_NS_PER_MS)
/* Most post-mortems of one job key at once; the same as its limit for jobs. */
#define CW_POSTMORTEM_MAX_PER_JOB_KEY 256u
#define CW_POSTMORTEM_MAX_CULPRITS 32u

/* The ranks that the job waited for, as one evaluation found them. */
struct cw_postmortem_wait {
	int64_t since_ns; /* when the wait began; 0 = no rank waited */
	uint32_t verdict_class, detail, confidence;
	uint64_t comm_id, coll_seq; /* the call with the waiting ranks; 0 = no particular call */
	uint32_t instance;
	uint32_t n_culprits; /* in total; culprits[] has the first CW_POSTMORTEM_MAX_CULPRITS */
	int32_t culprits[CW_POSTMORTEM_MAX_CULPRITS];
	char summary[512];
};

/* What we remember of a living job. All zeros = nothing. */
struct cw_postmortem_memory {
	int64_t seen_ns;                  /* the last evaluation without a failed rank; 0 = none */
	struct cw_postmortem_wait before; /* the wait at that evaluation */
	bool has_failed;
};

/* Records one evaluation of a living job. Call this for each evaluation. */
void cw_postmortem_remember(struct cw_postmortem_memory *m, const struct cw_snapshot *snap,
			    const struct cw_verdict_list *list);

struct cw_postmortem;

struct cw_postmortems {
	struct cw_postmortem *list;
	uint32_t n;
};

/* The input for a post-mortem. */
struct cw_postmortem_input {
	const struct cw_snapshot *snap; /* its ranks are in the order of refs */
	const struct cw_job_digests *digests;
	const struct cw_rank_ref *refs;
	const struct cw_verdict_list *list; /* verdicts about the snapshot; NULL = out of memory */
	uint32_t alerted; /* one bit for each verdict of the list, set if we alerted about it */
	/* NULL = this leader did not watch the job during its life. */
	const struct cw_postmortem_memory *memory;
	/*
	 * True if this leader cannot reach other nodes of the job. A node that watched the job may
	 * know more.
	 */
	bool is_partitioned;
	const char *incident; /* id of an alert that was sent about this job; "" = none */
	const char *self;
	uint32_t uid;
};

/* True for calls or messages that did not match, whether or not any rank waited for them. */
static inline bool cw_postmortem_is_wrong_data(const struct cw_verdict *verdict)
{
	return verdict->verdict_class == CW_CLASS_MISMATCH || verdict->is_left_behind;
}

/* True if all visible ranks are dead, and there is at least one. */
bool cw_postmortem_is_over(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n_refs);
/*
 * Call this first at each evaluation, if the component of these ranks is over. If it returns true,
 * call cw_postmortem_evaluate(), which stores its result with the component.
 */
bool cw_postmortem_is_due(struct cw_postmortems *all, const struct cw_job_digests *digests,
			  const struct cw_rank_ref *refs, unsigned n_refs, int64_t now_ns);
void cw_postmortem_evaluate(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			    const struct cw_postmortem_input *input);
/* Forgets components that were not seen since the last call. Call this between evaluations. */
void cw_postmortem_sweep(struct cw_postmortems *all);
/* Frees the list. was_led_here: writes pending post-mortems now, from the known facts. */
void cw_postmortem_fini(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			bool was_led_here);
