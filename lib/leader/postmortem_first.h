/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the first of a job's deaths. Deaths come in cascades. A rank fails, and its launcher sends
 * SIGTERM to the other ranks of its node. Ranks on other nodes lose their peer and abort. If two
 * deaths are further apart than their uncertainty, time decides. Otherwise the cause decides: a
 * rank's own fault precedes a death that other ranks inflicted, and the sender of a signal precedes
 * its target. If neither decides, the deaths are a tie.
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/facts.h"
#include "model/verdict_types.h"

/*
 * The uncertainty of the time of a death: NEAR between ranks with the same clock, FAR between ranks
 * with different clocks.
 */
#define CW_POSTMORTEM_NEAR_NS INT64_C(50000000)
#define CW_POSTMORTEM_FAR_NS INT64_C(250000000)
/* The uncertainty if a node sent too few digests to estimate its clock. */
#define CW_POSTMORTEM_UNKNOWN_NS INT64_C(1000000000)
/*
 * Deaths within this time may have the same cause, for example a launcher that sends SIGKILL to all
 * ranks of a job.
 */
#define CW_POSTMORTEM_TOGETHER_NS INT64_C(2000000000)

/* The kinds of death. A kind that is more likely to be the first death has a smaller number. */
enum cw_postmortem_kind {
	CW_POSTMORTEM_OWN = 0,  /* a fault, out of memory, or an exit or abort outside any call */
	CW_POSTMORTEM_KILLED,   /* SIGKILL by another process, or an exit with an error in a call */
	CW_POSTMORTEM_REACTION, /* aborted inside a call, or after NCCL reported a lost peer */
	/* SIGTERM, SIGINT or an exit after one of them; or its parent ended. */
	CW_POSTMORTEM_ASKED,
	CW_POSTMORTEM_NO_FAILURE, /* exit 0, or an unknown end */
	CW_POSTMORTEM_ALIVE,
};

struct cw_postmortem_death {
	uint32_t node; /* any number that is equal for ranks with the same clock */
	int32_t pid;
	uint32_t liveness; /* enum cw_liveness */
	int32_t exit_code, term_signal;
	uint32_t end_by; /* enum cw_end_by */
	int32_t end_sender;
	bool is_oom_killed;
	bool is_shutdown;    /* CW_RANKF_SHUTDOWN */
	bool is_inside_call; /* the rank had a call that was not complete */
	bool has_lost_peer;  /* NCCL had reported a remote or system error to the rank */
	int64_t ended_ns;
	/* Uncertainty of its times relative to the times of other nodes. */
	int64_t unsure_ns;
};

enum cw_postmortem_outcome {
	CW_POSTMORTEM_HEALTHY = 0, /* all ranks exited with 0 */
	CW_POSTMORTEM_CANCELLED,   /* a user ended the whole job on purpose */
	CW_POSTMORTEM_FAILED,
};

struct cw_postmortem_first {
	enum cw_postmortem_outcome outcome;
	enum cw_first_reason reason;
	/* Rank that failed first; the job failed at the time of its end. */
	uint32_t earliest;
	/* Number of first ranks; more than one = a tie, or the ranks of one process. */
	uint32_t n_first;
	uint32_t n_failed; /* number of failed ranks */
	/* Number of ranks that ended too close to the earliest to be told apart. */
	uint32_t n_together;
	/* From the first end to the next one that is clearly later; 0 = none. */
	int64_t margin_ns;
	/* One of the n_together ranks sent the signal that ended another one. */
	bool is_sender_known;
};

enum cw_postmortem_kind cw_postmortem_kind(const struct cw_postmortem_death *death);
/*
 * Formats how a rank ended: "exited with status 1" or "was killed by SIGTERM", without the sender.
 */
void cw_postmortem_format_end(const struct cw_postmortem_death *death, char *buf, uint32_t len);
/*
 * Finds the first deaths. Sets is_first for each death: it is among the first. n_deaths may be 0.
 */
void cw_postmortem_order(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			 bool *is_first, struct cw_postmortem_first *ret);
