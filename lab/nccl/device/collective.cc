/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The algorithms: which rank sends which part at what time. Ring for everything, Tree for
 * all_reduce, each over Simple and LL. The steps have the order of NCCL's device code
 * (src/device/all_reduce.h and its neighbours): this order determines which ranks stall when one
 * rank is missing.
 */
#include "lab/nccl/device/primitives.h"
#include "lab/nccl/device/work.h"

#include <algorithm>
#include <memory>
#include <thread>

namespace lab
{

namespace
{

/* A collective on this channel: its part, and its progress. */
struct Job {
	Block &block;
	const ncclDevWorkColl *work;
	const Reducer *reducer;
	int proto;
	int slices; /* for Simple */
	int steps;
	ssize_t count; /* in all channels */
	ssize_t part_at;
	ssize_t part;
	ssize_t chunk;
	uint64_t arg;
};

std::unique_ptr<Primitives> open(Job &j, const int *recv_peers, const int *send_peers)
{
	const ncclDevWorkColl *w = j.work;

	if (j.proto == NCCL_PROTO_LL)
		return std::make_unique<LL>(j.block, j.reducer, recv_peers, send_peers, w->sendbuff,
					    w->recvbuff, j.arg);
	return std::make_unique<Simple>(j.block, j.reducer, j.slices, j.steps, recv_peers,
					send_peers, w->sendbuff, w->recvbuff, j.arg);
}

struct RingEnds {
	int prev[2];
	int next[2];
};

RingEnds ring_ends(const Job &j)
{
	const ncclRing &r = j.block.channel->ring;

	return { { r.prev, -1 }, { r.next, -1 } };
}

ssize_t round_up(ssize_t v, ssize_t unit)
{
	return (v + unit - 1) / unit * unit;
}

Step step_of(ssize_t count)
{
	Step s;

	s.count = count;
	return s;
}

void ring_all_reduce(Job &j)
{
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims = open(j, e.prev, e.next);
	ssize_t n = j.block.comm->nRanks;
	ssize_t me = j.block.channel->ring.index;
	ssize_t chunk = j.chunk;
	ssize_t loop = n * chunk;

	for (ssize_t at = 0; at < j.part; at += loop) {
		ssize_t rest = j.part - at;

		if (rest < loop)
			chunk = round_up((rest + n - 1) / n, 16 / (ssize_t)j.reducer->size);
		for (ssize_t k = 1; k < 2 * n; k++) {
			ssize_t which = (me + 2 * n - k) % n;
			ssize_t where = j.part_at + at + which * chunk;
			Step s = step_of(std::min(chunk, rest - which * chunk));

			s.does_send = k < 2 * n - 1;
			s.does_recv = k > 1;
			if (k <= n)
				s.in = where;
			if (k >= n)
				s.out = where;
			s.is_last = k == n;
			prims->run(s);
		}
	}
}

void ring_all_gather(Job &j)
{
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims = open(j, e.prev, e.next);
	const int *ranks = j.block.channel->ring.userRanks;
	int n = j.block.comm->nRanks;
	size_t size = j.reducer->size;

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		ssize_t from = j.part_at + at;

		for (int k = 0; k < n; k++) {
			ssize_t where = from + ranks[k == 0 ? 0 : n - k] * j.count;
			Step s = step_of(std::min(j.chunk, j.part - at));
			bool is_in_place = (char *)j.work->sendbuff + from * size ==
					   (char *)j.work->recvbuff + where * size;

			s.does_send = k < n - 1;
			s.does_recv = k > 0;
			if (k == 0)
				s.in = from;
			if (k > 0 || !is_in_place)
				s.out = where;
			prims->run(s);
		}
	}
}

void ring_reduce_scatter(Job &j)
{
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims = open(j, e.prev, e.next);
	const int *ranks = j.block.channel->ring.userRanks;
	int n = j.block.comm->nRanks;

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		for (int k = 1; k <= n; k++) {
			Step s = step_of(std::min(j.chunk, j.part - at));

			s.does_send = k < n;
			s.does_recv = k > 1;
			s.in = j.part_at + at + ranks[n - k] * j.count;
			if (k == n)
				s.out = j.part_at + at;
			s.is_last = k == n;
			prims->run(s);
		}
	}
}

