/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves host names without blocking the loop. A child process calls the system's resolver (hosts
 * file, DNS, any other configured source), so we can kill a resolver that hangs. The child has none
 * of the daemon's capabilities, because it reads data from the network.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "common/clock.h"

struct event_base;
struct cw_resolve;

/* Time limit for all names of one round together; we drop later answers. */
#define CW_RESOLVE_NS (5 * CW_NS_PER_S)

struct cw_resolve_name {
	const char *host; /* borrowed during cw_resolve_start() only */
	uint16_t port;
	uint32_t tag; /* passed back to fn */
	uint32_t max; /* most addresses wanted; 0 = the usual limit per host */
};

/*
 * Called with each address of a name (several, in order of preference), or with NULL once for a
 * name without an address. error is then the resolver's message.
 */
typedef void (*cw_resolve_fn)(uint32_t tag, const struct sockaddr *address, const char *error,
			      void *user);
/* The round is over; the callback may call cw_resolve_free(). */
typedef void (*cw_resolve_done_fn)(void *user);

/*
 * 0 or -errno; -EAGAIN: children of earlier rounds hang in the kernel, where no signal
 * reaches them.
 */
int cw_resolve_start_within(struct event_base *base, int64_t limit_ns,
			    const struct cw_resolve_name *names, unsigned n, cw_resolve_fn fn,
			    cw_resolve_done_fn done, void *user, struct cw_resolve **ret);
/* The same within CW_RESOLVE_NS. */
int cw_resolve_start(struct event_base *base, const struct cw_resolve_name *names, unsigned n,
		     cw_resolve_fn fn, cw_resolve_done_fn done, void *user,
		     struct cw_resolve **ret);
/* No callback follows; ends the child. Takes NULL; returns NULL. */
struct cw_resolve *cw_resolve_free(struct cw_resolve *r);
