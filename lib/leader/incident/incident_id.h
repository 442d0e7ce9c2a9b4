/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incident's id: 128 bits of SHA-256 over all that tells one trouble from another, each field
 * with its length before it. Whoever chooses a label, a communicator's id or a number of calls can
 * make an id of his own, but none that is another user's.
 *
 * Every leader of the job gets the same, and so does one that starts again: the inputs are the
 * user, the label, and what the processes' own records say (communicator, instance, call, which is
 * the first that whoever has not come has not made, whether anybody waits), with the start of the
 * communicator's first visible process, which tells two runs with one constant unique id apart. Of
 * a death the inputs are the process that has died, its rank and its start. No clock, no node's
 * name, nothing of who leads, no number that a daemon counts for itself.
 *
 * Pure, any thread; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/verdict_types.h"

#define CW_INCIDENT_ID_LEN 33     /* 32 hex digits */
#define CW_INCIDENT_OLD_ID_LEN 17 /* 16 hex digits */
#define CW_INCIDENT_ID_MAX 64     /* of any version, without the NUL */

/* In the place of a number of calls, of a matter that is a process which has died. */
#define CW_INCIDENT_DEATH_SEQ (UINT64_MAX - 1)

struct cw_incident_matter {
	uint32_t uid;
	const char *job; /* label */
	struct cw_verdict_key key;
	uint64_t start_ticks; /* 0 = no member is visible */
};

/* 0 or -ENOMEM. */
int cw_incident_id_make(const struct cw_incident_matter *m, char ret[CW_INCIDENT_ID_LEN]);

/*
 * The id as older versions made it: 64 bits that anybody could choose. It names nothing any more.
 * It finds what such a version noted, and that counts only for the user and the job it was noted
 * with (cw_store_sent_before()).
 */
void cw_incident_id_make_old(const struct cw_incident_matter *m, char ret[CW_INCIDENT_OLD_ID_LEN]);
/* An incident id: 1 to 64 of [0-9a-f-], not starting with '-'. Nothing that names another file. */
bool cw_incident_id_is_valid(const char *id);
/* By its length. */
bool cw_incident_id_is_old(const char *id);
