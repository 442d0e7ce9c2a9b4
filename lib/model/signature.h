/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature of a collective and the rolling hash over a communicator's history
 * (docs/design/record.md#signature). The agent computes it on the hot path, the tests and the
 * engine recompute it, so it is one piece of inline code.
 *
 * What belongs in: kind, redop, root, and either (dtype, count) or, where NCCL itself moves bytes
 * (all_gather, broadcast, all-to-all, gather, scatter), the number of bytes alone. A false
 * difference would be a false alarm with the word "certain" on it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/op.h"

#define CW_HASH_INIT UINT64_C(0x636f6c6c77617463) /* "collwatc" */

/*
 * A checkpoint (coll_seq, hash) is stored at the first commit at or after each multiple of 8. Those
 * at multiples of 64, 512 and 4,096 go to slots of their own, four on each level, so that 16 slots
 * reach from the last call back over 16,384: two ranks that are looked at up to 4,096 collectives
 * apart always have one in common.
 */
#define CW_CHECKPOINT_EVERY 8
#define CW_CHECKPOINT_LEVELS 4
#define CW_CHECKPOINTS_PER_LEVEL 4
#define CW_CHECKPOINTS_KEPT (CW_CHECKPOINT_LEVELS * CW_CHECKPOINTS_PER_LEVEL)

struct cw_checkpoint;

/* splitmix64's finaliser: a bijection with full avalanche (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t cw_hash_mix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/*
 * h = mix(h, v): order matters.
 *
 * A bijection of either argument: whoever chooses one value of a chain chooses its result, and can
 * make it any other chain's. So no identity rests on it: jobs (model/job_key.h) and incidents
 * (leader/incident/incident_id.h) are named by SHA-256, and what a verdict is about is compared
 * field by field. Its users, and why two chains with one result do no harm there. Where it says
 * "own job", all values of both chains come from ranks of one user's job, and nothing else reads
 * the result:
 *
 *  - the history of a communicator and its points of comparison (cw_hash_commit(); agent/ops/ops.c,
 *    agent/ops/p2p.c, record/record_commits.c, lab/vjob/cluster_call.c): own job. Ranks that
 * want to hide a difference from their own user can write what they like into their records anyway;
 *  - ids of communicators (agent/record/comms.c, agent/record/labels.c, agent/hooks/profiler.c,
 *    agent/hooks/wrap_comm_create.c; import/fr_snapshot.c of a recording): own job.
 *    Communicators are joined among the ranks of one uid and label only;
 *  - call stacks of a rank (agent/python/call_stack.c): the rank's own record;
 *  - samples of tensors and times (agent/cuda/summary.c, agent/ops/group_looks.c,
 *    agent/cuda/device_times.c), drawing scenarios (lab/suite/, lab/vjob/): numbers that look
 * random, compared with nothing;
 *  - where a table is searched first (analysis/align/align.c, analysis/align/call_hashes.c,
 *    model/snapshot.c): what is found there is compared in full;
 *  - whether a job waits at a line where it has waited before (analysis/stall/wait_sites.c): own
 *    job. A stack that is taken for another of its stacks is given that one's patience;
 *  - whether evidence reads the same twice (analysis/stall/patience.c): own job, and time passes
 *    between the two readings in any case;
 *  - in which order a group's calls are launched (analysis/culprit/launch_order.c): own job, and
 *    never proof;
 *  - whether any thread of a rank that waits for a lock has run (daemon/process/headway.c): own
 *    rank. What its user gains by a collision is a page about his own job;
 *  - whether components must be found anew (leader/route.c): own job, which keeps its old ones;
 *  - of which ranks stacks are taken closely (leader/incident/survey.c), ranks and
 *    communicators that are drawn alike (report/rank_sets.c, report/comm_family.c): own job, in its
 *    own report;
 *  - the weight of a node in an election (leader/election.c): decides who leads; nothing is found
 *    by it. That a label can be made to be led by a node of choice gives nobody another's job;
 *  - the names that older versions have for jobs and incidents (identity/job_label.c,
 *    leader/incident/incident_id.c): these can be forged, which is why they name nothing here. What
 *    is found by them counts only with uid and label beside it.
 */
static inline uint64_t cw_hash_step(uint64_t h, uint64_t v)
{
	return cw_hash_mix64(h ^ cw_hash_mix64(v));
}

/* True where two calls that move the same number of bytes are the same op to NCCL. */
static inline bool cw_signature_is_bytewise(unsigned kind)
{
	return kind == CW_OP_ALL_GATHER || kind == CW_OP_BROADCAST || kind == CW_OP_ALL_TO_ALL ||
	       kind == CW_OP_GATHER || kind == CW_OP_SCATTER;
}

/*
 * kind, dtype, redop: the enums of model/op.h; root: CW_PEER_NONE when the kind has none; count in
 * elements, bytes of one rank's contribution. The fields a kind does not have are ignored.
 */
static inline uint64_t cw_signature(unsigned kind, unsigned dtype, unsigned redop, int32_t root,
				    uint64_t count, uint64_t bytes)
{
	bool bytewise = cw_signature_is_bytewise(kind);
	uint64_t shape = bytewise ? bytes : count;
	/* CW_REDOP_NONE becomes 0: it must not reach into the bits of the data type. */
	uint64_t what = (uint64_t)kind << 56 | (uint64_t)(bytewise ? 0 : (dtype & 0xff) + 1) << 40 |
			(uint64_t)(bytewise ? 0 : (redop + 1) & 0xff) << 32 |
			(uint64_t)(uint32_t)root;

	return cw_hash_step(cw_hash_mix64(what), shape);
}

/* Where the checkpoint of a commit from coll_seq `old` to `now` goes; -1 = it makes none. */
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
 * Of all CW_CHECKPOINTS_KEPT, by cw_checkpoint_slot(), the newest two of each level and those above
 * it, each once: at most 2 * CW_CHECKPOINT_LEVELS. Slots with coll_seq 0 are empty. Returns how
 * many.
 */
size_t cw_checkpoints_newest(const struct cw_checkpoint *kept, struct cw_checkpoint *ret);

/*
 * A group is one step: its signatures are added up (so their order inside the group does not
 * matter) and mixed in at once. A group of one op hashes as the same op without a group.
 */
static inline uint64_t cw_hash_commit(uint64_t h, uint64_t signature_sum)
{
	return cw_hash_step(h, signature_sum);
}
