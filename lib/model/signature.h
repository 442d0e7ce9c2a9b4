/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature of a collective, and the rolling hash over a communicator's history
 * (docs/design/record.md#signature). The agent computes both on the hot path. The tests and the
 * engine recompute them, so we share this inline code.
 *
 * The signature covers kind, redop, root, dtype and count. Some calls only move bytes in NCCL:
 * all_gather, broadcast, all-to-all, gather, scatter. For these the signature covers the number of
 * bytes instead of dtype, count and redop. Equal calls must always have equal signatures. Otherwise
 * we would raise a false alarm and call it "certain".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/op.h"

#define CW_HASH_INIT UINT64_C(0x636f6c6c77617463) /* "collwatc" */

/*
 * We store a checkpoint (coll_seq, hash) at the first commit at or after each multiple of 8.
 * Checkpoints at multiples of 64, 512 and 4,096 have slots of their own. Each of these levels has
 * four slots. The 16 slots together reach back over 16,384 calls from the last one. Two ranks that
 * are up to 4,096 collectives apart therefore always have a checkpoint in common.
 */
#define CW_CHECKPOINT_EVERY 8
#define CW_CHECKPOINT_LEVELS 4
#define CW_CHECKPOINTS_PER_LEVEL 4
#define CW_CHECKPOINTS_KEPT (CW_CHECKPOINT_LEVELS * CW_CHECKPOINTS_PER_LEVEL)

struct cw_checkpoint;

/*
 * The finaliser of splitmix64: a bijection with full avalanche (Steele, Lea, Flood, OOPSLA 2014).
 */
static inline uint64_t cw_hash_mix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/*
 * Mixes v into the hash h and returns the new hash. The order of the values matters.
 *
 * The function is a bijection in either argument. An attacker who chooses one value of a chain
 * therefore chooses its result, and can match it to any other chain. So we never use the hash as an
 * identity. SHA-256 names jobs (model/job_key.h) and incidents (leader/incident/incident_id.h). We
 * compare the subject of a verdict field by field.
 *
 * The list below has all users of the function. It states why two chains with the same result do no
 * harm in each use. "Own job" means: all values of both chains come from ranks of one user's job,
 * and no other code reads the result.
 *
 *  - The history of a communicator and its checkpoints (cw_hash_commit(); agent/ops/ops.c,
 *    agent/ops/p2p.c, record/record_commits.c, lab/vjob/cluster_call.c): own job. Ranks that want
 *    to hide a difference from their own user can write anything into their records anyway.
 *  - Ids of communicators (agent/record/comms.c, agent/record/labels.c, agent/hooks/profiler.c,
 *    agent/hooks/wrap_comm_create.c; import/fr_snapshot.c for a recording): own job. We only join
 *    communicators among the ranks of one uid and label.
 *  - Call stacks of a rank (agent/python/call_stack.c): the rank's own record.
 *  - Network connections of a rank (agent/record/connections.c): the rank's own record. Two
 *    connections with one key would share a slot of that record.
 *  - Samples of tensors and times (agent/cuda/summary.c, agent/ops/group_samples.c,
 *    agent/cuda/device_times.c), and the choice of scenarios (lab/suite/, lab/vjob/). These need
 *    numbers that look random, and we do not compare them with anything.
 *  - The start of a search in a table (analysis/align/align.c, analysis/align/call_hashes.c,
 *    model/snapshot.c, agent/hooks/profiler_proxy.c). We compare the found entry in full.
 *  - Whether a job waits at a line where it has waited before (analysis/stall/wait_sites.c): own
 *    job. If two stacks of the job collide, both get the patience of the first one.
 *  - Whether two readings of the evidence are equal (analysis/stall/patience.c): own job. Time
 *    passes between the two readings in any case.
 *  - The order in which a rank launches the calls of a group (analysis/culprit/launch_order.c): own
 *    job, and never proof.
 *  - Whether any thread of a rank that waits for a lock has run (daemon/process/host_activity.c):
 *    own rank. A collision only pages the rank's own user about his own job.
 *  - Whether we must compute the components anew (leader/job_digests.c): own job. After a collision
 *    the job keeps its old components.
 *  - The ranks whose stacks we collect in detail (leader/incident/stack_collection.c), and the
 *    ranks and communicators that a report draws alike (report/rank_sets.c, report/comm_family.c):
 *    own job, in its own report.
 *  - Whether the stacks of two ranks have the same functions (report/stacks/stack_signature.c), and
 *    which ranks have communicators of the same sizes (analysis/stacks/peers.c): own job, in its
 *    own report, and never proof.
 *  - The weight of a node in an election (leader/election.c). The weight decides which node leads,
 *    and is never a key. A user can craft a label so that a chosen node leads his job, but that
 *    gives him no access to another user's job.
 *  - The number of a job in messages (identity/job_label.c). Uid and label decide; the number only
 *    speeds up the search.
 */
static inline uint64_t cw_hash_step(uint64_t h, uint64_t v)
{
	return cw_hash_mix64(h ^ cw_hash_mix64(v));
}

/* True if NCCL treats two calls of this kind that move the same number of bytes as the same op. */
static inline bool cw_signature_is_bytewise(unsigned kind)
{
	return kind == CW_OP_ALL_GATHER || kind == CW_OP_BROADCAST || kind == CW_OP_ALL_TO_ALL ||
	       kind == CW_OP_GATHER || kind == CW_OP_SCATTER;
}

/*
 * Returns the signature of a call. kind, dtype and redop are enums of model/op.h. root is
 * CW_PEER_NONE if the kind has no root. count is in elements. bytes is the size of one rank's
 * contribution. We ignore arguments that calls of this kind do not have.
 */
static inline uint64_t cw_signature(unsigned kind, unsigned dtype, unsigned redop, int32_t root,
				    uint64_t count, uint64_t bytes)
{
	bool bytewise = cw_signature_is_bytewise(kind);
	uint64_t shape = bytewise ? bytes : count;
	/*
	 * CW_REDOP_NONE + 1 becomes 0 in 8 bits. Without the mask it would overflow into the bits
	 * of the data type.
	 */
	uint64_t what = (uint64_t)kind << 56 | (uint64_t)(bytewise ? 0 : (dtype & 0xff) + 1) << 40 |
			(uint64_t)(bytewise ? 0 : (redop + 1) & 0xff) << 32 |
			(uint64_t)(uint32_t)root;

	return cw_hash_step(cw_hash_mix64(what), shape);
}

/*
 * Returns the slot for the checkpoint of a commit that moves coll_seq from `old` to `now`. -1 = the
 * commit makes no checkpoint.
 */
static inline int cw_checkpoint_slot(uint64_t old, uint64_t now)
{
	for (int level = CW_CHECKPOINT_LEVELS - 1; level >= 0; level--) {
		unsigned shift = 3 * (unsigned)(level + 1);

		if (old >> shift != now >> shift)
			return level * CW_CHECKPOINTS_PER_LEVEL +
			       (int)((now >> shift) % CW_CHECKPOINTS_PER_LEVEL);
	}
	return -1;
}

/*
 * Selects checkpoints from the CW_CHECKPOINTS_KEPT slots that cw_checkpoint_slot() numbers. For
 * each level we select the newest two of the checkpoints on that level and the levels above it. We
 * return each checkpoint once, so there are at most 2 * CW_CHECKPOINT_LEVELS. Slots with coll_seq 0
 * are empty. Returns the number of checkpoints in ret.
 */
size_t cw_checkpoints_newest(const struct cw_checkpoint *kept, struct cw_checkpoint *ret);

/*
 * Adds one step to the rolling hash h. A group of calls is one step. signature_sum is the sum of
 * the group's signatures, so their order inside the group does not matter. A group of one op has
 * the same hash as the op without a group.
 */
static inline uint64_t cw_hash_commit(uint64_t h, uint64_t signature_sum)
{
	return cw_hash_step(h, signature_sum);
}
