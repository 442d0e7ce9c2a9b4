/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/nonfinite_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/op.h"

void cw_nonfinite_input_format(const struct cw_nonfinite_input *nonfinite_input, int32_t rank,
			       char *buf, size_t len)
{
	const struct cw_rec_summary *n = &nonfinite_input->tensor_stats;
	char who[32] = "a rank", comm[40];

	if (rank >= 0)
		(void)snprintf(who, sizeof(who), "rank %d", (int)rank);
	if (*nonfinite_input->comm_name)
		(void)snprintf(comm, sizeof(comm), "%s", nonfinite_input->comm_name);
	else
		(void)snprintf(comm, sizeof(comm), "0x%" PRIx64, nonfinite_input->comm_id);
	(void)snprintf(buf, len,
		       "%s fed %" PRIu64 " NaN and %" PRIu64 " Inf among %" PRIu64
		       " %s into %s #%" PRIu64 " on %s",
		       who, n->nans, n->infs, n->elements, cw_dtype_name(n->dtype),
		       cw_op_kind_name(n->kind), n->seq, comm);
}

bool cw_nonfinite_input_find(struct cw_nonfinite_input *nonfinite_input,
			     const struct cw_record *record, int64_t now_ns)
{
	struct cw_rec_summary v[CW_REC_SUMMARY_FIRSTS];
	const struct cw_record_comm *comms;
	size_t n, n_comms;

	if (nonfinite_input->seen_ns)
		return false;
	n = cw_record_nonfinite_inputs(record, v, CW_REC_SUMMARY_FIRSTS);
	if (n == 0)
		return false;
	nonfinite_input->seen_ns = now_ns;
	/*
	 * Of several devices we take the op with the lowest op_index. The choice is only a guess,
	 * because op_index values of different communicators are not comparable.
	 */
	nonfinite_input->tensor_stats = v[0];
	for (size_t i = 1; i < n; i++)
		if (v[i].op_index < nonfinite_input->tensor_stats.op_index)
			nonfinite_input->tensor_stats = v[i];
	comms = cw_record_comms(record, &n_comms);
	for (size_t i = 0; i < n_comms; i++) {
		if (comms[i].index != nonfinite_input->tensor_stats.comm ||
		    comms[i].entry.generation != nonfinite_input->tensor_stats.comm_generation)
			continue;
		nonfinite_input->comm_id = comms[i].entry.comm_id;
		memcpy(nonfinite_input->comm_name, comms[i].entry.name,
		       sizeof(nonfinite_input->comm_name));
	}
	return true;
}
