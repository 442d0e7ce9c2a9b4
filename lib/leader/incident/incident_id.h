/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incident's id: 128 bits of SHA-256 over all facts that distinguish one incident from another.
 * Each field follows its length. A user can choose a label, a communicator's id or a number of
 * calls. So a user can create ids of their own incidents, but never of another user's.
 *
 * Every leader of the job derives the same id, also after a restart. The inputs are:
 *
 *  - the user and the label;
 *  - facts from the processes' own records: communicator, instance, call, and whether any rank
 *    waits. The call is the first one that the missing rank has not made;
 *  - the start of the communicator's first visible process, which distinguishes two runs with one
 *    constant unique id;
 *  - for a death instead the dead process, its rank and its start.
 *
 * We use no clock, no node name, nothing about the leader, and no number that a daemon counts for
 * itself.
 *
 * Pure, any thread; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/verdict_types.h"

#define CW_INCIDENT_ID_LEN 33 /* 32 hex digits */
#define CW_INCIDENT_ID_MAX 64 /* maximum length of an id of any version, without the NUL */

/* The number of calls in the key of a dead process. */
#define CW_INCIDENT_DEATH_SEQ (UINT64_MAX - 1)

struct cw_incident_matter {
	uint32_t uid;
	const char *job; /* the job's label */
	struct cw_verdict_key key;
	/* Start of the first visible member's process; 0 = no member is visible. */
	uint64_t start_ticks;
};

/* Derives the id of an incident. Returns 0 or -ENOMEM. */
int cw_incident_id_make(const struct cw_incident_matter *m, char ret[CW_INCIDENT_ID_LEN]);
/*
 * True for 1 to 64 characters of [0-9a-f-] that do not start with '-'. Such an id cannot name a
 * file elsewhere.
 */
bool cw_incident_id_is_valid(const char *id);
