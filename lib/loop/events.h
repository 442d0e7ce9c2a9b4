/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that free libevent's events. Only for rooms with an event loop. */
#pragma once

#include <event2/event.h>

/*
 * Frees an event and sets *ev to NULL. *ev may be NULL. Usable as _cleanup_(event_freep). Loop
 * thread only.
 */
static inline void event_freep(struct event **ev)
{
	if (*ev)
		event_free(*ev);
	*ev = NULL;
}
