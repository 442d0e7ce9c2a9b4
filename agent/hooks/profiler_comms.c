/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL initializes the plugin while a wrapper creates the communicator, perhaps in a thread of its
 * own. We find the wrapper's entry by NCCL's hash. Sometimes we cannot compute the hash, or have
 * never seen this NCCL use our formula. Size and rank may then choose a wrong entry among several.
 * The first call corrects the choice.
 */
#include "agent/hooks/profiler_comms.h"

#include "agent/base/state.h"
#include "agent/record/comms.h"
#include "model/op.h"

char cw_profiler_contexts[CW_REC_COMMS];

static char wrapped[CW_REC_COMMS];

static struct context {
	uint32_t is_used;
	int32_t entry; /* entry in the record, -1 = unknown */
	bool is_confirmed;
	uint64_t hash; /* NCCL's hash of the communicator, 0 = unknown */
} contexts[CW_REC_COMMS];

/*
 * True once NCCL has used the formula of cw_nccl_hash_of(). A different hash then means another
 * communicator.
 */
static bool is_formula_known;

enum match { NO, MAYBE, YES };

static uint64_t child_hash(int c)
{
	const struct cw_rec_comm *rc = &cw_record.comms[c];
	int parent = cw_comms[c].parent;
	uint64_t hash = parent < 0 ? 0 : CW_LOAD(cw_record.comms[parent].nccl_hash);

	/* Only a split has a colour of the user's; see wrap_comm_create.c. */
	if (!hash || rc->split_color < 0)
		return 0;
	return cw_nccl_hash_of_child(hash, (int)rc->split_ordinal, rc->split_color);
}

static enum match compare(int c, uint64_t comm_hash)
{
	struct cw_nccl_hashes h = cw_comms[c].hashes;

	if (!h.now)
		h.now = child_hash(c);
	if (h.now && comm_hash == h.now) {
		CW_STORE(is_formula_known, true);
		return YES;
	}
	if (h.once && comm_hash == h.once)
		return YES;
	return h.now && CW_LOAD(is_formula_known) ? NO : MAYBE;
}

static bool fits(int c, int nranks, int rank)
{
	int32_t its_rank = CW_LOAD(cw_record.comms[c].comm_rank);
	uint32_t its_size = CW_LOAD(cw_record.comms[c].nranks);

	return (!its_size || !nranks || its_size == (uint32_t)nranks) &&
	       (its_rank < 0 || its_rank == rank);
}

/* Finds the wrapper's entry that has no context yet; -1 = none. nranks: 0 = unknown. */
static int find(uint64_t comm_hash, int nranks, int rank, bool is_certain_only)
{
	uint32_t used = CW_LOAD(cw_record.header->comms_used);
	int found = -1;

	for (uint32_t i = 0; i < used; i++) {
		uint32_t state = CW_LOAD(cw_record.comms[i].state);
		enum match match;

		if (!cw_comms[i].real || CW_LOAD(cw_record.comms[i].nccl_hash) ||
		    (state != CW_COMM_INIT && (!is_certain_only || state != CW_COMM_READY)) ||
		    !fits((int)i, nranks, rank))
			continue;
		match = compare((int)i, comm_hash);
		if (match == YES)
			return (int)i;
		if (match == MAYBE && found < 0 && !is_certain_only)
			found = (int)i;
	}
	return found;
}

