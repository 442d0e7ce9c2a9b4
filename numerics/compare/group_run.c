/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/compare/group_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMMS_MAX 65535u
#define SITES_MAX 65535u
#define NOT_THERE UINT32_MAX
/* Limit on the call numbers of a run. A sound run uses one number per call. */
#define NUMBERS_MAX (4ull * CW_BASELINE_ROWS)

/* A call, and the statistics of the members' outputs so far. */
struct call {
	struct cw_baseline_row row;
	uint32_t n_parts; /* number of members whose part the statistics include */
	double absmax, squares;
	uint32_t nonfinite;
};

struct group {
	struct cw_baseline_comm comm;
	uint32_t *calls; /* per call number: index of the call, or NOT_THERE */
	uint32_t room;
	uint32_t order;     /* place of the group in the order in which ranks mention groups */
	uint32_t n_omitted; /* omitted calls of the group, each counted once and not per member */
	/* index of the group in both runs; NOT_THERE = only this run has the group */
	uint32_t pair;
};

struct cw_baseline_group_run {
	struct group *groups; /* sorted by id after the choice */
	uint32_t n_groups, room_groups, n_met;
	struct call *calls;
	uint32_t n_calls, room_calls;
	char **sites;
	uint32_t n_sites, room_sites;
	uint32_t n_pairs;
	uint64_t n_between_two, n_numbers;
	/* The result of cw_baseline_group_run_finish(). */
	struct cw_baseline_row *rows;
	struct cw_baseline_comm *comms;
};

/* The rank whose calls we are adding. */
struct adding {
	struct cw_baseline_group_run *g;
	const struct cw_baseline_run *rank;
	/* by the rank's communicator number: index of the group; NOT_THERE = unknown */
	uint32_t *groups;
	uint16_t *sites; /* by the rank's number of a call site: our number; 0 = none yet */
};

struct cw_baseline_group_run *cw_baseline_group_run_new(void)
{
	return calloc(1, sizeof(struct cw_baseline_group_run));
}

struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g)
{
	if (!g)
		return NULL;
	for (uint32_t i = 0; i < g->n_groups; i++)
		free(g->groups[i].calls);
	for (uint32_t i = 0; i < g->n_sites; i++)
		free(g->sites[i]);
	free(g->groups);
	free(g->calls);
	free(g->sites);
	free(g->rows);
	free(g->comms);
	free(g);
	return NULL;
}

static int grow(void **array, uint32_t *room, uint32_t wanted, size_t size)
{
	uint32_t more = *room ? *room : 64;
	void *grown;

	if (wanted <= *room)
		return 0;
	while (more < wanted)
		more *= 2;
	grown = realloc(*array, (size_t)more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

/* ---- combining the members of a call ---- */

static bool is_copied(unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE || kind == CW_OP_BROADCAST || kind == CW_OP_REDUCE ||
	       kind == CW_OP_ALL_GATHER;
}

/* True if each member's output is its own part. */
static bool is_scattered(unsigned kind)
{
	return kind == CW_OP_REDUCE_SCATTER;
}

static void add_part(struct call *call, const struct cw_baseline_row *row)
{
	double absmax = cw_baseline_row_value(row, CW_BASELINE_OUT, CW_BASELINE_ABSMAX);
	double l2 = cw_baseline_row_value(row, CW_BASELINE_OUT, CW_BASELINE_L2);

	call->n_parts++;
	call->absmax = fmax(call->absmax, absmax);
	call->squares += l2 * l2;
	call->nonfinite += row->nonfinite[CW_BASELINE_OUT];
}

static void take_member(struct call *call, const struct cw_baseline_row *row)
{
	if (!cw_baseline_row_has(row, CW_BASELINE_OUT))
		return;
	if (is_scattered(row->kind) || (is_copied(row->kind) && !call->n_parts))
		add_part(call, row);
	if (is_copied(row->kind) && call->n_parts == 1 && !cw_baseline_is_in_parts(row))
		memcpy(call->row.values[CW_BASELINE_OUT], row->values[CW_BASELINE_OUT],
		       sizeof(row->values[CW_BASELINE_OUT]));
}

/* Makes the row of a call after its last member was added. */
static void finish(struct call *call, uint32_t nranks)
{
	struct cw_baseline_row *row = &call->row;
	uint32_t wanted = is_scattered(row->kind) ? nranks : 1;

	if (cw_baseline_is_in_parts(row)) {
		cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_ABSMAX, call->absmax);
		cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_MEAN, NAN);
		cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_L2,
					  sqrt(call->squares));
	}
	row->nonfinite[CW_BASELINE_OUT] =
		(uint8_t)(call->nonfinite < CW_BASELINE_NONFINITE_MAX ? call->nonfinite
								      : CW_BASELINE_NONFINITE_MAX);
	if (call->n_parts >= wanted)
		row->unit |= CW_BASELINE_HAS_OUT;
}

