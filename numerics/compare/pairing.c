/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/compare/pairing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"

/*
 * Limit on the unpaired ops per side. Beyond it, we try the next way. The search takes D^2 / 2
 * words of memory.
 */
#define DISTANCE_MAX 1024u
/*
 * To tell one iteration of a loop from the others, we compare STRETCH calls. At least STRETCH_LEAST
 * of them must have statistics. Nine of ten statistics must agree, because a job's first steps may
 * differ by more than rounding.
 */
#define STRETCH 64u
#define STRETCH_LEAST 4u
/* Limit on the skipped ops of a lane. A warm-up is shorter. */
#define SKIPPED_MAX 100000u

struct search {
	const struct pairing_ops *a, *b;
	uint32_t nranks;
	const struct cw_baseline_options *options;
	enum cw_baseline_way way;
	struct pairing *found;
	uint32_t room;
};

const struct cw_baseline_row *pairing_at(const struct pairing_ops *ops, uint32_t i)
{
	return ops->order[i] == CW_BASELINE_NONE ? NULL : &ops->rows[ops->order[i]];
}

/* ---- equality of ops ---- */

bool pairing_is_other_site(const struct pairing_ops *a, const struct cw_baseline_row *x,
			   const struct pairing_ops *b, const struct cw_baseline_row *y)
{
	uint32_t of_x = a->sites[x->site], of_y = b->sites[y->site];

	return x->site && y->site && of_x != of_y && (of_x & 1) == (of_y & 1);
}

bool pairing_is_same_kind(const struct pairing_ops *a, const struct cw_baseline_row *x,
			  const struct pairing_ops *b, const struct cw_baseline_row *y)
{
	return x->kind == y->kind &&
	       (!cw_baseline_row_is_operator(x) || a->sites[x->site] == b->sites[y->site]);
}

static bool is_same_op(const struct search *s, const struct pairing_ops *a, uint32_t i,
		       const struct pairing_ops *b, uint32_t j)
{
	const struct cw_baseline_row *x = pairing_at(a, i), *y = pairing_at(b, j);

	if (!x || !y)
		return true;
	if (!pairing_is_same_kind(a, x, b, y))
		return false;
	if (s->way == CW_BASELINE_BY_KIND)
		return true;
	if (pairing_is_other_site(a, x, b, y))
		return false;
	if (s->way == CW_BASELINE_BY_SITE)
		return true;
	if (x->dtype != y->dtype || x->redop != y->redop || x->root_or_peer != y->root_or_peer ||
	    (!s->options->are_groups && memcmp(x->count, y->count, sizeof(x->count)) != 0))
		return false;
	return s->way == CW_BASELINE_BY_CALL || x->step_plus_1 == y->step_plus_1;
}

static bool is_same(const struct search *s, uint32_t i, uint32_t j)
{
	return is_same_op(s, s->a, i, s->b, j);
}

/* ---- runs of pairs ---- */

