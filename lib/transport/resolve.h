/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves host names without blocking the loop. A child process calls the system's resolver (hosts
 * file, DNS, or any other configured source). If the resolver hangs, we kill the child. The child
 * has none of the daemon's capabilities, because it reads data from the network.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "common/clock.h"

struct cw_children;
struct cw_resolve;

/* Default time limit of one call, for all its names together. We drop later answers. */
#define CW_RESOLVE_NS (5 * CW_NS_PER_S)

struct cw_resolve_name {
	const char *host; /* borrowed until cw_resolve_start() returns */
	uint16_t port;
	uint32_t tag; /* any number; we pass it to fn */
	/* Maximum number of addresses that the caller wants; 0 = the usual limit per host. */
	uint32_t max;
};

/*
 * Receives each address of a name, in order of preference. If a name has no address, we call it
 * once with address NULL and the resolver's message in error.
 */
typedef void (*cw_resolve_fn)(uint32_t tag, const struct sockaddr *address, const char *error,
			      void *user);
/* Called when all names have their answers, or at the time limit. May call cw_resolve_free(). */
typedef void (*cw_resolve_done_fn)(void *user);

/*
 * Starts a child of the pool that looks up all names within limit_ns. Returns 0 or -errno. -EAGAIN:
 * too many earlier children hang in the kernel and survive SIGKILL.
 */
int cw_resolve_start_within(struct cw_children *children, int64_t limit_ns,
			    const struct cw_resolve_name *names, unsigned n_names, cw_resolve_fn fn,
			    cw_resolve_done_fn done, void *user, struct cw_resolve **ret);
/* Like cw_resolve_start_within(), with the limit CW_RESOLVE_NS. */
int cw_resolve_start(struct cw_children *children, const struct cw_resolve_name *names,
		     unsigned n_names, cw_resolve_fn fn, cw_resolve_done_fn done, void *user,
		     struct cw_resolve **ret);
/* Kills the child, which the pool reaps later. No callback follows. Takes NULL; returns NULL. */
struct cw_resolve *cw_resolve_free(struct cw_resolve *r);
