/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the waits between ranks in layers. The culprits are at the bottom, the ranks that wait for
 * them above, and so on. A box is a set of ranks, and each arrow leads one layer down. If culprits
 * wait for each other in a circle, an arrow leads back to the awaited culprit. More arrows would be
 * unreadable.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/parse.h"
#include "model/op.h"
#include "report/doc/incident_facts.h"
#include "report/html/html.h"
#include "report/html/html_drawing.h"

#define MAX_LAYERS 4u
#define MAX_COLUMNS 3u
#define BOX_WIDTH 268
#define BOX_HEIGHT 66
#define GAP_X 28
#define GAP_Y 44
#define MARGIN 30
#define LINE_CHARS 38

struct box {
	const struct rank_set *set; /* NULL = the end of the chain is not a rank */
	uint32_t index;             /* index of the set in rank_sets.sets */
	uint32_t layer;
	int x, y;
};

struct picture {
	const struct drawing *d;
	struct box boxes[(MAX_LAYERS + 1) * MAX_COLUMNS];
	uint32_t n_boxes;
	uint32_t n_layers;                /* layers of sets */
	uint32_t columns[MAX_LAYERS + 1]; /* number of boxes in each layer */
	uint32_t omitted_ranks, omitted;  /* numbers of waiting ranks and sets without a box */
	bool has_end;
	int width;
};

static bool ends_in_ranks(const struct drawing *d)
{
	for (uint32_t i = 0; i < d->sets.n_sets; i++)
		if (d->sets.sets[i].is_culprit)
			return true;
	return false;
}

/* Chooses the sets that get a box. The sets are already sorted by layer. */
static void choose_boxes(struct picture *p)
{
	const struct rank_sets *sets = &p->d->sets;

	p->has_end = !ends_in_ranks(p->d);
	for (uint32_t i = 0; i < sets->n_sets; i++) {
		const struct rank_set *set = &sets->sets[i];
		uint32_t layer = set->hops;

		if (layer == CW_SNAP_NONE)
			continue;
		if (layer >= MAX_LAYERS || p->columns[layer] == MAX_COLUMNS) {
			p->omitted++;
			p->omitted_ranks += set->n_ranks;
			continue;
		}
		p->columns[layer]++;
		if (layer >= p->n_layers)
			p->n_layers = layer + 1;
		p->boxes[p->n_boxes++] = (struct box){ .set = set, .index = i, .layer = layer };
	}
}

static void place_boxes(struct picture *p)
{
	uint32_t most = 1, at[MAX_LAYERS] = { 0 };

	for (uint32_t l = 0; l < p->n_layers; l++)
		if (p->columns[l] > most)
			most = p->columns[l];
	p->width = (int)most * (BOX_WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
	for (uint32_t i = 0; i < p->n_boxes; i++) {
		struct box *b = &p->boxes[i];
		int row = (int)p->columns[b->layer] * (BOX_WIDTH + GAP_X) - GAP_X;

		b->x = (p->width - row) / 2 + (int)at[b->layer]++ * (BOX_WIDTH + GAP_X);
		b->y = 8 + (int)(p->n_layers - 1 - b->layer) * (BOX_HEIGHT + GAP_Y);
	}
	if (p->has_end)
		p->boxes[p->n_boxes++] = (struct box){
			.x = (p->width - BOX_WIDTH) / 2,
			.y = 8 + (int)p->n_layers * (BOX_HEIGHT + GAP_Y),
		};
}

/* ---- words ---- */

/* Writes the call that a set waits in: "in all_reduce #31 on tp". */
static void put_call(FILE *out, const struct drawing *d, const struct gate *g)
{
	const struct comm_family *f = &d->sets.comms.families[d->sets.comms.of[g->comm]];
	const char *kind = cw_op_kind_text(g->op_kind);
	char text[160];

	if (g->seq)
		(void)snprintf(text, sizeof(text), "in %s #%" PRIu64 " on %s", kind, g->seq,
			       f->name);
	else
		(void)snprintf(text, sizeof(text), "in %s of %s", kind, f->name);
	html_put_short(out, text, LINE_CHARS);
}

static void put_line(FILE *out, const struct box *b, int line)
{
	fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", line ? "note" : "name", b->x + 12,
		b->y + 21 + line * 18);
}

static void put_culprit_words(FILE *out, const struct picture *p, const struct box *b)
{
	const struct cw_incident_culprit *culprit = drawing_culprit(p->d, b->set);
	const char *reason = cw_fact_text(culprit->reason.text);
	char text[256];

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(reason, ";"), reason);
	put_line(out, b, 1);
	html_put_short(out, *text ? text : "culprit", LINE_CHARS);
	fputs("</text>\n", out);
	if (!*cw_fact_text(culprit->sits_in))
		return;
	put_line(out, b, 2);
	html_put_short(out, culprit->sits_in, LINE_CHARS);
	fputs("</text>\n", out);
}

static void put_wait_words(FILE *out, const struct picture *p, const struct box *b)
{
	const struct drawing *d = p->d;
	const struct gate *g;
	char time[32];

	if (b->set->gate == CW_SNAP_NONE)
		return;
	g = &d->sets.graph.gates[b->set->gate];
	put_line(out, b, 1);
	put_call(out, d, g);
	fputs("</text>\n", out);
	if (g->since_ns <= 0 || g->since_ns > d->snap->now_ns)
		return;
	put_line(out, b, 2);
	fprintf(out, "for %s</text>\n",
		cw_format_duration(d->snap->now_ns - g->since_ns, time, sizeof(time)));
}

