/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/text.h"
#include "model/op.h"

struct line {
	char *buf;
	size_t len;
};

static char *end(const struct line *l)
{
	cw_text_sanitise_line(l->buf);
	return l->buf;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void add_call(struct line *l, const struct baseline_op *op)
{
	if (cw_baseline_row_is_operator(&op->row)) {
		cw_text_append(l->buf, l->len, "%s, call %" PRIu32, op->site, op->call);
		return;
	}
	cw_text_append(l->buf, l->len, "%s #%" PRIu32, cw_op_kind_name(op->row.kind), op->row.seq);
	if (cw_op_is_p2p(op->row.kind))
		cw_text_append(l->buf, l->len, " %s rank %d",
			       op->row.kind == CW_OP_SEND ? "to" : "from", op->row.root_or_peer);
	if (op->comm.name[0])
		cw_text_append(l->buf, l->len, " on %s", op->comm.name);
	else if (op->comm.nranks)
		cw_text_append(l->buf, l->len, " on a nameless communicator of size %" PRIu32,
			       op->comm.nranks);
	else
		cw_text_append(l->buf, l->len, " on a nameless communicator");
}

static void add_place(struct line *l, const struct baseline_op *op)
{
	if (op->row.step_plus_1 && op->site[0] && !cw_baseline_row_is_operator(&op->row))
		cw_text_append(l->buf, l->len, " (step %" PRIu32 ", %s)", op->row.step_plus_1 - 1,
			       op->site);
	else if (op->row.step_plus_1)
		cw_text_append(l->buf, l->len, " (step %" PRIu32 ")", op->row.step_plus_1 - 1);
	else if (op->site[0] && !cw_baseline_row_is_operator(&op->row))
		cw_text_append(l->buf, l->len, " (%s)", op->site);
}

static void add_otherwise(struct line *l, const struct baseline_rank *r)
{
	const struct cw_baseline_row *a = &r->op_a.row, *b = &r->op_b.row;

	switch (r->said.first.what) {
	case CW_BASELINE_DTYPE:
		cw_text_append(l->buf, l->len, "type %s in the baseline, %s here",
			       cw_dtype_name(a->dtype), cw_dtype_name(b->dtype));
		return;
	case CW_BASELINE_COUNT:
		if (cw_baseline_row_is_operator(a)) {
			cw_text_append(l->buf, l->len,
				       "%d elements went in and %" PRIu64
				       " came out in the baseline, %d and %" PRIu64 " here",
				       a->root_or_peer, cw_baseline_row_count(a), b->root_or_peer,
				       cw_baseline_row_count(b));
			return;
		}
		cw_text_append(l->buf, l->len,
			       "%" PRIu64 " elements in the baseline, %" PRIu64 " here",
			       cw_baseline_row_count(a), cw_baseline_row_count(b));
		return;
	case CW_BASELINE_REDOP:
		cw_text_append(l->buf, l->len, "operator %s in the baseline, %s here",
			       cw_redop_name(a->redop), cw_redop_name(b->redop));
		return;
	case CW_BASELINE_ROOT:
		cw_text_append(l->buf, l->len, "root %d in the baseline, %d here", a->root_or_peer,
			       b->root_or_peer);
		return;
	default:
		cw_text_append(l->buf, l->len, "called from %s in the baseline, from %s here",
			       r->op_a.site, r->op_b.site);
		return;
	}
}

static void add_tensor_stats(struct line *l, const struct cw_baseline_difference *d,
			     bool is_operator)
{
	const char *side = d->side == CW_BASELINE_IN ? "input" : "output";

	if (d->what == CW_BASELINE_NONFINITE && is_operator)
		cw_text_append(l->buf, l->len,
			       "tensors of the %s with NaN or Inf: %.0f in the baseline, %.0f here",
			       side, d->a, d->b);
	else if (d->what == CW_BASELINE_NONFINITE)
		cw_text_append(l->buf, l->len, "%s has %.0f NaN or Inf in the baseline, %.0f here",
			       side, d->a, d->b);
	else
		cw_text_append(l->buf, l->len,
			       "%s has %s %.9g in the baseline, %.9g here, and may differ by %.2g",
			       side, cw_baseline_value_name(d->value), d->a, d->b, d->allowed);
}

char *baseline_text_first(const struct baseline_rank *rank, char *buf, size_t len)
{
	const struct cw_baseline_difference *d = &rank->said.first;
	struct line l = { buf, len };

	buf[0] = '\0';
	if (rank->rank == BASELINE_ALL_RANKS)
		cw_text_append(buf, len, "all ranks together: ");
	else
		cw_text_append(buf, len, "rank %d: ", rank->rank);
	add_call(&l, rank->op_b.is_there ? &rank->op_b : &rank->op_a);
	add_place(&l, rank->op_b.is_there ? &rank->op_b : &rank->op_a);
	switch (d->what) {
	case CW_BASELINE_MISSING:
		cw_text_append(buf, len, " is in the baseline, but was not called here");
		break;
	case CW_BASELINE_EXTRA:
		cw_text_append(buf, len, " is not in the baseline");
		break;
	case CW_BASELINE_UNLIKE:
		cw_text_append(buf, len,
			       ": from here on the sequences of calls have too little in common");
		break;
	default:
		cw_text_append(buf, len, ": ");
		if (d->what == CW_BASELINE_TENSOR_STATS || d->what == CW_BASELINE_NONFINITE)
			add_tensor_stats(&l, d, cw_baseline_row_is_operator(&rank->op_a.row));
		else
			add_otherwise(&l, rank);
	}
	return end(&l);
}

static void add_side(struct line *l, const struct cw_baseline_row *row, enum cw_baseline_side side)
{
	cw_text_append(l->buf, l->len, "  %s: ", side == CW_BASELINE_IN ? "in" : "out");
	if (!cw_baseline_row_has(row, side)) {
		cw_text_append(l->buf, l->len, "not examined");
		return;
	}
	cw_text_append(l->buf, l->len, "absmax %.9g",
		       cw_baseline_row_value(row, side, CW_BASELINE_ABSMAX));
	if (!isnan(cw_baseline_row_value(row, side, CW_BASELINE_MEAN)))
		cw_text_append(l->buf, l->len, ", mean %.9g",
			       cw_baseline_row_value(row, side, CW_BASELINE_MEAN));
	cw_text_append(l->buf, l->len, ", l2 %.9g",
		       cw_baseline_row_value(row, side, CW_BASELINE_L2));
	if (row->nonfinite[side] && cw_baseline_row_is_operator(row))
		cw_text_append(l->buf, l->len, ", of those without NaN and Inf: %u more have one",
			       row->nonfinite[side]);
	else if (row->nonfinite[side])
		cw_text_append(l->buf, l->len, ", %s%u NaN or Inf",
			       row->nonfinite[side] == CW_BASELINE_NONFINITE_MAX ? "at least " : "",
			       row->nonfinite[side]);
}

char *baseline_text_op(const struct baseline_op *op, char *buf, size_t len)
{
	struct line l = { buf, len };

	buf[0] = '\0';
	if (!op->is_there) {
		cw_text_append(buf, len, "no such call");
		return end(&l);
	}
	add_call(&l, op);
	cw_text_append(buf, len, "  %s x %" PRIu64, cw_dtype_name(op->row.dtype),
		       cw_baseline_row_count(&op->row));
	if (op->row.redop != CW_REDOP_NONE)
		cw_text_append(buf, len, " %s", cw_redop_name(op->row.redop));
	add_side(&l, &op->row, CW_BASELINE_IN);
	add_side(&l, &op->row, CW_BASELINE_OUT);
	return end(&l);
}

char *baseline_text_coverage(const struct baseline_job *job, char *buf, size_t len)
{
	static const char *const ways[] = {
		[CW_BASELINE_BY_STEP] = "step and call",
		[CW_BASELINE_BY_CALL] = "call",
		[CW_BASELINE_BY_SITE] = "kind and call site",
		[CW_BASELINE_BY_KIND] = "kind",
	};
	const struct cw_baseline_said *s = &job->sum;
	struct line l = { buf, len };

	buf[0] = '\0';
	cw_text_append(buf, len, "checked %" PRIu64 " of %" PRIu64 " op%s of ", s->n_checked,
		       s->n_a, plural(s->n_a));
	if (job->world_size_a)
		cw_text_append(buf, len,
			       "ranks together, %u of %d in the baseline and %u of %d here, on "
			       "communicators that have other members in each",
			       job->parts[0].a.n_ranks, job->world_size_a, job->parts[0].b.n_ranks,
			       job->world_size_b);
	else
		cw_text_append(buf, len, "%u of %u rank%s", job->n_compared, job->n_ranks,
			       plural(job->n_ranks));
	cw_text_append(buf, len, ", paired by %s", ways[s->way]);
	if (s->n_own)
		cw_text_append(buf, len, "; in %" PRIu64 " each member may have its own", s->n_own);
	if (job->n_unlike_a)
		cw_text_append(buf, len,
			       "; %" PRIu64 " on others and between two ranks are not comparable",
			       job->n_unlike_a);
	if (s->n_denied)
		cw_text_append(buf, len, "; %" PRIu64 " left out as asked", s->n_denied);
	if (s->n_skipped_a)
		cw_text_append(buf, len, "; %" PRIu64 " in the baseline are from before the check",
			       s->n_skipped_a);
	if (s->n_skipped_b)
		cw_text_append(buf, len, "; %" PRIu64 " of the check are from before the baseline",
			       s->n_skipped_b);
	return end(&l);
}

char *baseline_text_lost(const struct baseline_job *job, bool is_check, char *buf, size_t len)
{
	static const char *const words[CW_BASELINE_COUNTERS] = {
		[CW_BASELINE_N_LOST_OPS] = "calls overwritten before they were read",
		[CW_BASELINE_N_LOST_TENSORS] = "tensors at most overwritten before they were read",
		[CW_BASELINE_N_PARTIAL] = "tensors examined in part, which two runs never share",
		[CW_BASELINE_N_UNSEEN] = "launches of graphs or calls without a number",
		[CW_BASELINE_N_REFUSED] = "calls over the limit of a baseline",
		[CW_BASELINE_N_NOT_COLLECTED] = "tensors over the limit or not readable",
	};
	uint64_t sums[CW_BASELINE_COUNTERS] = { 0 };
	uint32_t n_unfinished = 0;
	struct line l = { buf, len };

	buf[0] = '\0';
	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct baseline_part *p = is_check ? &job->parts[i].b : &job->parts[i].a;

		n_unfinished += p->is_there && !p->is_finished;
		for (unsigned n = 0; n < CW_BASELINE_COUNTERS; n++)
			sums[n] += p->counters[n];
	}
	for (unsigned n = 0; n < CW_BASELINE_COUNTERS; n++)
		if (words[n] && sums[n])
			cw_text_append(buf, len, "%s%" PRIu64 " %s", buf[0] ? "; " : "", sums[n],
				       words[n]);
	if (n_unfinished)
		cw_text_append(buf, len, "%s%u file%s without an end", buf[0] ? "; " : "",
			       n_unfinished, plural(n_unfinished));
	return end(&l);
}

const char *baseline_text_denied(const struct baseline_job *job, bool is_check)
{
	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct baseline_part *p = is_check ? &job->parts[i].b : &job->parts[i].a;

		if (p->denied && p->denied[0])
			return p->denied;
	}
	return "";
}
