/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a job's deaths came first. Deaths come in cascades: a rank fails, its launcher sends
 * SIGTERM to the others of its node, and those on other nodes lose their peer and abort. Two that
 * are further apart than their instants are uncertain are told apart by time; closer ones by cause:
 * a fault of one's own comes before what is done to or because of others, a sender before whom it
 * sends to. What neither decides is a tie, and stays one.
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/facts.h"

/* Of one clock, and of two: how far off the instant of a death may be. */
#define CW_EPITAPH_NEAR_NS INT64_C(50000000)
#define CW_EPITAPH_FAR_NS INT64_C(250000000)
/* Of a node that has been heard too seldom for its clock to be known. */
#define CW_EPITAPH_UNKNOWN_NS INT64_C(1000000000)
/* What is sent away at once is sent away together: SIGKILL to all of a job. */
#define CW_EPITAPH_TOGETHER_NS INT64_C(2000000000)

/* What speaks for a death being the beginning, the strongest first. */
enum cw_epitaph_kind {
	CW_EPITAPH_OWN = 0,  /* a fault, an exit or abort outside of any call, out of memory */
	CW_EPITAPH_KILLED,   /* SIGKILL by somebody; an exit with an error inside a call */
	CW_EPITAPH_REACTION, /* aborted inside a call, or after NCCL told it that a peer is gone */
	CW_EPITAPH_ASKED,    /* SIGTERM, SIGINT, and exits after those; its parent ended */
	CW_EPITAPH_NO_FAILURE, /* exit 0; or nobody knows how */
	CW_EPITAPH_ALIVE,
};

struct cw_epitaph_death {
	uint32_t node; /* any number: the same for ranks of one clock */
	int32_t pid;
	uint32_t liveness; /* enum cw_liveness */
	int32_t exit_code, term_signal;
	uint32_t end_by; /* enum cw_end_by */
	int32_t end_sender;
	bool is_oom_killed;
	bool is_shutdown;    /* CW_RANKF_SHUTDOWN */
	bool is_inside_call; /* a call of its had not completed */
	bool has_lost_peer;  /* NCCL had told it of a remote or system error */
	int64_t ended_ns;
	int64_t unsure_ns; /* against other nodes' */
};

enum cw_epitaph_outcome {
	CW_EPITAPH_HEALTHY = 0, /* all exited with 0 */
	CW_EPITAPH_CANCELLED,   /* somebody ended all of it on purpose */
	CW_EPITAPH_FAILED,
};

enum cw_epitaph_reason {
	CW_EPITAPH_ONLY = 0, /* nobody else failed */
	CW_EPITAPH_BY_TIME,
	CW_EPITAPH_BY_CAUSE,
	CW_EPITAPH_TIE,
};

struct cw_epitaph_first {
	enum cw_epitaph_outcome outcome;
	enum cw_epitaph_reason reason;
	uint32_t earliest;    /* of those that failed; its instant is that of the failure */
	uint32_t n_first;     /* more than one: a tie, or the ranks of one process */
	uint32_t n_failed;    /* of all */
	uint32_t n_together;  /* whose instants are too close to the earliest to be told apart */
	int64_t margin_ns;    /* from the first to the next that is told apart by time; 0 = none */
	bool is_sender_known; /* one of those together sent the signal that ended another */
};

enum cw_epitaph_kind cw_epitaph_kind(const struct cw_epitaph_death *d);
/* "exited with status 1", "was killed by SIGTERM"; without who did it. */
void cw_epitaph_say_end(const struct cw_epitaph_death *d, char *buf, uint32_t len);
/* is_first: one for each death, set. n may be 0. */
void cw_epitaph_order(const struct cw_epitaph_death *v, uint32_t n, bool *is_first,
		      struct cw_epitaph_first *ret);
const char *cw_epitaph_reason_name(unsigned reason);
