/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one flight record over time: what each communicator's counters say now, when any of them
 * last moved, and how long its ops usually take. Four times a second, so that an op of 1 ms and one
 * of 10 min both leave a usable rhythm.
 *
 * Pure but for reading the record; time comes with each sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_reader.h"

/* Intervals whose median is the rhythm: enough to forget one evaluation pass, few enough to follow
 * a change of batch size within a few seconds. */
#define CW_SAMPLER_INTERVALS 15

struct cw_track_counters {
	uint64_t coll_entered, coll_returned, coll_reached, coll_completed;
	uint64_t op_index, op_returned, sends, recvs, hash;
	uint64_t state; /* as wide as the rest: compared with memcmp, so no padding */
};

/* One communicator of one process. */
struct cw_track {
	uint32_t index, generation; /* of its entry: a reused entry is another communicator */
	bool seen;                  /* in the sample going on */
	bool has_state;
	/*
	 * (coll_returned, hash) were the same in two samples. The agent stores them one after the
	 * other; a pair read in between would be taken for a different history, so a moving pair
	 * is not given out. Checkpoints serve while ops are flowing.
	 */
	bool is_hash_stable;
	struct cw_track_counters last;
	struct cw_record_state state;
	int64_t progress_ns; /* last time a counter moved, or first sight */
	uint64_t done;       /* completions counted for the rhythm */
	int64_t done_ns;     /* when that last grew; 0 = not yet */
	uint64_t intervals[CW_SAMPLER_INTERVALS];
	uint32_t n_intervals; /* ever stored */
	/*
	 * The rolling hash after its last calls, oldest first, as far as samples are close enough
	 * to the calls to tell: where checkpoints come seldom.
	 */
	struct cw_checkpoint commits[CW_RECORD_COMMITS];
	uint32_t n_commits;
	int64_t commits_ns;    /* when one was last added */
	int64_t checkpoint_ns; /* when a checkpoint was last passed; 0 = never */
};

struct cw_sampler {
	struct cw_track *tracks;
	size_t n, cap;
	int64_t sampled_ns; /* last good sample; 0 = none */
	int64_t host_ns;    /* a call was last seen to be entered or to return; 0 = never */
	bool is_ok;         /* the last attempt was good */
};

void cw_sampler_init(struct cw_sampler *s);
void cw_sampler_fini(struct cw_sampler *s);

/* Refreshes the record and all tracks. 0, or -errno: everything stays as it was. */
int cw_sampler_sample(struct cw_sampler *s, struct cw_record *record, int64_t now_ns);

/*
 * Once, a record that nobody watched while it was written: a counter moved when its newest op was
 * entered or came back, and the sample is as old as the record, of when its agent last beat or its
 * newest call. Returns as cw_sampler_sample().
 */
int cw_sampler_read_past(struct cw_sampler *s, struct cw_record *record);

/* The track of a comm of the record's last refresh, or NULL. */
const struct cw_track *cw_sampler_find(const struct cw_sampler *s,
				       const struct cw_record_comm *comm);

/* Median interval between completions in ns; 0 = not known yet. */
uint64_t cw_sampler_interval_ns(const struct cw_track *t);
