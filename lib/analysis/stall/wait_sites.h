/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job has got over: at each place of its program, the longest wait that went on by itself.
 * A place is a kind of call on a communicator, issued from the same lines where these are known. A
 * job that evaluates for forty minutes every hour has shown that this is how it is.
 *
 * So has one that waits at the same place again and again until its source of work has some: a
 * server that waits for requests looks like this.
 *
 * Who drives it says what is not learnt: waits of ranks that somebody held, and those that ended
 * with the communicator. Not thread-safe; never blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* Of more, the one that was not met for longest is forgotten. */
#define WAIT_SITES_MAX 64u
/* A job that once stood still overnight is not given three nights the next time. */
#define WAIT_SITES_LONGEST_NS (INT64_C(4) * 3600 * 1000000000)
/* A source of work that was idle for so long, so many times at one place, is idle by trade. */
#define WAIT_SITES_IDLE_NS (INT64_C(60) * 1000000000)
#define WAIT_SITES_IDLE_MIN 3u

struct wait_site {
	uint64_t comm_id, lines; /* lines: hash of the call stack; 0 = not known */
	uint32_t kind;           /* enum cw_op_kind */
	uint32_t notices;        /* of waits here for a source of work */
	uint32_t idle;           /* waits here in which it was idle until it had some */
	int64_t longest_ns;
	int64_t met_ns; /* 0 = free */
};

struct wait_sites {
	struct wait_site v[WAIT_SITES_MAX];
	bool has_proposed; /* that it is told to be a server: said once */
};

/* Where the verdict's call stands; only what tells it apart is filled in. */
struct wait_site wait_site_of(const struct cw_snapshot *snap, const struct cw_verdict *v);
/* NULL = never met. */
const struct wait_site *wait_sites_find(const struct wait_sites *s, const struct wait_site *like);
void wait_sites_learn(struct wait_sites *s, const struct wait_site *like, int64_t ns,
		      int64_t now_ns);
void wait_sites_note(struct wait_sites *s, const struct wait_site *like, int64_t now_ns);
void wait_sites_idle(struct wait_sites *s, const struct wait_site *like, int64_t now_ns);
/* It waits there as a server waits for requests, and nobody was told so yet; site: may be NULL. */
bool wait_sites_should_propose(const struct wait_sites *s, const struct wait_site *site);