static void put_end_words(FILE *out, const struct picture *p, const struct box *b)
{
	uint32_t n_unseen = 0;

	for (uint32_t i = 0; i < p->d->sets.n_sets; i++)
		if (p->d->sets.sets[i].n_unseen > n_unseen)
			n_unseen = p->d->sets.sets[i].n_unseen;
	put_line(out, b, 0);
	fputs(n_unseen ? "not visible" : "no rank is missing", out);
	fputs("</text>\n", out);
	put_line(out, b, 1);
	if (n_unseen)
		fprintf(out, "%" PRIu32 " member%s of the call", n_unseen,
			n_unseen == 1 ? "" : "s");
	else
		fputs("network, GPU or NCCL", out);
	fputs("</text>\n", out);
}

/* ---- shapes ---- */

static void put_box(FILE *out, const struct picture *p, const struct box *b)
{
	const char *kind = !b->set ? "end" : b->set->is_culprit ? "culprit" : "victim";
	char name[96];

	fprintf(out,
		"<rect class=\"box %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"rx=\"6\"/>\n",
		kind, b->x, b->y, BOX_WIDTH, BOX_HEIGHT);
	if (!b->set) {
		put_end_words(out, p, b);
		return;
	}
	put_line(out, b, 0);
	html_put_short(out, drawing_set_name(p->d, b->set, name, sizeof(name)), LINE_CHARS - 8);
	fputs("</text>\n", out);
	if (b->set->is_culprit && drawing_culprit(p->d, b->set))
		put_culprit_words(out, p, b);
	else
		put_wait_words(out, p, b);
}

static void put_arrow_down(FILE *out, const struct box *from, const struct box *to)
{
	int x1 = from->x + BOX_WIDTH / 2, y1 = from->y + BOX_HEIGHT;
	int x2 = to->x + BOX_WIDTH / 2, y2 = to->y - 7;

	fprintf(out,
		"<path class=\"arrow\" d=\"M%d %d C%d %d %d %d %d %d\" "
		"marker-end=\"url(#tip)\"/>\n",
		x1, y1, x1, y1 + GAP_Y / 2, x2, y2 - GAP_Y / 2, x2, y2);
}

/*
 * Draws an arrow upwards, past the side of the boxes. Within one layer, the arrow goes from box to
 * box.
 */
static void put_arrow_back(FILE *out, const struct picture *p, const struct box *from,
			   const struct box *to)
{
	int y1 = from->y + BOX_HEIGHT / 2, y2 = to->y + BOX_HEIGHT / 2;
	bool is_right = to->x > from->x;

	if (from->y == to->y) {
		fprintf(out,
			"<path class=\"arrow\" d=\"M%d %d H%d\" "
			"marker-end=\"url(#tip)\"/>\n",
			is_right ? from->x + BOX_WIDTH : from->x, is_right ? y1 - 8 : y1 + 8,
			is_right ? to->x - 7 : to->x + BOX_WIDTH + 7);
		return;
	}
	fprintf(out,
		"<path class=\"arrow\" d=\"M%d %d C%d %d %d %d %d %d\" "
		"marker-end=\"url(#tip)\"/>\n",
		from->x + BOX_WIDTH, y1, p->width, y1, p->width, y2, to->x + BOX_WIDTH + 7, y2);
}

static void put_arrows(FILE *out, const struct picture *p)
{
	for (uint32_t i = 0; i < p->n_boxes; i++) {
		const struct box *from = &p->boxes[i];

		for (uint32_t k = 0; from->set && k < p->n_boxes; k++) {
			const struct box *to = &p->boxes[k];

			if (!to->set) {
				if (from->layer == 0)
					put_arrow_down(out, from, to);
				continue;
			}
			if (i == k || !(from->set->waits_for & UINT64_C(1) << to->index))
				continue;
			if (to->layer + 1 == from->layer)
				put_arrow_down(out, from, to);
			else if (from->set->is_culprit && to->layer <= 1)
				put_arrow_back(out, p, from, to);
		}
	}
}

void html_put_waits(FILE *out, const struct drawing *d)
{
	struct picture p = { .d = d };
	int height;

	choose_boxes(&p);
	if (p.n_boxes < (p.has_end ? 1 : 2))
		return;
	place_boxes(&p);
	height = 16 + ((int)p.n_layers + p.has_end) * (BOX_HEIGHT + GAP_Y) - GAP_Y;
	fprintf(out,
		"<div class=\"scroll\"><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
		"aria-label=\"waiting and awaited ranks\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\">\n",
		p.width, height, p.width, height);
	fputs("<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"1\" refY=\"4\" "
	      "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
	      "<path class=\"tip\" d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n",
	      out);
	put_arrows(out, &p);
	for (uint32_t i = 0; i < p.n_boxes; i++)
		put_box(out, &p, &p.boxes[i]);
	fputs("</svg></div>\n", out);
	fputs("<p class=\"dim\">An arrow leads from a rank to the rank that it waits for. Ranks in "
	      "the same position share a box.",
	      out);
	if (p.omitted)
		fprintf(out,
			" %" PRIu32 " more rank%s in %" PRIu32
			" other position%s wait as well; the list below and the snapshot have "
			"them.",
			p.omitted_ranks, p.omitted_ranks == 1 ? "" : "s", p.omitted,
			p.omitted == 1 ? "" : "s");
	fputs("</p>\n", out);
}
