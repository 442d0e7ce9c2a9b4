/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of the record hold only the op at the head of each connection. The tables here hold all
 * open parts with their counts, and for each slot its connection.
 *
 * A connection finds its slot by open addressing. A free slot keeps the key of its last connection
 * until another connection takes the slot. A busy connection therefore finds the same slot at each
 * op.
 */
#include "agent/record/connections.h"

#include <stddef.h>
#include <time.h>

#include "agent/base/state.h"
#include "agent/record/record.h"
#include "model/signature.h"

/*
 * Limit of open parts. Several ops of each connection may be open at once, because NCCL queues
 * them.
 */
#define PARTS 4096u
#define PART_SHIFT 50
#define GENERATION_SHIFT 32
#define GENERATION_MASK 0x3ffffu

struct part {
	uint32_t generation; /* odd while the part is open */
	uint16_t slot;
	uint8_t comm_plus_1, channel, flags;
	uint32_t pid;
	int32_t rank, peer;
	uint32_t op, replay, steps;
	uint32_t counts[CW_REC_STEP__MAX];
	uint64_t bytes;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct part) == 64, "one cache line");

enum { NEVER_USED, IDLE, BEING_TAKEN, OPEN };

struct place {
	uint64_t key;
	uint32_t state;
	uint32_t head; /* index + 1 of the part in the slot, 0 = an op that has ended */
	uint32_t n_open;
};

static struct part parts[PARTS];
static struct place places[CW_REC_CONNECTIONS];
static uint32_t next_part;  /* a guess of a free part: the one closed last */
static uint32_t parts_used; /* parts [0, parts_used) have been open at least once */

/* ---- slots ---- */

static void write_begin(struct cw_rec_connection *slot)
{
	CW_STORE(slot->sequence, slot->sequence | 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void write_end(struct cw_rec_connection *slot)
{
	__atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELEASE);
}

/*
 * Returns the time on the coarse clock, which takes a sixth of the time of CLOCK_MONOTONIC. A few
 * ms of error do not matter, because a hang lasts for seconds.
 */
static uint64_t coarse_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint8_t open_ops(const struct place *place)
{
	return place->n_open < UINT8_MAX ? (uint8_t)place->n_open : UINT8_MAX;
}

static void show(const struct part *p)
{
	struct cw_rec_connection *slot = &cw_record.connections[p->slot];

	write_begin(slot);
	CW_STORE(slot->pid, p->pid);
	CW_STORE(slot->rank, p->rank);
	CW_STORE(slot->peer, p->peer);
	CW_STORE(slot->op, p->op);
	CW_STORE(slot->replay, p->replay);
	CW_STORE(slot->steps, p->steps);
	for (unsigned i = 0; i < CW_REC_STEP__MAX; i++)
		CW_STORE(slot->counts[i], p->counts[i]);
	CW_STORE(slot->comm_plus_1, p->comm_plus_1);
	CW_STORE(slot->channel, p->channel);
	CW_STORE(slot->flags, (uint8_t)(p->flags | CW_REC_CONNECTION_USED));
	CW_STORE(slot->open_ops, open_ops(&places[p->slot]));
	CW_STORE(slot->newest_ns, coarse_ns());
	CW_STORE(slot->bytes, p->bytes);
	write_end(slot);
}

static void show_open_ops(uint32_t at)
{
	struct cw_rec_connection *slot = &cw_record.connections[at];

	write_begin(slot);
	CW_STORE(slot->open_ops, open_ops(&places[at]));
	if (!places[at].n_open)
		CW_STORE(slot->flags, 0);
	write_end(slot);
}

static bool take(struct place *place, uint32_t from, uint64_t key)
{
	if (!__atomic_compare_exchange_n(&place->state, &from, BEING_TAKEN, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	CW_STORE(place->key, key);
	place->head = 0;
	place->n_open = 0;
	__atomic_store_n(&place->state, OPEN, __ATOMIC_RELEASE);
	return true;
}

/* Takes any slot that is free now. Returns its index; -1 = none. */
static int take_any(uint64_t key)
{
	for (uint32_t i = 0; i < CW_REC_CONNECTIONS; i++) {
		uint32_t state = CW_LOAD(places[i].state);

		if ((state == NEVER_USED || state == IDLE) && take(&places[i], state, key))
			return (int)i;
	}
	return -1;
}

/* Finds the connection's slot, or takes one. Returns its index; -1 = all are in use. */
static int slot_of(uint64_t key)
{
	int idle = -1;

	for (uint32_t i = 0; i < CW_REC_CONNECTIONS; i++) {
		uint32_t at = (uint32_t)(key + i) % CW_REC_CONNECTIONS;
		struct place *place = &places[at];
		uint32_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);

		if (state == NEVER_USED) {
			if (idle < 0)
				idle = (int)at;
			break;
		}
		if (state != BEING_TAKEN && CW_LOAD(place->key) == key &&
		    (state == OPEN || take(place, IDLE, key)))
			return (int)at;
		if (state == IDLE && idle < 0)
			idle = (int)at;
	}
	if (idle >= 0 &&
	    take(&places[idle], CW_LOAD(places[idle].state) == IDLE ? IDLE : NEVER_USED, key))
		return idle;
	return take_any(key);
}

/* Returns a key that is equal for all parts of one connection. The hash need not resist attacks. */
static uint64_t key_of(const struct cw_connection_part *part)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, part->owner);

	h = cw_hash_step(h, part->pid | (uint64_t)(uint32_t)part->rank << 32);
	return cw_hash_step(h, (uint32_t)part->peer | (uint64_t)part->channel << 32 |
				       (uint64_t)part->flags << 40);
}

