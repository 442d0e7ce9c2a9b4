/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A track follows one entry of the record, by index and generation. It is expensive to derive the
 * state from the ops. We derive it only if a counter has moved or an op is pending. The rhythm is
 * the median of the last intervals between completions.
 */
#include "digest/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "model/signature.h"

void cw_sampler_init(struct cw_sampler *s)
{
	*s = (struct cw_sampler){ 0 };
}

void cw_sampler_fini(struct cw_sampler *s)
{
	free(s->tracks);
	cw_connection_samples_fini(&s->connections);
	*s = (struct cw_sampler){ 0 };
}

const struct cw_track *cw_sampler_find(const struct cw_sampler *s,
				       const struct cw_record_comm *comm)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->tracks[i].index == comm->index &&
		    s->tracks[i].generation == comm->entry.generation)
			return &s->tracks[i];
	return NULL;
}

static struct cw_track *track_of(struct cw_sampler *s, const struct cw_record_comm *comm,
				 int64_t now_ns)
{
	struct cw_track *t = (struct cw_track *)cw_sampler_find(s, comm);

	if (t)
		return t;
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 8;
		struct cw_track *v = realloc(s->tracks, cap * sizeof(*v));

		if (!v)
			return NULL;
		s->tracks = v;
		s->cap = cap;
	}
	t = &s->tracks[s->n++];
	if (s->sampled_ns)
		s->host_ns = now_ns; /* the process has made a communicator */
	*t = (struct cw_track){ .index = comm->index,
				.generation = comm->entry.generation,
				.progress_ns = now_ns };
	return t;
}

static struct cw_track_counters counters_of(const struct cw_rec_comm *e,
					    const struct cw_record_state *state)
{
	return (struct cw_track_counters){
		.coll_entered = e->coll_entered,
		.coll_returned = e->coll_returned,
		.coll_reached = state->coll_reached,
		.coll_completed = state->coll_completed,
		.op_index = e->op_index,
		.op_returned = e->op_returned,
		.sends = e->p2p_total[0],
		.recvs = e->p2p_total[1],
		.hash = e->hash,
		.state = e->state,
	};
}

static void update_rhythm(struct cw_track *t, const struct cw_rec_comm *e, int64_t now_ns)
{
	/*
	 * We count the completions on the device if they are visible, and otherwise the host calls
	 * that returned. A communicator may have only point-to-point calls.
	 */
	uint64_t done = e->coll_entered == 0       ? e->op_returned
			: t->state.completed_known ? t->state.coll_completed
						   : e->coll_returned;

	if (done > t->done) {
		if (t->done_ns && now_ns > t->done_ns)
			t->intervals[t->n_intervals++ % CW_SAMPLER_INTERVALS] =
				(uint64_t)(now_ns - t->done_ns) / (done - t->done);
		t->done_ns = now_ns;
	}
	t->done = done; /* `done` may decrease when completions become visible late */
}

static void add_commit(struct cw_track *t, const struct cw_checkpoint *point, int64_t now_ns)
{
	if (t->n_commits == CW_RECORD_COMMITS)
		memmove(t->commits, t->commits + 1, --t->n_commits * sizeof(*t->commits));
	t->commits[t->n_commits++] = *point;
	t->commits_ns = now_ns;
}

/*
 * Follows the hash call by call from the last known point. If calls are too fast for the samples,
 * or come from graphs, we continue from the next hash that two samples share.
 */
static int follow_hash(struct cw_track *t, const struct cw_record *record,
		       const struct cw_record_comm *comm, int64_t now_ns)
{
	const struct cw_checkpoint now = { comm->entry.coll_returned, comm->entry.hash };
	struct cw_checkpoint from = { 0, CW_HASH_INIT }, found[CW_RECORD_COMMITS];
	size_t n = 0;
	int r;

	if (comm->entry.flags & CW_REC_COMM_UNCOUNTED)
		t->n_commits = 0;
	if (t->n_commits)
		from = t->commits[t->n_commits - 1];
	if (from.coll_seq >= now.coll_seq || (comm->entry.flags & CW_REC_COMM_UNCOUNTED))
		return 0;
	if (now.coll_seq - from.coll_seq <= CW_RECORD_COMMITS) {
		r = cw_record_commits(record, comm, &from, found, &n);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++)
		add_commit(t, &found[i], now_ns);
	if (!n && t->is_hash_stable)
		add_commit(t, &now, now_ns);
	return 0;
}