void ring_broadcast(Job &j)
{
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims = open(j, e.prev, e.next);
	const int *ranks = j.block.channel->ring.userRanks;
	bool is_root = ranks[0] == (int)j.work->root;
	bool is_end = !is_root && ranks[1] == (int)j.work->root;

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		ssize_t where = j.part_at + at;
		Step s = step_of(std::min(j.chunk, j.part - at));

		s.does_send = !is_end;
		s.does_recv = !is_root;
		if (is_root)
			s.in = where;
		if (!is_root || j.work->sendbuff != j.work->recvbuff)
			s.out = where;
		prims->run(s);
	}
}

void ring_reduce(Job &j)
{
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims = open(j, e.prev, e.next);
	int n = j.block.comm->nRanks;
	int root = (int)j.work->root;
	bool is_first = j.block.channel->ring.userRanks[n - 1] == root;
	bool is_root = !is_first && j.block.comm->rank == root;

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		ssize_t where = j.part_at + at;
		Step s = step_of(std::min(j.chunk, j.part - at));

		s.in = where;
		s.does_send = !is_root;
		s.does_recv = !is_first;
		if (is_root)
			s.out = where;
		s.is_last = is_root;
		prims->run(s);
	}
}

/* The two directions of the tree; each loops over its own chunks. */

void tree_up(Job &j)
{
	const ncclTree &t = j.block.channel->tree;
	int up[2] = { t.up, -1 };
	std::unique_ptr<Primitives> prims = open(j, t.down, up);

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		Step s = step_of(std::min(j.chunk, j.part - at));

		s.in = j.part_at + at;
		s.does_recv = t.down[0] >= 0;
		s.does_send = true;
		prims->run(s);
	}
}

void tree_down(Job &j)
{
	const ncclTree &t = j.block.channel->tree;
	int up[2] = { t.up, -1 };
	std::unique_ptr<Primitives> prims = open(j, up, t.down);

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		Step s = step_of(std::min(j.chunk, j.part - at));

		s.out = j.part_at + at;
		s.does_recv = true;
		s.does_send = t.down[0] >= 0;
		prims->run(s);
	}
}

void tree_top(Job &j)
{
	const ncclTree &t = j.block.channel->tree;
	std::unique_ptr<Primitives> prims = open(j, t.down, t.down);

	for (ssize_t at = 0; at < j.part; at += j.chunk) {
		Step s = step_of(std::min(j.chunk, j.part - at));

		s.in = j.part_at + at;
		s.out = j.part_at + at;
		s.does_recv = true;
		s.does_send = true;
		s.is_last = true;
		prims->run(s);
	}
}

/* The threads of a GPU block split into the two directions: here, two host threads do. */
void tree_all_reduce(Job &j)
{
	Block below = j.block;
	Job down = { below,   j.work,    j.reducer, j.proto, j.slices, j.steps,
		     j.count, j.part_at, j.part,    j.chunk, j.arg };

	if (j.block.channel->tree.up < 0) {
		tree_top(j);
		return;
	}
	std::thread other([&down] { tree_down(down); });

	tree_up(j);
	other.join();
	j.block.is_aborted |= below.is_aborted;
}

/* Steps per chunk and per slice in Simple (src/include/collectives.h). */
void steps_of(const Function &f, int *ret_slices, int *ret_steps)
{
	*ret_slices = 1;
	*ret_steps = 1;
	if (f.algo == NCCL_ALGO_TREE)
		return;
	switch (f.coll) {
	case ncclFuncAllReduce:
		*ret_steps = ALLREDUCE_SLICESTEPS;
		*ret_slices = ALLREDUCE_CHUNKSTEPS / ALLREDUCE_SLICESTEPS;
		break;
	case ncclFuncAllGather:
		*ret_steps = ALLGATHER_SLICESTEPS;
		*ret_slices = ALLGATHER_CHUNKSTEPS / ALLGATHER_SLICESTEPS;
		break;
	case ncclFuncReduceScatter:
		*ret_steps = REDUCESCATTER_SLICESTEPS;
		*ret_slices = REDUCESCATTER_CHUNKSTEPS / REDUCESCATTER_SLICESTEPS;
		break;
	case ncclFuncBroadcast:
		*ret_steps = BROADCAST_SLICESTEPS;
		*ret_slices = BROADCAST_CHUNKSTEPS / BROADCAST_SLICESTEPS;
		break;
	case ncclFuncReduce:
		*ret_steps = REDUCE_SLICESTEPS;
		*ret_slices = REDUCE_CHUNKSTEPS / REDUCE_SLICESTEPS;
		break;
	default:
		break;
	}
}

