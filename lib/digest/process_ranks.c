/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/process_ranks.h"

static void add_place(struct process_ranks *of, const struct cw_rec_comm *e)
{
	uint32_t i = of->n;

	for (uint32_t k = 0; k < of->n; k++)
		if (of->places[k].device == e->device || of->places[k].comm_rank == e->comm_rank)
			return;
	if (of->n == PROCESS_RANKS_MAX)
		return;
	for (; i && of->places[i - 1].comm_rank > e->comm_rank; i--)
		of->places[i] = of->places[i - 1];
	of->places[i] = (struct process_place){ .comm_rank = e->comm_rank, .device = e->device };
	of->n++;
}

void process_ranks_find(const struct cw_digest_rank *p, struct process_ranks *ret)
{
	const struct cw_record_comm *comms;
	struct process_ranks best = { .process = p, .n = 1 }, of = best;
	bool has_several = false;
	int32_t device = -1;
	size_t n;

	comms = cw_record_comms(p->record, &n);
	for (size_t i = 0; i < n; i++) {
		int32_t other = comms[i].entry.device;

		has_several = has_several || (device >= 0 && other >= 0 && other != device);
		device = device < 0 ? other : device;
	}
	for (size_t i = 0; has_several && i < n; i++) {
		const struct cw_rec_comm *in = &comms[i].entry;

		of.n = 0;
		of.nranks = in->nranks;
		for (size_t k = 0; k < n; k++) {
			const struct cw_rec_comm *e = &comms[k].entry;

			if (e->comm_id == in->comm_id && e->instance == in->instance &&
			    e->device >= 0 && e->comm_rank >= 0)
				add_place(&of, e);
		}
		if (of.n > best.n || (of.n == best.n && of.n > 1 && of.nranks > best.nranks))
			best = of;
	}
	*ret = best;
}

uint32_t process_ranks_with(const struct process_ranks *of, const struct cw_rec_comm *e)
{
	for (uint32_t i = 1; of->n > 1 && i < of->n; i++)
		if (of->places[i].device == e->device)
			return i;
	return 0;
}

int32_t process_ranks_number(const struct process_ranks *of, uint32_t nth, int32_t label,
			     int32_t processes)
{
	int64_t number = (int64_t)label * of->n + nth;

	if (of->n == 1)
		return label;
	if (label >= 0 && processes > 0 && (int64_t)processes * of->n == of->nranks)
		return of->places[nth].comm_rank;
	return label < 0 || number > INT32_MAX ? -1 : (int32_t)number;
}

int32_t process_ranks_count(const struct process_ranks *of, int32_t processes)
{
	bool fits = processes > 0 && (int64_t)processes * of->n <= INT32_MAX;

	return fits ? processes * (int32_t)of->n : processes;
}