static int add_run(struct search *s, uint32_t a, uint32_t b, uint32_t n)
{
	struct pairing *p = s->found;
	struct pairing_run *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;

	if (n == 0)
		return 0;
	if (last && last->a + last->n == a && last->b + last->n == b) {
		last->n += n;
		return 0;
	}
	if (p->n_runs == s->room) {
		uint32_t more = s->room ? s->room * 2 : 8;
		struct pairing_run *grown = realloc(p->runs, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->runs = grown;
		s->room = more;
	}
	p->runs[p->n_runs++] = (struct pairing_run){ .a = a, .b = b, .n = n };
	return 0;
}

/* ---- Myers' algorithm ---- */

/*
 * Myers' table. Returns the furthest position on diagonal k after d unpaired ops, as an index into
 * a. The position is stored at reach[d * (d + 1) / 2 + (k + d) / 2] for k = -d, -d + 2, …, d.
 */
static uint32_t *reach_of(uint32_t *reach, uint32_t d, int64_t k)
{
	return &reach[(uint64_t)d * (d + 1) / 2 + (uint64_t)(k + d) / 2];
}

static uint32_t step(uint32_t *reach, uint32_t d, int64_t k)
{
	if (d == 0)
		return 0;
	/*
	 * The path came down from k + 1 (an op of b alone), or right from k - 1 (an op of a alone).
	 */
	if (k == -(int64_t)d ||
	    (k != (int64_t)d && *reach_of(reach, d - 1, k - 1) < *reach_of(reach, d - 1, k + 1)))
		return *reach_of(reach, d - 1, k + 1);
	return *reach_of(reach, d - 1, k - 1) + 1;
}

/* Walks back from the end and collects the runs of pairs on the diagonals, in reverse order. */
static int trace(struct search *s, uint32_t *reach, uint32_t d, uint32_t a0, uint32_t b0,
		 uint32_t n, uint32_t m)
{
	struct pairing_run *runs = malloc(((size_t)d + 1) * sizeof(*runs));
	uint32_t x = n, count = 0;
	int64_t k = (int64_t)n - m;
	int r = 0;

	if (!runs)
		return -ENOMEM;
	for (uint32_t left = d + 1; left-- > 0;) {
		uint32_t from = step(reach, left, k);

		runs[count++] = (struct pairing_run){ .a = a0 + from,
						      .b = b0 + (uint32_t)(from - k),
						      .n = x - from };
		if (left == 0)
			break;
		if (k == -(int64_t)left ||
		    (k != (int64_t)left &&
		     *reach_of(reach, left - 1, k - 1) < *reach_of(reach, left - 1, k + 1)))
			k++;
		else
			k--;
		x = *reach_of(reach, left - 1, k);
	}
	while (count-- > 0 && r == 0)
		r = add_run(s, runs[count].a, runs[count].b, runs[count].n);
	free(runs);
	return r;
}

/*
 * Pairs the part between the common beginning and end. Returns 0 or -ENOMEM; 1 = more than
 * DISTANCE_MAX unpaired ops.
 */
static int difference(struct search *s, uint32_t a0, uint32_t b0, uint32_t n, uint32_t m)
{
	uint32_t most = n + m < DISTANCE_MAX ? n + m : DISTANCE_MAX, room = 0;
	uint32_t *reach = NULL;
	int r = 1;

	for (uint32_t d = 0; d <= most && r == 1; d++) {
		uint64_t wanted = ((uint64_t)d + 1) * (d + 2) / 2;

		if (wanted > room) {
			uint32_t more = room ? room * 2 : 1024;
			uint32_t *grown = realloc(reach, more * sizeof(*reach));

			if (!grown) {
				r = -ENOMEM;
				break;
			}
			reach = grown;
			room = more;
		}
		for (int64_t k = -(int64_t)d; k <= (int64_t)d; k += 2) {
			uint32_t x = step(reach, d, k);
			int64_t y = (int64_t)x - k;

			while (x < n && y >= 0 && y < m && is_same(s, a0 + x, b0 + (uint32_t)y)) {
				x++;
				y++;
			}
			*reach_of(reach, d, k) = x;
			if (x >= n && y >= m && (int64_t)n - m == k) {
				r = trace(s, reach, d, a0, b0, n, m);
				break;
			}
		}
	}
	free(reach);
	return r;
}

/* ---- pairing in one way ---- */

static void begin(struct search *s, enum cw_baseline_way way)
{
	s->way = way;
	s->found->way = way;
	s->found->n_runs = 0;
	s->found->is_cut = false;
	s->found->skipped_a = s->found->skipped_b = 0;
}

/*
 * If both runs mark their steps and one run is at a later step, that run has skipped steps. We then
 * pass these steps in the other run. Returns true if we passed any.
 */
static bool pass_steps(const struct search *s, uint32_t *a, uint32_t *b)
{
	const struct cw_baseline_row *x, *y;
	uint32_t from_a = *a, from_b = *b;

	if (s->way != CW_BASELINE_BY_STEP || *a == s->a->n || *b == s->b->n)
		return false;
	x = pairing_at(s->a, *a);
	y = pairing_at(s->b, *b);
	if (!x || !y || !x->step_plus_1 || !y->step_plus_1)
		return false;
	while (*a < s->a->n && (!(x = pairing_at(s->a, *a)) || x->step_plus_1 < y->step_plus_1))
		++*a;
	if (*a > from_a || *a == s->a->n)
		return *a > from_a;
	x = pairing_at(s->a, *a);
	while (*b < s->b->n && (!(y = pairing_at(s->b, *b)) || y->step_plus_1 < x->step_plus_1))
		++*b;
	return *b > from_b;
}

/*
 * Pairs [a, a_end) with [b, b_end): first the common beginning and end, then the part between them.
 * Returns 0 or -ENOMEM; 1 = too many unpaired ops.
 */
static int pair_between(struct search *s, uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end)
{
	uint32_t a0 = a, b0 = b, end = 0;
	int r, differ = 0;

	while (a < a_end && b < b_end && is_same(s, a, b)) {
		a++;
		b++;
	}
	r = add_run(s, a0, b0, a - a0);
	while (a_end - end > a && b_end - end > b && is_same(s, a_end - end - 1, b_end - end - 1))
		end++;
	if (r == 0 && a < a_end - end && b < b_end - end)
		differ = difference(s, a, b, a_end - end - a, b_end - end - b);
	if (differ < 0)
		return differ;
	if (r == 0)
		r = add_run(s, a_end - end, b_end - end, end);
	return r < 0 ? r : differ;
}

/* Pairs both runs from a and b on. Returns 0 or -ENOMEM; 1 = too many unpaired ops. */
static int pair_from(struct search *s, uint32_t a, uint32_t b)
{
	uint32_t n = s->a->n, m = s->b->n, end = 0;
	int r = 0;

	do {
		uint32_t a0 = a, b0 = b;

		while (a < n && b < m && is_same(s, a, b)) {
			a++;
			b++;
		}
		r = add_run(s, a0, b0, a - a0);
	} while (r == 0 && pass_steps(s, &a, &b));
	while (n - end > a && m - end > b && is_same(s, n - end - 1, m - end - 1))
		end++;
	if (r == 0 && a < n - end && b < m - end)
		r = difference(s, a, b, n - end - a, m - end - b);
	if (r == 0)
		r = add_run(s, n - end, m - end, end);
	return r;
}

static uint64_t paired(const struct pairing *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_runs; i++)
		n += p->runs[i].n;
	return n;
}