void check_is_emulated(const Function &f, const ncclDevWorkColl *w)
{
	bool is_tree = f.algo == NCCL_ALGO_TREE && f.coll == ncclFuncAllReduce;

	if (f.algo != NCCL_ALGO_RING && !is_tree)
		die("%s by algorithm %s is not emulated: set NCCL_ALGO=Ring",
		    ncclFuncToString((ncclFunc_t)f.coll), ncclAlgoToString(f.algo));
	if (f.proto != NCCL_PROTO_SIMPLE && f.proto != NCCL_PROTO_LL)
		die("protocol %s is not emulated: set NCCL_PROTO=Simple",
		    ncclProtoToString(f.proto));
	if (w && (w->regUsed || w->netRegUsed))
		die("registered buffers are not emulated: set NCCL_LOCAL_REGISTER=0");
}

} // namespace

void run_collective(Block &b, const Function &f, ncclDevWorkColl *work)
{
	const Reducer *reducer = reducer_of_bytes();
	Job j = { b, work, nullptr, f.proto, 1, 1, 0, 0, 0, 0, work->redOpArg };

	check_is_emulated(f, work);
	if (f.coll == ncclFuncAllReduce || f.coll == ncclFuncReduce ||
	    f.coll == ncclFuncReduceScatter)
		reducer = reducer_of(f.op, f.type);
	if (!reducer)
		die("operator %d of data type %d is not one of the device's", f.op, f.type);
	j.reducer = reducer;
	if (work->redOpArgIsPtr)
		j.arg = reducer->load_arg((const void *)work->redOpArg);
	steps_of(f, &j.slices, &j.steps);
	ncclCollCbdPart(work, b.channel_id, f.proto, (int)reducer->size, &j.count, &j.part_at,
			&j.part, &j.chunk);
	switch (f.coll) {
	case ncclFuncAllReduce:
		if (f.algo == NCCL_ALGO_TREE)
			tree_all_reduce(j);
		else
			ring_all_reduce(j);
		break;
	case ncclFuncAllGather:
		ring_all_gather(j);
		break;
	case ncclFuncReduceScatter:
		ring_reduce_scatter(j);
		break;
	case ncclFuncBroadcast:
		ring_broadcast(j);
		break;
	case ncclFuncReduce:
		ring_reduce(j);
		break;
	default:
		die("collective %d is not emulated", f.coll);
	}
}

void run_broadcasts(Block &b, const Function &f, std::vector<ncclDevWorkBcast> &works)
{
	Job j = { b, nullptr, reducer_of_bytes(), f.proto, 1, 1, 0, 0, 0, 0, 0 };
	ncclDevWorkColl none = {};
	RingEnds e = ring_ends(j);
	std::unique_ptr<Primitives> prims;
	bool is_done = false;
	int n = b.comm->nRanks;

	check_is_emulated(f, nullptr);
	j.work = &none;
	prims = open(j, e.prev, e.next);
	while (!is_done) {
		is_done = true;
		for (ncclDevWorkBcast &w : works) {
			ssize_t part = (ssize_t)std::min(w.bytes, (size_t)w.chunkSize);
			Step s = step_of(part);

			prims->set_buffers(w.sendbuff, w.recvbuff);
			s.does_send = w.ringDepth != n - 1;
			s.does_recv = w.ringDepth != 0;
			if (w.ringDepth == 0)
				s.in = (ssize_t)w.bytes_done;
			if (w.ringDepth != 0 || w.sendbuff != w.recvbuff)
				s.out = (ssize_t)w.bytes_done;
			if (part > 0)
				prims->run(s);
			w.bytes -= (size_t)part;
			w.bytes_done += (size_t)part;
			is_done &= w.bytes == 0;
		}
	}
}

} // namespace lab
