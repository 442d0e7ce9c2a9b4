/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/incident_part.h"

#include <stdlib.h>

#include "common/cleanup.h"

/* Adds the communicator to the part if there is room, or if `must` is true. */
static void take_comm(const struct cw_snapshot *snap, uint32_t comm, bool must, bool *is_in,
		      uint64_t *room)
{
	uint32_t n;

	if (comm >= snap->n_comms || is_in[comm])
		return;
	n = snap->comms[comm].nranks;
	if (n > *room && !must)
		return;
	is_in[comm] = true;
	*room -= n < *room ? n : *room;
}

struct cw_snapshot_text *cw_incident_part_text(const struct cw_snapshot *snap,
					       const struct cw_verdict *verdict)
{
	_cleanup_(freep) bool *is_in = calloc((size_t)snap->n_comms + 1, sizeof(*is_in));
	uint64_t room = CW_INCIDENT_PART_MAX_MEMBERS;

	if (!is_in)
		return NULL;
	take_comm(snap, verdict->comm, true, is_in, &room);
	for (uint32_t i = 0; i < verdict->n_chain; i++)
		take_comm(snap, verdict->chain[i].comm, false, is_in, &room);
	for (uint32_t c = 0; c < snap->n_comms; c++)
		take_comm(snap, c, false, is_in, &room);
	return cw_snapshot_text_new(snap, is_in);
}