/* ---- the beginning of the other run ---- */

/*
 * Compares the runs from positions a and b on. Returns 1 if calls and statistics agree, and 0 if
 * only the calls agree. Returns -1 if the calls differ, or too few of them have statistics.
 */
static int agrees(const struct search *s, uint32_t a, uint32_t b)
{
	uint32_t n = s->a->n - a < s->b->n - b ? s->a->n - a : s->b->n - b, compared = 0, close = 0;
	uint32_t shorter = s->a->n < s->b->n ? s->a->n : s->b->n;

	/* Near the end, a few ops may agree by chance. */
	if (n < STRETCH && n < shorter / 2)
		return -1;
	for (uint32_t i = 0; i < n && i < 4 * STRETCH && compared < STRETCH; i++) {
		const struct cw_baseline_row *x = pairing_at(s->a, a + i);
		const struct cw_baseline_row *y = pairing_at(s->b, b + i);
		struct cw_baseline_difference d;

		if (!x || !y)
			continue;
		if (!is_same(s, a + i, b + i))
			return -1;
		if (x->dtype != y->dtype || !((x->unit & y->unit) & ~CW_BASELINE_UNIT_MASK))
			continue;
		compared++;
		close += cw_baseline_close(x, y, s->nranks, s->options, &d);
		/* We do not accept a position at which the first compared op differs. */
		if (close == 0)
			return 0;
		if (compared - close > STRETCH / 10)
			return 0; /* too many differ: the rest cannot change it */
	}
	return compared < STRETCH_LEAST ? -1 : close * 10 >= compared * 9;
}

/*
 * True if the first `skip` ops are whole iterations of a loop: the next ops repeat the same calls.
 */
static bool is_whole_iterations(const struct search *s, const struct pairing_ops *ops,
				uint32_t skip)
{
	for (uint32_t i = 0; i < STRETCH && i + skip < ops->n; i++)
		if (!is_same_op(s, ops, i, ops, i + skip))
			return false;
	return true;
}

/*
 * Finds the least number of ops to skip in one run so that the statistics agree. We need it if the
 * program does not mark its steps.
 */
