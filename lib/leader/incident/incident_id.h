/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incident's id: 128 bits of SHA-256 over all facts that distinguish one incident from another,
 * each field with its length before it. A user can choose a label, a communicator's id or a number
 * of calls. In this way a user can create ids of their own incidents, but never of another user's.
 *
 * Every leader of the job derives the same id, also after a restart. The inputs are the user, the
 * label, and facts from the processes' own records: communicator, instance, call, and whether any
 * rank waits. The call is the first that the missing rank has not made. One more input is the start
 * of the communicator's first visible process, which distinguishes two runs with one constant
 * unique id. For a death the inputs are the dead process, its rank and its start. We use no clock,
 * no node name, nothing about the leader, and no number that a daemon counts for itself.
 *
 * Pure, any thread; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/verdict_types.h"

#define CW_INCIDENT_ID_LEN 33 /* 32 hex digits */
#define CW_INCIDENT_ID_MAX 64 /* of an id of any version, without the NUL */

/* Stands in place of the number of calls in the key of a dead process. */
#define CW_INCIDENT_DEATH_SEQ (UINT64_MAX - 1)

struct cw_incident_matter {
	uint32_t uid;
	const char *job; /* the job's label */
	struct cw_verdict_key key;
	uint64_t start_ticks; /* 0 = no member is visible */
};

/* Derives the id of an incident. Returns 0 or -ENOMEM. */
int cw_incident_id_make(const struct cw_incident_matter *m, char ret[CW_INCIDENT_ID_LEN]);
/*
 * True for 1 to 64 characters of [0-9a-f-] that do not start with '-'. A valid id cannot name
 * another file.
 */
bool cw_incident_id_is_valid(const char *id);
