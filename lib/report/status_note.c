/* SPDX-License-Identifier: Apache-2.0 */
#include "report/status_note.h"

#include <string.h>

static const char *const names[CW_NOTE__MAX] = {
	[CW_NOTE_ALONE] = "alone",
	[CW_NOTE_FOUND_NOBODY] = "found_nobody",
	[CW_NOTE_PEERS_FROM] = "peers_from",
	[CW_NOTE_SHADOW] = "shadow",
	[CW_NOTE_RELOAD] = "reload",
	[CW_NOTE_ACCEPT] = "accept",
	[CW_NOTE_NO_KERNEL_EVENTS] = "no_kernel_events",
	[CW_NOTE_LOG_LOST] = "log_lost",
	[CW_NOTE_AGENT_VERSION] = "agent_version",
	[CW_NOTE_NO_RECORD] = "no_record",
	[CW_NOTE_STATE_NOT_WRITABLE] = "state_not_writable",
	[CW_NOTE_BUNDLES_WAITING] = "bundles_waiting",
};

const char *cw_status_note_name(enum cw_status_note note)
{
	return names[note];
}

int cw_status_note_from_name(const char *name)
{
	for (int i = 0; i < CW_NOTE__MAX; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}
