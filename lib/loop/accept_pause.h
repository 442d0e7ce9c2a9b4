/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses listeners when the process runs out of descriptors or memory. New connections then wait in
 * the kernel's queue. Without a pause, a listener that is ready but cannot accept would make the
 * loop spin. An agent that waits in the queue gets its connection as soon as there is room. We do
 * not use a spare descriptor to accept and close agents' connections: the clients of a flood would
 * only come back sooner. The control socket does so, because root may wait behind other users
 * (cw_accept_pause_keep_one()).
 *
 * Connections do not get the last descriptors. We need those for our own work: records, /proc,
 * children that take evidence, bundles, the webhook. Half of the last descriptors are also open to
 * the control socket, the peer port and the metrics socket. These listeners have few connections,
 * and operators need them to find the fault.
 *
 * Counts are per process, as descriptors are. Loop thread only; does not block.
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

/* A paused listener tries again after this time. */
#define CW_ACCEPT_PAUSE_MS 100
/* A listener that has been paused for this long looks for root with its kept descriptor. */
#define CW_ACCEPT_KEPT_MS 1000
/* Interval between log lines about paused listeners. */
#define CW_ACCEPT_SAY_S 60
/*
 * Connections do not get the last eighth of RLIMIT_NOFILE, or this many descriptors if that is
 * less.
 */
#define CW_ACCEPT_RESERVE_MAX 256u

/* Resumes a listener (on = true) or pauses it (on = false). */
typedef void (*cw_accept_switch_fn)(bool on, void *user);

/* Makes the pause for a listener that fn can pause and resume. Returns 0 or -ENOMEM. */
int cw_accept_pause_new(struct event_base *base, const struct cw_clock *clock,
			enum cw_listener which, cw_accept_switch_fn fn, void *user,
			struct cw_accept_pause **ret);
/*
 * Makes the pause for a listener of libevent, like cw_accept_pause_new(). Borrows the listener and
 * sets its error callback.
 */
int cw_accept_pause_watch(struct event_base *base, const struct cw_clock *clock,
			  enum cw_listener which, struct evconnlistener *listener,
			  struct cw_accept_pause **ret);
/*
 * Takes a connection that uses the kept descriptor, and owns fd. Returns true if the connection
 * stays open. cw_accept_pause_give_back() then reports its end.
 */
typedef bool (*cw_accept_kept_fn)(int fd, void *user);

/*
 * Keeps one descriptor for the connections that fn accepts. A listener that has been paused for
 * CW_ACCEPT_KEPT_MS passes the waiting connections to fn, until fn accepts one. p must be of
 * cw_accept_pause_watch().
 */
void cw_accept_pause_keep_one(struct cw_accept_pause *p, cw_accept_kept_fn fn, void *user);
/* Keeps the descriptor again, because the connection that used it is closed. */
void cw_accept_pause_give_back(struct cw_accept_pause *p);

/* Frees the pause. Call this function before you free the listener. p may be NULL. Returns NULL. */
struct cw_accept_pause *cw_accept_pause_free(struct cw_accept_pause *p);

/* Pauses the listener after an accept() that failed with this errno. */
void cw_accept_pause_failed(struct cw_accept_pause *p, int error);
/*
 * Decides after each accept() that returned fd whether to pause the listener. The caller still owns
 * fd. Returns true if fd was the last descriptor for now, and the listener is therefore paused.
 */
bool cw_accept_pause_took(struct cw_accept_pause *p, int fd);
/*
 * Returns whether n more descriptors would reach into those that agents' connections must not get.
 * Before a rank takes other descriptors, callers check that those stay free, too.
 */
bool cw_accept_pause_is_scarce(unsigned n);
/*
 * Returns whether fd is among the last descriptors that p's connections may get. The control socket
 * accepts only root on these.
 */
bool cw_accept_pause_is_last(const struct cw_accept_pause *p, int fd);

struct cw_accept_pause_stats {
	uint64_t pauses[CW_LISTENER__MAX];
	int64_t last_ns; /* last time when we paused a listener, on its clock; 0 = never */
};
void cw_accept_pause_stats(struct cw_accept_pause_stats *ret);
