/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch gets an entry of the ring only after the entry's last launch has published its summary.
 * Until then the last kernel may still wait in a blocked stream, and would write into the entry
 * later. The number of launches under way therefore never exceeds the number of entries, and a
 * process that hangs keeps its summaries.
 */
#include "agent/cuda/summary.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/cuda/cuda_driver.h"
#include "agent/cuda/kernels.h"
#include "agent/cuda/summary_budget.h"
#include "agent/cuda/summary_reader.h"
#include "agent/cuda/tensor.h"
#include "agent/cuda/tensor_stats.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "common/parse.h"
#include "model/signature.h"
#include "record/summary_math.h"

#define RANGES_MAX 8
#define PROBES 8 /* we try this many entries before we give up */

enum policy { POLICY_OFF, POLICY_SAMPLED, POLICY_FULL };

struct launched {
	uint64_t publish; /* number of the launch; 0 = never */
	uint64_t bytes, cost_ns;
};

CW_HOT_DATA bool cw_summary_is_on;

static enum policy policy;
static struct cw_summary_budget budget;
static struct launched ring[CW_REC_SUMMARY_RING];
static uint64_t next_number;
static unsigned char is_busy; /* set while a thread is choosing; other threads skip their op */

static enum policy read_policy(bool says_what_is_wrong)
{
	const char *value = getenv("COLLWATCH_SUMMARY");
	bool is_on = true;

	if (!value || !*value || (cw_parse_switch(value, &is_on) == 0 && !is_on))
		return POLICY_OFF;
	if (strcmp(value, "full") == 0)
		return POLICY_FULL;
	if (strcmp(value, "sampled") == 0)
		return POLICY_SAMPLED;
	if (says_what_is_wrong)
		cw_log("COLLWATCH_SUMMARY=%.32s: not off, sampled or full: no summaries", value);
	return POLICY_OFF;
}

void cw_summary_comm_ready(void *context, uint64_t pages)
{
	static unsigned char asked;
	bool is_first = !__atomic_test_and_set(&asked, __ATOMIC_ACQ_REL);
	enum policy wanted_policy = read_policy(is_first);

	/* Two threads may run this at once, and both read the same value. */
	__atomic_store_n(&policy, wanted_policy, __ATOMIC_RELAXED);
	if (is_first) {
		cw_summary_budget_init(&budget, cw_now_ns());
		if (wanted_policy != POLICY_OFF && !cw_kernel_image_bytes)
			cw_log("built without kernels: no tensor summaries");
	}
	if (wanted_policy != POLICY_OFF || cw_tensor_stats_are_wanted())
		cw_kernels_load(context, pages);
	if (wanted_policy == POLICY_OFF || !cw_kernels_of(context))
		return;
	if (wanted_policy == POLICY_FULL)
		cw_summary_reader_meet();
	(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_SUMMARIES, __ATOMIC_RELAXED);
	__atomic_store_n(&cw_summary_is_on, true, __ATOMIC_RELEASE);
}

bool cw_summary_takes_all(void)
{
	return __atomic_load_n(&policy, __ATOMIC_RELAXED) == POLICY_FULL;
}

/*
 * Returns the number of elements that surely lie in device memory. A kernel that reads other memory
 * ends the whole context, while NCCL might only refuse the call. A tensor may span neighbouring
 * allocations, which the program sees as one range.
 */
static uint64_t readable(const struct cw_tensor *t)
{
	uint64_t bytes = t->elements * t->element_bytes, at = (uint64_t)(uintptr_t)t->data;
	uint64_t end = at + bytes, good = at;

	if (end < at || at % t->element_bytes)
		return 0;
	for (unsigned i = 0; i < RANGES_MAX && good < end; i++) {
		CUdeviceptr base = 0;
		size_t size = 0;

		if (cw_cuda.address_range(&base, &size, good) != CUDA_SUCCESS || base > good ||
		    base + size <= good)
			break;
		good = base + size;
	}
	return (good < end ? good - at : bytes) / t->element_bytes;
}

