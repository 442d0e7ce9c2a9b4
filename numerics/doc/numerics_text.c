/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/doc/numerics_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "model/op.h"
#include "model/rankset.h"
#include "numerics/judge/members.h"

#define RANKS_BYTES 160
#define MEMBER_BYTES 96

struct line {
	char *buf;
	size_t len, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
	size_t left = l->len - l->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(l->buf + l->used, left, fmt, args);
	va_end(args);
	if (n > 0)
		l->used += (size_t)n < left ? (size_t)n : left - 1;
}

static char *end(const struct line *l)
{
	cw_text_sanitise_line(l->buf);
	return l->buf;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void add_rank(struct line *l, const struct cw_numerics_job *job, uint32_t rank)
{
	if (job->ranks[rank].rank >= 0)
		add(l, "rank %d", job->ranks[rank].rank);
	else
		add(l, "a rank without a number");
}

static void add_comm(struct line *l, const struct cw_numerics_job *job, uint32_t comm)
{
	if (job->comms[comm].name && *job->comms[comm].name)
		add(l, "%s", job->comms[comm].name);
	else
		add(l, "0x%" PRIx64, job->comms[comm].id);
}

static void add_call(struct line *l, const struct cw_numerics_job *job, uint32_t sample)
{
	const struct cw_numerics_sample *k = &job->samples[sample];

	add(l, "%s", cw_op_kind_name(k->kind));
	if (k->seq)
		add(l, " #%" PRIu64, k->seq);
	add(l, " on ");
	add_comm(l, job, k->comm);
}

static void add_bad(struct line *l, const struct cw_numerics_sample *k)
{
	add(l, "%" PRIu64 " NaN and %" PRIu64 " Inf among %" PRIu64 " %s", k->nans, k->infs,
	    k->elements, cw_dtype_name(k->dtype));
}

static void add_site(struct line *l, const struct cw_numerics_sample *k)
{
	if (k->site)
		add(l, ", from %s", k->site);
	if (k->carried)
		add(l, ", %s", k->carried);
}

static void add_place(struct line *l, const struct cw_numerics_sample *k)
{
	if (k->step >= 0)
		add(l, ", step %" PRId64, k->step);
	add_site(l, k);
}

/* Appends the user's numbers of the ranks of these summaries. */
static void add_ranks(struct line *l, const struct cw_numerics_job *job, const uint32_t *samples,
		      uint32_t n)
{
	_cleanup_(freep) int32_t *ranks = calloc((size_t)n + 1, sizeof(*ranks));
	char text[RANKS_BYTES];

	if (!ranks)
		return;
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = job->ranks[job->samples[samples[i]].rank].rank;
	add(l, "%s %s", n == 1 ? "rank" : "ranks", cw_rankset_format(ranks, n, text, sizeof(text)));
}

/* Lists the members in v, which are sorted by one property, with their values of it. */
static void add_members(struct line *l, const struct cw_numerics_job *job,
			const struct cw_member *v, uint32_t n, enum cw_members_by by)
{
	_cleanup_(freep) uint32_t *samples = calloc((size_t)n + 1, sizeof(*samples));
	char text[MEMBER_BYTES];

	for (uint32_t i = 0, next; samples && i < n; i = next) {
		next = cw_members_end(v, n, i);
		for (uint32_t k = i; k < next; k++)
			samples[k - i] = v[k].sample;
		(void)cw_members_text(&v[i], by, text, sizeof(text));
		add(l, "%s%s (", i ? ", " : "", *text ? text : "not known");
		add_ranks(l, job, samples, next - i);
		add(l, ")");
	}
}

/* Lists the members' platforms if they differ. */
static void add_unlike(struct line *l, const struct cw_numerics_job *job, const uint32_t *samples,
		       uint32_t n)
{
	static const char *const names[] = { [CW_MEMBERS_BY_DEVICE] = "devices",
					     [CW_MEMBERS_BY_CUDA_DRIVER] = "CUDA drivers",
					     [CW_MEMBERS_BY_NCCL] = "versions of NCCL" };
	_cleanup_(freep) struct cw_member *v = calloc((size_t)n + 1, sizeof(*v));
	bool is_next = false;

	for (unsigned by = 0; v && by < CW_MEMBERS_BY__MAX; by++) {
		if (!cw_members_sort(job, samples, n, by, v))
			continue;
		add(l, "%s unlike %s: ", is_next ? ";" : ". Its members have", names[by]);
		add_members(l, job, v, n, by);
		is_next = true;
	}
}

/* Lists the members that have equal copies, group by group. */
static void add_groups(struct line *l, const struct cw_numerics_job *job, const uint32_t *samples,
		       uint32_t n)
{
	for (uint32_t i = 0, next; i < n; i = next) {
		next = i + 1;
		while (next < n &&
		       job->samples[samples[next]].checksum == job->samples[samples[i]].checksum)
			next++;
		add(l, i ? " | " : "");
		add_ranks(l, job, samples + i, next - i);
	}
}

char *cw_numerics_text_call(const struct cw_numerics_job *job, uint32_t sample, char *buf,
			    size_t len)
{
	struct line l = { .buf = buf, .len = len };

	add_call(&l, job, sample);
	return end(&l);
}

static void add_first_by_rank(struct line *l, const struct cw_numerics_job *job,
			      const struct cw_numerics_report *said, uint32_t sample)
{
	add_rank(l, job, job->samples[sample].rank);
	add(l, said->n_firsts > 1 ? " was among the first to feed " : " was the first to feed ");
	add_bad(l, &job->samples[sample]);
	add(l, " into ");
	add_call(l, job, sample);
}

char *cw_numerics_text_first(const struct cw_numerics_job *job,
			     const struct cw_numerics_report *said, uint32_t i, char *buf,
			     size_t len)
{
	const struct cw_numerics_first *f = &said->firsts[i];
	const struct cw_numerics_sample *k = &job->samples[f->sample];
	struct line l = { .buf = buf, .len = len };

	switch (f->origin) {
	case CW_NUMERICS_BY_RANK:
		add_first_by_rank(&l, job, said, f->sample);
		break;
	case CW_NUMERICS_SUM:
		add_call(&l, job, f->sample);
		add(&l, " itself made ");
		add_bad(&l, k);
		add(&l, ": all members fed finite numbers, whose %s the type does not hold",
		    k->redop == CW_REDOP_NONE ? "result" : cw_redop_name(k->redop));
		break;
	case CW_NUMERICS_RECEIVED:
		add_rank(&l, job, k->rank);
		add(&l, " got ");
		add_bad(&l, k);
		add(&l, " out of ");
		add_call(&l, job, f->sample);
		add(&l, "; their source is unknown, because some inputs were not fully inspected");
		break;
	}
	add_place(&l, k);
	if (f->origin == CW_NUMERICS_BY_RANK && !said->ranks[k->rank].is_first_seen)
		add(&l, " (some earlier tensors of this rank are unknown)");
	return end(&l);
}

char *cw_numerics_text_row(const struct cw_numerics_job *job, const struct cw_numerics_row *row,
			   char *buf, size_t len)
{
	struct line l = { .buf = buf, .len = len };
	const char *step = row->step_by == CW_NUMERICS_BY_CALL ? "call" : "step";

	add(&l, "%" PRIu64 " %s%s with NaN or Inf on ", row->n_steps, step, plural(row->n_steps));
	add_comm(&l, job, row->comm);
	if (row->step_by == CW_NUMERICS_BY_PROGRAM)
		add(&l, " (from step %" PRIu64, row->step);
	else /* we counted the step ourselves, so the user does not know its number */
		add(&l, " (from call #%" PRIu64, row->seq);
	add(&l, ", %u tensor%s): ", row->n_samples, plural(row->n_samples));
	if (row->is_scaling)
		add(&l, "loss scaling, harmless: gradients are finite again, %.2f times as large",
		    row->ratio);
	else if (row->n_steps > 2)
		add(&l, "no loss scaling, which leaves no three %ss in a row out", step);
	else if (row->ratio > 0)
		add(&l, "no loss scaling: gradients are %.2f times as large afterwards",
		    row->ratio);
	else
		add(&l,
		    "unknown whether this is loss scaling: no finite step follows to compare with");
	return end(&l);
}

char *cw_numerics_text_headroom(const struct cw_numerics_job *job,
				const struct cw_numerics_headroom *h, char *buf, size_t len)
{
	const struct cw_numerics_sample *k = &job->samples[h->sample];
	struct line l = { .buf = buf, .len = len };

	add_call(&l, job, h->sample);
	add(&l, " comes near what %s holds: %.6g of %.6g", cw_dtype_name(k->dtype), h->value,
	    h->limit);
	if (h->is_sum) {
		add(&l, " summed up over its members, most of it on ");
		add_rank(&l, job, k->rank);
	} else {
		add(&l, " on ");
		add_rank(&l, job, k->rank);
	}
	add(&l, ", growing %.3g %% a step, ", (h->growth - 1) * 100);
	if (h->steps_left < 1)
		add(&l, "there in the next");
	else
		add(&l, "there in %.0f", h->steps_left);
	add_site(&l, k);
	return end(&l);
}

char *cw_numerics_text_range(const struct cw_numerics_job *job, const struct cw_numerics_range *r,
			     char *buf, size_t len)
{
	const struct cw_numerics_sample *k = &job->samples[r->sample];
	struct line l = { .buf = buf, .len = len };

	add_call(&l, job, r->sample);
	if (r->end == CW_NUMERICS_UPPER)
		add(&l,
		    " is cut off at the largest number of %s: %.3g %% of the elements of its %s "
		    "are %.6g, on ",
		    cw_dtype_name(k->dtype), r->share * 100, k->is_output ? "output" : "input",
		    k->abs_max);
	else
		add(&l,
		    " loses digits at the lower end of %s: %.3g %% of the nonzero elements of its "
		    "%s are denormal, though all could be %.4g times as large, on ",
		    cw_dtype_name(k->dtype), r->share * 100, k->is_output ? "output" : "input",
		    r->room);
	add_rank(&l, job, k->rank);
	add(&l, ", in %u steps in a row", r->n_steps);
	add_site(&l, k);
	return end(&l);
}

/* Writes a divergence. what: describes the results. so: their consequence. */
static char *format_groups(const struct cw_numerics_job *job, const struct cw_numerics_report *said,
			   const struct cw_numerics_divergence *d, const char *what, const char *so,
			   char *buf, size_t len)
{
	const uint32_t *samples = &said->divergent[d->first];
	struct line l = { .buf = buf, .len = len };

	add_call(&l, job, d->sample);
	add(&l, " left different results on %s: ", what);
	add_groups(&l, job, samples, d->count);
	add(&l, ". %s", so);
	add_place(&l, &job->samples[d->sample]);
	add_unlike(&l, job, samples, d->count);
	return end(&l);
}

char *cw_numerics_text_divergence(const struct cw_numerics_job *job,
				  const struct cw_numerics_report *said,
				  const struct cw_numerics_divergence *d, char *buf, size_t len)
{
	return format_groups(job, said, d, "its members, which should be equal bit for bit",
			     "Silent corruption, or a result written over on some", buf, len);
}

char *cw_numerics_text_rounding(const struct cw_numerics_job *job,
				const struct cw_numerics_report *said,
				const struct cw_numerics_divergence *d, char *buf, size_t len)
{
	return format_groups(job, said, d, "members with unlike devices",
			     "For that no alarm: this NCCL may work such a sum out on each member, "
			     "and members with the same device agree",
			     buf, len);
}

char *cw_numerics_text_imbalance(const struct cw_numerics_job *job,
				 const struct cw_numerics_imbalance *m, char *buf, size_t len)
{
	struct line l = { .buf = buf, .len = len };

	add_call(&l, job, m->sample);
	add(&l,
	    " did not preserve the total: its inputs add up to %.17g, its result to %.17g; "
	    "rounding explains at most %.3g",
	    m->in, m->out, m->bound);
	return end(&l);
}

char *cw_numerics_text_suspect(const struct cw_numerics_job *job,
			       const struct cw_numerics_suspect *s, char *buf, size_t len)
{
	struct line l = { .buf = buf, .len = len };

	add_rank(&l, job, s->rank);
	add(&l,
	    " has another result than most in %u call%s on %u communicator%s: suspect its device "
	    "and links first",
	    s->n_divergences, plural(s->n_divergences), s->n_comms, plural(s->n_comms));
	return end(&l);
}
