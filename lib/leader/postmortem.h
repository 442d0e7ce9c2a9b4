/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A post-mortem is the incident of a job that ended by failure (docs/schemas.md#post-mortems). It
 * describes how each rank ended, the first death and its cause, the last wait, and the calls open
 * at that time. We write it with or without an alert, because a job's
 * own watchdog may be quicker than our patience. A job that ended well, or that a user cancelled,
 * has no post-mortem.
 *
 * When the last rank of a job is dead, other nodes may still have to report deaths. So we write the
 * post-mortem CW_POSTMORTEM_SETTLE_NS after the last death that we learn of, and at the latest
 * CW_POSTMORTEM_MAX_NS after the job was over. If we have sent an alert of the job, the post-mortem
 * has the alert's id and joins its incident. Otherwise we derive the id, as for an incident, from
 * facts that are equal for every leader.
 *
 * There is one list of post-mortems per job key. Loop thread only; blocks only while it writes one.
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
 * A new leader writes no post-mortem of a job that ended longer ago than this, because an earlier
 * leader did.
 */
#define CW_POSTMORTEM_OLD_NS (60 * CW_NS_PER_S)
/* A rank that died after a shorter wait may have died for any reason. */
#define CW_POSTMORTEM_WAIT_NS CW_GIVES_UP_AFTER_NS
/*
 * Evaluations come once a second, and less often if the daemon gets no processor. If the last
 * evaluation was longer than this before the first death, its wait may have ended. If the wait's
 * call was still open at the first death, the wait had not ended.
 */
#define CW_POSTMORTEM_BLIND_NS (5 * CW_NS_PER_S)
/*
 * Two readings of the time when a rank entered a call, by the clocks of its node, may differ by
 * this much.
 */
#define CW_POSTMORTEM_SAME_NS (100 * CW_NS_PER_MS)
/* The maximum number of post-mortems of one job key, equal to its limit for jobs. */
#define CW_POSTMORTEM_MAX_PER_JOB_KEY 256u
#define CW_POSTMORTEM_MAX_CULPRITS 32u

/* The wait that one evaluation found, and the ranks that the job waited for. */
struct cw_postmortem_wait {
	int64_t since_ns; /* when the wait began; 0 = no rank waited */
	uint32_t verdict_class, detail, confidence;
	uint64_t comm_id, coll_seq; /* the call with the waiting ranks; 0 = no particular call */
	uint32_t instance;
	/* Number of culprits; culprits[] has at most the first CW_POSTMORTEM_MAX_CULPRITS. */
	uint32_t n_culprits;
	int32_t culprits[CW_POSTMORTEM_MAX_CULPRITS];
	char summary[512];
};

/* The facts about a living job that its post-mortem will need. All zeros = no facts. */
struct cw_postmortem_memory {
	int64_t seen_ns; /* time of the last evaluation without a failed rank; 0 = none */
	struct cw_postmortem_wait before; /* the wait at that evaluation */
	bool has_failed;
};

/* Stores the facts of one evaluation of a living job. The caller runs this for each evaluation. */
void cw_postmortem_remember(struct cw_postmortem_memory *m, const struct cw_snapshot *snap,
			    const struct cw_verdict_list *list);

struct cw_postmortem;

struct cw_postmortems {
	struct cw_postmortem *list;
	uint32_t n;
};

/* The input of a post-mortem. */
struct cw_postmortem_input {
	const struct cw_snapshot *snap; /* its ranks are in the order of refs */
	const struct cw_job_digests *digests;
	const struct cw_rank_ref *refs;
	const struct cw_verdict_list *list; /* verdicts on the snapshot; NULL = out of memory */
	uint32_t alerted; /* one bit for each verdict of the list: we alerted about it */
	/* NULL = this leader did not watch the job during its life. */
	const struct cw_postmortem_memory *memory;
	/*
	 * True if this leader cannot reach other nodes of the job. One of them may have watched the
	 * job and know more.
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

/* True if all visible ranks are dead, and at least one rank is visible. */
bool cw_postmortem_is_over(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n_refs);
/*
 * True if a post-mortem of these ranks is due. If their component is over, the caller runs this
 * first at each evaluation. If it returns true, the caller runs cw_postmortem_evaluate(), which
 * stores its result with the component.
 */
bool cw_postmortem_is_due(struct cw_postmortems *all, const struct cw_job_digests *digests,
			  const struct cw_rank_ref *refs, unsigned n_refs, int64_t now_ns);
void cw_postmortem_evaluate(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			    const struct cw_postmortem_input *input);
/*
 * Forgets components that were not seen since the last sweep. The caller runs this between
 * evaluations.
 */
void cw_postmortem_sweep(struct cw_postmortems *all);
/* Frees the list. was_led_here: first writes pending post-mortems from the known facts. */
void cw_postmortem_fini(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			bool was_led_here);
