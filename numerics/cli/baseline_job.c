/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_job.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "model/op.h"
#include "numerics/cli/baseline_dir.h"
#include "numerics/compare/group_run.h"

/* ---- filters ---- */

int baseline_request_filter(struct baseline_request *request, const char *text, bool skips)
{
	static const char *const keys[BASELINE_KEYS] = { "kind=", "comm=", "site=" };

	if (request->n_filters == BASELINE_FILTERS)
		return -E2BIG;
	for (enum baseline_key key = 0; key < BASELINE_KEYS; key++) {
		size_t len = strlen(keys[key]);

		if (strncmp(text, keys[key], len) != 0 || !text[len])
			continue;
		request->filters[request->n_filters++] =
			(struct baseline_filter){ key, skips, text + len };
		return 0;
	}
	return -EINVAL;
}

static bool is_denied(const struct baseline_request *request, enum baseline_key key,
		      const char *text)
{
	bool has_allowed = false, is_allowed = false;

	for (uint32_t i = 0; i < request->n_filters; i++) {
		const struct baseline_filter *f = &request->filters[i];
		bool matches = f->key == key && fnmatch(f->pattern, text, 0) == 0;

		if (f->key != key)
			continue;
		if (f->skips && matches)
			return true;
		has_allowed = has_allowed || !f->skips;
		is_allowed = is_allowed || (!f->skips && matches);
	}
	return has_allowed && !is_allowed;
}

/*
 * Marks the communicators and call sites that the filters exclude. We match each name with the
 * patterns once, because there are far fewer names than ops.
 */
static void deny(const struct baseline_request *request, struct cw_baseline_run *run)
{
	bool *comms = cw_or_exit(calloc((size_t)run->n_comms + 1, sizeof(*comms)));
	bool *sites = cw_or_exit(calloc((size_t)run->n_sites + 1, sizeof(*sites)));

	for (uint32_t i = 0; i < run->n_comms; i++)
		comms[i] = is_denied(request, BASELINE_COMM, run->comms[i].name);
	for (uint32_t i = 0; i < run->n_sites; i++)
		sites[i] = is_denied(request, BASELINE_SITE, run->sites[i]);
	run->is_comm_denied = comms;
	run->is_site_denied = sites;
}

static void undo_deny(struct cw_baseline_run *run)
{
	free((bool *)run->is_comm_denied);
	free((bool *)run->is_site_denied);
	run->is_comm_denied = run->is_site_denied = NULL;
}

/* ---- one rank ---- */

static int read_file(const struct baseline_listed *from, struct cw_baseline_file *ret,
		     struct cw_err *err)
{
	_cleanup_(closep) int fd = open(from->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct cw_err why = { "" };
	int r;

	if (fd < 0)
		return cw_err_set(err, errno, "%s: %s", from->path, strerror(errno));
	r = cw_baseline_file_read(fd, ret, &why);
	return r < 0 ? cw_err_set(err, -r, "%s %s", from->path, why.text) : 0;
}

static int load(const struct baseline_listed *from, const struct baseline_request *request,
		struct cw_baseline_file *ret, struct baseline_part *part, struct cw_err *err)
{
	int r = read_file(from, ret, err);

	if (r < 0)
		return r;
	part->is_there = true;
	part->is_finished = ret->is_finished;
	memcpy(part->counters, ret->counters, sizeof(part->counters));
	part->denied = cw_or_exit(strdup(ret->denied));
	deny(request, &ret->run);
	return 0;
}

static void keep_op(const struct cw_baseline_run *run, uint32_t row, struct baseline_op *to)
{
	if (row == CW_BASELINE_NONE)
		return;
	to->is_there = true;
	to->row = run->rows[row];
	to->comm = run->comms[to->row.comm];
	if (to->row.site)
		(void)snprintf(to->site, sizeof(to->site), "%s", run->sites[to->row.site - 1]);
	to->call = 1;
	while (row-- > 0 && run->rows[row].step_plus_1 == to->row.step_plus_1)
		to->call += run->rows[row].site == to->row.site;
}

static void unload(struct cw_baseline_file *file)
{
	undo_deny(&file->run);
	cw_baseline_file_fini(file);
}

static int compare_rank(const struct baseline_listed *x, const struct baseline_listed *y,
			const struct baseline_request *request, struct baseline_rank *to,
			struct cw_err *err)
{
	_cleanup_(unload) struct cw_baseline_file a = { .rows = NULL };
	_cleanup_(unload) struct cw_baseline_file b = { .rows = NULL };
	int r = load(x, request, &a, &to->a, err);

