/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_gather.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "common/text.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "record/record_layout.h"

#define NODE_BYTES 256

struct numerics_part {
	struct numerics_part *next;
	struct cw_numerics_job job;
	const struct cw_numerics_source *sources;
	bool *wanted; /* per rank of the part: it belongs to the run */
	struct cw_arena arena;
};

/* ---- a document ---- */

static const char *name_of(struct cw_arena *arena, const char *path, const char *node, int32_t pid)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "process %d on %s", (int)pid, node);
	return cw_or_exit(cw_arena_strdup(arena, path ? path : text));
}

static void take_sources(struct numerics_part *part, const struct cw_tensor_samples_source *from,
			 const char *path, const char *node)
{
	struct cw_numerics_source *sources = cw_or_exit(
		cw_arena_new_array(&part->arena, struct cw_numerics_source, part->job.n_ranks + 1));

	for (uint32_t i = 0; i < part->job.n_ranks; i++) {
		sources[i] = (struct cw_numerics_source){
			.path = name_of(&part->arena, path, node, from[i].pid),
			.rank = from[i].rank,
			.pid = from[i].pid,
			.world_size = from[i].world_size,
			.has_summaries = true,
			.n_ops = from[i].n_ops,
			.n_samples = from[i].n_samples,
			.n_kept = from[i].n_kept,
			.n_dropped = from[i].n_dropped,
			.created_wall_ns = from[i].created_wall_ns,
			.ended_wall_ns = from[i].ended_wall_ns,
			.lives = from[i].lives,
		};
	}
	part->sources = sources;
}

static struct numerics_part *free_part(struct numerics_part *part)
{
	if (!part)
		return NULL;
	cw_arena_fini(&part->arena);
	free(part->wanted);
	free(part);
	return NULL;
}

static int read_part(struct numerics_part *part, const json_t *doc, const char *path,
		     const char *node, struct numerics_page *ret, struct cw_err *err)
{
	struct cw_tensor_samples_source *sources = NULL;
	const struct cw_tensor_samples_source *last;
	int r = cw_or_exit_result(
		cw_tensor_samples_doc_read(doc, &part->arena, &part->job, &sources, err));

	if (r < 0)
		return r;
	/*
	 * A bundle's document contains all ranks at once. A page of a node is short, and contains
	 * no more than the records of its ranks.
	 */
	if (!path && (part->job.n_ranks > CW_TENSOR_SAMPLES_DOC_PAGE_RANKS ||
		      part->job.n_samples > part->job.n_ranks * CW_REC_SUMMARIES ||
		      part->job.n_comms > part->job.n_samples))
		return cw_err_set(err, E2BIG, "more than ranks can have");
	part->wanted = cw_or_exit(calloc((size_t)part->job.n_ranks + 1, sizeof(*part->wanted)));
	last = part->job.n_ranks ? &sources[part->job.n_ranks - 1] : NULL;
	*ret = (struct numerics_page){
		.n_ranks = part->job.n_ranks,
		.n_omitted = cw_tensor_samples_doc_omitted(doc),
		.last_ns = last ? last->created_wall_ns : 0,
		.last_pid = last ? last->pid : 0,
	};
	take_sources(part, sources, path, node);
	return 0;
}

int numerics_gather_doc(struct numerics_gather *g, const json_t *doc, const char *path,
			const char *node, struct numerics_page *ret, struct cw_err *err)
{
	struct numerics_part *part = cw_or_exit(calloc(1, sizeof(*part)));
	int r = read_part(part, doc, path, node, ret, err);

	if (r < 0)
		(void)free_part(part); /* always NULL */
	else
		LL_APPEND(g->parts, part);
	return r;
}

/* ---- selection of ranks ---- */

struct candidate {
	struct numerics_part *part;
	uint32_t rank; /* index of the rank in the part */
	uint32_t order;
	/* end of the process, as the source reports it; 0 = unknown, or the process lives */
	int64_t ended_wall_ns;
};

static const struct cw_numerics_source *source_of(const struct candidate *c)
{
	return &c->part->sources[c->rank];
}

/*
 * Sorts the candidates. Candidates for one rank become adjacent, the best one first. Candidates
 * without a rank number are grouped by record.
 */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const struct cw_numerics_source *s = source_of(x), *t = source_of(y);

	if (s->rank != t->rank)
		return s->rank < t->rank ? -1 : 1;
	if (s->rank >= 0 && s->lives != t->lives)
		return s->lives ? -1 : 1;
	if (s->created_wall_ns != t->created_wall_ns)
		return s->created_wall_ns > t->created_wall_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static bool is_same(const struct candidate *a, const struct candidate *b)
{
	const struct cw_numerics_source *s = source_of(a), *t = source_of(b);

	if (s->rank != t->rank)
		return false;
	return s->rank >= 0 || (s->created_wall_ns && s->created_wall_ns == t->created_wall_ns);
}

/*
 * Copies the process's end, which only a daemon knows. We may have found the same process a second
 * time without a daemon.
 */
