/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/nccl/device/work.h"

#include <mutex>

namespace lab
{

/* More rows than in any version. */
constexpr unsigned int IDS_MAX = 1 << 13;

static Function table[IDS_MAX];

static bool has_sign(int type)
{
	return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

/* A signed type shares the function of the unsigned one; the arithmetic is the same. */
static void add(int id, const Function &f)
{
	if (id < 0 || (unsigned int)id >= IDS_MAX)
		return;
	if (table[id].coll < 0 || (has_sign(table[id].type) && !has_sign(f.type)))
		table[id] = f;
}

static void add_all(int coll, int op, int type)
{
	for (int algo = 0; algo < NCCL_NUM_ALGORITHMS; algo++) {
		bool is_allreduce = coll == ncclFuncAllReduce;
		bool is_rooted = coll == ncclFuncBroadcast || coll == ncclFuncReduce ||
				 coll == ncclFuncAllGatherV;

		/* ncclDevFuncId() maps an unknown algorithm to the last known one. */
		if (is_rooted && algo != NCCL_ALGO_RING)
			continue;
		if (is_allreduce && algo > NCCL_ALGO_NVLS_TREE)
			continue;
		if (!is_rooted && !is_allreduce && algo != NCCL_ALGO_RING &&
		    algo != NCCL_ALGO_COLLNET_DIRECT && algo != NCCL_ALGO_NVLS &&
		    algo != NCCL_ALGO_PAT)
			continue;
		for (int proto = 0; proto < NCCL_NUM_PROTOCOLS; proto++)
			add(ncclDevFuncId(coll, op, type, algo, proto),
			    { coll, op, type, algo, proto });
	}
}

static void fill()
{
	static const int with_op[] = { ncclFuncAllReduce, ncclFuncReduce, ncclFuncReduceScatter };
	static const int without_op[] = { ncclFuncAllGather, ncclFuncBroadcast,
					  ncclFuncAllGatherV };

	for (Function &f : table)
		f = { -1, 0, 0, 0, 0 };
	add(ncclDevFuncId_P2p(),
	    { ncclFuncSendRecv, 0, ncclUint8, NCCL_ALGO_RING, NCCL_PROTO_SIMPLE });
	for (int coll : without_op)
		add_all(coll, ncclDevSum, ncclUint8);
	for (int coll : with_op) {
		for (int op = 0; op < ncclNumDevRedOps; op++) {
			for (int type = 0; type < ncclNumTypes; type++)
				add_all(coll, op, type);
		}
	}
}

Function function_of(unsigned int id)
{
	static std::once_flag once;

	std::call_once(once, fill);
	if (id >= IDS_MAX || table[id].coll < 0)
		die("function %u means nothing in this version of NCCL", id);
	return table[id];
}

} // namespace lab
