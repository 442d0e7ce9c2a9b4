/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/nccl/device/primitives.h"
#include "lab/nccl/device/fault.h"

#include <algorithm>
#include <cstring>

namespace lab
{

char *simple_slot(const ncclConnInfo *conn, uint64_t step)
{
	const ncclConnFifo *fifo = conn->connFifo ? &conn->connFifo[step % NCCL_STEPS] : nullptr;
	char *base = conn->buffs[NCCL_PROTO_SIMPLE];

	if (fifo && fifo->mode == NCCL_MODE_OFFSET)
		return base + __atomic_load_n(&fifo->offset, __ATOMIC_ACQUIRE);
	return base + step % NCCL_STEPS * conn->stepSize;
}

/* ---- common to both protocols ---- */

Primitives::Primitives(Block &b, const Reducer *r, const void *in, void *out, uint64_t a)
    : block(b), reducer(r), input((const char *)in), output((char *)out), arg(a)
{
}

void Primitives::set_buffers(const void *in, void *out)
{
	input = (const char *)in;
	output = (char *)out;
}

void Primitives::combine(const Step &s, size_t at, size_t count,
			 const std::vector<const void *> &recvs, const std::vector<void *> &sends)
{
	size_t size = reducer->size;
	const void *acc = nullptr;
	size_t next = 0;
	char *dst;

	if (count == 0)
		return;
	scratch.resize(count * size);
	dst = scratch.data();
	if (s.in >= 0 && reducer->before) {
		reducer->before(dst, input + (s.in + at) * size, count, arg);
		acc = dst;
	} else if (s.in >= 0) {
		acc = input + (s.in + at) * size;
	} else if (s.in_out >= 0) {
		acc = output + (s.in_out + at) * size;
	} else {
		acc = recvs[next++];
	}
	for (; next < recvs.size(); next++) {
		reducer->reduce(dst, acc, recvs[next], count, arg);
		acc = dst;
	}
	if (s.is_last && reducer->after) {
		if (acc != dst)
			memcpy(dst, acc, count * size);
		reducer->after(dst, count, arg);
		acc = dst;
	}
	if (s.out >= 0 && output + (s.out + at) * size != acc)
		memmove(output + (s.out + at) * size, acc, count * size);
	for (void *d : sends)
		memcpy(d, acc, count * size);
}

/* ---- Simple ---- */

Simple::Simple(Block &b, const Reducer *r, int slices_, int steps_, const int *recv_peers,
	       const int *send_peers, const void *in, void *out, uint64_t a)
    : Primitives(b, r, in, out, a), slices(slices_), steps(steps_)
{
	uint64_t unit = (uint64_t)slices * steps;

	for (int i = 0; recv_peers && i < PEERS_MAX && recv_peers[i] >= 0; i++) {
		ncclConnInfo *conn = &b.channel->peers[recv_peers[i]]->recv[0];

		recvs.push_back({ conn, (conn->step + unit - 1) / unit * unit });
		store_release(conn->head,
			      recvs.back().step); /* credits for steps that rounding omitted */
	}
	for (int i = 0; send_peers && i < PEERS_MAX && send_peers[i] >= 0; i++) {
		ncclConnInfo *conn = &b.channel->peers[send_peers[i]]->send[0];

		sends.push_back({ conn, (conn->step + unit - 1) / unit * unit });
	}
}

Simple::~Simple()
{
	for (Peer &p : recvs)
		p.conn->step = p.step;
	for (Peer &p : sends)
		p.conn->step = p.step;
}

void Simple::wait_recv(Peer &p)
{
	Wait w(block);

	while (load_acquire(p.conn->tail) < p.step + steps && w.again())
		;
}

void Simple::wait_send(Peer &p, size_t bytes)
{
	Wait w(block);

	while (load_acquire(p.conn->head) + NCCL_STEPS < p.step + steps && w.again())
		;
	if (p.conn->connFifo)
		__atomic_store_n(&p.conn->connFifo[p.step % NCCL_STEPS].size, (ssize_t)bytes,
				 __ATOMIC_RELAXED);
}

void Simple::slice(const Step &s, size_t at, size_t count)
{
	std::vector<const void *> srcs;
	std::vector<void *> dsts;

	fault_before_slice(block);
	if (s.does_recv) {
		for (Peer &p : recvs) {
			wait_recv(p);
			srcs.push_back(simple_slot(p.conn, p.step));
		}
	}
	if (s.does_send) {
		for (Peer &p : sends) {
			wait_send(p, count * reducer->size);
			dsts.push_back(simple_slot(p.conn, p.step));
		}
	}
	if (!block.is_aborted)
		combine(s, at, count, srcs, dsts);
	if (s.does_recv) {
		for (Peer &p : recvs)
			store_release(p.conn->head, p.step += steps);
	}
	if (s.does_send) {
		for (Peer &p : sends)
			store_release(p.conn->tail, p.step += steps);
	}
}

void Simple::run(const Step &s)
{
	size_t step_count = block.comm->buffSizes[NCCL_PROTO_SIMPLE] / NCCL_STEPS / reducer->size;
	size_t count = s.count < 0 ? 0 : (size_t)s.count;
	size_t unit = 16 * (size_t)slices;
	size_t part = std::max((count + unit - 1) / unit * 16, step_count * steps / 32);
	size_t at = 0;

	for (int i = 0; i < slices; i++) {
		part = std::min(part, count - at);
		slice(s, at, part);
		at += part;
	}
}

/* ---- LL ---- */

void ll_store(ncclLLFifoLine *line, uint64_t data, uint32_t flag)
{
	uint64_t low = (data & 0xffffffff) | (uint64_t)flag << 32;
	uint64_t high = data >> 32 | (uint64_t)flag << 32;

	/* Each half carries its own flag: no order between the two is needed. */
	__atomic_store_n(&line->v[0], low, __ATOMIC_RELEASE);
	__atomic_store_n(&line->v[1], high, __ATOMIC_RELEASE);
}

bool ll_load(const ncclLLFifoLine *line, uint32_t flag, uint64_t *ret_data)
{
	uint64_t low = __atomic_load_n(&line->v[0], __ATOMIC_ACQUIRE);
	uint64_t high = __atomic_load_n(&line->v[1], __ATOMIC_ACQUIRE);

	if (low >> 32 != flag || high >> 32 != flag)
		return false;
	*ret_data = (low & 0xffffffff) | high << 32;
	return true;
}

void ll_clean(ncclLLFifoLine *slot, size_t from, size_t lines, uint64_t step)
{
	if ((step & NCCL_LL_CLEAN_MASK) != NCCL_LL_CLEAN_MASK)
		return;
	for (size_t i = from; i < lines; i++)
		ll_store(&slot[i], 0, NCCL_LL_FLAG(step + 1));
}

LL::LL(Block &b, const Reducer *r, const int *recv_peers, const int *send_peers, const void *in,
       void *out, uint64_t a)
    : Primitives(b, r, in, out, a),
      step_lines(b.comm->buffSizes[NCCL_PROTO_LL] / NCCL_STEPS / sizeof(ncclLLFifoLine))
{
	for (int i = 0; recv_peers && i < PEERS_MAX && recv_peers[i] >= 0; i++) {
		ncclConnInfo *conn = &b.channel->peers[recv_peers[i]]->recv[0];

		recvs.push_back({ conn, conn->step });
	}
	for (int i = 0; send_peers && i < PEERS_MAX && send_peers[i] >= 0; i++) {
		ncclConnInfo *conn = &b.channel->peers[send_peers[i]]->send[0];

		sends.push_back({ conn, conn->step });
	}
}

LL::~LL()
{
	for (Peer &p : recvs)
		p.conn->step = p.step;
	for (Peer &p : sends)
		p.conn->step = p.step;
}

void LL::wait_send(Peer &p, size_t lines)
{
	bool is_cleaning = (p.step & NCCL_LL_CLEAN_MASK) == NCCL_LL_CLEAN_MASK;
	Wait w(block);

	while (load_acquire(p.conn->head) + NCCL_STEPS < p.step + 1 && w.again())
		;
	if (p.conn->connFifo)
		__atomic_store_n(
			&p.conn->connFifo[p.step % NCCL_STEPS].size,
			(ssize_t)((is_cleaning ? step_lines : lines) * sizeof(ncclLLFifoLine)),
			__ATOMIC_RELEASE);
}

bool LL::read_line(const ncclLLFifoLine *line, uint32_t flag, void *ret_data)
{
	Wait w(block);
	uint64_t data;

	while (!ll_load(line, flag, &data)) {
		if (!w.again())
			return false;
	}
	memcpy(ret_data, &data, sizeof(data));
	return true;
}

void LL::run(const Step &s)
{
	size_t per_line = sizeof(uint64_t) / reducer->size;
	size_t count = s.count < 0 ? 0 : (size_t)s.count;
	size_t lines = (count + per_line - 1) / per_line;
	uint64_t from_peer[PEERS_MAX];
	uint64_t to_peers;

	fault_before_slice(block);
	if (s.does_send) {
		for (Peer &p : sends)
			wait_send(p, lines);
	}
	for (size_t i = 0; i < lines && !block.is_aborted; i++) {
		size_t n = std::min(per_line, count - i * per_line);
		std::vector<const void *> srcs;
		std::vector<void *> dsts;

		for (size_t p = 0; s.does_recv && p < recvs.size(); p++) {
			uint64_t step = recvs[p].step;
			ncclLLFifoLine *slot =
				(ncclLLFifoLine *)recvs[p].conn->buffs[NCCL_PROTO_LL] +
				step % NCCL_STEPS * step_lines;

			if (!read_line(&slot[i], NCCL_LL_FLAG(step + 1), &from_peer[p]))
				return;
			srcs.push_back(&from_peer[p]);
		}
		to_peers = 0;
		if (s.does_send)
			dsts.push_back(&to_peers);
		combine(s, i * per_line, n, srcs, dsts);
		for (Peer &p : sends) {
			if (s.does_send)
				ll_store((ncclLLFifoLine *)p.conn->buffs[NCCL_PROTO_LL] +
						 p.step % NCCL_STEPS * step_lines + i,
					 to_peers, NCCL_LL_FLAG(p.step + 1));
		}
	}
	for (size_t p = 0; s.does_recv && p < recvs.size(); p++)
		store_release(recvs[p].conn->head, ++recvs[p].step);
	for (size_t p = 0; s.does_send && p < sends.size(); p++) {
		ll_clean((ncclLLFifoLine *)sends[p].conn->buffs[NCCL_PROTO_LL] +
				 sends[p].step % NCCL_STEPS * step_lines,
			 lines, step_lines, sends[p].step);
		sends[p].step++;
	}
}

} // namespace lab
