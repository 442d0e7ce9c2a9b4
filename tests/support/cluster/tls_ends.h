/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two daemons with a connection in one event loop: "a" on 127.0.0.1 and "b" on 127.0.0.2. They have
 * a directory for keys and certificates, and a clock that the test can move ahead.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "transport/tcp.h"
#include "transport/transport.h"

#define DEADLINE_S 120

struct end {
	struct cw_transport *transport;
	struct cw_tcp *tcp;
	char address[40];
	unsigned digests;
	uint64_t label_bytes;
};

extern struct event_base *base;
extern struct end a, b;
extern char dir[]; /* the directory; the test removes the files that it puts there */
extern const struct cw_clock *const ends_clock;
extern int64_t skipped_ns; /* lead of the daemons' clock */

/* Call these in .init and .fini of the test suite. */
void ends_setup(void);
void ends_teardown(void);

/* Makes an end: self listens, and knows one peer at that address. */
void make_transport(struct end *e, const char *self, const char *peer, const char *address);
/* Makes an end that has to discover its peers. */
void make_finder(struct end *e, const char *self);
int try_tcp(struct end *e, const struct cw_tls_files *files, struct cw_err *err);
void open_tcp(struct end *e, const struct cw_tls_files *files);

const struct cw_peer *peer_of(const struct end *e);
struct cw_tcp_stats stats_of(const struct end *e);
bool is_refused(const struct end *e, enum cw_peer_refusal why);

/* Runs the event loop until the condition holds. Fails the test after DEADLINE_S. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		int64_t _end = cw_clock_now_ns(&cw_clock_system) + DEADLINE_S * CW_NS_PER_S;       \
		while (!(condition)) {                                                             \
			cr_assert_lt(cw_clock_now_ns(&cw_clock_system), _end, "%s", #condition);   \
			(void)event_base_loop(base, EVLOOP_ONCE);                                  \
		}                                                                                  \
	} while (0)

#define both_connected()                                                                           \
	(peer_of(&a)->state == CW_PEER_CONNECTED && peer_of(&b)->state == CW_PEER_CONNECTED)