static void find_beginning(struct search *s)
{
	uint32_t most = s->a->n > s->b->n ? s->a->n : s->b->n;

	if (agrees(s, 0, 0) != 0)
		return;
	for (uint32_t skip = 1; skip < most && skip <= SKIPPED_MAX; skip++) {
		if (skip < s->a->n && agrees(s, skip, 0) == 1 &&
		    is_whole_iterations(s, s->a, skip)) {
			s->found->skipped_a = skip;
			return;
		}
		if (skip < s->b->n && agrees(s, 0, skip) == 1 &&
		    is_whole_iterations(s, s->b, skip)) {
			s->found->skipped_b = skip;
			return;
		}
	}
}

static bool has_steps(const struct pairing_ops *ops)
{
	for (uint32_t i = 0; i < ops->n; i++) {
		const struct cw_baseline_row *row = pairing_at(ops, i);

		if (row && row->step_plus_1)
			return true;
	}
	return false;
}

/* ---- pairing operators ---- */

/* Returns the end of the step that begins at `from`. */
static uint32_t step_end(const struct pairing_ops *ops, uint32_t from, uint32_t *ret_step)
{
	const struct cw_baseline_row *row = NULL;

	*ret_step = 0;
	for (; from < ops->n; from++) {
		row = pairing_at(ops, from);
		if (row && *ret_step && row->step_plus_1 != *ret_step)
			break;
		if (row)
			*ret_step = row->step_plus_1;
	}
	return from;
}

/*
 * Pairs operators step by step. A step has thousands of operators, and another kernel makes each of
 * their results differ. So the number of differences between two runs has no limit. If a step
 * differs too much, we pair only its beginning and its end.
 */
static int pair_steps(struct search *s)
{
	uint32_t a = 0, b = 0;
	int r = 0;

	while (r >= 0 && a < s->a->n && b < s->b->n) {
		uint32_t x, y, a_end = step_end(s->a, a, &x), b_end = step_end(s->b, b, &y);

		if (x == y)
			r = pair_between(s, a, a_end, b, b_end);
		a = x <= y ? a_end : a;
		b = y <= x ? b_end : b;
	}
	return r < 0 ? r : 0;
}

static bool is_of_operators(const struct pairing_ops *ops)
{
	const struct cw_baseline_row *row = NULL;

	for (uint32_t i = 0; i < ops->n && !row; i++)
		row = pairing_at(ops, i);
	return row && cw_baseline_row_is_operator(row);
}

static int try(struct search *s, enum cw_baseline_way way)
{
	begin(s, way);
	if (way == CW_BASELINE_BY_STEP && is_of_operators(s->a))
		return pair_steps(s);
	if (way != CW_BASELINE_BY_STEP)
		find_beginning(s);
	return pair_from(s, s->found->skipped_a, s->found->skipped_b);
}

int pairing_find(const struct pairing_ops *a, const struct pairing_ops *b, uint32_t nranks,
		 const struct cw_baseline_options *options, struct pairing *ret)
{
	struct search s = { .a = a, .b = b, .nranks = nranks, .options = options, .found = ret };
	enum cw_baseline_way way =
		has_steps(a) && has_steps(b) ? CW_BASELINE_BY_STEP : CW_BASELINE_BY_CALL;
	uint32_t least = (a->n < b->n ? a->n : b->n) / 2;
	int r = 0;

	*ret = (struct pairing){ .runs = NULL };
	for (; way <= CW_BASELINE_BY_KIND; way++) {
		r = try(&s, way);
		/*
		 * For operators we stop here. Hunks already pair the calls of the same module, and
		 * steps without common ops are rare.
		 */
		if (r == 0 && way == CW_BASELINE_BY_STEP && is_of_operators(a))
			break;
		if (r < 0 || (r == 0 && paired(ret) >= least))
			break;
		if (way == CW_BASELINE_BY_KIND)
			break;
	}
	if (r < 0)
		pairing_fini(ret);
	ret->is_cut = r == 1;
	return r < 0 ? r : 0;
}

void pairing_fini(struct pairing *pairing)
{
	free(pairing->runs);
	pairing->runs = NULL;
	pairing->n_runs = 0;
}