/* ---- parts ---- */

static struct part *part_of(uint64_t handle)
{
	struct part *p = &parts[handle >> PART_SHIFT & (PARTS - 1)];
	uint32_t generation = CW_LOAD(p->generation) & GENERATION_MASK;

	return generation == (handle >> GENERATION_SHIFT & GENERATION_MASK) && generation & 1
		       ? p
		       : NULL;
}

static void note_used(uint32_t used)
{
	uint32_t before = CW_LOAD(parts_used);

	while (before < used && !__atomic_compare_exchange_n(&parts_used, &before, used, false,
							     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static struct part *take_part(void)
{
	uint32_t from = CW_LOAD(next_part);

	for (uint32_t i = 0; i < PARTS; i++) {
		struct part *p = &parts[(from + i) % PARTS];
		uint32_t generation = CW_LOAD(p->generation);

		if (!(generation & 1) &&
		    __atomic_compare_exchange_n(&p->generation, &generation, generation + 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			CW_STORE(next_part, from + i + 1);
			note_used((uint32_t)(p - parts) + 1);
			return p;
		}
	}
	return NULL;
}

/* Releases a part. Returns false if another thread has released it already. */
static bool release_part(struct part *p)
{
	uint32_t generation = CW_LOAD(p->generation);

	if (!(generation & 1) ||
	    !__atomic_compare_exchange_n(&p->generation, &generation, generation + 1, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return false;
	CW_STORE(next_part, (uint32_t)(p - parts));
	return true;
}

static void begin_part(struct part *p, const struct cw_connection_part *from, uint16_t slot)
{
	p->slot = slot;
	p->comm_plus_1 = (uint8_t)(from->comm + 1);
	p->channel = from->channel;
	p->flags = from->flags;
	p->pid = from->pid;
	p->rank = from->rank;
	p->peer = from->peer;
	p->op = from->op;
	p->replay = from->replay;
	p->steps = from->steps;
	for (unsigned i = 0; i < CW_REC_STEP__MAX; i++)
		p->counts[i] = 0;
	p->bytes = 0;
}

uint64_t cw_connections_open(const struct cw_connection_part *part)
{
	struct part *p = take_part();
	struct place *place;
	int slot = -1;

	if (p)
		slot = slot_of(key_of(part));
	if (slot < 0) {
		if (p)
			(void)release_part(p);
		cw_record_drop(CW_REC_DROP_CONNECTIONS);
		return 0;
	}
	begin_part(p, part, (uint16_t)slot);
	place = &places[slot];
	if (place->n_open++ == 0) {
		place->head = (uint32_t)(p - parts) + 1;
		show(p);
	} else {
		show_open_ops((uint32_t)slot);
	}
	return UINT64_C(2) << 62 | (uint64_t)(p - parts) << PART_SHIFT |
	       (uint64_t)(CW_LOAD(p->generation) & GENERATION_MASK) << GENERATION_SHIFT;
}

uint64_t cw_connections_step(uint64_t part, uint32_t step)
{
	struct part *p = part_of(part);
	struct place *place;
	uint32_t head;

	if (!p)
		return 0;
	place = &places[p->slot];
	head = (uint32_t)(p - parts) + 1;
	if (cw_unlikely(place->head != head)) {
		place->head = head;
		show(p);
	}
	return UINT64_C(1) << 62 | part | step;
}

void cw_connections_count(uint64_t step, enum cw_rec_step which, uint64_t bytes)
{
	struct part *p = part_of(step);
	struct cw_rec_connection *slot;
	uint32_t count = (uint32_t)step + 1;

	if (!p || count <= p->counts[which])
		return;
	p->counts[which] = count;
	p->bytes += bytes;
	if (cw_unlikely(places[p->slot].head != (uint32_t)(p - parts) + 1))
		return;
	slot = &cw_record.connections[p->slot];
	write_begin(slot);
	CW_STORE(slot->counts[which], count);
	CW_STORE(slot->newest_ns, coarse_ns());
	CW_STORE(slot->bytes, p->bytes);
	write_end(slot);
}

static void close_part(struct part *p)
{
	struct place *place = &places[p->slot];
	uint32_t slot = p->slot, head = (uint32_t)(p - parts) + 1;

	if (!release_part(p))
		return;
	if (place->head == head)
		place->head = 0;
	place->n_open--;
	show_open_ops(slot);
	if (!place->n_open)
		__atomic_store_n(&place->state, IDLE, __ATOMIC_RELEASE);
}

void cw_connections_close(uint64_t part)
{
	struct part *p = part_of(part);

	if (p)
		close_part(p);
}

void cw_connections_forget(int c)
{
	uint32_t used = CW_LOAD(parts_used);

	for (uint32_t i = 0; i < used; i++) {
		struct part *p = &parts[i];

		if (__atomic_load_n(&p->generation, __ATOMIC_ACQUIRE) & 1 &&
		    (c < 0 || (!p->pid && p->comm_plus_1 == c + 1)))
			close_part(p);
	}
}
