/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits that a job has survived: at each site of its program, the longest wait that resolved by
 * itself. A site is a kind of call on a communicator, issued from the same lines if these are
 * known. A job that evaluates for forty minutes every hour has shown that this is normal.
 *
 * A job may also wait at one site again and again until its source of work has some. A server that
 * waits for requests looks like this.
 *
 * The caller decides which waits are not learnt: those of held ranks, and those that ended with the
 * communicator. Not thread-safe; never blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* When all places are taken, the site that was not met for longest is forgotten. */
#define WAIT_SITES_MAX 64u
/*
 * Longer waits are learnt as this long. A job that once stood still overnight does not get three
 * nights the next time.
 */
#define WAIT_SITES_LONGEST_NS (INT64_C(4) * 3600 * 1000000000)
/* A source of work that was idle this long, this many times at one site, is normally idle. */
#define WAIT_SITES_IDLE_NS (INT64_C(60) * 1000000000)
#define WAIT_SITES_IDLE_MIN 3u

struct wait_site {
	uint64_t comm_id, lines; /* lines: hash of the call stack; 0 = not known */
	uint32_t kind;           /* enum cw_op_kind */
	uint32_t notices;        /* notices on waits here for a source of work */
	uint32_t idle;           /* waits here that lasted until an idle source had work */
	int64_t longest_ns;
	int64_t met_ns; /* 0 = free */
};

struct wait_sites {
	struct wait_site v[WAIT_SITES_MAX];
	bool has_proposed; /* a notice has proposed the serving policy; said only once */
};

/* Returns the site of the verdict's call. Only the fields that identify it are filled in. */
struct wait_site wait_site_of(const struct cw_snapshot *snap, const struct cw_verdict *v);
/* Returns the site that equals `like`, or NULL if it was never met. */
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
