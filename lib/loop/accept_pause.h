/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners pause when the process runs out of descriptors or memory. New connections then wait in
 * the kernel's queue. A listener that is ready but cannot accept would make the loop spin. We do
 * not keep a spare descriptor to accept and close connections: a flood would only come back sooner.
 * An agent that waits in the queue is served as soon as there is room.
 *
 * Connections do not get the last descriptors. We need those for our own work: records, /proc,
 * children that take evidence, bundles, the webhook. Half of them are also open to the control
 * socket, the peer port and the metrics socket. These have few connections, and operators need them
 * to find the fault.
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
/* Interval between lines in the log while listeners pause. */
#define CW_ACCEPT_SAY_S 60
/* We keep back an eighth of RLIMIT_NOFILE, but at most this many descriptors. */
#define CW_ACCEPT_RESERVE_MAX 256u

/* Resumes (on = true) or pauses (on = false) a listener. */
typedef void (*cw_accept_switch_fn)(bool on, void *user);

/* Makes the pause of a listener that fn pauses and resumes. Returns 0 or -ENOMEM. */
int cw_accept_pause_new(struct event_base *base, const struct cw_clock *clock,
			enum cw_listener which, cw_accept_switch_fn fn, void *user,
			struct cw_accept_pause **ret);
/*
 * Like cw_accept_pause_new(), but for a listener of libevent. Borrows the listener and sets its
 * error callback.
 */
int cw_accept_pause_watch(struct event_base *base, const struct cw_clock *clock,
			  enum cw_listener which, struct evconnlistener *listener,
			  struct cw_accept_pause **ret);
/* Frees the pause. Call this before the listener is freed. p may be NULL. Returns NULL. */
struct cw_accept_pause *cw_accept_pause_free(struct cw_accept_pause *p);

/* Call this when accept() failed with this errno. Pauses the listener. */
void cw_accept_pause_failed(struct cw_accept_pause *p, int error);
/*
 * Call this when accept() returned fd. The caller still owns fd. Returns true if fd was the last
 * one for now. The listener is then paused.
 */
bool cw_accept_pause_took(struct cw_accept_pause *p, int fd);
/*
 * True if n more descriptors would reach into those that we keep back from agents' connections. A
 * rank's other descriptors must leave those free, too.
 */
bool cw_accept_pause_is_scarce(unsigned n);
/*
 * True if fd is among the last descriptors that p's connections may get. The control socket keeps
 * these for root.
 */
bool cw_accept_pause_is_last(const struct cw_accept_pause *p, int fd);

struct cw_accept_pause_stats {
	uint64_t pauses[CW_LISTENER__MAX];
	int64_t last_ns; /* the last time when a listener was paused, on its clock; 0 = never */
};
void cw_accept_pause_stats(struct cw_accept_pause_stats *ret);
