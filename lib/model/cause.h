/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a process died or stands still, as its node knows it. The facts (CW_CAUSE_FACTS in
 * model/fact_list.h) travel and decide; cw_cause_text() makes the sentence for people. Pure; any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fact_list.h"

/* The size of a cause's text, with the final NUL. A longer text is cut. */
#define CW_CAUSE_BYTES 160
/* TASK_COMM_LEN of the kernel, and a final NUL. */
#define CW_CAUSE_COMMAND_BYTES 17

/* What happened. The numbers go over the wire and into bundles: append only. */
enum cw_cause_kind {
	CW_CAUSE_UNKNOWN = 0,
	CW_CAUSE_EXITED = 1,            /* it exited, and no signal requested that */
	CW_CAUSE_ASKED = 2,             /* it exited after the signal cause_signal requested that */
	CW_CAUSE_KILLED = 3,            /* by the signal cause_signal */
	CW_CAUSE_OOM_KILLED = 4,        /* by the kernel, because memory ran out */
	CW_CAUSE_STOPPED = 5,           /* by the signal cause_signal */
	CW_CAUSE_TRACED = 6,            /* a debugger holds it; CW_END_BY_PROCESS if it is named */
	CW_CAUSE_FROZEN = 7,            /* with its control group */
	CW_CAUSE_STOPPED_NONFINITE = 8, /* by its own agent, at a NaN or infinity */
	CW_CAUSE_STOPPED_HEADROOM = 9,  /* by its own agent, at numbers about to leave their type */
	CW_CAUSE__MAX,
};

/* A cause that owns its texts. The texts are printable ASCII. Zeroed = unknown. */
struct cw_cause {
	struct cw_cause_facts facts;
	char command[CW_CAUSE_COMMAND_BYTES]; /* cause_command; the process chose it itself */
	char group[CW_CAUSE_BYTES];           /* cause_group, cut if longer */
};

/*
 * Writes the cause in words that continue "rank 4 was": "killed by SIGKILL sent by python3 (pid
 * 4242, uid 1000)", "exited with status 1", "stopped by SIGSTOP …". exit_code belongs to a process
 * that exited. command and group are those of the cause; NULL = "". buf has at least CW_CAUSE_BYTES
 * bytes; "" if the kind is unknown.
 */
void cw_cause_text(const struct cw_cause_facts *cause, const char *command, const char *group,
		   int exit_code, char *buf, size_t len);

/*
 * True if the text of such a cause has a verb of its own ("exited …", "killed itself …"), so that
 * no "was" precedes it. by: enum cw_end_by, of cause_by.
 */
bool cw_cause_has_verb(unsigned kind, unsigned by);
/* The verb before the text: "was ", or "" if the text has its own or the cause is unknown. */
const char *cw_cause_verb(unsigned kind, unsigned by);

/*
 * The names in documents: "killed", "frozen" …, never NULL. The name of CW_CAUSE_UNKNOWN, and of a
 * number of a newer version, is "". A name of a newer version is CW_CAUSE_UNKNOWN.
 */
const char *cw_cause_kind_name(unsigned kind);
enum cw_cause_kind cw_cause_kind_from_name(const char *name);