/* Returns whether the last launch into this entry has ended, or there was no launch yet. */
static bool has_ended(uint64_t number)
{
	const struct launched *l = &ring[number % CW_REC_SUMMARY_RING];
	const struct cw_rec_summary *s =
		&cw_record.summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING];

	return !l->publish || __atomic_load_n(&s->publish, __ATOMIC_ACQUIRE) == l->publish;
}

static bool is_free(uint64_t number)
{
	const struct launched *l = &ring[number % CW_REC_SUMMARY_RING];
	const struct cw_rec_summary *s =
		&cw_record.summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING];

	if (!has_ended(number) || (l->publish && !cw_summary_reader_has(l->publish)))
		return false;
	if (l->publish)
		cw_summary_budget_settle(&budget, l->bytes, l->cost_ns, CW_LOAD(s->device_ns));
	return true;
}

/*
 * Finds an entry whose last launch has ended; NULL = none. We pass over an entry whose kernel waits
 * in a blocked stream. Otherwise other streams would wait with it.
 */
static struct launched *free_entry(uint64_t *ret_number)
{
	for (unsigned n = 0; n < PROBES; n++) {
		next_number++;
		if (!is_free(next_number))
			continue;
		*ret_number = next_number;
		return &ring[next_number % CW_REC_SUMMARY_RING];
	}
	return NULL;
}

/*
 * Finds an entry while a reader copies all summaries. Waits until an entry is free. The device may
 * stand still behind an op in which other ranks wait for this rank. After a wait in vain we
 * therefore do not wait again until an entry is free.
 */
static struct launched *wait_for_entry(uint64_t *ret_number)
{
	static bool was_in_vain;
	struct launched *entry = free_entry(ret_number);
	uint64_t since_ns = cw_now_ns();

	while (!entry && !was_in_vain && cw_summary_reader_wait(since_ns))
		entry = free_entry(ret_number);
	was_in_vain = !entry;
	return entry;
}

/*
 * Makes this thread the only one that chooses an entry. Returns false if another thread is still
 * choosing.
 */
static bool claim(void)
{
	uint64_t since_ns = 0;

	while (__atomic_test_and_set(&is_busy, __ATOMIC_ACQUIRE)) {
		if (!cw_summary_reader_is_there())
			return false;
		since_ns = since_ns ? since_ns : cw_now_ns();
		if (!cw_summary_reader_wait(since_ns))
			return false;
	}
	return true;
}

uint32_t cw_summary_places(void)
{
	uint32_t n = 0;

	if (cw_summary_reader_is_there()) /* wait for the reader until a busy place is free */
		return CW_REC_SUMMARY_RING;
	if (__atomic_test_and_set(&is_busy, __ATOMIC_ACQUIRE))
		return CW_REC_SUMMARY_RING;
	for (uint32_t i = 0; i < CW_REC_SUMMARY_RING; i++)
		n += has_ended(i);
	__atomic_clear(&is_busy, __ATOMIC_RELEASE);
	return n;
}

/* Returns a random number for an op, which is the same on all ranks. */
static uint64_t draw_of(const struct cw_op_call *call, bool is_output)
{
	const struct cw_rec_comm *rc = &cw_record.comms[call->comm];

	uint64_t number = call->seq ? call->seq : call->op_index;

	return cw_hash_mix64(CW_LOAD(rc->comm_id) ^ (number * 2 + is_output));
}

/* Returns the number of bytes of the tensor to summarise; 0 = none. */
static uint64_t wanted(const struct cw_op_call *call, uint64_t bytes, bool is_output,
		       uint64_t *ret_cost_ns)
{
	*ret_cost_ns = 0;
	if (policy == POLICY_FULL)
		return bytes;
	return cw_summary_budget_take(&budget, cw_op_ns(), bytes, draw_of(call, is_output),
				      ret_cost_ns);
}

