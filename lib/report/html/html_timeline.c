/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks' calls around the hang. A row represents a set of ranks in the same position and shows
 * the calls of one of them. It has a lane per family of communicators. Before the job stopped, the
 * time axis shows the last few dozen calls in detail. The wait after the stop is compressed to fit.
 * So a hang of ten seconds and a hang of ten minutes both show the calls that led to it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"
#include "model/op.h"
#include "report/html/html.h"
#include "report/html/html_drawing.h"
#include "report/json_util.h"

#define MAX_ROWS 16u
#define MAX_LANES 5u
#define MAX_OPS 1024u    /* per rank: a picture cannot resolve more */
#define OPS_IN_FOCUS 40u /* calls of the busiest rank to show before the hang */
#define N_COLORS 8u /* the style sheet's c0 … c7; the last colour is for all other families */
#define LABEL_WIDTH 196.0
#define BEFORE_WIDTH 350.0
#define AFTER_WIDTH 430.0
#define WIDTH 996
#define TOP 40.0
#define LANE 15.0
#define ROW_GAP 12.0
#define LABEL_CHARS 23

struct mark {
	struct cw_op op;
	uint32_t family;
	bool is_pending;
};

struct row {
	const struct rank_set *set;
	uint32_t rank; /* the rank that the row shows */
	struct mark *marks;
	uint32_t n_marks, n_lanes, lane_family[MAX_LANES];
	int64_t last_ns; /* when the rank's last call returned */
	int64_t end_ns;  /* time of the rank's last known state */
	bool is_lost;    /* the rank's node has stopped reporting */
	double y, height;
};

struct chart {
	const struct drawing *d;
	struct row rows[MAX_ROWS];
	uint32_t n_rows;
	uint32_t color_family[N_COLORS - 1], n_colors;
	int64_t start_ns;
	double height;
};

/* ---- selection of ranks and calls ---- */

/*
 * Returns an array with the number of calls of each rank in the snapshot. The caller releases it
 * with free(). NULL = out of memory.
 */
static uint32_t *count_ops(const struct cw_snapshot *snap)
{
	uint32_t *n = calloc((size_t)snap->n_ranks + 1, sizeof(*n));

	for (uint32_t c = 0; n && c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank < snap->n_ranks)
				n[member->rank] +=
					member->n_window + !!member->pending + !!member->last;
		}
	return n;
}

/* Returns the rank of the set with the most calls in the snapshot. */
static uint32_t choose_rank(const struct rank_set *set, const uint32_t *n_ops)
{
	uint32_t best = set->ranks[0];

	for (uint32_t i = 1; i < set->n_ranks; i++)
		if (n_ops[set->ranks[i]] > n_ops[best])
			best = set->ranks[i];
	return best;
}

static void add_mark(struct row *row, const struct cw_op *op, uint32_t family, bool is_pending)
{
	if (row->n_marks == MAX_OPS || op->enter_ns <= 0 ||
	    (op->flags & (CW_OPF_DROPPED | CW_OPF_CAPTURED)))
		return;
	row->marks[row->n_marks++] =
		(struct mark){ .op = *op, .family = family, .is_pending = is_pending };
}

/*
 * Adds the member's newest ops, at most `room` of them. A member without a window (a list of recent
 * ops) has at most two.
 */
static void add_member(struct row *row, const struct cw_snap_member *m, uint32_t family,
		       uint32_t room)
{
	uint32_t from = m->n_window > room ? m->n_window - room : 0;
	uint64_t first = m->n_window ? m->window[from].op_index : UINT64_MAX, last = 0;

	for (uint32_t i = from; i < m->n_window; i++) {
		const struct cw_op *op = &m->window[i];
		bool is_pending = op->progress == CW_PROGRESS_ENQUEUED ||
				  op->progress == CW_PROGRESS_REACHED ||
				  !(op->flags & CW_OPF_RETURNED);

		if (m->pending && m->pending->op_index == op->op_index)
			is_pending = true;
		add_mark(row, op, family, is_pending);
		last = op->op_index;
	}
	if (m->pending && (m->pending->op_index < first || m->pending->op_index > last))
		add_mark(row, m->pending, family, true);
	if (m->last && m->last->op_index > last &&
	    (!m->pending || m->pending->op_index != m->last->op_index))
		add_mark(row, m->last, family,
			 m->last->progress == CW_PROGRESS_ENQUEUED ||
				 m->last->progress == CW_PROGRESS_REACHED);
}

static int compare_marks(const void *a, const void *b)
{
	const struct mark *ma = a, *mb = b;

	return (ma->op.enter_ns > mb->op.enter_ns) - (ma->op.enter_ns < mb->op.enter_ns);
}

