/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash identifies a stack: the hash of its Python frames if it has any, else the hash of its
 * native frames. Our search for the entry of a stack begins at the place that the hash selects. An
 * op therefore looks at only one or two entries. A thread that finds a free entry claims it in the
 * agent's private memory, describes the stack and publishes the entry. Other threads with the same
 * stack may use the entry's number before that. We never change or free an entry. If the table is
 * full, a new stack gets no number, and we count it as dropped.
 *
 * Native frames come from code with frame pointers. We follow a frame if it lies above the last
 * one, is readable, and returns into a file that agent/record/modules.h knows. If code uses the
 * register for another value, the chain ends.
 */
#include "agent/python/call_stack.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/python/call_stack_python.h"
#include "agent/record/modules.h"
#include "agent/record/own_memory.h"
#include "agent/record/record.h"
#include "common/parse.h"
#include "model/signature.h"

#define PROBES 16
/*
 * The largest distance in bytes between two frames. A value that leads farther away is not a frame
 * pointer.
 */
#define FRAME_BYTES_MAX (1u << 20)

CW_HOT_DATA bool cw_call_stacks_is_on;

/* For each entry: the hash that claimed it; 0 = free. */
static uint64_t claimed_stacks[CW_REC_STACKS], claimed_frames[CW_REC_FRAMES];

struct natives {
	struct cw_rec_native_frame frames[CW_REC_STACK_NATIVE];
	unsigned n;
};

struct pythons {
	struct cw_python_place places[CW_PYTHON_PLACES];
	unsigned n;
	bool is_cut;
};

bool cw_call_stacks_wanted(void)
{
	const char *value = getenv("COLLWATCH_CALL_STACKS");
	bool is_wanted = false;

	if (value && *value && cw_parse_switch(value, &is_wanted) < 0)
		cw_log("COLLWATCH_CALL_STACKS=%.32s: not off or on: no call stacks", value);
	return is_wanted;
}

void cw_call_stacks_start(void)
{
	char byte;

	if (!cw_record.stacks)
		return;
	if (!cw_own_read((uintptr_t)cw_record.header, &byte, sizeof(byte))) {
		cw_log("call stacks: process_vm_readv is not permitted: none");
		return;
	}
	(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_STACKS, __ATOMIC_RELAXED);
	CW_STORE(cw_call_stacks_is_on, true);
}

void cw_call_stacks_arm(void)
{
	if (CW_LOAD(cw_call_stacks_is_on))
		cw_python_frames_arm();
}

/* ---- the frames on the stack ---- */

static bool add_native(struct natives *to, const void *address)
{
	struct cw_rec_native_frame *f = &to->frames[to->n];

	if (!address || to->n == CW_REC_STACK_NATIVE)
		return false;
	*f = (struct cw_rec_native_frame){ 0 };
	cw_module_find(address, &f->module, &f->offset);
	if (f->module == CW_REC_NO_SLOT)
		return false;
	to->n++;
	return true;
}

/* The two words at a frame pointer, on x86-64 and aarch64. */
struct saved {
	uint64_t next;
	uint64_t return_address;
};

static void follow_natives(uint64_t frame, const void *caller, struct natives *to)
{
	struct saved saved;

	if (!frame || !cw_own_read(frame, &saved, sizeof(saved)) ||
	    saved.return_address != (uintptr_t)caller)
		return;
	while (saved.next > frame && saved.next - frame < FRAME_BYTES_MAX && !(saved.next & 7)) {
		frame = saved.next;
		if (!cw_own_read(frame, &saved, sizeof(saved)) ||
		    !add_native(to, (const void *)(uintptr_t)saved.return_address))
			return;
	}
}

static __attribute__((noinline)) void find_natives(const void *caller, struct natives *to)
{
	to->n = 0;
	if (caller && add_native(to, caller))
		follow_natives(cw_tls.frame, caller, to);
}

