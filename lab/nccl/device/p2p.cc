/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sends and receives of a batch. On a GPU, the warps of a block do them at the same time, and
 * each may wait for another rank. Here each one is a state machine that advances if it can, and one
 * thread polls all.
 */
#include "lab/nccl/device/primitives.h"
#include "lab/nccl/device/work.h"

#include <algorithm>
#include <cstring>

namespace lab
{

namespace
{

/* The index of p2p connections; collectives use 0. */
constexpr int P2P_CONN = 1;

struct Transfer {
	ncclConnInfo *conn;
	uint64_t step;
	char *data;
	size_t bytes;
	size_t chunk;
	size_t done;
	bool is_send;
	bool is_ll;
	size_t line; /* for LL: lines read so far */
	bool is_over;
};

/* Limits the work to the part of this channel. */
bool part_of(const ncclDevWorkP2p &w, int parts, int channel, size_t *bytes, char **addr)
{
	int part = ncclP2pChannelToPart(w.nP2pChannels, w.channelBase, channel);
	size_t begin, end;

	if (part >= parts)
		return false;
	ncclP2pPartBounds(parts, part, *bytes, &begin, &end);
	*addr += begin;
	*bytes = end - begin;
	return true;
}

void next_chunk(Transfer &t, size_t n)
{
	t.step++;
	t.done += n;
	t.line = 0;
	t.is_over = t.done >= t.bytes;
}

bool go_on_simple(Transfer &t)
{
	size_t n = std::min(t.chunk, t.bytes - t.done);

	if (t.is_send) {
		if (load_acquire(t.conn->head) + NCCL_STEPS < t.step + 1)
			return false;
		if (t.conn->connFifo)
			__atomic_store_n(&t.conn->connFifo[t.step % NCCL_STEPS].size, (ssize_t)n,
					 __ATOMIC_RELAXED);
		if (n > 0)
			memcpy(simple_slot(t.conn, t.step), t.data + t.done, n);
		store_release(t.conn->tail, t.step + 1);
	} else {
		if (load_acquire(t.conn->tail) < t.step + 1)
			return false;
		if (n > 0)
			memcpy(t.data + t.done, simple_slot(t.conn, t.step), n);
		store_release(t.conn->head, t.step + 1);
	}
	next_chunk(t, n);
	return true;
}

void send_ll(Transfer &t, ncclLLFifoLine *slot, size_t n, size_t lines, size_t slot_lines)
{
	bool is_cleaning = (t.step & NCCL_LL_CLEAN_MASK) == NCCL_LL_CLEAN_MASK;

	if (t.conn->connFifo)
		__atomic_store_n(
			&t.conn->connFifo[t.step % NCCL_STEPS].size,
			(ssize_t)((is_cleaning ? slot_lines : lines) * sizeof(ncclLLFifoLine)),
			__ATOMIC_RELEASE);
	for (size_t i = 0; i < lines; i++) {
		uint64_t data = 0;

		memcpy(&data, t.data + t.done + i * 8, std::min((size_t)8, n - i * 8));
		ll_store(&slot[i], data, NCCL_LL_FLAG(t.step + 1));
	}
	ll_clean(slot, lines, slot_lines, t.step);
}

bool go_on_ll(Transfer &t, size_t slot_lines)
{
	size_t n = std::min(t.chunk, t.bytes - t.done);
	size_t lines = (n + 7) / 8;
	ncclLLFifoLine *slot =
		(ncclLLFifoLine *)t.conn->buffs[NCCL_PROTO_LL] + t.step % NCCL_STEPS * slot_lines;
	size_t first = t.line;

	if (t.is_send) {
		if (load_acquire(t.conn->head) + NCCL_STEPS < t.step + 1)
			return false;
		send_ll(t, slot, n, lines, slot_lines);
		next_chunk(t, n);
		return true;
	}
	for (; t.line < lines; t.line++) {
		uint64_t data;

		if (!ll_load(&slot[t.line], NCCL_LL_FLAG(t.step + 1), &data))
			return t.line > first;
		memcpy(t.data + t.done + t.line * 8, &data, std::min((size_t)8, n - t.line * 8));
	}
	store_release(t.conn->head, t.step + 1);
	next_chunk(t, n);
	return true;
}

void check_is_emulated(const ncclDevWorkP2p &w)
{
	if (w.sendNetReg || w.recvNetReg || w.sendIpcReg || w.recvIpcReg)
		die("registered buffers are not emulated: set NCCL_LOCAL_REGISTER=0");
}

void add(Block &b, const ncclDevWorkP2p &w, bool is_send, std::vector<Transfer> &transfers)
{
	int peer = is_send ? w.sendRank : w.recvRank;
	ncclDevChannelPeer *p = b.channel->peers[peer];
	Transfer t = {};

	t.is_send = is_send;
	t.bytes = is_send ? w.sendBytes : w.recvBytes;
	t.data = (char *)(is_send ? w.sendAddr : w.recvAddr);
	if (!part_of(w, is_send ? w.nSendChannels : w.nRecvChannels, b.channel_id, &t.bytes,
		     &t.data))
		return;
	t.chunk = u32fp8Decode(is_send ? w.sendChunkSize_u32fp8 : w.recvChunkSize_u32fp8);
	t.is_ll = is_send ? w.sendProtoLL : w.recvProtoLL;
	t.conn = is_send ? &p->send[P2P_CONN] : &p->recv[P2P_CONN];
	t.step = t.conn->step;
	if (!is_send && !t.is_ll)
		store_release(t.conn->head, t.step);
	transfers.push_back(t);
}

void copy_to_self(Block &b, const ncclDevWorkP2p &w)
{
	size_t bytes = w.sendBytes;
	char *src = (char *)w.sendAddr;
	char *dst = (char *)w.recvAddr;
	size_t recv_bytes = w.recvBytes;

	if (part_of(w, w.nRecvChannels, b.channel_id, &recv_bytes, &dst) &&
	    part_of(w, w.nSendChannels, b.channel_id, &bytes, &src) && bytes > 0)
		memmove(dst, src, bytes);
}

} // namespace

void run_p2p(Block &b, std::vector<ncclDevWorkP2p> &works)
{
	size_t slot_lines = b.comm->buffSizes[NCCL_PROTO_LL] / NCCL_STEPS / sizeof(ncclLLFifoLine);
	std::vector<Transfer> transfers;
	bool is_waiting = true;
	Wait wait(b);

	for (const ncclDevWorkP2p &w : works) {
		check_is_emulated(w);
		if (w.sendRank == b.comm->rank) {
			copy_to_self(b, w);
			continue;
		}
		if (w.nSendChannels)
			add(b, w, true, transfers);
		if (w.nRecvChannels)
			add(b, w, false, transfers);
	}
	while (is_waiting) {
		bool has_moved = false;

		is_waiting = false;
		for (Transfer &t : transfers) {
			if (t.is_over)
				continue;
			has_moved |= t.is_ll ? go_on_ll(t, slot_lines) : go_on_simple(t);
			is_waiting |= !t.is_over;
		}
		if (has_moved)
			wait.reset();
		else if (is_waiting && !wait.again())
			break;
	}
	for (const Transfer &t : transfers)
		t.conn->step = t.step;
}

} // namespace lab
