/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one flight record over time. For each communicator, it keeps the current counters, the
 * time of their last change, and the usual duration of an op. The daemon samples four times a
 * second, so both an op of 1 ms and one of 10 min give a usable rhythm.
 *
 * Pure except for reading the record. The time comes with each sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_reader.h"

/*
 * The rhythm is the median of this many intervals. They are enough to ignore one evaluation pass of
 * the training loop, and few enough to follow a change of batch size within a few seconds.
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
	 * True if (coll_returned, hash) was the same in two samples. The agent stores the two
	 * numbers one after the other. A pair that we read in between would look like a different
	 * history, so we report no pair that still moves. While ops are flowing, checkpoints
	 * replace it.
	 */
	bool is_hash_stable;
	struct cw_track_counters last;
	struct cw_record_state state;
	int64_t progress_ns; /* time of the last counter change, or of the first sample */
	uint64_t done;       /* completions counted for the rhythm */
	int64_t done_ns;     /* time of the last increase of done; 0 = not yet */
	uint64_t intervals[CW_SAMPLER_INTERVALS];
	uint32_t n_intervals; /* number of intervals ever stored */
	/*
	 * The rolling hash after the last calls, oldest first. We collect it while calls are slow
	 * enough for samples to follow them. Receivers need it where checkpoints are rare.
	 */
	struct cw_checkpoint commits[CW_RECORD_COMMITS];
	uint32_t n_commits;
	int64_t commits_ns;    /* time when `commits` last grew */
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
 * Refreshes the record and all tracks. Returns 0 or -errno. After a failed refresh nothing has
 * changed. After any other error, only the tracks that we could not read are unchanged.
 */
int cw_sampler_sample(struct cw_sampler *s, struct cw_record *record, int64_t now_ns);

/*
 * Reads, once, a record that no sampler watched while the rank wrote it. A track's last progress is
 * the enter or return time of its newest op. The sample time is the agent's last beat or the newest
 * call, whichever is later. Returns the same as cw_sampler_sample().
 */
int cw_sampler_read_past(struct cw_sampler *s, struct cw_record *record);

/* Returns the track of a comm of the record's last refresh, or NULL. */
const struct cw_track *cw_sampler_find(const struct cw_sampler *s,
				       const struct cw_record_comm *comm);

/* Returns the median interval between completions in ns; 0 = not known yet. */
uint64_t cw_sampler_interval_ns(const struct cw_track *t);
