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
 * latest CW_POSTMORTEM_MAX_NS after the job was over. Its id is that of the job's alert, if one is
 * out. Otherwise we derive the id like an incident's, from facts that every leader sees alike.
 *
 * One list of them per job key; loop thread only; nothing blocks beyond writing it.
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
/* A new leader writes nothing about jobs that ended longer ago than this: another leader did. */
#define CW_POSTMORTEM_OLD_NS (60 * CW_NS_PER_S)
/* A rank that died after a shorter wait may have died of anything. */
#define CW_POSTMORTEM_WAIT_NS CW_GIVES_UP_AFTER_NS
/*
 * Evaluations come once a second, and less often if the daemon gets no processor. An observation
 * longer before the first death may have passed since. A wait whose call was still open at the end
 * has not.
 */
#define CW_POSTMORTEM_BLIND_NS (5 * CW_NS_PER_S)
/*
 * Tolerance between two readings of the instant at which a rank entered a call, by the clocks of
 * its node.
 */
#define CW_POSTMORTEM_SAME_NS (100 * CW_NS_PER_MS)
/* Limit for one job key at once; as many as it has jobs. */
#define CW_POSTMORTEM_MAX_PER_JOB_KEY 256u
#define CW_POSTMORTEM_MAX_CULPRITS 32u

/* Result of an evaluation: the ranks that the job waited for. */
struct cw_postmortem_wait {
	int64_t since_ns; /* when the wait began; 0 = no rank waited */
	uint32_t verdict_class, detail, confidence;
	uint64_t comm_id, coll_seq; /* the call with the waiting ranks; 0 = none in particular */
	uint32_t instance;
	uint32_t n_culprits; /* in total; the first CW_POSTMORTEM_MAX_CULPRITS are here */
	int32_t culprits[CW_POSTMORTEM_MAX_CULPRITS];
	char summary[512];
};

/* Memory of a living job. All zeros = nothing. */
struct cw_postmortem_memory {
	int64_t seen_ns;                  /* the last evaluation without a failed rank; 0 = none */
	struct cw_postmortem_wait before; /* at that evaluation */
	bool has_failed;
};

/* Records one evaluation of a living job; call it for each. */
void cw_postmortem_remember(struct cw_postmortem_memory *m, const struct cw_snapshot *snap,
			    const struct cw_verdict_list *list);

struct cw_postmortem;

struct cw_postmortems {
	struct cw_postmortem *list;
	uint32_t n;
};

/* Input for a post-mortem. */
struct cw_postmortem_input {
	const struct cw_snapshot *snap; /* with ranks in the order of refs */
	const struct cw_job_digests *digests;
	const struct cw_rank_ref *refs;
	const struct cw_verdict_list *list; /* of that snapshot; NULL = out of memory */
	uint32_t alerted; /* one bit for each verdict of the list, set if its alert is out */
	/* NULL = this leader did not watch the job during its life. */
	const struct cw_postmortem_memory *memory;
	/*
	 * This leader cannot reach other nodes of the job: a node that watched the job may
	 * know more.
	 */
	bool is_partitioned;
	const char *incident; /* id of an alert of this job that is out; "" = none */
	const char *self;
	uint32_t uid;
};

/* True for calls or messages that did not match, whether or not any rank waited for them. */
static inline bool cw_postmortem_is_wrong_data(const struct cw_verdict *v)
{
	return v->verdict_class == CW_CLASS_MISMATCH || v->is_left_behind;
}

/* True if all visible ranks are dead, and there is at least one. */
bool cw_postmortem_is_over(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n);
/*
 * Call it first at each evaluation, if the component of these ranks is over. True: it is due for
 * cw_postmortem_evaluate(), which stores the result with the component.
 */
bool cw_postmortem_is_due(struct cw_postmortems *all, const struct cw_job_digests *digests,
			  const struct cw_rank_ref *refs, unsigned n, int64_t now_ns);
void cw_postmortem_evaluate(struct cw_postmortems *all, const struct cw_leader_effects *e,
			    const struct cw_postmortem_input *input);
/* Between evaluations: forgets components that were not seen since the last call. */
void cw_postmortem_sweep(struct cw_postmortems *all);
/* was_led_here: writes pending post-mortems now, from the known facts. */
void cw_postmortem_fini(struct cw_postmortems *all, const struct cw_leader_effects *e,
			bool was_led_here);
