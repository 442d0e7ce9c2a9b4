/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch of work asks a block to do. */
#pragma once

#include "lab/nccl/device/block.h"

#include <vector>

namespace lab
{

/* What stands behind the number in a batch. */
struct Function {
	int coll; /* ncclFunc_t; -1: nothing */
	int op;
	int type;
	int algo;
	int proto;
};

/* By NCCL's own numbering. Ends the process for a number that means nothing. */
Function function_of(unsigned int id);

/* One collective, on this channel. */
void run_collective(Block &b, const Function &f, ncclDevWorkColl *work);
/* Broadcasts of several roots, which take turns. */
void run_broadcasts(Block &b, const Function &f, std::vector<ncclDevWorkBcast> &works);
/* Sends and receives, all at once. */
void run_p2p(Block &b, std::vector<ncclDevWorkP2p> &works);

} // namespace lab
