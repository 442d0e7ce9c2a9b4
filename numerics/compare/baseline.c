/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares one rank of two runs. We match communicators and sort the ops into lanes (sequences that
 * one counter numbers). Then we pair the ops of each lane (pairing.h) and compare the pairs.
 */
#include "numerics/compare/baseline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numerics/compare/pairing.h"

/* Limit on the lost ops of a run. We do not compare lanes whose lost ops would exceed it. */
#define LOST_MAX (1u << 20)

/* The sort key of ops. Ops with equal keys form a lane. */
struct lane {
	/* index of the communicator in the baseline; n_comms + index if only the check has it */
	uint32_t comm;
	uint32_t kind; /* 0 = all collectives */
	int32_t peer;
};

struct sorted {
	const struct cw_baseline_run *run;
	uint32_t *comms; /* per communicator of the run: its number in struct lane */
	uint32_t *sites; /* indexed by a site's number in this run: its number for the pairing,
			    which is common to both runs */
	uint32_t *order; /* row indices, sorted by lane and number */
	uint32_t next;   /* position in order of the first row of the next lane */
	uint32_t *lane;  /* row indices of the current lane, with gaps for lost ops */
	uint32_t n_lane, room_lane;
	uint64_t lost;
	bool is_lossy; /* ops of the current lane are lost */
};

struct comparison {
	const struct cw_baseline_options *options;
	struct sorted a, b;
	struct cw_baseline_said said;
};

static void sorted_fini(struct sorted *s)
{
	free(s->comms);
	free(s->sites);
	free(s->order);
	free(s->lane);
}

/* ---- matching of communicators ---- */

static bool is_same_comm(const struct cw_baseline_comm *x, const struct cw_baseline_comm *y)
{
	return x->nranks == y->nranks && x->comm_rank == y->comm_rank &&
	       strncmp(x->name, y->name, sizeof(x->name)) == 0;
}

/*
 * Matches communicators by name, size and the rank's position in them. If several are equal in
 * these, the n-th of one run matches the n-th of the other. Ids cannot decide, because they differ
 * in each run.
 */
static int match_comms(struct sorted *a, struct sorted *b, bool are_groups)
{
	uint32_t n = a->run->n_comms, m = b->run->n_comms;
	bool *is_taken = calloc(n + 1, sizeof(*is_taken));

	a->comms = malloc((n + 1) * sizeof(*a->comms));
	b->comms = malloc((m + 1) * sizeof(*b->comms));
	for (uint32_t i = 0; a->comms && i < n; i++)
		a->comms[i] = i;
	for (uint32_t k = 0; is_taken && b->comms && k < m; k++) {
		uint32_t i = 0;

		while (!are_groups && i < n &&
		       (is_taken[i] || !is_same_comm(&a->run->comms[i], &b->run->comms[k])))
			i++;
		if (are_groups)
			i = k < n ? k : n;
		b->comms[k] = i < n ? i : n + k;
		is_taken[i] = true;
	}
	free(is_taken);
	return is_taken && a->comms && b->comms ? 0 : -ENOMEM;
}

struct named {
	const char *text;
	uint32_t run, number;
};

static int compare_named(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	int order = strcmp(a->text, b->text);

	return order ? order : a->run < b->run ? -1 : a->run > b->run;
}

