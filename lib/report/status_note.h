/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a node in collwatch.status/1. The daemon writes each note as a sentence for users,
 * and its name in `note_names`, so that a program need not read the sentence. Pure; any thread.
 */
#pragma once

/* The names of these values go into documents. Append only. */
enum cw_status_note {
	CW_NOTE_ALONE,              /* no peers are configured */
	CW_NOTE_FOUND_NOBODY,       /* no peer has been found yet */
	CW_NOTE_PEERS_FROM,         /* a problem with the addresses of peers_from */
	CW_NOTE_SHADOW,             /* mode = shadow */
	CW_NOTE_RELOAD,             /* the last reload did not take effect */
	CW_NOTE_ACCEPT,             /* new connections had to wait */
	CW_NOTE_NO_KERNEL_EVENTS,   /* BPF does not report which process ends a rank */
	CW_NOTE_LOG_LOST,           /* lines of the daemon's log are lost */
	CW_NOTE_AGENT_VERSION,      /* the daemon cannot read the records of some agents */
	CW_NOTE_NO_RECORD,          /* some agents could make no record */
	CW_NOTE_STATE_NOT_WRITABLE, /* the state directory cannot be used */
	CW_NOTE_BUNDLES_WAITING,    /* some bundles are not on disk yet */
	CW_NOTE__MAX,
};

/* Returns the note's name, such as "alone" or "shadow". Never NULL. */
const char *cw_status_note_name(enum cw_status_note note);
/* Returns the note with this name. -1 = unknown name, for example from a newer daemon. */
int cw_status_note_from_name(const char *name);