/* Returns the program's current step in the form of cw_rec_summary.step_plus_1. */
static uint32_t step_plus_1(void)
{
	int64_t step = CW_LOAD(cw_record.header->step_mark);

	return step < 0 ? 0 : (uint32_t)((uint64_t)step + 1);
}

static bool choose(const struct cw_op_call *call, struct cw_tensor *tensor, bool is_output,
		   struct cw_summary_args *args)
{
	uint64_t bytes, granted, number, cost_ns;
	struct launched *entry;

	args->offered = tensor->elements;
	args->elements = readable(tensor);
	bytes = args->elements * tensor->element_bytes;
	granted = wanted(call, bytes, is_output, &cost_ns);
	if (!granted)
		return false;
	entry = cw_summary_reader_is_there() ? wait_for_entry(&number) : free_entry(&number);
	if (!entry) {
		cw_record_drop(CW_REC_DROP_SUMMARIES);
		return false;
	}
	*entry = (struct launched){ .publish = number, .bytes = granted, .cost_ns = cost_ns };
	args->publish = number;
	args->slot = number % CW_REC_SUMMARY_RING;
	cw_summary_budget_place(draw_of(call, is_output), bytes, granted, args);
	return true;
}

static uint64_t entry_address(const struct cw_kernels *k, uint32_t index)
{
	return k->pages + (uint64_t)((const char *)&cw_record.summaries[index] -
				     (const char *)cw_record.device_pages);
}

static uint32_t launch(const struct cw_op_call *call, const struct cw_op_desc *desc,
		       struct cw_kernels *k, struct cw_tensor *tensor, bool is_output)
{
	struct cw_summary_args args = {
		.data = (uint64_t)(uintptr_t)tensor->data,
		.op_index = call->op_index,
		.seq = call->seq,
		.comm = (uint32_t)call->comm,
		.comm_generation = cw_record.comms[call->comm].generation,
		.kind = desc->kind,
		.dtype = (uint8_t)desc->dtype,
		.is_output = is_output,
		.step_plus_1 = step_plus_1(),
	};
	bool chosen;

	if (!claim()) {
		cw_record_drop(CW_REC_DROP_SUMMARIES);
		return 0;
	}
	chosen = choose(call, tensor, is_output, &args);
	__atomic_clear(&is_busy, __ATOMIC_RELEASE);
	if (!chosen)
		return 0;
	args.out = entry_address(k, CW_REC_SUMMARY_FIRSTS + args.slot);
	if (!is_output)
		args.first_out = entry_address(k, k->ordinal);
	/* After an error the entry stays taken, because the kernel may be running. */
	if (!cw_kernels_sum(k, desc->stream, &args))
		return 0;
	return CW_REC_SUMMARY_FIRSTS + args.slot + 1;
}

uint32_t cw_summary_take(const struct cw_op_call *call, const struct cw_op_desc *desc,
			 bool is_output)
{
	const struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	void *context = __atomic_load_n(&cw_comms[call->comm].context, __ATOMIC_ACQUIRE);
	struct cw_kernels *k = context ? cw_kernels_of(context) : NULL;
	int saved_errno = errno;
	struct cw_tensor tensor;
	uint32_t entry = 0;
	bool pushed;

	if (!k || (call->flags & (CW_OPF_NO_COUNT | CW_OPF_CAPTURED)) ||
	    !(is_output ? cw_tensor_output : cw_tensor_input)(desc, CW_LOAD(rc->nranks),
							      CW_LOAD(rc->comm_rank), &tensor))
		goto out;
	if (!cw_cuda_push(context, &pushed))
		goto out;
	if (cw_kernels_may_launch(desc->stream))
		entry = launch(call, desc, k, &tensor, is_output);
	cw_cuda_pop(pushed);
out:
	errno = saved_errno;
	return entry;
}