static int match_sites(struct sorted *a, struct sorted *b)
{
	uint32_t n = a->run->n_sites, m = b->run->n_sites, number = 0;
	struct named *all = malloc(((size_t)n + m + 1) * sizeof(*all));

	a->sites = calloc((size_t)n + 1, sizeof(*a->sites));
	b->sites = calloc((size_t)m + 1, sizeof(*b->sites));
	if (!all || !a->sites || !b->sites) {
		free(all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		all[i] = (struct named){ a->run->sites[i], 0, i + 1 };
	for (uint32_t i = 0; i < m; i++)
		all[n + i] = (struct named){ b->run->sites[i], 1, i + 1 };
	qsort(all, (size_t)n + m, sizeof(*all), compare_named);
	for (uint32_t i = 0; i < n + m; i++) {
		if (i == 0 || strcmp(all[i - 1].text, all[i].text) != 0)
			number += 2;
		(all[i].run ? b : a)->sites[all[i].number] = number + !strstr(all[i].text, " in ");
	}
	free(all);
	return 0;
}

/* ---- lanes ---- */

static struct lane lane_of(const struct sorted *s, uint32_t row)
{
	const struct cw_baseline_row *r = &s->run->rows[row];

	if (cw_op_is_collective(r->kind) || cw_baseline_row_is_operator(r))
		return (struct lane){ .comm = s->comms[r->comm] };
	return (struct lane){ s->comms[r->comm], r->kind, r->root_or_peer };
}

static int compare_lanes(const struct lane *x, const struct lane *y)
{
	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->peer < y->peer ? -1 : x->peer > y->peer;
}

static int compare_rows(const void *x, const void *y, void *user)
{
	const struct sorted *s = user;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	struct lane a = lane_of(s, i), b = lane_of(s, k);
	int order = compare_lanes(&a, &b);

	if (order)
		return order;
	if (s->run->rows[i].seq != s->run->rows[k].seq)
		return s->run->rows[i].seq < s->run->rows[k].seq ? -1 : 1;
	return i < k ? -1 : i > k;
}

/*
 * Sorts the rows by lane and number. First we do a counting sort by communicator. A lane that is in
 * order after it, like that of collectives, needs no further sort.
 */
static int sort(struct sorted *s, uint32_t n_lanes)
{
	uint32_t n = s->run->n_rows, *starts = calloc((size_t)n_lanes + 1, sizeof(*starts));

	s->order = malloc(((size_t)n + 1) * sizeof(*s->order));
	if (!starts || !s->order) {
		free(starts);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		starts[s->comms[s->run->rows[i].comm] + 1]++;
	for (uint32_t i = 0; i < n_lanes; i++)
		starts[i + 1] += starts[i];
	for (uint32_t i = 0; i < n; i++)
		s->order[starts[s->comms[s->run->rows[i].comm]]++] = i;
	/* By now each start has advanced to the start of the next lane. */
	for (uint32_t c = 0, from = 0; c < n_lanes; from = starts[c++]) {
		uint32_t i = from + 1;

		while (i < starts[c] && compare_rows(&s->order[i - 1], &s->order[i], s) < 0)
			i++;
		if (i < starts[c])
			qsort_r(s->order + from, starts[c] - from, sizeof(*s->order), compare_rows,
				s);
	}
	free(starts);
	return 0;
}

static int put(struct sorted *s, uint32_t row)
{
	if (s->n_lane == s->room_lane) {
		uint32_t more = s->room_lane ? s->room_lane * 2 : 1024;
		uint32_t *grown = realloc(s->lane, (size_t)more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->lane = grown;
		s->room_lane = more;
	}
	s->lane[s->n_lane++] = row;
	return 0;
}

/* Copies the row indices of this lane to s->lane, with gaps for lost ops. */
static int take_lane(struct sorted *s, const struct lane *lane)
{
	int r = 0;

	s->n_lane = 0;
	s->is_lossy = false;
	for (; s->next < s->run->n_rows && r == 0; s->next++) {
		struct lane own = lane_of(s, s->order[s->next]);
		uint32_t seq = s->run->rows[s->order[s->next]].seq, gap;

		if (compare_lanes(&own, lane) != 0)
			break;
		gap = seq > s->n_lane + 1u ? seq - s->n_lane - 1u : 0;
		if (s->lost + gap > LOST_MAX)
			s->is_lossy = true;
		if (!s->is_lossy)
			s->lost += gap;
		while (!s->is_lossy && s->n_lane + 1u < seq && r == 0)
			r = put(s, CW_BASELINE_NONE);
		/* Two ops with the same number come from a damaged record. We use the first one. */
		if (r == 0 && (s->is_lossy || s->n_lane < seq))
			r = put(s, s->order[s->next]);
	}
	return r;
}

/* ---- findings ---- */

static bool is_denied(const struct comparison *c, const struct sorted *s,
		      const struct cw_baseline_row *row)
{
	return (row->kind < CW_OP__MAX && c->options->is_kind_denied[row->kind]) ||
	       (s->run->is_comm_denied && s->run->is_comm_denied[row->comm]) ||
	       (s->run->is_site_denied && row->site && s->run->is_site_denied[row->site - 1]);
}

static void note(struct comparison *c, struct cw_baseline_difference d, uint32_t row_a,
		 uint32_t row_b)
{
	struct cw_baseline_difference *first = &c->said.first;

	d.row_a = row_a;
	d.row_b = row_b;
	d.place = row_a != CW_BASELINE_NONE ? row_a : row_b;
	if (first->what == CW_BASELINE_EQUAL || d.place < first->place)
		*first = d;
}

static void note_what(struct comparison *c, enum cw_baseline_what what, uint32_t row_a,
		      uint32_t row_b)
{
	note(c, (struct cw_baseline_difference){ .what = what }, row_a, row_b);
}

/* Counts an op that only one run has. */
static void lonely(struct comparison *c, struct sorted *s, uint32_t row, enum cw_baseline_what what)
{
	if (is_denied(c, s, &s->run->rows[row]))
		return;
	if (what == CW_BASELINE_UNLIKE)
		c->said.n_unlike++;
	else if (what == CW_BASELINE_MISSING)
		c->said.n_missing++;
	else
		c->said.n_extra++;
	note_what(c, what, s == &c->a ? row : CW_BASELINE_NONE,
		  s == &c->b ? row : CW_BASELINE_NONE);
}

static bool has_other_count(const struct cw_baseline_row *x, const struct cw_baseline_row *y)
{
	return memcmp(x->count, y->count, sizeof(x->count)) != 0;
}

static enum cw_baseline_what called_otherwise(const struct comparison *c, enum cw_baseline_way way,
					      const struct cw_baseline_row *x,
					      const struct cw_baseline_row *y)
{
	struct pairing_ops p = { .sites = c->a.sites }, q = { .sites = c->b.sites };

	if (x->dtype != y->dtype)
		return CW_BASELINE_DTYPE;
	if (!c->options->are_groups && has_other_count(x, y))
		return CW_BASELINE_COUNT;
	if (x->redop != y->redop)
		return CW_BASELINE_REDOP;
	if (x->root_or_peer != y->root_or_peer)
		return cw_baseline_row_is_operator(x) ? CW_BASELINE_COUNT : CW_BASELINE_ROOT;
	if (way != CW_BASELINE_BY_KIND && pairing_is_other_site(&p, x, &q, y))
		return CW_BASELINE_SITE;
	return CW_BASELINE_EQUAL;
}

static void pair(struct comparison *c, enum cw_baseline_way way, uint32_t row_a, uint32_t row_b)
{
	const struct cw_baseline_row *x = &c->a.run->rows[row_a], *y = &c->b.run->rows[row_b];
	struct cw_baseline_difference d;
	enum cw_baseline_what what;

	c->said.n_paired++;
	if (is_denied(c, &c->a, x) || is_denied(c, &c->b, y)) {
		c->said.n_denied++;
		return;
	}
	what = called_otherwise(c, way, x, y);
	if (what != CW_BASELINE_EQUAL) {
		c->said.n_called_otherwise++;
		note_what(c, what, row_a, row_b);
		return;
	}
	/*
	 * In a group of another size, a part of equal length is not a part of one tensor, but the
	 * member's own value. Similarly, a copy of another length is a copy of another tensor.
	 */
	if (c->options->are_groups && has_other_count(x, y) != cw_baseline_is_in_parts(x)) {
		c->said.n_own++;
		return;
	}
	if (!((x->unit & y->unit) & ~CW_BASELINE_UNIT_MASK))
		return;
	c->said.n_checked++;
	if (cw_baseline_close(x, y, c->a.run->comms[x->comm].nranks, c->options, &d))
		return;
	c->said.n_tensor_stats++;
	note(c, d, row_a, row_b);
}

/*
 * Compares the op at position i of one lane with that at position k of the other. If one lane has
 * no op there, counts the op of the other lane.
 */
static void pair_places(struct comparison *c, enum cw_baseline_way way, uint32_t i, uint32_t k)
{
	uint32_t a = c->a.lane[i], b = c->b.lane[k];

	if (a != CW_BASELINE_NONE && b != CW_BASELINE_NONE)
		pair(c, way, a, b);
	else if (a != CW_BASELINE_NONE)
		c->said.n_unrecorded_b++;
	else if (b != CW_BASELINE_NONE)
		c->said.n_unrecorded_a++;
}

static uint32_t count_rows(const struct sorted *s, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (; from < to; from++)
		n += s->lane[from] != CW_BASELINE_NONE;
	return n;
}

/*
 * Handles the ops between two runs of pairs. We pair them in order as long as their kinds agree,
 * because they are the same op with other arguments. The remaining ops exist in one run only.
 */
static void hunk(struct comparison *c, enum cw_baseline_way way, const struct pairing_run *from,
		 uint32_t a_end, uint32_t b_end)
{
	struct pairing_ops x = { .sites = c->a.sites }, y = { .sites = c->b.sites };
	uint32_t i = from->a, k = from->b;

	while (i < a_end || k < b_end) {
		uint32_t a = i < a_end ? c->a.lane[i] : CW_BASELINE_NONE;
		uint32_t b = k < b_end ? c->b.lane[k] : CW_BASELINE_NONE;

		i += i < a_end;
		k += k < b_end;
		if (a != CW_BASELINE_NONE && b != CW_BASELINE_NONE &&
		    pairing_is_same_kind(&x, &c->a.run->rows[a], &y, &c->b.run->rows[b])) {
			pair(c, way, a, b);
			continue;
		}
		if (a != CW_BASELINE_NONE)
			lonely(c, &c->a, a, CW_BASELINE_MISSING);
		if (b != CW_BASELINE_NONE)
			lonely(c, &c->b, b, CW_BASELINE_EXTRA);
	}
}

static bool is_marked(const struct sorted *s, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		if (s->lane[from] != CW_BASELINE_NONE &&
		    s->run->rows[s->lane[from]].step_plus_1 != 0)
			return true;
	return false;
}

/* Counts all ops from here on as unlike, because the lanes have too little in common. */
static void unlike(struct comparison *c, uint32_t i, uint32_t k)
{
	for (; i < c->a.n_lane; i++)
		if (c->a.lane[i] != CW_BASELINE_NONE)
			lonely(c, &c->a, c->a.lane[i], CW_BASELINE_UNLIKE);
	for (; k < c->b.n_lane; k++)
		if (c->b.lane[k] != CW_BASELINE_NONE)
			lonely(c, &c->b, c->b.lane[k], CW_BASELINE_UNLIKE);
}

/*
 * Returns the step of the last op before `at`; 0 = none. *ret_earlier is the last step before it
 * with another number; 0 = none.
 */
static uint32_t step_before(const struct sorted *s, uint32_t at, uint32_t *ret_earlier)
{
	uint32_t step = 0;

	*ret_earlier = 0;
	while (at-- > 0 && !*ret_earlier) {
		uint32_t own = s->lane[at] == CW_BASELINE_NONE
				       ? step
				       : s->run->rows[s->lane[at]].step_plus_1;

		if (step && own != step)
			*ret_earlier = own;
		step = step ? step : own;
	}
	return step;
}

/*
 * True if the other run did not sample the steps of ops [from, to). A run samples operators only in
 * every n-th step. So these steps lie between two sampled steps of the other run, or between its
 * last sampled step and the next.
 */
static bool is_unseen(const struct sorted *s, uint32_t from, uint32_t to,
		      const struct sorted *other, uint32_t at)
{
	uint32_t before, earlier, next, first = 0, last = 0;

	if (from == to || at == 0)
		return false;
	before = step_before(other, at, &earlier);
	next = before && earlier ? 2 * before - earlier : 0;
	for (; at < other->n_lane; at++)
		if (other->lane[at] != CW_BASELINE_NONE) {
			next = other->run->rows[other->lane[at]].step_plus_1;
			break;
		}
	for (; from < to; from++)
		if (s->lane[from] != CW_BASELINE_NONE) {
			const struct cw_baseline_row *row = &s->run->rows[s->lane[from]];

			if (!cw_baseline_row_is_operator(row))
				return false;
			last = row->step_plus_1;
			first = first ? first : last;
		}
	return before && first > before && last < next;
}

static void walk(struct comparison *c, const struct pairing *p)
{
	struct pairing_run at = { p->skipped_a, p->skipped_b, 0 };
	bool a_began = p->way != CW_BASELINE_BY_STEP, b_began = a_began;

	c->said.n_skipped_a += count_rows(&c->a, 0, at.a);
	c->said.n_skipped_b += count_rows(&c->b, 0, at.b);
	for (uint32_t n = 0; n <= p->n_runs; n++) {
		bool is_last = n == p->n_runs;
		struct pairing_run next =
			is_last ? (struct pairing_run){ c->a.n_lane, c->b.n_lane, 0 } : p->runs[n];

		if (is_last && p->is_cut) {
			unlike(c, at.a, at.b);
			break;
		}
		/* We skip the ops before the first step of the other run. */
		if (!b_began && at.b == next.b && next.b < c->b.n_lane) {
			c->said.n_skipped_a += count_rows(&c->a, at.a, next.a);
			at.a = next.a;
		} else if (!a_began && at.a == next.a && next.a < c->a.n_lane) {
			c->said.n_skipped_b += count_rows(&c->b, at.b, next.b);
			at.b = next.b;
		}
		if (at.b == next.b && is_unseen(&c->a, at.a, next.a, &c->b, at.b)) {
			c->said.n_skipped_a += count_rows(&c->a, at.a, next.a);
			at.a = next.a;
		} else if (at.a == next.a && is_unseen(&c->b, at.b, next.b, &c->a, at.a)) {
			c->said.n_skipped_b += count_rows(&c->b, at.b, next.b);
			at.b = next.b;
		}
		hunk(c, p->way, &at, next.a, next.b);
		for (uint32_t i = 0; i < next.n; i++)
			pair_places(c, p->way, next.a + i, next.b + i);
		a_began = a_began || is_marked(&c->a, at.a, next.a + next.n);
		b_began = b_began || is_marked(&c->b, at.b, next.b + next.n);
		at = (struct pairing_run){ next.a + next.n, next.b + next.n, 0 };
	}
	if (p->way > c->said.way)
		c->said.way = p->way;
}

static int compare_lane(struct comparison *c, uint32_t nranks)
{
	struct pairing_ops a = { c->a.run->rows, c->a.lane, c->a.n_lane, c->a.sites };
	struct pairing_ops b = { c->b.run->rows, c->b.lane, c->b.n_lane, c->b.sites };
	struct pairing pairing;
	int r;

	if (c->a.is_lossy || c->b.is_lossy) {
		c->said.n_unrecorded_b += count_rows(&c->a, 0, a.n);
		c->said.n_unrecorded_a += count_rows(&c->b, 0, b.n);
		return 0;
	}
	r = pairing_find(&a, &b, nranks, c->options, &pairing);
	if (r < 0)
		return r;
	walk(c, &pairing);
	pairing_fini(&pairing);
	return 0;
}

static uint32_t nranks_of(const struct comparison *c, uint32_t comm)
{
	uint32_t n = c->a.run->n_comms;

	return comm < n ? c->a.run->comms[comm].nranks : c->b.run->comms[comm - n].nranks;
}

static int compare_all(struct comparison *c)
{
	int r = 0;

	while (r == 0 && (c->a.next < c->a.run->n_rows || c->b.next < c->b.run->n_rows)) {
		bool has_a = c->a.next < c->a.run->n_rows, has_b = c->b.next < c->b.run->n_rows;
		struct lane x = has_a ? lane_of(&c->a, c->a.order[c->a.next]) : (struct lane){ 0 };
		struct lane y = has_b ? lane_of(&c->b, c->b.order[c->b.next]) : (struct lane){ 0 };
		struct lane lane = !has_b || (has_a && compare_lanes(&x, &y) < 0) ? x : y;

		r = take_lane(&c->a, &lane);
		if (r == 0)
			r = take_lane(&c->b, &lane);
		if (r == 0)
			r = compare_lane(c, nranks_of(c, lane.comm));
	}
	return r;
}

int cw_baseline_compare(const struct cw_baseline_run *a, const struct cw_baseline_run *b,
			const struct cw_baseline_options *options, struct cw_baseline_said *ret)
{
	struct comparison c = {
		.options = options,
		.a = { .run = a },
		.b = { .run = b },
		.said = { .n_a = a->n_rows, .n_b = b->n_rows },
	};
	int r = match_comms(&c.a, &c.b, options->are_groups);

	if (r == 0)
		r = match_sites(&c.a, &c.b);
	if (r == 0)
		r = sort(&c.a, a->n_comms + b->n_comms);
	if (r == 0)
		r = sort(&c.b, a->n_comms + b->n_comms);
	if (r == 0)
		r = compare_all(&c);
	sorted_fini(&c.a);
	sorted_fini(&c.b);
	if (r == 0)
		*ret = c.said;
	return r;
}

/* ---- the job ---- */

static const struct cw_baseline_row *row_of(const struct cw_baseline_first *f)
{
	return f->difference.row_a != CW_BASELINE_NONE ? &f->a : &f->b;
}

/*
 * True if only the output differs. With equal inputs, this rank's operators did not cause
 * the difference.
 */
static bool is_only_out(const struct cw_baseline_first *f)
{
	return f->difference.what == CW_BASELINE_TENSOR_STATS &&
	       f->difference.side == CW_BASELINE_OUT && cw_baseline_row_has(&f->a, CW_BASELINE_IN);
}

bool cw_baseline_is_before(const struct cw_baseline_first *x, const struct cw_baseline_first *y)
{
	const struct cw_baseline_row *p = row_of(x), *q = row_of(y);

	if (x->comm == y->comm && cw_op_is_collective(p->kind) && cw_op_is_collective(q->kind) &&
	    p->seq != q->seq)
		return p->seq < q->seq;
	if (p->step_plus_1 && q->step_plus_1 && p->step_plus_1 != q->step_plus_1)
		return p->step_plus_1 < q->step_plus_1;
	if (cw_baseline_row_is_operator(p) != cw_baseline_row_is_operator(q))
		return cw_baseline_row_is_operator(p) !=
		       (x->rank == y->rank && is_only_out(cw_baseline_row_is_operator(p) ? y : x));
	if (x->comm != y->comm && x->difference.place != y->difference.place)
		return x->difference.place < y->difference.place;
	if (x->difference.side != y->difference.side)
		return x->difference.side < y->difference.side;
	if (x->difference.place != y->difference.place)
		return x->difference.place < y->difference.place;
	return x->rank < y->rank;
}

/* ---- names ---- */

const char *cw_baseline_value_name(enum cw_baseline_value value)
{
	static const char *const names[CW_BASELINE_VALUES] = { "absmax", "mean", "l2" };

	return names[value];
}

const char *cw_baseline_what_name(enum cw_baseline_what what)
{
	static const char *const names[] = {
		[CW_BASELINE_EQUAL] = "equal",
		[CW_BASELINE_MISSING] = "missing",
		[CW_BASELINE_EXTRA] = "extra",
		[CW_BASELINE_UNLIKE] = "unlike",
		[CW_BASELINE_DTYPE] = "dtype",
		[CW_BASELINE_COUNT] = "count",
		[CW_BASELINE_REDOP] = "redop",
		[CW_BASELINE_ROOT] = "root",
		[CW_BASELINE_SITE] = "site",
		[CW_BASELINE_NONFINITE] = "nonfinite",
		[CW_BASELINE_TENSOR_STATS] = "tensor_stats",
	};

	return names[what];
}

const char *cw_baseline_way_name(enum cw_baseline_way way)
{
	static const char *const names[] = { "step", "call", "site", "kind" };

	return names[way];
}
