/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/baseline/group_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMMS_MAX 8192u
#define SITES_MAX 65535u
#define NOT_THERE UINT32_MAX
/* Numbers of calls, on all communicators: of a sound run as many as it has calls. */
#define NUMBERS_MAX (8ull * CW_BASELINE_ROWS)

/* A call, and how much is known of what came out of it. */
struct call {
	struct cw_baseline_row row;
	uint32_t n_parts; /* members whose part is in the numbers */
	double absmax, squares;
	uint32_t nonfinite;
};

struct group {
	struct cw_baseline_comm comm;
	uint32_t *calls; /* by number: index, or NOT_THERE */
	uint32_t room;
	uint32_t n_calls;
	bool is_kept;
	uint16_t number; /* among those that are kept */
};

struct cw_baseline_group_run {
	struct group *groups;
	uint32_t n_groups, room_groups;
	struct call *calls;
	uint32_t n_calls, room_calls;
	char **sites;
	uint32_t n_sites, room_sites;
	uint64_t n_between_two, n_numbers;
	/* What the pair points to. */
	struct cw_baseline_row *rows;
	struct cw_baseline_comm *comms;
};

/* A rank that is being added. */
struct adding {
	struct cw_baseline_group_run *g;
	const struct cw_baseline_run *rank;
	uint32_t *groups; /* by the rank's number of a communicator */
	uint16_t *sites;  /* by the rank's number of a call site: ours, 0 = it has none yet */
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

/* ---- what the members have together ---- */

static bool is_copied(unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE || kind == CW_OP_BROADCAST || kind == CW_OP_REDUCE ||
	       kind == CW_OP_ALL_GATHER;
}

/* Of which each member has its part. */
static bool is_in_parts(unsigned kind)
{
	return kind == CW_OP_REDUCE_SCATTER;
}

static bool is_padded(unsigned kind)
{
	return kind == CW_OP_ALL_GATHER || is_in_parts(kind);
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
	if (is_in_parts(row->kind) || (is_copied(row->kind) && !call->n_parts))
		add_part(call, row);
	if (is_copied(row->kind) && call->n_parts == 1 && !is_padded(row->kind))
		memcpy(call->row.values[CW_BASELINE_OUT], row->values[CW_BASELINE_OUT],
		       sizeof(row->values[CW_BASELINE_OUT]));
}

/* The row of a call, once all members have been added. */
static void finish(struct call *call, uint32_t nranks)
{
	struct cw_baseline_row *row = &call->row;
	uint32_t wanted = is_in_parts(row->kind) ? nranks : 1;

	if (is_padded(row->kind)) {
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

/* ---- one rank ---- */

static int group_of(struct adding *a, uint32_t comm, uint32_t *ret)
{
	const struct cw_baseline_comm *c = &a->rank->comms[comm];
	struct cw_baseline_group_run *g = a->g;
	int r;

	if (a->groups[comm] != NOT_THERE) {
		*ret = a->groups[comm];
		return 0;
	}
	for (*ret = 0; *ret < g->n_groups && g->groups[*ret].comm.id != c->id; ++*ret)
		;
	if (*ret == g->n_groups) {
		if (g->n_groups == COMMS_MAX)
			return -E2BIG;
		r = grow((void **)&g->groups, &g->room_groups, g->n_groups + 1, sizeof(*g->groups));
		if (r < 0)
			return r;
		g->groups[g->n_groups++] = (struct group){ .comm = *c };
	}
	a->groups[comm] = *ret;
	return 0;
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
	call->row.comm = (uint16_t)group;
	memset(call->row.values, 0, sizeof(call->row.values));
	memset(call->row.nonfinite, 0, sizeof(call->row.nonfinite));
	r = site_of(a, row->site, &call->row.site);
	if (r < 0)
		return r;
	g->groups[group].calls[row->seq] = g->n_calls++;
	g->groups[group].n_calls++;
	return 0;
}

static int room_for(struct cw_baseline_group_run *g, struct group *group, uint32_t seq)
{
	uint32_t before = group->room;
	int r;

	if (seq >= before)
		g->n_numbers += seq + 1 - before;
	if (seq > CW_BASELINE_ROWS || g->n_numbers > NUMBERS_MAX)
		return -E2BIG;
	r = grow((void **)&group->calls, &group->room, seq + 1, sizeof(*group->calls));
	for (uint32_t i = before; r == 0 && i < group->room; i++)
		group->calls[i] = NOT_THERE;
	return r;
}

static int add_row(struct adding *a, const struct cw_baseline_row *row)
{
	struct cw_baseline_group_run *g = a->g;
	uint32_t group, call;
	int r;

	if (!cw_op_is_collective(row->kind)) {
		g->n_between_two += !cw_baseline_row_is_operator(row);
		return 0;
	}
	r = group_of(a, row->comm, &group);
	if (r == 0)
		r = room_for(g, &g->groups[group], row->seq);
	if (r < 0)
		return r;
	if (g->groups[group].calls[row->seq] == NOT_THERE)
		r = new_call(a, row, group);
	call = g->groups[group].calls[row->seq];
	/* Members that call different things hang, and do not get here. */
	if (r == 0 && g->calls[call].row.kind == row->kind)
		take_member(&g->calls[call], row);
	return r;
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
		a.groups[i] = NOT_THERE;
	for (uint32_t i = 0; r == 0 && i < rank->n_rows; i++)
		r = add_row(&a, &rank->rows[i]);
	free(a.groups);
	free(a.sites);
	return r;
}

/* ---- what two of them have in common ---- */

static bool is_of_name(const struct group *x, const struct group *y)
{
	return strncmp(x->comm.name, y->comm.name, sizeof(x->comm.name)) == 0;
}

/* The one of b that is, among those of its name, where this is among a's. */
static struct group *counterpart(const struct cw_baseline_group_run *a, uint32_t group,
				 const struct cw_baseline_group_run *b)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < group; i++)
		before += is_of_name(&a->groups[i], &a->groups[group]);
	for (uint32_t i = 0; i < b->n_groups; i++)
		if (is_of_name(&b->groups[i], &a->groups[group]) && before-- == 0)
			return &b->groups[i];
	return NULL;
}

static int lay_out(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
		   uint64_t *ret_left_out)
{
	uint32_t n_rows = 0, n_comms = 0;

	g->rows = malloc(((size_t)g->n_calls + 1) * sizeof(*g->rows));
	g->comms = malloc(((size_t)g->n_groups + 1) * sizeof(*g->comms));
	if (!g->rows || !g->comms)
		return -ENOMEM;
	*ret_left_out = g->n_between_two;
	for (uint32_t i = 0; i < g->n_groups; i++)
		if (g->groups[i].is_kept) {
			g->comms[n_comms] = g->groups[i].comm;
			/* So that they are the same in both. */
			g->comms[n_comms].nranks = 0;
			g->comms[n_comms].comm_rank = -1;
			g->groups[i].number = (uint16_t)n_comms++;
		} else {
			*ret_left_out += g->groups[i].n_calls;
		}
	for (uint32_t i = 0; i < g->n_calls; i++) {
		const struct group *group = &g->groups[g->calls[i].row.comm];

		if (!group->is_kept)
			continue;
		finish(&g->calls[i], group->comm.nranks);
		g->rows[n_rows] = g->calls[i].row;
		g->rows[n_rows++].comm = group->number;
	}
	*ret = (struct cw_baseline_run){
		.rows = g->rows,
		.n_rows = n_rows,
		.comms = g->comms,
		.n_comms = n_comms,
		.sites = g->sites,
		.n_sites = g->n_sites,
	};
	return 0;
}

int cw_baseline_group_runs_pair(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b,
				struct cw_baseline_group_pair *ret)
{
	int r;

	for (uint32_t i = 0; i < a->n_groups; i++) {
		struct group *other = counterpart(a, i, b);

		if (!other || other->comm.nranks == a->groups[i].comm.nranks)
			continue;
		a->groups[i].is_kept = true;
		other->is_kept = true;
	}
	r = lay_out(a, &ret->a, &ret->n_left_out_a);
	return r < 0 ? r : lay_out(b, &ret->b, &ret->n_left_out_b);
}
