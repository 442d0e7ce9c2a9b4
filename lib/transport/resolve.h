/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names to addresses, without blocking the loop: a child process asks the system's resolver
 * (hosts file, DNS, whatever the machine is set up for), so that one that hangs is ended. The child
 * has none of the daemon's capabilities: what it reads comes from the network.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "common/clock.h"

struct event_base;
struct cw_resolve;

/* All names of one round together; what has not come until then does not. */
#define CW_RESOLVE_NS (5 * CW_NS_PER_S)

struct cw_resolve_name {
	const char *host; /* borrowed during cw_resolve_start() only */
	uint16_t port;
	uint32_t tag; /* given back */
	uint32_t max; /* addresses wanted; 0 = as many as are tried of one host */
};

/*
 * One address of a name (a name may have several, in order of preference), or NULL once for a name
 * that has none; then error is what the resolver says of it.
 */
typedef void (*cw_resolve_fn)(uint32_t tag, const struct sockaddr *address, const char *error,
			      void *user);
/* The round is over; cw_resolve_free() may be called from inside. */
typedef void (*cw_resolve_done_fn)(void *user);

/*
 * 0 or -errno; -EAGAIN: children of earlier rounds hang in the kernel, where no signal reaches
 * them.
 */
int cw_resolve_start_within(struct event_base *base, int64_t limit_ns,
			    const struct cw_resolve_name *names, unsigned n, cw_resolve_fn fn,
			    cw_resolve_done_fn done, void *user, struct cw_resolve **ret);
/* The same within CW_RESOLVE_NS. */
int cw_resolve_start(struct event_base *base, const struct cw_resolve_name *names, unsigned n,
		     cw_resolve_fn fn, cw_resolve_done_fn done, void *user,
		     struct cw_resolve **ret);
/* No more calls back; ends the child. Takes NULL; returns NULL. */
struct cw_resolve *cw_resolve_free(struct cw_resolve *r);