static void add_end(struct candidate *to, const struct candidate *same)
{
	if (!to->ended_wall_ns)
		to->ended_wall_ns = same->ended_wall_ns;
}

static uint32_t drop_doubles(struct candidate *v, uint32_t n)
{
	uint32_t kept = 0;

	qsort(v, n, sizeof(*v), compare_candidates);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || !is_same(&v[kept - 1], &v[i]))
			v[kept++] = v[i];
		else if (source_of(&v[kept - 1])->created_wall_ns ==
			 source_of(&v[i])->created_wall_ns)
			add_end(&v[kept - 1], &v[i]);
	}
	return kept;
}

/* ---- selection of the run ---- */

/* Shared communicators lead from rank to rank of a run. We follow them at most this many times. */
#define MAX_ROUNDS 16u

struct run {
	/* communicators of the candidates that belong to the run, sorted */
	struct cw_numerics_comm *comms;
	size_t n;
	int64_t since_ns; /* start of the oldest process that certainly belongs to the run */
};

static int compare_comms(const void *a, const void *b)
{
	const struct cw_numerics_comm *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

static void add_comms(struct run *run, const struct candidate *c)
{
	const struct cw_numerics_job *job = &c->part->job;

	for (uint32_t i = 0; i < job->n_samples; i++) {
		const struct cw_numerics_comm *comm = &job->comms[job->samples[i].comm];

		/* Summaries of one communicator are adjacent. */
		if (job->samples[i].rank == c->rank &&
		    (run->n == 0 || compare_comms(&run->comms[run->n - 1], comm) != 0))
			run->comms[run->n++] = *comm;
	}
}

/*
 * Returns the time of the candidate's last call; 0 = unknown. A process whose last call is before
 * the start of the others belongs to an earlier run.
 */
static int64_t last_ns(const struct candidate *c)
{
	const struct cw_numerics_job *job = &c->part->job;
	int64_t last = 0;

	for (uint32_t i = 0; i < job->n_samples; i++)
		if (job->samples[i].rank == c->rank && job->samples[i].at_ns > last)
			last = job->samples[i].at_ns;
	return last ? last : source_of(c)->created_wall_ns;
}

/*
 * Returns the end of the process. If we do not know it, returns the last call, which may be much
 * earlier: a hung run makes no calls until the user ends it.
 */
static int64_t end_ns(const struct candidate *c)
{
	int64_t last = last_ns(c);

	if (c->ended_wall_ns > last)
		return c->ended_wall_ns;
	return last ? last : INT64_MAX; /* unknown */
}

static bool is_of_run(const struct run *run, const struct candidate *c)
{
	const struct cw_numerics_job *job = &c->part->job;

	for (uint32_t i = 0; i < job->n_samples; i++)
		if (job->samples[i].rank == c->rank &&
		    bsearch(&job->comms[job->samples[i].comm], run->comms, run->n,
			    sizeof(*run->comms), compare_comms))
			return true;
	return false;
}

/* Returns the earlier of two times. 0 means unknown. */
static int64_t earliest(int64_t a_ns, int64_t b_ns)
{
	if (!a_ns || !b_ns)
		return a_ns ? a_ns : b_ns;
	return a_ns < b_ns ? a_ns : b_ns;
}

static bool *wanted(const struct candidate *c)
{
	return &c->part->wanted[c->rank];
}

/*
 * Selects the live ranks. If no rank is alive, selects the rank with the newest record. Also sets
 * the start of the run. Live processes without summaries belong to a run, too. If the newest rank
 * ended before the first of these processes began, it belongs to an earlier run. Otherwise such
 * processes prove nothing, because they may be older than many runs.
 */
static void want_first(struct candidate *v, uint32_t n, int64_t living_since_ns, struct run *run)
{
	const struct candidate *newest = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct cw_numerics_source *s = source_of(&v[i]);

		*wanted(&v[i]) = s->lives;
		if (!s->has_summaries) {
			living_since_ns = earliest(living_since_ns, s->created_wall_ns);
			continue;
		}
		if (!newest || s->lives > source_of(newest)->lives ||
		    (s->lives == source_of(newest)->lives &&
		     s->created_wall_ns > source_of(newest)->created_wall_ns))
			newest = &v[i];
	}
	run->since_ns = INT64_MAX;
	if (newest && !source_of(newest)->lives && end_ns(newest) < living_since_ns)
		run->since_ns = living_since_ns;
	else if (newest)
		*wanted(newest) = true;
	for (uint32_t i = 0; i < n; i++) {
		if (!*wanted(&v[i]) || !source_of(&v[i])->has_summaries)
			continue;
		if (source_of(&v[i])->created_wall_ns < run->since_ns)
			run->since_ns = source_of(&v[i])->created_wall_ns;
		add_comms(run, &v[i]);
	}
}

/*
 * Adds the candidates that belong to the run as we know it so far. Returns true if the run has
 * grown, so that another call may add more.
 */
