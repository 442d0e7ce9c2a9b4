/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one flight record over time: the current counters of each communicator, the time of their
 * last change, and the usual duration of its ops. The daemon samples four times a second, so both
 * an op of 1 ms and one of 10 min give a usable rhythm.
 *
 * Pure but for reading the record; time comes with each sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_reader.h"

/*
 * The rhythm is the median of this many intervals: enough to forget one evaluation pass, few enough
 * to follow a change of batch size within a few seconds.
 */
#define CW_SAMPLER_INTERVALS 15

struct cw_track_counters {
	uint64_t coll_entered, coll_returned, coll_reached, coll_completed;
	uint64_t op_index, op_returned, sends, recvs, hash;
	uint64_t state; /* as wide as the other fields: memcmp() needs a struct without padding */
};

/* One communicator of one process. */
struct cw_track {
	uint32_t index, generation; /* of its entry: a reused entry is another communicator */
	bool seen;                  /* in the current sample */
	bool has_state;
	/*
	 * (coll_returned, hash) were the same in two samples. The agent stores them one after the
	 * other, and a pair read in between would look like a different history. We therefore do
	 * not report a moving pair. Checkpoints replace it while ops are flowing.
	 */
	bool is_hash_stable;
	struct cw_track_counters last;
	struct cw_record_state state;
	int64_t progress_ns; /* time of the last counter change, or of the first sample */
	uint64_t done;       /* completions counted for the rhythm */
	int64_t done_ns;     /* time of the last increase of done; 0 = not yet */
	uint64_t intervals[CW_SAMPLER_INTERVALS];
	uint32_t n_intervals; /* ever stored */
	/*
	 * The rolling hash after its last calls, oldest first, while calls are slow enough for
	 * samples to follow them. Needed where checkpoints are rare.
	 */
	struct cw_checkpoint commits[CW_RECORD_COMMITS];
	uint32_t n_commits;
	int64_t commits_ns;    /* time of the last addition */
	int64_t checkpoint_ns; /* time of the last checkpoint; 0 = never */
};

struct cw_sampler {
	struct cw_track *tracks;
	size_t n, cap;
	int64_t sampled_ns; /* last good sample; 0 = none */
	int64_t host_ns;    /* time of the last call entered or returned; 0 = never */
	bool is_ok;         /* the last attempt was good */
};

void cw_sampler_init(struct cw_sampler *s);
void cw_sampler_fini(struct cw_sampler *s);

/*
 * Refreshes the record and all tracks. 0, or -errno: after a failed refresh nothing has changed;
 * after any other error only the tracks that we could not read are unchanged.
 */
int cw_sampler_sample(struct cw_sampler *s, struct cw_record *record, int64_t now_ns);

/*
 * Reads, once, a record that no sampler watched while the rank wrote it. A track's last progress is
 * the enter or return time of its newest op. The sample time is the agent's last beat or the newest
 * call, whichever is later. Returns as cw_sampler_sample().
 */
int cw_sampler_read_past(struct cw_sampler *s, struct cw_record *record);

/* The track of a comm of the record's last refresh, or NULL. */
const struct cw_track *cw_sampler_find(const struct cw_sampler *s,
				       const struct cw_record_comm *comm);

/* Median interval between completions in ns; 0 = not known yet. */
uint64_t cw_sampler_interval_ns(const struct cw_track *t);
