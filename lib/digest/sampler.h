/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one flight record over time. For each communicator, the sampler stores the current
 * counters, the time of their last change, and the usual duration of an op. The daemon samples four
 * times a second. An op of 1 ms and an op of 10 min both give a usable rhythm.
 *
 * Pure except for reads of the record. The time comes with each sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest/connection_samples.h"
#include "record/record_reader.h"

/*
 * The rhythm is the median of this many intervals between completions. 15 are enough to ignore one
 * evaluation pass of the training loop. They are few enough to follow a change of batch size within
 * a few seconds.
 */
#define CW_SAMPLER_INTERVALS 15

struct cw_track_counters {
	uint64_t coll_entered, coll_returned, coll_reached, coll_completed;
	uint64_t op_index, op_returned, sends, recvs, hash;
	uint64_t state; /* wide, because memcmp() needs a struct without padding */
};

/* One communicator of one process. */
struct cw_track {
	/*
	 * The communicator's entry in the record. An entry with a new generation is another
	 * communicator.
	 */
	uint32_t index, generation;
	bool seen; /* true: the current sample contains this communicator */
	bool has_state;
	/*
	 * True if (coll_returned, hash) was the same in two samples. The agent stores the two
	 * numbers one after the other. A pair that we read between the two stores would look like a
	 * different history of calls. We therefore report no pair that still moves. While ops are
	 * flowing, checkpoints replace the pair.
	 */
	bool is_hash_stable;
	struct cw_track_counters last;
	struct cw_record_state state;
	int64_t progress_ns; /* time when a counter last changed, or of the first sample */
	uint64_t done;       /* completions counted for the rhythm */
	int64_t done_ns;     /* time of the last increase of done; 0 = not yet */
	uint64_t intervals[CW_SAMPLER_INTERVALS];
	uint32_t n_intervals; /* number of intervals ever stored */
	/*
	 * The rolling hash after the last calls, oldest first. We collect these hashes while calls
	 * are slow enough for samples to follow them. Receivers need the hashes where checkpoints
	 * are rare.
	 */
	struct cw_checkpoint commits[CW_RECORD_COMMITS];
	uint32_t n_commits;
	int64_t commits_ns;    /* time when `commits` last grew */
	int64_t checkpoint_ns; /* time of the last checkpoint; 0 = never */
};

struct cw_sampler {
	struct cw_track *tracks;
	size_t n, cap;
	int64_t sampled_ns; /* time of the last good sample; 0 = none */
	int64_t host_ns;    /* time of the last call entered or returned; 0 = never */
	bool is_ok;         /* true: the last attempt to sample was good */
	bool stands_still;  /* true: an op is pending, and its communicator has not moved for 1 s */
	/* Empty unless the ops of a communicator stand still. */
	struct cw_connection_samples connections;
};

void cw_sampler_init(struct cw_sampler *s);
void cw_sampler_fini(struct cw_sampler *s);

/*
 * Refreshes the record and all tracks. Returns 0 or -errno. After a failed refresh nothing has
 * changed. After any other error, the tracks that we could not read are unchanged, and the others
 * are new.
 */
int cw_sampler_sample(struct cw_sampler *s, struct cw_record *record, int64_t now_ns);

/*
 * Reads a record that no sampler watched while the rank wrote it, in one sample. A track's last
 * progress is the enter or return time of its newest op. The sample time is the agent's last beat
 * or the newest call, whichever is later. Returns like cw_sampler_sample().
 */
int cw_sampler_read_past(struct cw_sampler *s, struct cw_record *record);

/*
 * Returns the track of a comm, which must be from the record's last refresh; NULL = there is none.
 */
const struct cw_track *cw_sampler_find(const struct cw_sampler *s,
				       const struct cw_record_comm *comm);

/* Returns the median interval between completions in ns; 0 = not known yet. */
uint64_t cw_sampler_interval_ns(const struct cw_track *t);