/* ---- the list of communicators ---- */

static int compare_ids(const void *x, const void *y)
{
	const struct group *a = x, *b = y;

	if (a->comm.id != b->comm.id)
		return a->comm.id < b->comm.id ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Joins entries of the same communicator. The name is the name that some member has for it. */
static void join(struct cw_baseline_group_run *g)
{
	uint32_t n = 0;

	if (g->n_groups)
		qsort(g->groups, g->n_groups, sizeof(*g->groups), compare_ids);
	for (uint32_t i = 0; i < g->n_groups; i++) {
		if (n == 0 || g->groups[n - 1].comm.id != g->groups[i].comm.id)
			g->groups[n++] = g->groups[i];
		else if (!g->groups[n - 1].comm.name[0])
			memcpy(g->groups[n - 1].comm.name, g->groups[i].comm.name,
			       sizeof(g->groups[i].comm.name));
	}
	g->n_groups = n;
}

int cw_baseline_group_run_meet(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank)
{
	for (uint32_t i = 0; i < rank->n_comms; i++) {
		if (grow((void **)&g->groups, &g->room_groups, g->n_groups + 1,
			 sizeof(*g->groups)) < 0)
			return -ENOMEM;
		g->groups[g->n_groups] = (struct group){ .comm = rank->comms[i],
							 .order = g->n_met,
							 .pair = NOT_THERE };
		g->n_groups++;
		g->n_met++;
	}
	if (g->n_groups > COMMS_MAX)
		join(g);
	return g->n_groups > COMMS_MAX ? -E2BIG : 0;
}

/*
 * Returns the length of the part of a name that identifies the group in both runs; 0 = there is
 * none.
 */
static size_t known_part(const char *name)
{
	size_t len = strnlen(name, CW_BASELINE_NAME);
	const char *bracket = len && name[len - 1] == ')' ? strrchr(name, '(') : NULL;

	if (bracket && bracket > name + 1 && bracket[-1] == ' ')
		return (size_t)(bracket - name) - 1;
	return strspn(name, "0123456789") == len && strcmp(name, "0") != 0 ? 0 : len;
}

static bool is_known(const struct group *group)
{
	return !group->comm.name[0] || known_part(group->comm.name) != 0;
}

static int compare_names(const struct group *a, const struct group *b)
{
	size_t x = known_part(a->comm.name), y = known_part(b->comm.name);
	int order = memcmp(a->comm.name, b->comm.name, x < y ? x : y);

	return order ? order : (x > y) - (x < y);
}

static int compare_groups(const void *x, const void *y)
{
	const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
	int order = compare_names(a, b);

	return order ? order : (a->order > b->order) - (a->order < b->order);
}

/*
 * Returns the groups whose name identifies them, sorted by name. Within a name they have the order
 * in which ranks mention them.
 */
static struct group **by_name(struct cw_baseline_group_run *g, uint32_t *ret_n)
{
	struct group **sorted = malloc(((size_t)g->n_groups + 1) * sizeof(*sorted));

	*ret_n = 0;
	for (uint32_t i = 0; sorted && i < g->n_groups; i++)
		if (is_known(&g->groups[i]))
			sorted[(*ret_n)++] = &g->groups[i];
	if (*ret_n)
		qsort(sorted, *ret_n, sizeof(*sorted), compare_groups);
	return sorted;
}

static uint32_t end_of_name(struct group *const *groups, uint32_t from, uint32_t n)
{
	uint32_t end = from + 1;

	while (end < n && compare_names(groups[from], groups[end]) == 0)
		end++;
	return end;
}

/* Pairs the groups of both runs by name. Returns the number of pairs. */
static uint32_t choose(struct group *const *a, uint32_t n, struct group *const *b, uint32_t m)
{
	uint32_t n_pairs = 0;

	for (uint32_t i = 0, k = 0; i < n && k < m;) {
		uint32_t i_end = end_of_name(a, i, n), k_end = end_of_name(b, k, m);
		int order = compare_names(a[i], b[k]);

		for (; order == 0 && i < i_end && k < k_end; i++, k++)
			if (a[i]->comm.nranks != b[k]->comm.nranks)
				a[i]->pair = b[k]->pair = n_pairs++;
		if (order <= 0)
			i = i_end;
		if (order >= 0)
			k = k_end;
	}
	return n_pairs;
}

int cw_baseline_group_runs_choose(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b)
{
	struct group **x, **y;
	uint32_t n, m;

	join(a);
	join(b);
	x = by_name(a, &n);
	y = by_name(b, &m);
	if (x && y)
		a->n_pairs = b->n_pairs = choose(x, n, y, m);
	free(x);
	free(y);
	return x && y ? 0 : -ENOMEM;
}

/* ---- one rank ---- */

static uint32_t group_of(const struct cw_baseline_group_run *g, uint64_t id)
{
	uint32_t low = 0, high = g->n_groups;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->groups[middle].comm.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < g->n_groups && g->groups[low].comm.id == id ? low : NOT_THERE;
}

static int site_of(struct adding *a, uint16_t site, uint16_t *ret)
{
	struct cw_baseline_group_run *g = a->g;
	int r;

	*ret = 0;
	if (!site || a->sites[site]) {
		*ret = site ? a->sites[site] : 0;
		return 0;
	}
	if (g->n_sites == SITES_MAX)
		return 0;
	r = grow((void **)&g->sites, &g->room_sites, g->n_sites + 1, sizeof(*g->sites));
	if (r < 0)
		return r;
	g->sites[g->n_sites] = strdup(a->rank->sites[site - 1]);
	if (!g->sites[g->n_sites])
		return -ENOMEM;
	*ret = a->sites[site] = (uint16_t)++g->n_sites;
	return 0;
}

static int new_call(struct adding *a, const struct cw_baseline_row *row, uint32_t group)
{
	struct cw_baseline_group_run *g = a->g;
	struct call *call;
	int r;

	if (g->n_calls == CW_BASELINE_ROWS)
		return -E2BIG;
	r = grow((void **)&g->calls, &g->room_calls, g->n_calls + 1, sizeof(*g->calls));
	if (r < 0)
		return r;
	call = &g->calls[g->n_calls];
	*call = (struct call){ .row = *row };
	call->row.unit = CW_BASELINE_UNIT_ROW;
	call->row.comm = (uint16_t)g->groups[group].pair;
	memset(call->row.values, 0, sizeof(call->row.values));
	memset(call->row.nonfinite, 0, sizeof(call->row.nonfinite));
	r = site_of(a, row->site, &call->row.site);
	if (r < 0)
		return r;
	g->groups[group].calls[row->seq] = g->n_calls++;
	return 0;
}

static int room_for(struct cw_baseline_group_run *g, struct group *group, uint32_t seq)
{
	uint32_t before = group->room, more = before ? before : 64;

	if (seq >= CW_BASELINE_ROWS)
		return -E2BIG;
	if (seq < before)
		return 0;
	while (more <= seq)
		more *= 2;
	g->n_numbers += more - before;
	if (g->n_numbers > NUMBERS_MAX)
		return -E2BIG;
	if (grow((void **)&group->calls, &group->room, more, sizeof(*group->calls)) < 0)
		return -ENOMEM;
	for (uint32_t i = before; i < group->room; i++)
		group->calls[i] = NOT_THERE;
	return 0;
}

static int add_chosen(struct adding *a, const struct cw_baseline_row *row, uint32_t index)
{
	struct cw_baseline_group_run *g = a->g;
	struct group *group = &g->groups[index];
	struct call *call;
	int r = room_for(g, group, row->seq);

	if (r == 0 && group->calls[row->seq] == NOT_THERE)
		r = new_call(a, row, index);
	if (r < 0)
		return r;
	call = &g->calls[group->calls[row->seq]];
	/*
	 * Members with different calls under one number would have hung. So a finished run has no
	 * such call.
	 */
	if (call->row.kind == row->kind)
		take_member(call, row);
	return 0;
}

static int add_row(struct adding *a, const struct cw_baseline_row *row)
{
	uint32_t group = a->groups[row->comm];

	if (!cw_op_is_collective(row->kind)) {
		a->g->n_between_two += !cw_baseline_row_is_operator(row);
		return 0;
	}
	if (group == NOT_THERE)
		return 0;
	if (a->g->groups[group].pair != NOT_THERE)
		return add_chosen(a, row, group);
	if (row->seq > a->g->groups[group].n_omitted)
		a->g->groups[group].n_omitted = row->seq;
	return 0;
}

int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank)
{
	struct adding a = { .g = g, .rank = rank };
	int r = 0;

	a.groups = malloc(((size_t)rank->n_comms + 1) * sizeof(*a.groups));
	a.sites = calloc((size_t)rank->n_sites + 1, sizeof(*a.sites));
	if (!a.groups || !a.sites)
		r = -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < rank->n_comms; i++)
		a.groups[i] = group_of(g, rank->comms[i].id);
	for (uint32_t i = 0; r == 0 && i < rank->n_rows; i++)
		r = add_row(&a, &rank->rows[i]);
	free(a.groups);
	free(a.sites);
	return r;
}