static bool want_more(struct candidate *v, uint32_t n, struct run *run)
{
	size_t n_before = run->n;
	bool has_grown = false;

	if (run->n)
		qsort(run->comms, run->n, sizeof(*run->comms), compare_comms);
	for (uint32_t i = 0; i < n; i++) {
		const struct run known = { run->comms, n_before, run->since_ns };

		if (*wanted(&v[i]) || (last_ns(&v[i]) < run->since_ns && !is_of_run(&known, &v[i])))
			continue;
		*wanted(&v[i]) = has_grown = true;
		add_comms(run, &v[i]);
	}
	return has_grown;
}

static bool has_bad(const struct candidate *c)
{
	const struct cw_numerics_job *job = &c->part->job;

	for (uint32_t i = 0; i < job->n_samples; i++)
		if (job->samples[i].rank == c->rank && cw_numerics_is_bad(&job->samples[i]))
			return true;
	return false;
}

/* Selects the run's ranks and counts the other ones. */
static void want(struct candidate *v, uint32_t n, uint32_t n_samples, int64_t living_since_ns,
		 struct cw_numerics_input *in)
{
	struct run run = { .comms = cw_or_exit(calloc((size_t)n_samples + 1, sizeof(*run.comms))) };

	want_first(v, n, living_since_ns, &run);
	for (unsigned round = 0; round < MAX_ROUNDS && want_more(v, n, &run); round++)
		;
	for (uint32_t i = 0; i < n; i++) {
		if (*wanted(&v[i]) || !source_of(&v[i])->has_summaries)
			continue;
		in->n_set_aside++;
		in->is_bad_set_aside = in->is_bad_set_aside || has_bad(&v[i]);
	}
	free(run.comms);
}

static void choose(struct numerics_part *parts, int64_t living_since_ns,
		   struct cw_numerics_input *in)
{
	uint32_t n = 0, n_samples = 0, at = 0;
	struct numerics_part *part;
	struct candidate *v;

	LL_FOREACH (parts, part) {
		n += part->job.n_ranks;
		n_samples += part->job.n_samples;
	}
	v = cw_or_exit(calloc((size_t)n + 1, sizeof(*v)));
	LL_FOREACH (parts, part)
		for (uint32_t i = 0; i < part->job.n_ranks; i++, at++)
			v[at] = (struct candidate){ part, i, at, part->sources[i].ended_wall_ns };
	want(v, n ? drop_doubles(v, n) : 0, n_samples, living_since_ns, in);
	free(v);
}

/* ---- the union of all parts ---- */

static int join(const struct numerics_part *parts, struct cw_tensor_samples *samples,
		struct cw_arena *arena, struct cw_numerics_source **ret)
{
	struct cw_numerics_source *sources;
	const struct numerics_part *part;
	uint32_t n = 0;
	int r = 0;

	for (part = parts; part && r == 0; part = part->next)
		r = cw_or_exit_result(cw_tensor_samples_join(samples, &part->job, part->wanted));
	if (r < 0)
		return r;
	sources = cw_or_exit(
		cw_arena_new_array(arena, struct cw_numerics_source, samples->n_ranks + 1));
	LL_FOREACH (parts, part) {
		for (uint32_t i = 0; i < part->job.n_ranks; i++) {
			if (!part->wanted[i])
				continue;
			sources[n] = part->sources[i];
			sources[n++].path =
				cw_or_exit(cw_arena_strdup(arena, part->sources[i].path));
		}
	}
	*ret = sources;
	return 0;
}

int numerics_gather_end(struct numerics_gather *g, struct cw_numerics_input *in)
{
	struct numerics_part *own = cw_or_exit(calloc(1, sizeof(*own)));
	struct cw_tensor_samples samples = { .samples = NULL };
	int r;

	own->job = in->job;
	own->sources = in->sources;
	own->wanted = cw_or_exit(calloc((size_t)in->job.n_ranks + 1, sizeof(*own->wanted)));
	LL_PREPEND(g->parts, own);
	choose(g->parts, g->living_since_ns, in);
	r = join(g->parts, &samples, &in->arena, &in->sources);
	if (r < 0) {
		cw_tensor_samples_fini(&samples);
		return r;
	}
	cw_tensor_samples_fini(&in->samples);
	in->samples = samples;
	in->job = cw_tensor_samples_job(&in->samples);
	return 0;
}

void numerics_gather_fini(struct numerics_gather *g)
{
	struct numerics_part *part, *next;

	LL_FOREACH_SAFE (g->parts, part, next)
		(void)free_part(part); /* always NULL */
	g->parts = NULL;
}

/* ---- nodes without an answer ---- */

void numerics_gather_silent(struct numerics_silent *silent, const char *name)
{
	static const char more[] = ", …";
	char text[NODE_BYTES];

	if (silent->is_cut)
		return;
	(void)snprintf(text, sizeof(text), "%s", name);
	cw_text_sanitise_line(text);
	silent->is_cut =
		strlen(silent->names) + strlen(text) + 2 * sizeof(more) >= sizeof(silent->names);
	if (silent->is_cut)
		cw_text_append(silent->names, sizeof(silent->names), "%s", more);
	else
		cw_text_append(silent->names, sizeof(silent->names), "%s%s",
			       *silent->names ? ", " : "", text);
}