static void finish_row(struct row *row)
{
	qsort(row->marks, row->n_marks, sizeof(*row->marks), compare_marks);
	for (uint32_t i = 0; i < row->n_marks; i++) {
		uint32_t l = 0;

		while (l < row->n_lanes && row->lane_family[l] != row->marks[i].family)
			l++;
		if (l == row->n_lanes && l < MAX_LANES)
			row->lane_family[row->n_lanes++] = row->marks[i].family;
		if (row->marks[i].op.return_ns > row->last_ns)
			row->last_ns = row->marks[i].op.return_ns;
	}
}

/*
 * Collects the marks of all rows. One pass over all members suffices, because rows are few but
 * comms may be many.
 */
static int collect_marks(struct chart *c)
{
	const struct cw_snapshot *snap = c->d->snap;
	_cleanup_(freep) struct row **row_of = calloc((size_t)snap->n_ranks + 1, sizeof(*row_of));

	if (!row_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_rows; i++) {
		c->rows[i].marks = calloc(MAX_OPS, sizeof(*c->rows[i].marks));
		if (!c->rows[i].marks)
			return -ENOMEM;
		row_of[c->rows[i].rank] = &c->rows[i];
	}
	for (uint32_t k = 0; k < snap->n_comms; k++)
		for (uint32_t m = 0; m < snap->comms[k].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[k].members[m];

			if (member->rank < snap->n_ranks && row_of[member->rank])
				add_member(row_of[member->rank], member, c->d->sets.comms.of[k],
					   MAX_OPS / 8);
		}
	for (uint32_t i = 0; i < c->n_rows; i++)
		finish_row(&c->rows[i]);
	return 0;
}

static void find_end(const struct cw_snapshot *snap, struct row *row)
{
	const struct cw_snap_rank *rank = &snap->ranks[row->rank];
	const struct cw_snap_node *node =
		rank->node < snap->n_nodes ? &snap->nodes[rank->node] : NULL;

	row->end_ns = snap->now_ns;
	if (cw_liveness_is_dead(rank->liveness) && rank->ended_ns > 0)
		row->end_ns = rank->ended_ns;
	row->is_lost = node && node->state != CW_NODE_REPORTING;
	if (row->is_lost && node->last_digest_ns > 0)
		row->end_ns = node->last_digest_ns;
}

static int choose_rows(struct chart *c)
{
	const struct rank_sets *sets = &c->d->sets;
	_cleanup_(freep) uint32_t *n_ops = count_ops(c->d->snap);

	if (!n_ops)
		return -ENOMEM;
	for (uint32_t i = 0; i < sets->n_sets && c->n_rows < MAX_ROWS; i++) {
		struct row *row = &c->rows[c->n_rows++];

		row->set = &sets->sets[i];
		row->rank = choose_rank(row->set, n_ops);
		find_end(c->d->snap, row);
	}
	return collect_marks(c);
}

/* ---- axes ---- */

/*
 * Moves the start of the axis so far before the hang that OPS_IN_FOCUS calls of the busiest rank
 * fit.
 */
static void find_start(struct chart *c)
{
	int64_t first_ns = 0, focus_ns = 0;

	for (uint32_t i = 0; i < c->n_rows; i++) {
		const struct row *row = &c->rows[i];
		uint32_t before = 0;

		while (before < row->n_marks && row->marks[before].op.enter_ns < c->d->since_ns)
			before++;
		if (!before)
			continue;
		if (!first_ns || row->marks[0].op.enter_ns < first_ns)
			first_ns = row->marks[0].op.enter_ns;
		if (before >= OPS_IN_FOCUS &&
		    row->marks[before - OPS_IN_FOCUS].op.enter_ns > focus_ns)
			focus_ns = row->marks[before - OPS_IN_FOCUS].op.enter_ns;
	}
	c->start_ns = focus_ns ? focus_ns : first_ns;
	if (c->start_ns <= 0 || c->start_ns >= c->d->since_ns)
		c->start_ns = c->d->since_ns - 1;
}

static double x_of(const struct chart *c, int64_t at_ns)
{
	double since = (double)c->d->since_ns, start = (double)c->start_ns;
	double now = (double)c->d->snap->now_ns, at = (double)at_ns;

	if (at < start)
		at = start;
	if (at > now)
		at = now;
	if (at <= since)
		return LABEL_WIDTH +
		       BEFORE_WIDTH * (since > start ? (at - start) / (since - start) : 0);
	return LABEL_WIDTH + BEFORE_WIDTH +
	       AFTER_WIDTH * (now > since ? (at - since) / (now - since) : 0);
}

