/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model follows these facts of NCCL 2.29.7:
 *
 *  - net.cc: the sender's proxy posts buffers as they become free. It hands a filled buffer to the
 *    network, and frees the buffer when the network confirms it. The receiver's proxy posts buffers
 *    and flushes the received data. It frees a buffer after the GPU has taken the data.
 *  - RDMA: a step needs a buffer that the receiver has posted, and the receiver's NIC confirms the
 *    step. Sockets: the sender's kernel confirms a step as soon as it has room for the step.
 *  - all_reduce.h, all_gather.h, broadcast.h, reduce.h: the stages of a ring. A GPU takes a step
 *    and gives one at the same time.
 *  - trees.cc: the double binary tree.
 */
#include "lab/proxies/proxy_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The chance that a part moves in a round in which it can move. */
#define MOVES 0.8

uint64_t proxy_random(struct proxy_random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t proxy_below(struct proxy_random *r, uint32_t n)
{
	return (uint32_t)(proxy_random(r) % n);
}

bool proxy_chance(struct proxy_random *r, double p)
{
	return (double)(proxy_random(r) >> 11) * 0x1p-53 < p;
}

/* ---- links and work ---- */

static uint32_t add_link(struct proxy_comm *c, uint32_t channel, uint32_t from, uint32_t to,
			 uint32_t n_steps, uint32_t room)
{
	c->links[c->n_links] = (struct proxy_link){
		.from = from,
		.to = to,
		.channel = channel,
		.is_local = c->host[from] == c->host[to],
		.n_steps = n_steps,
		.room = room,
		.speed = MOVES,
		.dead_from = UINT32_MAX,
		.dead_to = UINT32_MAX,
		.deaf_from = UINT32_MAX,
		.blind_from = UINT32_MAX,
	};
	return c->n_links++;
}

static void add_stage(struct proxy_work *w, bool takes, uint32_t in, bool gives, uint32_t out)
{
	struct proxy_stage *s = &w->stages[w->n_stages++];

	*s = (struct proxy_stage){ 0 };
	if (takes)
		s->in[s->n_in++] = in;
	if (gives)
		s->out[s->n_out++] = out;
}

/* A ring in which the data of each rank pass all others. all_reduce goes around twice. */
static void lay_full_ring(struct proxy_comm *c, uint32_t channel, uint32_t n_rounds,
			  uint32_t slices, uint32_t room)
{
	uint32_t turns = c->kind == PROXY_ALL_REDUCE ? 2 : 1, hops = turns * (c->n - 1);
	uint32_t first = c->n_links;

	for (uint32_t i = 0; i < c->n; i++)
		(void)add_link(c, channel, c->order[i], c->order[(i + 1) % c->n],
			       hops * slices * n_rounds, room);
	for (uint32_t i = 0; i < c->n; i++) {
		struct proxy_work *w = &c->work[c->order[i]][channel][0];
		uint32_t in = first + (i + c->n - 1) % c->n, out = first + i;

		add_stage(w, false, 0, true, out);
		for (uint32_t k = 1; k < hops; k++)
			add_stage(w, true, in, true, out);
		add_stage(w, true, in, false, 0);
	}
}

/* A chain from the root on (broadcast), or behind the root and back to it (reduce). */
static void lay_chain(struct proxy_comm *c, uint32_t channel, uint32_t n_rounds, uint32_t slices,
		      uint32_t room)
{
	uint32_t at = 0, first = c->n_links;

	while (c->order[at] != c->root)
		at++;
	at += c->kind == PROXY_REDUCE;
	for (uint32_t i = 0; i + 1 < c->n; i++)
		(void)add_link(c, channel, c->order[(at + i) % c->n], c->order[(at + i + 1) % c->n],
			       slices * n_rounds, room);
	for (uint32_t i = 0; i < c->n; i++)
		add_stage(&c->work[c->order[(at + i) % c->n]][channel][0], i > 0, first + i - 1,
			  i + 1 < c->n, first + i);
}

/* The parent of a node in NCCL's binary tree; the root's own number = none. */
static uint32_t tree_parent(uint32_t node, uint32_t n)
{
	uint32_t bit = node & (~node + 1), up;

	if (!node)
		return node;
	up = (node ^ bit) | bit << 1;
	return up < n ? up : node ^ bit;
}

/*
 * Returns the place of a member in the channel's tree. The second half of the channels uses the
 * second tree.
 */
static uint32_t tree_place(const struct proxy_comm *c, uint32_t channel, uint32_t i)
{
	if (channel < (c->n_channels + 1) / 2)
		return i;
	return c->n % 2 ? (i + c->n - 1) % c->n : c->n - 1 - i;
}

static void lay_tree(struct proxy_comm *c, uint32_t channel, uint32_t n_rounds, uint32_t slices,
		     uint32_t room)
{
	uint32_t up[PROXY_MAX_RANKS], down[PROXY_MAX_RANKS], by_place[PROXY_MAX_RANKS];

	for (uint32_t i = 0; i < c->n; i++)
		by_place[tree_place(c, channel, i)] = c->order[i];
	for (uint32_t p = 1; p < c->n; p++) {
		uint32_t parent = tree_parent(p, c->n);

		up[p] = add_link(c, channel, by_place[p], by_place[parent], slices * n_rounds,
				 room);
		down[p] = add_link(c, channel, by_place[parent], by_place[p], slices * n_rounds,
				   room);
	}
	for (uint32_t p = 0; p < c->n; p++) {
		struct proxy_work *w = c->work[by_place[p]][channel];
		struct proxy_stage rise = { 0 }, fall = { 0 };

		for (uint32_t k = 1; k < c->n; k++)
			if (k != p && tree_parent(k, c->n) == p) {
				rise.in[rise.n_in++] = up[k];
				fall.out[fall.n_out++] = down[k];
			}
		if (!p && !c->splits) {
			w[0].stages[w[0].n_stages++] = rise;
			w[1].stages[w[1].n_stages++] = fall;
			continue;
		}
		if (!p) {
			memcpy(rise.out, fall.out, sizeof(fall.out));
			rise.n_out = fall.n_out;
			w[0].stages[w[0].n_stages++] = rise;
			continue;
		}
		rise.out[rise.n_out++] = up[p];
		fall.in[fall.n_in++] = down[p];
		w[0].stages[w[0].n_stages++] = rise;
		w[1].stages[w[1].n_stages++] = fall;
	}
}

int proxy_comm_lay(struct proxy_comm *c, uint32_t n_rounds, uint32_t slices, bool splits,
		   uint32_t room)
{
	c->n_links = 0;
	c->splits = splits;
	for (uint32_t m = 0; m < c->n; m++) {
		c->gpu_dead_from[m] = UINT32_MAX;
		c->never_launched[m] = UINT32_MAX;
		c->n_called[m] = c->n_ops;
		for (uint32_t ch = 0; ch < c->n_channels; ch++)
			for (unsigned k = 0; k < 2; k++) {
				struct proxy_work *w = &c->work[m][ch][k];

				*w = (struct proxy_work){ .n_rounds = n_rounds, .slices = slices };
				w->stages = calloc(2 * (size_t)c->n, sizeof(*w->stages));
				if (!w->stages)
					return -ENOMEM;
			}
	}
	for (uint32_t ch = 0; ch < c->n_channels; ch++) {
		if (c->way == PROXY_TREE)
			lay_tree(c, ch, n_rounds, slices, room);
		else if (c->kind == PROXY_BROADCAST || c->kind == PROXY_REDUCE)
			lay_chain(c, ch, n_rounds, slices, room);
		else
			lay_full_ring(c, ch, n_rounds, slices, room);
	}
	return 0;
}

void proxy_comm_fini(struct proxy_comm *c)
{
	for (uint32_t m = 0; m < PROXY_MAX_RANKS; m++)
		for (uint32_t ch = 0; ch < PROXY_MAX_CHANNELS; ch++)
			for (unsigned k = 0; k < 2; k++)
				free(c->work[m][ch][k].stages);
	memset(c->work, 0, sizeof(c->work));
}

/* ---- GPUs ---- */

static bool has_finished(const struct proxy_work *w, uint32_t op)
{
	return !w->n_stages || w->at_op > op;
}

uint32_t proxy_comm_finished(const struct proxy_comm *c, uint32_t member)
{
	uint32_t op = 0;

	for (; op < c->n_ops; op++)
		for (uint32_t ch = 0; ch < c->n_channels; ch++)
			for (unsigned k = 0; k < 2; k++)
				if (!has_finished(&c->work[member][ch][k], op))
					return op;
	return op;
}

static bool work_moves(struct proxy_comm *c, struct proxy_work *w, uint32_t op, uint32_t now)
{
	const struct proxy_stage *s = &w->stages[w->at_stage];

	for (uint32_t i = 0; i < s->n_in; i++) {
		const struct proxy_end *in = &c->links[s->in[i]].in;

		if (in->op != op || in->third <= in->done)
			return false;
	}
	for (uint32_t i = 0; i < s->n_out; i++) {
		const struct proxy_end *out = &c->links[s->out[i]].out;

		if (out->op != op || out->posted <= out->second)
			return false;
	}
	for (uint32_t i = 0; i < s->n_in; i++) {
		c->links[s->in[i]].in.done++;
		c->links[s->in[i]].in.moved = now;
	}
	for (uint32_t i = 0; i < s->n_out; i++) {
		c->links[s->out[i]].out.second++;
		c->links[s->out[i]].out.moved = now;
	}
	if (++w->at_slice < w->slices)
		return true;
	w->at_slice = 0;
	if (++w->at_stage < w->n_stages)
		return true;
	w->at_stage = 0;
	if (++w->at_round < w->n_rounds)
		return true;
	w->at_round = 0;
	w->at_op++;
	return true;
}

static bool gpu_moves(struct proxy_comm *c, uint32_t member, struct proxy_random *r, uint32_t now)
{
	uint32_t op = proxy_comm_finished(c, member);
	bool moves = false;

	if (op >= c->n_called[member] || now >= c->gpu_dead_from[member] || c->is_blocked[member] ||
	    op >= c->never_launched[member])
		return false;
	for (uint32_t ch = 0; ch < c->n_channels; ch++)
		for (unsigned k = 0; k < 2; k++) {
			struct proxy_work *w = &c->work[member][ch][k];

			/*
			 * In some versions, NCCL sends all data up the tree before it receives any
			 * data from above.
			 */
			if (has_finished(w, op) ||
			    (k && !c->splits && !has_finished(&c->work[member][ch][0], op)) ||
			    !proxy_chance(r, MOVES))
				continue;
			moves |= work_moves(c, w, op, now);
		}
	return moves;
}

/* ---- proxies and network ---- */

static bool ends_fit(const struct proxy_link *l)
{
	return l->out.op == l->in.op;
}

static void begin_next(struct proxy_end *e, uint32_t now)
{
	*e = (struct proxy_end){ .op = e->op + 1, .moved = now };
}

static bool sender_moves(const struct proxy_comm *c, struct proxy_link *l, struct proxy_random *r,
			 uint32_t now)
{
	struct proxy_end *out = &l->out;
	bool moves = false, is_confirmed;

	if (out->op >= c->n_called[l->from] || out->is_absent || c->proxy_is_dead[l->from])
		return false;
	l->waited += out->second - out->done;
	if (out->posted < l->n_steps && out->posted < out->done + c->depth &&
	    proxy_chance(r, MOVES)) {
		out->posted++;
		moves = true;
	}
	if (out->second > out->third && now < l->blind_from &&
	    (!c->is_rdma || l->is_local || (ends_fit(l) && l->in.posted > out->third)) &&
	    proxy_chance(r, MOVES)) {
		out->third++;
		moves = true;
	}
	/* With RDMA the other NIC has the step, with sockets our kernel. */
	is_confirmed = c->is_rdma || l->is_local
			       ? l->in.op > out->op || (ends_fit(l) && l->in.second > out->done)
			       : l->in.op > out->op ||
					 out->done < (ends_fit(l) ? l->in.second : 0) + l->room;
	if (out->third > out->done && is_confirmed && now < l->deaf_from &&
	    proxy_chance(r, MOVES)) {
		out->done++;
		moves = true;
	}
	if (moves)
		out->moved = now;
	if (out->done == l->n_steps) {
		begin_next(out, now);
		l->waited = 0;
	}
	return moves;
}

static bool receiver_moves(const struct proxy_comm *c, struct proxy_link *l, struct proxy_random *r,
			   uint32_t now)
{
	struct proxy_end *in = &l->in;
	bool moves = false, is_sent;

	if (in->op >= c->n_called[l->to] || in->is_absent || c->proxy_is_dead[l->to])
		return false;
	if (in->posted < l->n_steps && in->posted < in->done + c->depth && proxy_chance(r, MOVES)) {
		in->posted++;
		moves = true;
	}
	/*
	 * RDMA transfers what the sender's proxy has handed over, and a socket what the sender's
	 * kernel has taken.
	 */
	is_sent = l->out.op > in->op ||
		  (ends_fit(l) &&
		   in->second < (c->is_rdma || l->is_local ? l->out.third : l->out.done));
	if (in->posted > in->second && is_sent && (now < l->dead_from || now >= l->dead_to) &&
	    proxy_chance(r, l->speed)) {
		in->second++;
		moves = true;
	}
	if (in->second > in->third && proxy_chance(r, MOVES)) {
		in->third++;
		moves = true;
	}
	if (moves)
		in->moved = now;
	if (in->done == l->n_steps)
		begin_next(in, now);
	return moves;
}

bool proxy_comm_step(struct proxy_comm *c, struct proxy_random *r, uint32_t now)
{
	bool moves = false;

	for (uint32_t m = 0; m < c->n; m++)
		moves |= gpu_moves(c, m, r, now);
	for (uint32_t i = 0; i < c->n_links; i++) {
		moves |= sender_moves(c, &c->links[i], r, now);
		moves |= receiver_moves(c, &c->links[i], r, now);
	}
	return moves;
}
