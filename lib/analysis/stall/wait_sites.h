/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits that a job has survived. For each site of its program we remember the longest wait that
 * resolved by itself. A site is a kind of call on a communicator. If call stacks are known, a site
 * also has the lines from which the program made the call. A job that evaluates for forty minutes
 * every hour has shown that such a wait is normal.
 *
 * A job may also wait at one site again and again until its source of work has work. A server that
 * waits for requests behaves in this way.
 *
 * The caller decides from which waits we do not learn: waits of held ranks, and waits that ended
 * with the communicator. Not thread-safe; never blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* The number of sites. A new site replaces the site whose last wait is oldest. */
#define WAIT_SITES_MAX 64u
/*
 * We remember a longer wait as this long. Otherwise a job that once stood still overnight would get
 * three nights the next time.
 */
#define WAIT_SITES_LONGEST_NS (INT64_C(4) * 3600 * 1000000000)
/*
 * A source of work is normally idle at a site if it was idle there for this long, this many times.
 */
#define WAIT_SITES_IDLE_NS (INT64_C(60) * 1000000000)
#define WAIT_SITES_IDLE_MIN 3u

struct wait_site {
	uint64_t comm_id, lines; /* lines: hash of the call stack; 0 = not known */
	uint32_t kind;           /* enum cw_op_kind */
	uint32_t notices;        /* number of notices at this site about a source of work */
	uint32_t idle; /* number of waits at this site that lasted until an idle source had work */
	int64_t longest_ns;
	int64_t met_ns; /* time of the last wait at this site; 0 = free */
};

struct wait_sites {
	struct wait_site v[WAIT_SITES_MAX];
	bool has_proposed; /* a notice has proposed the serving policy; we propose it only once */
};

/* Returns the site of the verdict's call, with only the fields that identify the site. */
struct wait_site wait_site_of(const struct cw_snapshot *snap, const struct cw_verdict *v);
/* Returns the site that equals `like`; NULL = the job has not waited there. */
const struct wait_site *wait_sites_find(const struct wait_sites *s, const struct wait_site *like);
void wait_sites_learn(struct wait_sites *s, const struct wait_site *like, int64_t ns,
		      int64_t now_ns);
void wait_sites_note(struct wait_sites *s, const struct wait_site *like, int64_t now_ns);
void wait_sites_idle(struct wait_sites *s, const struct wait_site *like, int64_t now_ns);
/*
 * True if the job waits at this site as a server waits for requests, and no notice has said so yet.
 * site may be NULL.
 */
bool wait_sites_should_propose(const struct wait_sites *s, const struct wait_site *site);
