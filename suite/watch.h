/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a scenario's cluster as a leader watches a job (leader/job_look.c): a snapshot, a
 * verdict and a step of patience each virtual second, windows where they are wanted; until the
 * alert, or the end of the scenario. Where the scenario expects several incidents, or nothing
 * beside the first, or the caller wants it, it is watched on for 90 s after the last alert, past
 * the scenario's end if need be, as a leader does that has told of one.
 */
#pragma once

#include "analysis/stall/stall.h"
#include "model/verdict_types.h"
#include "suite/scenario/scenario.h"

struct cw_arena;
struct cw_job_view;
struct cw_msg_digest;
struct json_t;

/* What it points to is handed between processes by cli/lab/suite_workers.c, line by line. */
struct outcome {
	bool is_alert;       /* a page; false: silence */
	bool is_notice;      /* one of `notices` */
	bool is_slow;        /* silence, and somebody is late at the end */
	bool is_well;        /* silence, and at the end everybody gets on */
	bool went_on;        /* a page, and those who waited got on afterwards (leaders only) */
	enum cw_class klass; /* of either */
	enum cw_detail detail;
	enum cw_confidence confidence;
	enum cw_hang hang; /* how sure it is that anything hangs */
	int32_t *culprits; /* labels, ascending; owned */
	uint32_t n_culprits;
	int64_t after_ns; /* from the first fault (or the start) to the alert */
	char summary[512];
	bool is_fault_missing; /* some fault of the scenario never happened: it is not a test */
	bool is_recorded;      /* what was told of ops came out of flight records */
	uint32_t looks;
	int64_t leapt_ns; /* left out of a scenario that leaps */
	/* Of the first: waits of more than 60 s that came to an end by themselves (leaders only) */
	uint32_t n_healthy_waits;
	/* The alert after this one, where more than the first are waited for; owned. */
	struct outcome *also;
	/* Of the first: the notices, one for each incident that had one first; owned. */
	struct outcome *notices;
};

/* Where the next alert is noted: it, or a new one behind those there are. NULL = no memory. */
struct outcome *outcome_next(struct outcome *o);
/* The same for the next notice. */
struct outcome *outcome_next_notice(struct outcome *o);

static inline bool cw_outcome_says(const struct outcome *o)
{
	return o->is_alert || o->is_slow;
}

/* Somebody who looks on. What is handed over is borrowed; a function that is NULL is not called. */
struct watch_eyes {
	void *user;
	/*
	 * May change what a node is about to tell; memory that it needs comes from the arena. 0 or
	 * -ENOMEM.
	 */
	int (*change)(void *user, unsigned node, struct cw_arena *arena, struct cw_msg_digest *d);
	/* Each virtual second in which somebody leads the job: what its last look showed. */
	void (*on_second)(void *user, int64_t now_ns, const struct cw_job_view *view);
	bool is_watching_on; /* whatever the scenario expects */
	/* May put another snapshot in place of *snap (freeing it). 0 or -ENOMEM. NULL: as it is. */
	int (*change_snapshot)(void *user, struct cw_snapshot **snap);
	/*
	 * Told of each page and notice of a leader when it is told to people, and of what was so
	 * then (cluster_truth.c). All borrowed; NULL: nobody.
	 */
	void (*on_incident)(void *user, const struct suite_scenario *s, const struct json_t *doc,
			    const struct json_t *truth);
	/* Each line that a leader logs, of any level; ns: since the scenario began. */
	void (*on_log)(void *user, int64_t ns, const char *node, const char *text);
};

/* 0; -EINVAL with a sentence in err: the scenario makes no sense; -ENOMEM. */
int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret);
int cw_watch_with(const struct suite_scenario *s, const struct watch_eyes *eyes, struct cw_err *err,
		  struct outcome *ret);
void cw_outcome_fini(struct outcome *o);
/* Who comes late in a snapshot with all windows, if anybody does. 0 or -ENOMEM. */
int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap);

/*
 * How much longer than its run a scenario is watched that expects a page, where members complete
 * all at once and its run ends while somebody waits: scenarios of before there were notices end
 * shortly after what was the only time.
 */
#define WATCH_UNTIL_PAGE_NS (INT64_C(9000) * 1000000000)

static inline bool cw_suite_waits_for_page(const struct suite_scenario *s)
{
	return s->completion == SUITE_BARRIER && !suite_is_control(s);
}

/* The scenario wants to know. */
static inline bool cw_suite_expects_slow(const struct suite_scenario *s)
{
	if (s->nobody_is_slow)
		return true;
	for (uint32_t i = 0; i < s->n_answers; i++)
		if (s->answers[i].klass == CW_CLASS_SLOW)
			return true;
	return false;
}
