/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a job that has ended by failure: how each rank ended, who was first and why, what
 * all of them waited for before, what was open then (docs/schemas.md, collwatch.epitaph/1). Whether
 * or not anybody was alerted: a job's own watchdog may be quicker than this one's patience. A job
 * that ended well, or that somebody cancelled, has none.
 *
 * The last of a job's ranks is dead, but who died with it is known only when the other nodes have
 * told: an epitaph is written CW_EPITAPH_SETTLE_NS after the last death that came to be known,
 * CW_EPITAPH_MAX_NS after the job was over at the latest. Its id is made as an incident's, of what
 * every leader sees alike; where an alert of the job is out, it is that alert's.
 *
 * One list of them for a route; loop thread only; nothing blocks beyond writing it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "leader/epitaph_first.h"
#include "leader/incident/incident_id.h"
#include "leader/incident/leader_effects.h"
#include "leader/route.h"
#include "model/death.h"
#include "model/verdict_types.h"

#define CW_EPITAPH_SETTLE_NS (3 * CW_NS_PER_S)
#define CW_EPITAPH_MAX_NS (10 * CW_NS_PER_S)
/* A leader that has just begun says nothing of jobs that ended before: another one did. */
#define CW_EPITAPH_OLD_NS (60 * CW_NS_PER_S)
/* Who died while it waited for less may have died of anything. */
#define CW_EPITAPH_WAIT_NS CW_GIVES_UP_AFTER_NS
/*
 * Looks come once a second, and less often where the daemon gets no processor: what was seen longer
 * before the first death may have passed since. A wait whose call was still open at the end has
 * not.
 */
#define CW_EPITAPH_BLIND_NS (5 * CW_NS_PER_S)
/* Two readings of the instant at which a call was entered, by the clocks of its node. */
#define CW_EPITAPH_SAME_NS (100 * CW_NS_PER_MS)
/* Of a route at once; as many as it has jobs. */
#define CW_EPITAPH_MAX_PER_ROUTE 256u
#define CW_EPITAPH_MAX_CULPRITS 32u

/* What a look at the job showed: for whom it waited. */
struct cw_epitaph_wait {
	int64_t since_ns; /* when the wait began; 0 = nobody waited */
	uint32_t verdict_class, detail, confidence;
	uint64_t comm_id, coll_seq; /* of the call that was waited in; 0 = none in particular */
	uint32_t instance;
	uint32_t n_culprits; /* in all: the first CW_EPITAPH_MAX_CULPRITS are here */
	int32_t culprits[CW_EPITAPH_MAX_CULPRITS];
	char summary[512];
};

/* What is remembered of a living job. All zeros = nothing. */
struct cw_epitaph_memory {
	int64_t seen_ns;               /* of the last look at which nobody had failed; 0 = none */
	struct cw_epitaph_wait before; /* at that look */
	bool has_failed;
};

/* One look at a living job: each. */
void cw_epitaph_remember(struct cw_epitaph_memory *m, const struct cw_snapshot *snap,
			 const struct cw_verdict_list *list);

struct cw_epitaph;

struct cw_epitaphs {
	struct cw_epitaph *list;
	uint32_t n;
};

/* What an epitaph is made from. */
struct cw_epitaph_scene {
	const struct cw_snapshot *snap; /* its ranks in the order of refs */
	const struct cw_route *route;
	const struct cw_rank_ref *refs;
	const struct cw_verdict_list *list; /* of that snapshot; NULL = out of memory */
	uint32_t told; /* a bit for each verdict of the list of which an alert is out */
	/* NULL = this leader has not watched the job while it lived. */
	const struct cw_epitaph_memory *memory;
	/* It is out of reach of others of the job's nodes: one that has watched it may tell more.
	 */
	bool is_apart;
	const char *incident; /* an alert of this job that is out; "" = none */
	const char *self;
	uint32_t uid;
};

/* Calls or messages that did not fit, whether or not anybody waited for them. */
static inline bool cw_epitaph_is_wrong_data(const struct cw_verdict *v)
{
	return v->verdict_class == CW_CLASS_MISMATCH || v->is_left_behind;
}

/* The ranks that can be heard of are dead, and one at least is. */
bool cw_epitaph_is_over(const struct cw_route *route, const struct cw_rank_ref *refs, unsigned n);
/*
 * The component of these ranks is over. True: it is to be looked at now, with
 * cw_epitaph_look(); what it finds is remembered by the component. Comes first at each look.
 */
bool cw_epitaph_is_due(struct cw_epitaphs *all, const struct cw_route *route,
		       const struct cw_rank_ref *refs, unsigned n, int64_t now_ns);
void cw_epitaph_look(struct cw_epitaphs *all, const struct cw_leader_effects *e,
		     const struct cw_epitaph_scene *scene);
/* Between looks: forgets those whose component was not seen since the last call. */
void cw_epitaph_sweep(struct cw_epitaphs *all);
/* was_led_here: what was not told yet is told now, as it is known. */
void cw_epitaph_fini(struct cw_epitaphs *all, const struct cw_leader_effects *e, bool was_led_here);
