/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of an algorithm on a chunk: receive from its predecessors, combine with its own
 * data, keep the result, send it on. Two protocols: Simple (data, then a counter) and LL (a flag in
 * each line of 16 bytes). The connections come from NCCL's host code; the other end is the kernel
 * of another rank, or the proxy thread of this one.
 */
#pragma once

#include "lab/nccl/device/block.h"
#include "lab/nccl/device/reducer.h"

#include <vector>

namespace lab
{

/* The number of a tree's children, plus one. */
constexpr int PEERS_MAX = NCCL_MAX_TREE_ARITY;

/* One call. Offsets are in elements; -1 = no such side. */
struct Step {
	ssize_t in = -1;     /* own data from the input */
	ssize_t in_out = -1; /* own data from the output */
	ssize_t out = -1;    /* where to keep the result */
	bool does_recv = false;
	bool does_send = false;
	bool is_last = false; /* the result is final */
	ssize_t count = 0;
};

class Primitives
{
      public:
	Primitives(Block &b, const Reducer *r, const void *in, void *out, uint64_t arg);
	virtual ~Primitives()
	{
	}
	virtual void run(const Step &s) = 0;
	void set_buffers(const void *in, void *out);

      protected:
	/* Combines @count elements from element @at of the step, and stores them in @dsts. */
	void combine(const Step &s, size_t at, size_t count, const std::vector<const void *> &recvs,
		     const std::vector<void *> &sends);

	Block &block;
	const Reducer *reducer;
	const char *input;
	char *output;
	uint64_t arg;

      private:
	std::vector<char> scratch;
};

/* -1 ends the lists of peers. */
class Simple : public Primitives
{
      public:
	/* @slices per chunk, @steps per slice. */
	Simple(Block &b, const Reducer *r, int slices, int steps, const int *recv_peers,
	       const int *send_peers, const void *in, void *out, uint64_t arg);
	~Simple() override;
	void run(const Step &s) override;

      private:
	struct Peer {
		ncclConnInfo *conn;
		uint64_t step;
	};

	void wait_recv(Peer &p);
	void wait_send(Peer &p, size_t bytes);
	void slice(const Step &s, size_t at, size_t count);

	int slices;
	int steps;
	std::vector<Peer> recvs;
	std::vector<Peer> sends;
};

class LL : public Primitives
{
      public:
	LL(Block &b, const Reducer *r, const int *recv_peers, const int *send_peers, const void *in,
	   void *out, uint64_t arg);
	~LL() override;
	void run(const Step &s) override;

      private:
	struct Peer {
		ncclConnInfo *conn;
		uint64_t step;
	};

	void wait_send(Peer &p, size_t lines);
	bool read_line(const ncclLLFifoLine *line, uint32_t flag, void *ret_data);

	size_t step_lines;
	std::vector<Peer> recvs;
	std::vector<Peer> sends;
};

/* The address of a step's data in a Simple connection. */
char *simple_slot(const ncclConnInfo *conn, uint64_t step);
/* Writes a line, flags after data. */
void ll_store(ncclLLFifoLine *line, uint64_t data, uint32_t flag);
/* Reads a line; false if it is not there yet. */
bool ll_load(const ncclLLFifoLine *line, uint32_t flag, uint64_t *ret_data);
/* Rewrites the flags of the rest of the slot before they wrap around. */
void ll_clean(ncclLLFifoLine *slot, size_t from, size_t lines, uint64_t step);

} // namespace lab
