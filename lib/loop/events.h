/* SPDX-License-Identifier: Apache-2.0 */
/* libevent's events as owned pointers. For rooms with an event loop only. */
#pragma once

#include <event2/event.h>

/* Ends and forgets an event; *ev may be NULL. For _cleanup_() as well. Loop thread only. */
static inline void event_freep(struct event **ev)
{
	if (*ev)
		event_free(*ev);
	*ev = NULL;
}