static uint32_t color_of(struct chart *c, uint32_t family)
{
	for (uint32_t i = 0; i < c->n_colors; i++)
		if (c->color_family[i] == family)
			return i;
	if (c->n_colors == N_COLORS - 1)
		return N_COLORS - 1;
	c->color_family[c->n_colors] = family;
	return c->n_colors++;
}

static void lay_out(struct chart *c)
{
	double y = TOP;

	for (uint32_t i = 0; i < c->n_rows; i++) {
		struct row *row = &c->rows[i];
		uint32_t lanes = row->n_lanes < 2 ? 2 : row->n_lanes;

		row->y = y;
		row->height = lanes * LANE + 8;
		y += row->height + ROW_GAP;
		for (uint32_t l = 0; l < row->n_lanes; l++)
			(void)color_of(c, row->lane_family[l]);
	}
	c->height = y + 4;
}

static void put_tick(FILE *out, const struct chart *c, int64_t at_ns, const char *anchor,
		     const char *what)
{
	int64_t distance = at_ns - c->d->since_ns;
	char time[32];

	fprintf(out, "<text class=\"axis\" x=\"%.1f\" y=\"28\" text-anchor=\"%s\">", x_of(c, at_ns),
		anchor);
	if (what)
		fputs(what, out);
	else
		fprintf(out, "%s%s", distance > 0 ? "+" : "",
			cw_format_duration(distance, time, sizeof(time)));
	fputs("</text>\n", out);
}

static void put_axis(FILE *out, const struct chart *c)
{
	int64_t since = c->d->since_ns, now = c->d->snap->now_ns;
	char at[40];

	fprintf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"32\" x2=\"%.1f\" y2=\"32\"/>\n",
		LABEL_WIDTH, LABEL_WIDTH + BEFORE_WIDTH + AFTER_WIDTH);
	put_tick(out, c, c->start_ns, "start", NULL);
	if (now > since) {
		put_tick(out, c, since + (now - since) / 2, "middle", NULL);
		put_tick(out, c, now, "end", NULL);
	}
	fprintf(out,
		"<line class=\"stop\" x1=\"%.1f\" y1=\"18\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
		"<text class=\"axis\" x=\"%.1f\" y=\"13\" text-anchor=\"middle\">last progress ",
		x_of(c, since), x_of(c, since), c->height, x_of(c, since));
	if (c->d->snap->wall_ns > 0 && c->d->snap->wall_ns > now - since)
		html_put(out, cw_wall_format(c->d->snap->wall_ns - (now - since), at));
	fputs("</text>\n", out);
}

/* ---- rows ---- */

static uint32_t lane_of(const struct row *row, uint32_t family)
{
	for (uint32_t l = 0; l < row->n_lanes; l++)
		if (row->lane_family[l] == family)
			return l;
	return row->n_lanes ? row->n_lanes - 1 : 0;
}

static void put_mark(FILE *out, struct chart *c, const struct row *row, const struct mark *mark)
{
	int64_t end = mark->is_pending ? row->end_ns : mark->op.return_ns;
	double x1 = x_of(c, mark->op.enter_ns);
	double x2 = x_of(c, end > mark->op.enter_ns ? end : mark->op.enter_ns);
	double y = row->y + 4 + lane_of(row, mark->family) * LANE;
	char text[128];

	if (mark->op.enter_ns < c->start_ns && !mark->is_pending)
		return;
	fprintf(out,
		"<rect class=\"op c%" PRIu32 "%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\"><title>",
		color_of(c, mark->family), mark->is_pending ? " pending" : "", x1, y,
		x2 - x1 < 2.5 ? 2.5 : x2 - x1, LANE - 2);
	html_put(out, cw_op_format(&mark->op, text, sizeof(text)));
	fputs(" on ", out);
	html_put(out, c->d->sets.comms.families[mark->family].name);
	fputs(mark->is_pending ? ", not completed</title></rect>\n" : "</title></rect>\n", out);
}

/* Names the oldest pending call of each lane, if there is room. */
static void put_pending_names(FILE *out, const struct chart *c, const struct row *row)
{
	uint32_t named = 0;

	for (uint32_t i = 0; i < row->n_marks; i++) {
		const struct mark *mark = &row->marks[i];
		uint32_t lane = lane_of(row, mark->family);
		double x = x_of(c, mark->op.enter_ns);
		char text[128];

		if (!mark->is_pending || row->end_ns < c->d->snap->now_ns || (named & 1u << lane))
			continue;
		named |= 1u << lane;
		if (x < LABEL_WIDTH + BEFORE_WIDTH)
			x = LABEL_WIDTH + BEFORE_WIDTH;
		fprintf(out, "<text class=\"op-name\" x=\"%.1f\" y=\"%.1f\">", x + 4,
			row->y + 4 + lane * LANE + LANE - 4.5);
		(void)cw_op_format(&mark->op, text, sizeof(text));
		html_put_short(out, text, 48);
		fputs("</text>\n", out);
	}
}

