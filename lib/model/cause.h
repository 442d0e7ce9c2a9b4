/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cause of a death or stop of a process, as the daemon of its node knows it. Messages carry the
 * facts of a cause (CW_CAUSE_FACTS in model/fact_list.h), and all decisions use these facts.
 * cw_cause_text() writes them as a sentence for people. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fact_list.h"

/* The size of a cause's text, including the final NUL. We cut a longer text. */
#define CW_CAUSE_BYTES 160
/* The size of a command's name: TASK_COMM_LEN of the kernel, and a final NUL. */
#define CW_CAUSE_COMMAND_BYTES 17

/* The kind of a cause. The numbers go over the wire and into bundles: append only. */
enum cw_cause_kind {
	CW_CAUSE_UNKNOWN = 0,
	/* The process exited, and no signal requested that. */
	CW_CAUSE_EXITED = 1,
	/* The process exited after the signal cause_signal requested that. */
	CW_CAUSE_ASKED = 2,
	CW_CAUSE_KILLED = 3,     /* the signal cause_signal killed the process */
	CW_CAUSE_OOM_KILLED = 4, /* the kernel killed the process, because memory ran out */
	CW_CAUSE_STOPPED = 5,    /* the signal cause_signal stopped the process */
	/* A debugger holds the process; CW_END_BY_PROCESS if cause_pid names the debugger. */
	CW_CAUSE_TRACED = 6,
	CW_CAUSE_FROZEN = 7,            /* the control group of the process is frozen */
	CW_CAUSE_STOPPED_NONFINITE = 8, /* the rank's own agent stopped it at a NaN or infinity */
	/* The rank's own agent stopped it at numbers about to leave their type. */
	CW_CAUSE_STOPPED_HEADROOM = 9,
	CW_CAUSE__MAX,
};

/*
 * A cause with its own copies of the texts, which are printable ASCII. A zeroed cause is unknown.
 */
struct cw_cause {
	struct cw_cause_facts facts;
	/* cause_command; the process chose this name itself. */
	char command[CW_CAUSE_COMMAND_BYTES];
	char group[CW_CAUSE_BYTES]; /* cause_group, cut if longer */
};

/*
 * Writes the cause in words that continue "rank 4 was". Examples: "killed by SIGKILL sent by
 * python3 (pid 4242, uid 1000)", "exited with status 1", "stopped by SIGSTOP …".
 *
 * exit_code is the exit status of the process, if it exited. command and group are cause_command
 * and cause_group; NULL = "". buf has at least CW_CAUSE_BYTES bytes. Writes "" if the kind is
 * unknown.
 */
void cw_cause_text(const struct cw_cause_facts *cause, const char *command, const char *group,
		   int exit_code, char *buf, size_t len);

/*
 * True if the text of a cause has a verb of its own ("exited …", "killed itself …"). The caller
 * then writes no "was" before the text. kind: enum cw_cause_kind. by: enum cw_end_by, from
 * cause_by.
 */
bool cw_cause_has_verb(unsigned kind, unsigned by);
/*
 * Returns the verb before the text: "was ". Returns "" if the text has a verb or the cause is
 * unknown.
 */
const char *cw_cause_verb(unsigned kind, unsigned by);

/*
 * cw_cause_kind_name() returns the name of a kind in documents: "killed", "frozen" …. It returns ""
 * for CW_CAUSE_UNKNOWN and for the number of a newer version, and never NULL.
 * cw_cause_kind_from_name() returns CW_CAUSE_UNKNOWN for the name of a newer version.
 */
const char *cw_cause_kind_name(unsigned kind);
enum cw_cause_kind cw_cause_kind_from_name(const char *name);
