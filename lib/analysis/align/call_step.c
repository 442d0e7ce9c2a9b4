/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/align/call_step.h"

#include "analysis/align/position.h"
#include "model/signature.h"

/*
 * We compare two groups of different extent call by call only if the shorter group has at most this
 * many calls. The search takes quadratic time.
 */
#define MAX_SEARCHED 16

static uint64_t signature_of(const struct cw_op *op)
{
	return cw_signature(op->kind, op->dtype, op->redop, op->root, op->count, op->bytes);
}

/* Calls fn for the ops [i, end) of the window, which belong to one group. */
static int visit_group(const struct cw_snap_member *m, uint32_t i, uint32_t end, uint32_t member,
		       call_step_fn fn, void *userdata)
{
	struct call_step group = { .all = &m->window[i], .n_all = end - i };
	int r;

	/* The window may lack the op before this one, which may belong to the same group. */
	if (i == 0 ? m->window_lost || m->window[0].op_index > 1
		   : m->window[i - 1].op_index + 1 < m->window[i].op_index)
		return 0;
	for (uint32_t j = i; j < end; j++) {
		const struct cw_op *op = &m->window[j];

		if (!position_is_step(op))
			continue;
		group.sum += signature_of(op);
		if (!group.first_seq)
			group.first_seq = op->coll_seq;
		group.last_seq = op->coll_seq;
	}
	for (uint32_t j = i; j < end; j++) {
		if (!position_is_step(&m->window[j]))
			continue;
		group.op = &m->window[j];
		group.seq = group.op->coll_seq;
		group.signature = signature_of(group.op);
		r = fn(userdata, member, &group);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool same_group(const struct cw_op *a, const struct cw_op *b)
{
	return (a->flags & b->flags & CW_OPF_GROUPED) && a->group_id && a->group_id == b->group_id;
}

static int visit_lone(const struct cw_op *op, uint32_t member, call_step_fn fn, void *userdata)
{
	struct call_step step;

	if (!op || !position_is_step(op) || (op->flags & CW_OPF_GROUPED))
		return 0;
	step = (struct call_step){ .seq = op->coll_seq,
				   .signature = signature_of(op),
				   .first_seq = op->coll_seq,
				   .last_seq = op->coll_seq,
				   .op = op,
				   .all = op,
				   .n_all = 1 };
	step.sum = step.signature;
	return fn(userdata, member, &step);
}

int call_step_visit_all(const struct cw_snap_member *m, uint32_t member, call_step_fn fn,
			void *userdata)
{
	uint32_t end;
	int r;

	/*
	 * Without CW_KNOWN_ENTERED the member may have made calls that we did not see. Then the
	 * numbers of its other calls are wrong.
	 */
	if (!(m->known & CW_KNOWN_ENTERED))
		return 0;
	for (uint32_t i = 0; i < m->n_window; i = end) {
		end = i + 1;
		if (m->window[i].flags & CW_OPF_GROUPED) {
			while (end < m->n_window && same_group(&m->window[i], &m->window[end]))
				end++;
			r = visit_group(m, i, end, member, fn, userdata);
		} else {
			r = visit_lone(&m->window[i], member, fn, userdata);
		}
		if (r < 0)
			return r;
	}
	r = visit_lone(m->pending, member, fn, userdata);
	return r < 0 ? r : visit_lone(m->last, member, fn, userdata);
}

static uint32_t count_of(const struct call_step *s, uint64_t signature)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_all; i++)
		n += position_is_step(&s->all[i]) && signature_of(&s->all[i]) == signature;
	return n;
}

/*
 * True if the shorter group has a call that the longer group lacks. Both groups begin at the same
 * coll_seq. If they held the same calls in a different grouping, the longer group would contain
 * each call of the shorter one at least as often.
 */
static bool lacks_a_call(const struct call_step *longer, const struct call_step *shorter)
{
	if (shorter->n_all > MAX_SEARCHED)
		return false;
	for (uint32_t i = 0; i < shorter->n_all; i++) {
		const struct cw_op *op = &shorter->all[i];
		uint64_t signature;

		if (!position_is_step(op))
			continue;
		signature = signature_of(op);
		if (count_of(longer, signature) < count_of(shorter, signature))
			return true;
	}
	return false;
}

enum call_step_agreement call_step_compare(const struct call_step *a, const struct call_step *b)
{
	if (a->signature == b->signature)
		return CALL_STEP_AGREES;
	if (a->first_seq != b->first_seq)
		return CALL_STEP_GROUPED_OTHERWISE;
	if (a->last_seq == b->last_seq)
		return a->sum == b->sum ? CALL_STEP_AGREES : CALL_STEP_DIFFERS;
	if (a->last_seq > b->last_seq ? lacks_a_call(a, b) : lacks_a_call(b, a))
		return CALL_STEP_DIFFERS;
	return CALL_STEP_GROUPED_OTHERWISE;
}
