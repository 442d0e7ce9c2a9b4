/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of an incident and its allowed moves, as one table. incident.c has the actions on
 * entering a state. Pure; any thread.
 */
#pragma once

enum cw_incident_state {
	CW_INCIDENT_IDLE = 0,
	CW_INCIDENT_SUSPECT,
	CW_INCIDENT_STALLED,
	CW_INCIDENT_NOTED,     /* in journal and bundle, without a page */
	CW_INCIDENT_CONFIRMED, /* announced; waits for objections and evidence */
	CW_INCIDENT_CLEARED,   /* no node objected; waits for evidence */
	CW_INCIDENT_PREPARED,  /* the evidence is complete; waits for objections */
	CW_INCIDENT_ALERTED,
	CW_INCIDENT_OBJECTED,
	CW_INCIDENT_RESOLVED, /* progress resumed after the alert: the job was slow */
	CW_INCIDENT_ENDED,    /* the job is over */
	CW_INCIDENT__MAX,
};

enum cw_incident_event {
	CW_INCIDENT_EV_QUIET = 0,
	CW_INCIDENT_EV_SUSPECT,
	CW_INCIDENT_EV_STALL,
	CW_INCIDENT_EV_NOTICE,
	CW_INCIDENT_EV_HANG,
	CW_INCIDENT_EV_CLEAR, /* the objection period is over */
	CW_INCIDENT_EV_OBJECTION,
	CW_INCIDENT_EV_EVIDENCE, /* all evidence has come, or its deadline has passed */
	CW_INCIDENT_EV_RETRY,
	CW_INCIDENT_EV_HELD, /* this daemon was held up, and other nodes may think it is lost */
	CW_INCIDENT_EV_END,
	CW_INCIDENT_EV__MAX,
};

/* Returns the next state; -1 = the move must not happen. */
int cw_incident_state_next(unsigned state, unsigned event);
const char *cw_incident_state_name(unsigned state);