static struct context *take(void)
{
	for (unsigned i = 0; i < CW_REC_COMMS; i++) {
		struct context *x = &contexts[i];
		uint32_t unused = 0;

		if (!__atomic_compare_exchange_n(&x->is_used, &unused, 1, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		CW_STORE(x->entry, -1);
		CW_STORE(x->hash, 0);
		CW_STORE(x->is_confirmed, false);
		return x;
	}
	return NULL;
}

static void *address_of(const struct context *x)
{
	return x ? &wrapped[x - contexts] : NULL;
}

static struct context *of(const void *context)
{
	uintptr_t at = (uintptr_t)context - (uintptr_t)wrapped;

	return at < sizeof(wrapped) ? &contexts[at] : NULL;
}

static void bind(struct context *x, int entry, uint64_t comm_hash)
{
	CW_STORE(x->hash, comm_hash);
	CW_STORE(x->entry, entry);
	CW_STORE(cw_record.comms[entry].nccl_hash, comm_hash);
}

void *cw_profiler_comms_wrapped(uint64_t comm_hash, int nranks, int rank)
{
	int entry = find(comm_hash, nranks, rank, false);
	struct context *x = entry < 0 ? NULL : take();

	if (x)
		bind(x, entry, comm_hash);
	return address_of(x);
}

/* Returns whether a wrapper is creating a communicator. */
static bool is_creating(void)
{
	uint32_t used = CW_LOAD(cw_record.header->comms_used);
	bool is_any = false;

	for (uint32_t i = 0; i < used; i++)
		is_any = is_any ||
			 (cw_comms[i].real && CW_LOAD(cw_record.comms[i].state) == CW_COMM_INIT);
	return is_any;
}

void *cw_profiler_comms_unnamed(void)
{
	return is_creating() ? address_of(take()) : NULL;
}

void cw_profiler_comms_name(void *context, uint64_t comm_hash, int rank)
{
	struct context *x = of(context);
	int entry;

	if (!x || CW_LOAD(x->entry) >= 0)
		return;
	entry = find(comm_hash, 0, rank, true);
	if (entry < 0) {
		const struct cw_rec_op *op = cw_profiler_comms_current(&entry);

		/*
		 * At the end of a group, the last op of this thread may belong to another
		 * communicator.
		 */
		if (!op || CW_LOAD(op->flags) & CW_OPF_GROUPED)
			return;
	}
	bind(x, entry, comm_hash);
}

struct cw_profiler_comm cw_profiler_comms_of(const void *context)
{
	uintptr_t at = (uintptr_t)context - (uintptr_t)cw_profiler_contexts;
	const struct context *x = of(context);

	if (at < sizeof(cw_profiler_contexts))
		return (struct cw_profiler_comm){ .entry = (int)at };
	return (struct cw_profiler_comm){ .entry = x ? CW_LOAD(x->entry) : -1,
					  .is_wrapped = x != NULL };
}

const struct cw_rec_op *cw_profiler_comms_current(int *ret_entry)
{
	uint32_t ticket_plus_1 = cw_tls.next_comm_slot;
	const struct cw_rec_op *op;
	int c = cw_tls.last_comm;

	if (!cw_tls.depth || !ticket_plus_1 || c >= CW_REC_COMMS)
		return NULL;
	op = &cw_record.comms[c].ops[(ticket_plus_1 - 1) % CW_REC_COMM_OPS];
	if ((uint32_t)CW_LOAD(op->publish) != ticket_plus_1 || CW_LOAD(op->flags) & CW_OPF_RETURNED)
		return NULL;
	*ret_entry = c;
	return op;
}

void cw_profiler_comms_confirm(void *context, int entry)
{
	struct context *x = of(context);
	int before;

	if (!x || CW_LOAD(x->is_confirmed))
		return;
	CW_STORE(x->is_confirmed, true);
	before = CW_LOAD(x->entry);
	if (before == entry)
		return;
	if (before >= 0 && CW_LOAD(cw_record.comms[before].nccl_hash) == CW_LOAD(x->hash))
		CW_STORE(cw_record.comms[before].nccl_hash, 0);
	bind(x, entry, CW_LOAD(x->hash));
}

int cw_profiler_comms_end(void *context)
{
	struct context *x = of(context);
	int entry;

	if (!x)
		return -1;
	entry = CW_LOAD(x->entry);
	__atomic_store_n(&x->is_used, 0, __ATOMIC_RELEASE);
	return entry;
}
