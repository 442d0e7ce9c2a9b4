/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ops/group_samples.h"

#include "agent/base/state.h"
#include "agent/cuda/summary.h"
#include "agent/cuda/tensor.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/signature.h"

#define FEW 4 /* with so few inputs there is room for all outputs, so we need not count */

_Static_assert(CW_GROUP_SAMPLES <= UINT8_MAX, "places are bytes");

/*
 * Returns a random number that decides which ops of a group we keep. All members of a communicator
 * draw the same number, so they keep the same ops. A member with fewer places keeps a subset. The
 * choice of words within a tensor mixes the numbers differently, because the two choices must not
 * depend on each other.
 */
static uint64_t draw_of(const struct cw_op_call *call)
{
	const struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	bool is_shared = cw_op_is_collective(call->kind) && call->seq;

	/*
	 * P2p ops are numbered per peer, so all ops of one all-to-all have the same seq. We use
	 * op_index for them.
	 */
	return cw_hash_mix64(cw_hash_mix64(CW_LOAD(rc->comm_id)) +
			     (is_shared ? call->seq : call->op_index));
}

static uint32_t n_kept(const struct cw_group_side *side)
{
	return side->n < CW_GROUP_SAMPLES ? side->n : CW_GROUP_SAMPLES;
}

static void add(struct cw_group_side *side, const struct cw_op_call *call, uint64_t draw)
{
	uint32_t place = n_kept(side), at = place;

	side->n++;
	if (place == CW_GROUP_SAMPLES) {
		place = side->by_draw[--at];
		if (draw >= side->kept[place].draw)
			return;
	}
	for (; at > 0 && side->kept[side->by_draw[at - 1]].draw > draw; at--)
		side->by_draw[at] = side->by_draw[at - 1];
	side->by_draw[at] = (uint8_t)place;
	side->kept[place] = (struct cw_group_sample){
		.desc = *call->desc,
		.op_index = call->op_index,
		.seq = call->seq,
		.draw = draw,
		.comm = (uint32_t)call->comm,
		.comm_generation = CW_LOAD(cw_comms[call->comm].generation),
	};
}

void cw_group_samples_add(struct cw_group_samples *samples, const struct cw_op_call *call)
{
	const struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	uint32_t nranks = CW_LOAD(rc->nranks);
	int32_t rank = CW_LOAD(rc->comm_rank);
	struct cw_tensor ignored;
	uint64_t draw;

	if ((call->flags & (CW_OPF_NO_COUNT | CW_OPF_CAPTURED)) ||
	    !__atomic_load_n(&cw_comms[call->comm].context, __ATOMIC_ACQUIRE))
		return;
	draw = draw_of(call);
	if (cw_tensor_input(call->desc, nranks, rank, &ignored))
		add(&samples->in, call, draw);
	if (cw_tensor_output(call->desc, nranks, rank, &ignored))
		add(&samples->out, call, draw);
}

/*
 * Returns whether the communicator is still the same one. Inside the group the program may abort or
 * end it, and another communicator may then use its entry.
 */
static bool is_alive(const struct cw_group_sample *sample)
{
	return CW_LOAD(cw_comms[sample->comm].generation) == sample->comm_generation &&
	       CW_LOAD(cw_record.comms[sample->comm].state) == CW_COMM_READY;
}

static void take(const struct cw_group_sample *sample, bool is_output)
{
	const struct cw_op_call call = {
		.comm = (int)sample->comm,
		.kind = sample->desc.kind,
		.op_index = sample->op_index,
		.seq = sample->seq,
		.stream = sample->desc.stream,
		.desc = &sample->desc,
	};

	if (is_alive(sample))
		(void)cw_summary_take(&call, &sample->desc, is_output);
	else
		cw_record_drop(CW_REC_DROP_SUMMARIES);
}

/*
 * Summarises the inputs or the outputs. If all inputs fit, we take them in the order of the calls,
 * because the first bad one matters most. Otherwise we go by draw. For the last tensor, the budget
 * may be spent or the ring may be full; the draw makes that a different op each time.
 */
static void take_side(const struct cw_group_side *side, uint32_t most, bool is_output)
{
	uint32_t n = n_kept(side) < most ? n_kept(side) : most;
	bool is_by_call = !is_output && n == side->n && cw_summary_takes_all();

	for (uint32_t i = 0; i < n; i++)
		take(&side->kept[is_by_call ? i : side->by_draw[i]], is_output);
	for (uint32_t i = n; i < side->n; i++)
		cw_record_drop(CW_REC_DROP_SUMMARIES);
}

void cw_group_samples_spoil(struct cw_group_samples *samples)
{
	samples->is_spoiled = 1;
}

/*
 * If the device lags behind, too few entries of the ring are free. The inputs must leave a fair
 * share of them to the outputs.
 */
void cw_group_samples_take_inputs(struct cw_group_samples *samples)
{
	uint32_t in = n_kept(&samples->in), out = n_kept(&samples->out), most = in;

	if (samples->is_spoiled)
		return;
	if (in > FEW) {
		uint32_t places = cw_summary_places();

		if (in + out > places)
			most = places * in / (in + out);
	}
	take_side(&samples->in, most, false);
}

void cw_group_samples_take_outputs(struct cw_group_samples *samples)
{
	take_side(&samples->out, CW_GROUP_SAMPLES, true);
}

void cw_group_samples_forget(struct cw_group_samples *samples)
{
	samples->in.n = samples->out.n = samples->is_spoiled = 0;
}
