/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rolling hash after each of a communicator's last calls. The agent stores the hash after every
 * eighth call. We compute the hashes in between from the calls in the communicator's own ring.
 *
 * We accept the result only if it ends at the hash in the communicator's entry. An overwritten
 * call, a failed call or a call from a graph leads to another hash. So does a checkpoint that
 * changed during our read.
 */
#include <string.h>

#include "model/signature.h"
#include "record/record_internal.h"

static bool is_counted(const struct cw_rec_op *op)
{
	unsigned never = CW_OPF_QUEUED | CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT;

	return cw_op_is_collective(op->kind) && op->seq && (op->flags & CW_OPF_RETURNED) &&
	       !(op->flags & never);
}

/* All calls of a group form one step of the hash. */
static bool is_of_step(const struct cw_rec_op *first, const struct cw_rec_op *op)
{
	return op == first || (first->group_id && op->group_id == first->group_id);
}

int cw_record_commits(const struct cw_record *rec, const struct cw_record_comm *comm,
		      const struct cw_checkpoint *from, struct cw_checkpoint ret[CW_RECORD_COMMITS],
		      size_t *ret_n)
{
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_checkpoint found[CW_REC_COMM_OPS], at = *from;
	struct cw_rec_op ops[CW_REC_COMM_OPS];
	size_t n_ops, n = 0, kept;
	int r;

	*ret_n = 0;
	r = cw_record_read_comm_ring(rec, comm, ops, &n_ops);
	if (r < 0)
		return r;
	for (size_t i = 0, end; i < n_ops && at.coll_seq < e->coll_returned; i = end) {
		uint64_t colls = 0, sum = 0;

		for (end = i; end < n_ops && is_of_step(&ops[i], &ops[end]); end++) {
			const struct cw_rec_op *op = &ops[end];

			if (!is_counted(op) || op->seq != at.coll_seq + colls + 1)
				continue;
			colls++;
			sum += cw_signature(op->kind, op->dtype, op->redop, op->root_or_peer,
					    op->count, op->bytes);
		}
		if (!colls)
			continue;
		at.coll_seq += colls;
		at.hash = cw_hash_commit(at.hash, sum);
		found[n++] = at;
	}
	if (!n || at.coll_seq != e->coll_returned || at.hash != e->hash)
		return 0;
	kept = n < CW_RECORD_COMMITS ? n : CW_RECORD_COMMITS;
	memcpy(ret, &found[n - kept], kept * sizeof(*ret));
	*ret_n = kept;
	return 0;
}
