/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of libevent's events. For rooms with an event loop only. */
#pragma once

#include <event2/event.h>

/*
 * Frees an event and sets *ev to NULL; *ev may be NULL. For _cleanup_() as well. Loop thread only.
 */
static inline void event_freep(struct event **ev)
{
	if (*ev)
		event_free(*ev);
	*ev = NULL;
}