/*
 * Marks a rank that is gone, or that is alive but in no call. If other ranks wait for it, it is the
 * cause of the hang.
 */
static void put_absence(FILE *out, const struct chart *c, const struct row *row)
{
	bool is_dead = cw_liveness_is_dead(c->d->snap->ranks[row->rank].liveness);
	bool is_gone = is_dead || row->is_lost;
	int64_t from = is_gone ? row->end_ns : row->last_ns;
	double x = x_of(c, from), end = x_of(c, c->d->snap->now_ns);

	if ((!is_gone && row->set->gate != CW_SNAP_NONE) || from <= 0 || end - x < 1)
		return;
	fprintf(out,
		"<rect class=\"absent%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n"
		"<text class=\"op-name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
		is_gone ? " gone" : "", x, row->y + 3, end - x, row->height - 6, x + 6,
		row->y + row->height / 2 + 4,
		is_dead        ? "ended"
		: row->is_lost ? "its node does not report"
			       : "in no NCCL call");
}

static void put_row_label(FILE *out, const struct chart *c, const struct row *row)
{
	const struct cw_snap_rank *rank = &c->d->snap->ranks[row->rank];
	char name[96];

	fprintf(out, "<text class=\"%s\" x=\"4\" y=\"%.1f\">",
		row->set->is_culprit ? "name bad" : "name", row->y + 14);
	html_put_short(out, drawing_set_name(c->d, row->set, name, sizeof(name)), LABEL_CHARS);
	fprintf(out, "</text>\n<text class=\"note\" x=\"4\" y=\"%.1f\">", row->y + 28);
	if (row->set->n_ranks > 1 && rank->rank >= 0)
		fprintf(out, "drawn: rank %" PRId32, rank->rank);
	else if (rank->node < c->d->snap->n_nodes && c->d->snap->nodes[rank->node].name)
		html_put_short(out, c->d->snap->nodes[rank->node].name, LABEL_CHARS);
	fputs("</text>\n", out);
}

static void put_row(FILE *out, struct chart *c, const struct row *row)
{
	fprintf(out,
		"<rect class=\"row%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		row->set->is_culprit ? " culprit" : "", LABEL_WIDTH, row->y,
		BEFORE_WIDTH + AFTER_WIDTH, row->height);
	put_row_label(out, c, row);
	for (uint32_t i = 0; i < row->n_marks; i++)
		put_mark(out, c, row, &row->marks[i]);
	put_absence(out, c, row);
	put_pending_names(out, c, row);
}

/* ---- the whole chart ---- */

static void put_legend(FILE *out, const struct chart *c)
{
	fputs("<ul class=\"legend\">\n", out);
	for (uint32_t i = 0; i < c->n_colors; i++) {
		const struct comm_family *f = &c->d->sets.comms.families[c->color_family[i]];

		fprintf(out, "<li><span class=\"key k%" PRIu32 "\"></span>", i);
		html_put(out, f->name);
		if (f->n_comms > 1)
			fprintf(out, " (%" PRIu32 " communicators)", f->n_comms);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static void put_chart(FILE *out, struct chart *c)
{
	uint32_t omitted = c->d->sets.n_sets - c->n_rows;

	fprintf(out,
		"<div class=\"scroll\"><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
		"aria-label=\"calls of the ranks around the hang\" viewBox=\"0 0 %d %.0f\" "
		"width=\"%d\" height=\"%.0f\">\n",
		WIDTH, c->height, WIDTH, c->height);
	for (uint32_t i = 0; i < c->n_rows; i++)
		put_row(out, c, &c->rows[i]);
	put_axis(out, c);
	fputs("</svg></div>\n", out);
	put_legend(out, c);
	fputs("<p class=\"dim\">Each row shows ranks in the same position. A lane of a row is a "
	      "communicator, and a mark is a call. Light bars are calls that have not completed. "
	      "Left of the line, the time axis is stretched.",
	      out);
	if (omitted)
		fprintf(out, " %" PRIu32 " more position%s are not drawn.", omitted,
			omitted == 1 ? "" : "s");
	fputs("</p>\n", out);
}

void html_put_timeline(FILE *out, const struct drawing *d)
{
	struct chart c = { .d = d };

	if (choose_rows(&c) == 0) {
		find_start(&c);
		lay_out(&c);
		put_chart(out, &c);
	} else {
		fputs("<p>Not drawn: out of memory.</p>\n", out);
	}
	for (uint32_t i = 0; i < c.n_rows; i++)
		free(c.rows[i].marks);
}
