/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a node in collwatch.status/1. The daemon writes them as sentences for people, and
 * next to them their names in `note_names`, so that a program need not read the sentences. Pure;
 * any thread.
 */
#pragma once

/* The names go into documents: append only. */
enum cw_status_note {
	CW_NOTE_ALONE,              /* no peers are configured */
	CW_NOTE_FOUND_NOBODY,       /* no peer has been found yet */
	CW_NOTE_PEERS_FROM,         /* a problem with the addresses of peers_from */
	CW_NOTE_SHADOW,             /* mode = shadow */
	CW_NOTE_RELOAD,             /* the last reload did not take effect */
	CW_NOTE_ACCEPT,             /* new connections had to wait */
	CW_NOTE_NO_KERNEL_EVENTS,   /* BPF does not see who or what ends a rank */
	CW_NOTE_LOG_LOST,           /* lines of the daemon's log are lost */
	CW_NOTE_AGENT_VERSION,      /* the daemon cannot read the records of some agents */
	CW_NOTE_NO_RECORD,          /* some agents could make no record */
	CW_NOTE_STATE_NOT_WRITABLE, /* the state directory cannot be used */
	CW_NOTE_BUNDLES_WAITING,    /* some bundles are not on disk yet */
	CW_NOTE__MAX,
};

/* "alone", "shadow" … Never NULL. */
const char *cw_status_note_name(enum cw_status_note note);
/* -1 = another name, as of a newer daemon. */
int cw_status_note_from_name(const char *name);
