/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks in a batch of work for a block. */
#pragma once

#include "lab/nccl/device/block.h"

#include <vector>

namespace lab
{

/* The meaning of a function number in a batch. */
struct Function {
	int coll; /* ncclFunc_t; -1: no work */
	int op;
	int type;
	int algo;
	int proto;
};

/* By NCCL's own numbering. Ends the process for an unknown number. */
Function function_of(unsigned int id);

/* One collective, on this channel. */
void run_collective(Block &b, const Function &f, ncclDevWorkColl *work);
/* Broadcasts of several roots, one after the other. */
void run_broadcasts(Block &b, const Function &f, std::vector<ncclDevWorkBcast> &works);
/* Sends and receives, all at once. */
void run_p2p(Block &b, std::vector<ncclDevWorkP2p> &works);

} // namespace lab