	if (r == 0)
		r = load(y, request, &b, &to->b, err);
	if (r < 0)
		return r;
	if (cw_baseline_compare(&a.run, &b.run, &request->options, &to->said) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (to->said.first.what != CW_BASELINE_EQUAL) {
		keep_op(&a.run, to->said.first.row_a, &to->op_a);
		keep_op(&b.run, to->said.first.row_b, &to->op_b);
	}
	return 0;
}

const char *baseline_kind_name(unsigned kind)
{
	return kind == CW_BASELINE_KIND_OPERATOR ? "operator" : cw_op_kind_name(kind);
}

/* ---- the job ---- */

static void add_up(struct cw_baseline_said *sum, const struct cw_baseline_said *s)
{
	sum->way = s->way > sum->way ? s->way : sum->way;
	sum->n_a += s->n_a;
	sum->n_b += s->n_b;
	sum->n_paired += s->n_paired;
	sum->n_checked += s->n_checked;
	sum->n_denied += s->n_denied;
	sum->n_own += s->n_own;
	sum->n_skipped_a += s->n_skipped_a;
	sum->n_skipped_b += s->n_skipped_b;
	sum->n_unrecorded_a += s->n_unrecorded_a;
	sum->n_unrecorded_b += s->n_unrecorded_b;
	sum->n_missing += s->n_missing;
	sum->n_extra += s->n_extra;
	sum->n_unlike += s->n_unlike;
	sum->n_called_otherwise += s->n_called_otherwise;
	sum->n_tensor_stats += s->n_tensor_stats;
}

static struct cw_baseline_first first_of(const struct baseline_rank *r)
{
	return (struct cw_baseline_first){
		.rank = r->rank,
		/*
		 * Ids of baseline and check are never equal, so we compare communicators by index.
		 */
		.comm = r->op_a.is_there ? r->op_a.comm.id : r->op_b.comm.id,
		.difference = r->said.first,
		.a = r->op_a.row,
		.b = r->op_b.row,
	};
}

static bool is_compared(const struct baseline_rank *r)
{
	return r->a.is_there && r->b.is_there;
}

/* Counts the ranks. A rank may have two parts, which are adjacent. */
static void count_ranks(struct baseline_job *job)
{
	bool is_compared_one = false, differs = false;

	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct baseline_rank *r = &job->parts[i];

		is_compared_one = is_compared_one || is_compared(r);
		differs = differs || r->said.first.what != CW_BASELINE_EQUAL;
		if (i + 1 < job->n_parts && r[1].rank == r->rank)
			continue;
		job->n_ranks++;
		job->n_compared += is_compared_one;
		job->n_differ += differs;
		is_compared_one = differs = false;
	}
}

static void find_first(struct baseline_job *job)
{
	bool has_first = false;

	for (uint32_t i = 0; i < job->n_parts; i++) {
		struct cw_baseline_first own = first_of(&job->parts[i]), first;

		if (own.difference.what == CW_BASELINE_EQUAL)
			continue;
		first = first_of(&job->parts[job->first]);
		if (!has_first || cw_baseline_is_before(&own, &first))
			job->first = i;
		has_first = true;
	}
}

static const char *name_of_part(enum cw_baseline_file_part part)
{
	return part == CW_BASELINE_OPERATORS ? "the operators of " : "";
}

/* True if all ranks of both runs are present. Call it only if the runs' numbers of ranks differ. */
static bool is_whole(const struct baseline_job *job)
{
	return job->parts[0].a.n_ranks >= (uint32_t)job->world_size_a &&
	       job->parts[0].b.n_ranks >= (uint32_t)job->world_size_b;
}

static void judge(struct baseline_job *job)
{
	const struct baseline_rank *alone = NULL;
	bool has_other_part = false;

	for (uint32_t i = 0; i < job->n_parts && !alone; i++)
		if (!is_compared(&job->parts[i]))
			alone = &job->parts[i];
	for (uint32_t i = 0; i < job->n_parts && alone; i++)
		has_other_part = has_other_part ||
				 (&job->parts[i] != alone && job->parts[i].rank == alone->rank);
	count_ranks(job);
	find_first(job);
	job->outcome = BASELINE_OUTCOME_NONE;
	if (job->n_differ)
		job->outcome = BASELINE_OUTCOME_DIFFERS;
	else if (job->world_size_a && !is_whole(job))
		(void)snprintf(job->why, sizeof(job->why),
			       "all ranks that both have are equal, but ranks are missing: %u of "
			       "%d are in the baseline, %u of %d in the check",
			       job->parts[0].a.n_ranks, job->world_size_a, job->parts[0].b.n_ranks,
			       job->world_size_b);
	else if (job->world_size_a && job->sum.n_checked == 0)
		(void)snprintf(
			job->why, sizeof(job->why),
			"the world size is %d in the baseline and %d in the check, and their "
			"communicators have different members, so no call has tensors in both",
			job->world_size_a, job->world_size_b);
	else if (alone)
		(void)snprintf(job->why, sizeof(job->why), "%srank %d %s in %s only",
			       has_other_part || alone->part ? name_of_part(alone->part) : "",
			       alone->rank, alone->part ? "are" : "is",
			       alone->a.is_there ? "the baseline" : "the check");
	else if (job->sum.n_checked == 0)
		(void)snprintf(
			job->why, sizeof(job->why),
			"no op has tensors in both; of the baseline's ops (%llu), the check has "
			"%llu",
			(unsigned long long)job->sum.n_a, (unsigned long long)job->sum.n_paired);
	else
		job->outcome = BASELINE_OUTCOME_EQUAL;
}

/* ---- different numbers of ranks ---- */

/*
 * True if the numbers of ranks are known and differ. Then a rank of one run does other work than
 * the same rank of the other run.
 */
static bool are_other_worlds(const struct baseline_listing *a, const struct baseline_listing *b)
{
	int32_t x = a->files[0].world_size, y = b->files[0].world_size;

	return x > 0 && y > 0 && x != y;
}

static void free_group_run(struct cw_baseline_group_run **g)
{
	*g = cw_baseline_group_run_free(*g);
}

typedef int (*take_rank_fn)(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Calls `take` for each rank's collectives, one file at a time. The callers read each file twice,
 * so that memory holds only the calls that we compare.
 */
static int each_rank(const struct baseline_listing *from, take_rank_fn take,
		     struct cw_baseline_group_run *g, struct baseline_part *part,
		     struct cw_err *err)
{
	int r = 0;

	*part = (struct baseline_part){ .is_finished = true };
	for (uint32_t i = 0; i < from->n && r == 0; i++) {
		_cleanup_(cw_baseline_file_fini) struct cw_baseline_file file = { .rows = NULL };

		if (from->files[i].part != CW_BASELINE_COLLECTIVES)
			continue;
		r = read_file(&from->files[i], &file, err);
		if (r < 0)
			return r;
		r = take(g, &file.run);
		part->is_there = true;
		part->is_finished = part->is_finished && file.is_finished;
		part->n_ranks++;
		for (unsigned n = 0; n < CW_BASELINE_COUNTERS; n++)
			part->counters[n] += file.counters[n];
	}
	if (r == -E2BIG)
		return cw_err_set(err, E2BIG,
				  "too many communicators, or too many calls on the communicators "
				  "that both jobs have");
	return r < 0 ? cw_err_set(err, ENOMEM, "out of memory") : 0;
}

static int load_worlds(const struct baseline_listing *a, const struct baseline_listing *b,
		       struct cw_baseline_group_run *x, struct cw_baseline_group_run *y,
		       struct baseline_rank *to, struct cw_err *err)
{
	int r = each_rank(a, cw_baseline_group_run_meet, x, &to->a, err);

	if (r == 0)
		r = each_rank(b, cw_baseline_group_run_meet, y, &to->b, err);
	if (r == 0 && cw_baseline_group_runs_choose(x, y) < 0)
		r = cw_err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = each_rank(a, cw_baseline_group_run_add, x, &to->a, err);
	if (r == 0)
		r = each_rank(b, cw_baseline_group_run_add, y, &to->b, err);
	return r;
}

static int compare_groups(struct cw_baseline_run *a, struct cw_baseline_run *b,
			  const struct baseline_request *request, struct baseline_rank *to)
{
	struct cw_baseline_options options = request->options;
	int r;

	deny(request, a);
	deny(request, b);
	options.are_groups = true;
	r = cw_baseline_compare(a, b, &options, &to->said);
	if (r == 0 && to->said.first.what != CW_BASELINE_EQUAL) {
		keep_op(a, to->said.first.row_a, &to->op_a);
		keep_op(b, to->said.first.row_b, &to->op_b);
	}
	undo_deny(a);
	undo_deny(b);
	return r;
}

static int compare_worlds(const struct baseline_listing *a, const struct baseline_listing *b,
			  const struct baseline_request *request, struct baseline_job *job,
			  struct cw_err *err)
{
	_cleanup_(free_group_run) struct cw_baseline_group_run *x =
		cw_or_exit(cw_baseline_group_run_new());
	_cleanup_(free_group_run) struct cw_baseline_group_run *y =
		cw_or_exit(cw_baseline_group_run_new());
	struct baseline_rank *to = &job->parts[job->n_parts++];
	struct cw_baseline_run run_a, run_b;
	int r;

	to->rank = BASELINE_ALL_RANKS;
	job->world_size_a = a->files[0].world_size;
	job->world_size_b = b->files[0].world_size;
	r = load_worlds(a, b, x, y, to, err);
	if (r < 0)
		return r;
	r = cw_baseline_group_run_finish(x, &run_a, &job->n_unlike_a);
	if (r == 0)
		r = cw_baseline_group_run_finish(y, &run_b, &job->n_unlike_b);
	if (r == 0)
		r = compare_groups(&run_a, &run_b, request, to);
	if (r < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	add_up(&job->sum, &to->said);
	return 0;
}

static int compare_listings(const struct baseline_listing *a, const struct baseline_listing *b,
			    const struct baseline_request *request, struct baseline_job *job,
			    struct cw_err *err)
{
	uint32_t i = 0, k = 0;
	int r = 0;

	while (r == 0 && (i < a->n || k < b->n)) {
		struct baseline_rank *to = &job->parts[job->n_parts];
		int order = i == a->n   ? 1
			    : k == b->n ? -1
					: baseline_listed_compare(&a->files[i], &b->files[k]);
		bool has_a = order <= 0, has_b = order >= 0;

		to->rank = has_a ? a->files[i].rank : b->files[k].rank;
		to->part = has_a ? a->files[i].part : b->files[k].part;
		to->a.is_there = has_a;
		to->b.is_there = has_b;
		if (has_a && has_b)
			r = compare_rank(&a->files[i], &b->files[k], request, to, err);
		job->n_parts++;
		if (r == 0 && has_a && has_b)
			add_up(&job->sum, &to->said);
		i += has_a;
		k += has_b;
	}
	return r;
}

int baseline_job_compare(const char *a, const char *b, const struct baseline_request *request,
			 struct baseline_job *ret, struct cw_err *err)
{
	_cleanup_(baseline_listing_fini) struct baseline_listing x = { NULL, 0 };
	_cleanup_(baseline_listing_fini) struct baseline_listing y = { NULL, 0 };
	struct baseline_request own = *request;
	int r = baseline_dir_list(a, &x, err);

	*ret = (struct baseline_job){ .parts = NULL };
	if (r == 0)
		r = baseline_dir_list(b, &y, err);
	if (r < 0)
		return r;
	for (unsigned kind = 0; kind < CW_OP__MAX; kind++)
		own.options.is_kind_denied[kind] =
			is_denied(request, BASELINE_KIND, baseline_kind_name(kind));
	ret->parts = cw_or_exit(calloc((size_t)x.n + y.n, sizeof(*ret->parts)));
	r = are_other_worlds(&x, &y) ? compare_worlds(&x, &y, &own, ret, err)
				     : compare_listings(&x, &y, &own, ret, err);
	if (r < 0)
		baseline_job_fini(ret);
	else
		judge(ret);
	return r;
}

void baseline_job_fini(struct baseline_job *job)
{
	for (uint32_t i = 0; i < job->n_parts; i++) {
		free(job->parts[i].a.denied);
		free(job->parts[i].b.denied);
	}
	free(job->parts);
	*job = (struct baseline_job){ .parts = NULL };
}