static uint64_t key_of(const struct cw_python_place *at)
{
	uint64_t h = cw_hash_step(at->code, at->instr);

	h = cw_hash_step(h, at->file ^ at->name << 20);
	h = cw_hash_step(h, at->line_table + (uint32_t)at->first_line);
	return h ? h : 1;
}

/* ---- the table ---- */

/*
 * Returns the index of the entry with this hash, below count; -1 = the table is full. If
 * *ret_is_new is true, the caller owns the entry, and must fill and publish it.
 */
static int find(uint64_t *claimed, unsigned count, uint64_t hash, bool *ret_is_new)
{
	*ret_is_new = false;
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned at = (unsigned)((hash + i) % count);
		uint64_t there = __atomic_load_n(&claimed[at], __ATOMIC_RELAXED);

		if (!there && __atomic_compare_exchange_n(&claimed[at], &there, hash, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*ret_is_new = true;
			return (int)at;
		}
		if (there == hash)
			return (int)at;
	}
	return -1;
}

/* Returns the index + 1 of the frame's entry; 0 = the table is full. */
static uint16_t frame_number(const struct cw_python_place *at)
{
	uint64_t key = key_of(at);
	struct cw_rec_frame *f;
	bool is_new;
	int i = find(claimed_frames, CW_REC_FRAMES, key, &is_new);

	if (i < 0)
		return 0;
	f = &cw_record.frames[i];
	if (is_new) {
		cw_python_frame_describe(at, f);
		__atomic_store_n(&f->publish, key, __ATOMIC_RELEASE);
	}
	return (uint16_t)(i + 1);
}

static __attribute__((noinline)) void describe(struct cw_rec_stack *s, uint64_t hash,
					       const struct pythons *pythons,
					       const struct natives *natives)
{
	for (unsigned i = 0; i < pythons->n; i++)
		s->python[i] = frame_number(&pythons->places[i]);
	memcpy(s->native, natives->frames, natives->n * sizeof(natives->frames[0]));
	s->n_python = (uint8_t)pythons->n;
	s->n_native = (uint8_t)natives->n;
	s->flags = pythons->is_cut ? CW_REC_STACK_CUT : 0;
	__atomic_store_n(&s->publish, hash, __ATOMIC_RELEASE);
}

static uint32_t number_of(uint64_t hash, const struct pythons *pythons, const void *caller)
{
	struct natives natives;
	bool is_new;
	int i;

	hash = hash ? hash : 1;
	i = find(claimed_stacks, CW_REC_STACKS, hash, &is_new);
	if (i < 0) {
		cw_record_drop(CW_REC_DROP_STACKS);
		return 0;
	}
	if (is_new) {
		find_natives(caller, &natives);
		describe(&cw_record.stacks[i], hash, pythons, &natives);
	}
	return (uint32_t)i + 1;
}

static uint32_t take_native(const void *caller)
{
	static const struct pythons none;
	struct natives natives;
	uint64_t hash = CW_HASH_INIT;

	find_natives(caller, &natives);
	for (unsigned i = 0; i < natives.n; i++)
		hash = cw_hash_step(hash, (uint64_t)natives.frames[i].module << 32 |
						  natives.frames[i].offset);
	return natives.n ? number_of(hash, &none, caller) : 0;
}

static __attribute__((noinline)) uint32_t take_python(const void *caller, bool *ret_has_none)
{
	struct pythons pythons;
	uint64_t hash = CW_HASH_INIT;

	pythons.n = cw_python_frames(pythons.places, &pythons.is_cut);
	*ret_has_none = pythons.n == 0;
	if (!pythons.n)
		return 0;
	for (unsigned i = 0; i < pythons.n; i++)
		hash = cw_hash_step(hash, key_of(&pythons.places[i]));
	return number_of(hash, &pythons, caller);
}

uint32_t cw_call_stack_take(const void *caller)
{
	bool has_none;
	uint32_t number = take_python(caller, &has_none);

	return has_none ? take_native(caller) : number;
}
