/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What listeners do when the process runs out of descriptors or memory: they pause, and whoever
 * connects waits in the kernel's queue. A listener that is ready and cannot accept would turn the
 * loop as fast as it goes. Nobody is turned away with a spare descriptor: a flood would only come
 * back sooner, while an agent that waits in line is served as soon as there is room.
 *
 * Connections do not get the last descriptors. Those are for the work itself: records, /proc,
 * children that take evidence, bundles, the webhook; half of them for the connections of whoever
 * is to look what is wrong, and of peers, both of which are few.
 *
 * Counts are of the process, as descriptors are. Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_accept_pause;
struct cw_clock;
struct event_base;
struct evconnlistener;

enum cw_listener {
	CW_LISTENER_AGENT,
	CW_LISTENER_CONTROL,
	CW_LISTENER_PEER,
	CW_LISTENER_METRICS,
	CW_LISTENER__MAX,
};

/* A paused listener looks again after this. */
#define CW_ACCEPT_PAUSE_MS 100
/* While it lasts, it is said so often. */
#define CW_ACCEPT_SAY_S 60
/* Kept back: an eighth of RLIMIT_NOFILE, up to so many. */
#define CW_ACCEPT_RESERVE_MAX 256u

/* on: accept again, else stop accepting. */
typedef void (*cw_accept_switch_fn)(bool on, void *user);

/* 0 or -ENOMEM. */
int cw_accept_pause_new(struct event_base *base, const struct cw_clock *clock,
			enum cw_listener which, cw_accept_switch_fn fn, void *user,
			struct cw_accept_pause **ret);
/* The same for one of libevent's, which it borrows; takes its error callback. */
int cw_accept_pause_watch(struct event_base *base, const struct cw_clock *clock,
			  enum cw_listener which, struct evconnlistener *listener,
			  struct cw_accept_pause **ret);
/* Before its listener is freed. Takes NULL; returns NULL. */
struct cw_accept_pause *cw_accept_pause_free(struct cw_accept_pause *p);

/* accept() failed with this errno: pauses. */
void cw_accept_pause_failed(struct cw_accept_pause *p, int error);
/* accept() returned fd, which stays the caller's. True: it was the last for now, and p pauses. */
bool cw_accept_pause_took(struct cw_accept_pause *p, int fd);
/*
 * Whether n more descriptors would take some of those that agents' connections do not get. A rank's
 * other descriptors must leave them free, too.
 */
bool cw_accept_pause_is_scarce(unsigned n);
/* Whether fd is among the last that p's connections get: of the control socket root's alone. */
bool cw_accept_pause_is_last(const struct cw_accept_pause *p, int fd);

struct cw_accept_pause_stats {
	uint64_t pauses[CW_LISTENER__MAX];
	int64_t last_ns; /* by the clock of the listener that paused; 0 = never */
};
void cw_accept_pause_stats(struct cw_accept_pause_stats *ret);
