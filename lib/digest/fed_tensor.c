/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/fed_tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/op.h"

void cw_fed_tensor_format(const struct cw_fed_tensor *fed, int32_t rank, char *buf, size_t len)
{
	const struct cw_rec_summary *n = &fed->numbers;
	char who[32] = "a rank", comm[40];

	if (rank >= 0)
		(void)snprintf(who, sizeof(who), "rank %d", (int)rank);
	if (*fed->comm_name)
		(void)snprintf(comm, sizeof(comm), "%s", fed->comm_name);
	else
		(void)snprintf(comm, sizeof(comm), "0x%" PRIx64, fed->comm_id);
	(void)snprintf(buf, len,
		       "%s fed %" PRIu64 " NaN and %" PRIu64 " Inf among %" PRIu64
		       " %s into %s #%" PRIu64 " on %s",
		       who, n->nans, n->infs, n->elements, cw_dtype_name(n->dtype),
		       cw_op_kind_name(n->kind), n->seq, comm);
}

/*
 * Picks, among several devices, the tensor whose op has the lowest op_index; op_index of different
 * communicators does not compare.
 */
static const struct cw_rec_summary *earliest(const struct cw_rec_summary *v, size_t n)
{
	const struct cw_rec_summary *best = v;

	for (size_t i = 1; i < n; i++)
		if (v[i].op_index < best->op_index)
			best = &v[i];
	return best;
}

bool cw_fed_tensor_look(struct cw_fed_tensor *fed, const struct cw_record *record, int64_t now_ns)
{
	struct cw_rec_summary v[CW_REC_SUMMARY_FIRSTS];
	const struct cw_record_comm *comms;
	size_t n, n_comms;

	if (fed->seen_ns)
		return false;
	n = cw_record_fed_bad(record, v, CW_REC_SUMMARY_FIRSTS);
	if (n == 0)
		return false;
	fed->seen_ns = now_ns;
	fed->numbers = *earliest(v, n);
	comms = cw_record_comms(record, &n_comms);
	for (size_t i = 0; i < n_comms; i++) {
		if (comms[i].index != fed->numbers.comm ||
		    comms[i].entry.generation != fed->numbers.comm_generation)
			continue;
		fed->comm_id = comms[i].entry.comm_id;
		memcpy(fed->comm_name, comms[i].entry.name, sizeof(fed->comm_name));
	}
	return true;
}