/* ---- the result ---- */

/* Sorts calls in the job's order: by step, and within a step by number. */
static int compare_calls(const void *x, const void *y)
{
	const struct cw_baseline_row *a = x, *b = y;

	if (a->step_plus_1 != b->step_plus_1)
		return a->step_plus_1 < b->step_plus_1 ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return (a->comm > b->comm) - (a->comm < b->comm);
}

int cw_baseline_group_run_finish(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
				 uint64_t *ret_omitted)
{
	g->rows = malloc(((size_t)g->n_calls + 1) * sizeof(*g->rows));
	g->comms = calloc((size_t)g->n_pairs + 1, sizeof(*g->comms));
	if (!g->rows || !g->comms)
		return -ENOMEM;
	*ret_omitted = g->n_between_two;
	for (uint32_t i = 0; i < g->n_groups; i++) {
		*ret_omitted += g->groups[i].n_omitted;
		if (g->groups[i].pair == NOT_THERE)
			continue;
		g->comms[g->groups[i].pair] = g->groups[i].comm;
		g->comms[g->groups[i].pair].comm_rank = -1;
	}
	for (uint32_t i = 0; i < g->n_calls; i++) {
		finish(&g->calls[i], g->comms[g->calls[i].row.comm].nranks);
		g->rows[i] = g->calls[i].row;
	}
	if (g->n_calls)
		qsort(g->rows, g->n_calls, sizeof(*g->rows), compare_calls);
	*ret = (struct cw_baseline_run){
		.rows = g->rows,
		.n_rows = g->n_calls,
		.comms = g->comms,
		.n_comms = g->n_pairs,
		.sites = g->sites,
		.n_sites = g->n_sites,
	};
	return 0;
}