static int sample_comm(struct cw_sampler *s, struct cw_record *record,
		       const struct cw_record_comm *comm, int64_t now_ns)
{
	struct cw_track *t = track_of(s, comm, now_ns);
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_track_counters counters;
	int r;

	if (!t)
		return -ENOMEM;
	t->seen = true;
	/*
	 * The state that we derive from the ops may have changed. The device may complete a pending
	 * op although no host counter moves.
	 */
	if (!t->has_state || t->state.has_pending || t->last.op_index != e->op_index ||
	    t->last.op_returned != e->op_returned || t->last.coll_returned != e->coll_returned ||
	    t->last.state != e->state) {
		struct cw_record_state state;

		r = cw_record_state(record, comm, &state);
		if (r < 0)
			return r;
		t->state = state;
	}
	counters = counters_of(e, &t->state);
	t->is_hash_stable = t->has_state && counters.coll_returned == t->last.coll_returned &&
			    counters.hash == t->last.hash;
	r = follow_hash(t, record, comm, now_ns);
	if (r < 0)
		return r;
	if (counters.coll_returned / CW_CHECKPOINT_EVERY !=
	    t->last.coll_returned / CW_CHECKPOINT_EVERY)
		t->checkpoint_ns = now_ns;
	if (t->has_state && memcmp(&counters, &t->last, sizeof(counters)) != 0)
		t->progress_ns = now_ns;
	if (t->has_state &&
	    (counters.op_index != t->last.op_index || counters.op_returned != t->last.op_returned))
		s->host_ns = now_ns;
	t->last = counters;
	t->has_state = true;
	update_rhythm(t, e, now_ns);
	return 0;
}

/*
 * We read connections only if an op is pending and no counter of its communicator has moved for
 * this long. A healthy communicator moves several times a second.
 */
#define STANDS_STILL_NS CW_NS_PER_S

static int sample_connections(struct cw_sampler *s, const struct cw_record *record, int64_t now_ns)
{
	s->stands_still = false;
	for (size_t i = 0; i < s->n; i++)
		s->stands_still = s->stands_still ||
				  (s->tracks[i].has_state && s->tracks[i].state.has_pending &&
				   now_ns - s->tracks[i].progress_ns >= STANDS_STILL_NS);
	if (s->stands_still)
		return cw_connection_samples_take(&s->connections, record, now_ns);
	cw_connection_samples_clear(&s->connections);
	return 0;
}

int cw_sampler_sample(struct cw_sampler *s, struct cw_record *record, int64_t now_ns)
{
	const struct cw_record_comm *comms;
	size_t n, n_seen = 0;
	int r;

	s->is_ok = false;
	r = cw_record_refresh(record);
	if (r < 0)
		return r;
	comms = cw_record_comms(record, &n);
	for (size_t i = 0; i < n; i++) {
		int err = sample_comm(s, record, &comms[i], now_ns);

		if (err < 0)
			r = err; /* go on, because the other tracks are still useful */
	}
	for (size_t i = 0; i < s->n; i++) {
		if (!s->tracks[i].seen)
			continue;
		if (n_seen != i)
			s->tracks[n_seen] = s->tracks[i];
		s->tracks[n_seen++].seen = false;
	}
	s->n = n_seen;
	if (r == 0)
		r = sample_connections(s, record, now_ns);
	s->sampled_ns = now_ns;
	s->is_ok = r == 0;
	return r;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int cw_sampler_read_past(struct cw_sampler *s, struct cw_record *record)
{
	uint64_t beat_ns;
	int r = cw_sampler_sample(s, record, 0);

	beat_ns = cw_record_header(record)->beat_ns;
	s->sampled_ns = beat_ns < INT64_MAX ? (int64_t)beat_ns : 0;
	for (size_t i = 0; i < s->n; i++) {
		struct cw_track *t = &s->tracks[i];

		if (t->state.has_last)
			t->progress_ns =
				later(t->state.last.enter_mono_ns, t->state.last.return_mono_ns);
		s->sampled_ns = later(s->sampled_ns, t->progress_ns);
	}
	return r;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t cw_sampler_interval_ns(const struct cw_track *t)
{
	uint32_t n = t->n_intervals < CW_SAMPLER_INTERVALS ? t->n_intervals : CW_SAMPLER_INTERVALS;
	uint64_t sorted[CW_SAMPLER_INTERVALS];

	if (n == 0)
		return 0;
	memcpy(sorted, t->intervals, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_u64);
	return sorted[n / 2];
}
