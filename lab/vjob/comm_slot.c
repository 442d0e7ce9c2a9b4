/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vjob/comm_slot.h"

uint32_t cw_suite_family_size(const struct suite_scenario *s, uint32_t family)
{
	const struct suite_family *f = &s->families[family];
	uint32_t n = 0;

	if (f->is_partition)
		return f->size ? f->size : s->n_ranks / f->stride;
	for (uint32_t i = 0; i < s->n_ranks; i++)
		n += cw_suite_set_has(&f->set, i);
	return n;
}

uint32_t cw_suite_family_comms(const struct suite_scenario *s, uint32_t family)
{
	const struct suite_family *f = &s->families[family];
	uint32_t size = cw_suite_family_size(s, family);
	uint64_t block = (uint64_t)size * (f->is_partition ? f->stride : 1);

	if (size == 0 || (f->is_partition && s->n_ranks % block))
		return 0;
	return f->is_partition ? s->n_ranks / size : 1;
}

bool suite_comm_slot(const struct suite_scenario *s, uint32_t family, uint32_t rank,
		     struct suite_comm_slot *ret)
{
	const struct suite_family *f = &s->families[family];
	uint32_t size = cw_suite_family_size(s, family),
		 block = f->is_partition ? size * f->stride : 0;

	*ret = (struct suite_comm_slot){ .nranks = size };
	if (f->is_partition) {
		ret->comm = rank / block * f->stride + rank % f->stride;
		ret->place = rank % block / f->stride;
		return true;
	}
	for (uint32_t i = 0; i < rank; i++)
		ret->place += cw_suite_set_has(&f->set, i);
	return cw_suite_set_has(&f->set, rank);
}

int64_t suite_peer(const struct suite_call *call, const struct suite_comm_slot *slot)
{
	int64_t me = slot->place, n = slot->nranks, peer = -1;

	switch (call->peer_kind) {
	case SUITE_PEER_NUMBER:
		peer = call->peer;
		break;
	case SUITE_PEER_NEXT:
		peer = me + 1;
		break;
	case SUITE_PEER_PREV:
		peer = me - 1;
		break;
	case SUITE_PEER_RING_NEXT:
		peer = (me + 1) % n;
		break;
	case SUITE_PEER_RING_PREV:
		peer = (me + n - 1) % n;
		break;
	case SUITE_PEER_PAIR:
		peer = me ^ 1;
		break;
	default:
		break;
	}
	return peer < 0 || peer >= n || peer == me ? -1 : peer;
}
