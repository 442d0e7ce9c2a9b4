/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/incident_state.h"

#include <stddef.h>
#include <stdint.h>

#define S(name) CW_INCIDENT_##name
#define ON(name) (1u << CW_INCIDENT_EV_##name)

struct move {
	uint32_t from;
	uint32_t events; /* a bit for each event that causes the move */
	uint32_t to;
};

static const struct move moves[] = {
	/* All is quiet. */
	{ S(IDLE), ON(QUIET), S(IDLE) },
	/* An op has been pending for long: examine it more closely. */
	{ S(IDLE), ON(SUSPECT), S(SUSPECT) },
	/* If evaluations are rare, the first one may find a stall, or a proof. */
	{ S(IDLE), ON(STALL), S(STALLED) },
	{ S(IDLE), ON(NOTICE), S(NOTED) },
	{ S(IDLE), ON(HANG), S(CONFIRMED) },
	{ S(IDLE), ON(END), S(ENDED) },

	{ S(SUSPECT), ON(SUSPECT), S(SUSPECT) },
	/* The suspect made progress after all. */
	{ S(SUSPECT), ON(QUIET), S(IDLE) },
	{ S(SUSPECT), ON(STALL), S(STALLED) },
	{ S(SUSPECT), ON(NOTICE), S(NOTED) },
	/* A proof needs no patience. */
	{ S(SUSPECT), ON(HANG), S(CONFIRMED) },
	{ S(SUSPECT), ON(END), S(ENDED) },

	{ S(STALLED), ON(STALL), S(STALLED) },
	/* Part of the job made progress, so the oldest pending op is younger now. */
	{ S(STALLED), ON(SUSPECT), S(SUSPECT) },
	/* The stall ended before we alerted. */
	{ S(STALLED), ON(QUIET), S(IDLE) },
	/*
	 * We alert: the evidence was the same twice, or the time of
	 * docs/design/patience.md#patience is over.
	 */
	{ S(STALLED), ON(HANG), S(CONFIRMED) },
	/* The stall is long enough for a notice in the journal. */
	{ S(STALLED), ON(NOTICE), S(NOTED) },
	{ S(STALLED), ON(END), S(ENDED) },

	/* Stacks that arrive now go into the bundle. */
	{ S(NOTED), ON(SUSPECT) | ON(STALL) | ON(NOTICE) | ON(EVIDENCE), S(NOTED) },
	/* The stall has become a hang. It stays the same incident, and now gets its first page. */
	{ S(NOTED), ON(HANG), S(CONFIRMED) },
	/* The stall ended by itself, and we paged no user. */
	{ S(NOTED), ON(QUIET), S(RESOLVED) },
	{ S(NOTED), ON(END), S(ENDED) },

	/*
	 * We have announced the incident. The decision stands until the job is quiet, even if the
	 * next verdict differs.
	 */
	{ S(CONFIRMED), ON(SUSPECT) | ON(STALL) | ON(HANG), S(CONFIRMED) },
	/* The stall ended within the seconds before the alert, and no user needs to know. */
	{ S(CONFIRMED), ON(QUIET), S(IDLE) },
	/* No node objected, but the evidence is not complete yet. */
	{ S(CONFIRMED), ON(CLEAR), S(CLEARED) },
	/* The evidence is complete, but the objection period is not over yet. */
	{ S(CONFIRMED), ON(EVIDENCE), S(PREPARED) },
	{ S(CONFIRMED), ON(OBJECTION), S(OBJECTED) },
	{ S(CONFIRMED), ON(END), S(ENDED) },

	{ S(CLEARED), ON(SUSPECT) | ON(STALL) | ON(HANG), S(CLEARED) },
	{ S(CLEARED), ON(QUIET), S(IDLE) },
	{ S(CLEARED), ON(EVIDENCE), S(ALERTED) },
	/* We announce again, because another node may have alerted meanwhile. */
	{ S(CLEARED), ON(HELD), S(CONFIRMED) },
	{ S(CLEARED), ON(OBJECTION), S(OBJECTED) },
	{ S(CLEARED), ON(END), S(ENDED) },

	{ S(PREPARED), ON(SUSPECT) | ON(STALL) | ON(HANG) | ON(EVIDENCE), S(PREPARED) },
	{ S(PREPARED), ON(QUIET), S(IDLE) },
	{ S(PREPARED), ON(CLEAR), S(ALERTED) },
	{ S(PREPARED), ON(OBJECTION), S(OBJECTED) },
	{ S(PREPARED), ON(END), S(ENDED) },

	/*
	 * The alert is out. Later evaluations may change the bundle. Late objections and evidence
	 * have no effect on the alert. If delivery failed, we send the alert again.
	 */
	{ S(ALERTED), ON(SUSPECT) | ON(STALL) | ON(HANG) | ON(OBJECTION) | ON(EVIDENCE) | ON(RETRY),
	  S(ALERTED) },
	/* Progress resumed, so the job was slow, not hanging. */
	{ S(ALERTED), ON(QUIET), S(RESOLVED) },
	{ S(ALERTED), ON(END), S(ENDED) },

	/* Another node knows more, or has already alerted. */
	{ S(OBJECTED), ON(SUSPECT) | ON(STALL) | ON(HANG) | ON(OBJECTION) | ON(EVIDENCE),
	  S(OBJECTED) },
	{ S(OBJECTED), ON(QUIET), S(IDLE) },
	/* The job still hangs. We announce again, because the objector may be gone. */
	{ S(OBJECTED), ON(RETRY), S(CONFIRMED) },
	{ S(OBJECTED), ON(END), S(ENDED) },

	/* The incident is over. The next hang of this job is another incident. */
	{ S(RESOLVED), ON(QUIET), S(IDLE) },
	{ S(RESOLVED), ON(SUSPECT), S(SUSPECT) },
	{ S(RESOLVED), ON(STALL), S(STALLED) },
	{ S(RESOLVED), ON(NOTICE), S(NOTED) },
	{ S(RESOLVED), ON(HANG), S(CONFIRMED) },
	{ S(RESOLVED), ON(END), S(ENDED) },
};

int cw_incident_state_next(unsigned state, unsigned event)
{
	if (event >= CW_INCIDENT_EV__MAX)
		return -1;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].from == state && (moves[i].events & 1u << event))
			return (int)moves[i].to;
	return -1;
}

const char *cw_incident_state_name(unsigned state)
{
	static const char *const names[CW_INCIDENT__MAX] = {
		"idle",     "suspect", "stalled",  "noted",    "confirmed", "cleared",
		"prepared", "alerted", "objected", "resolved", "ended",
	};

	return state < CW_INCIDENT__MAX ? names[state] : "?";
}
