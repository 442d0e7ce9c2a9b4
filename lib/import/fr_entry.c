/* SPDX-License-Identifier: Apache-2.0 */
/* Reads entries: PyTorch's names of calls, their sizes, and calls launched together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "import/fr_dump.h"
#include "model/op.h"
#include "model/signature.h"

/* The maximum number of entries that we search backwards for the members of a coalesced group. */
#define MAX_COALESCED 4096u
/* The list of sizes that shows the contribution of one rank. */
enum sizes_of { SIZES_INPUT, SIZES_OUTPUT, SIZES_DIFFER, SIZES_NONE };

struct op_name {
	const char *name;
	uint8_t kind;
	uint8_t sizes; /* enum sizes_of */
};

/*
 * The names of calls: a profiling_name without its "nccl:". SIZES_DIFFER: ranks may pass different
 * sizes, so we only display them. SIZES_NONE: the call has no sizes. The names come from
 * ProcessGroupNCCL.cpp and ProcessGroupGloo.cpp. The names with _single and _v come from the
 * backends of torchcomms.
 */
static const struct op_name op_names[] = {
	{ "all_reduce", CW_OP_ALL_REDUCE, SIZES_INPUT },
	{ "all_reduce_barrier", CW_OP_ALL_REDUCE, SIZES_INPUT },
	{ "all_reduce_sparse", CW_OP_ALL_REDUCE, SIZES_DIFFER },
	{ "sparse_all_reduce", CW_OP_ALL_REDUCE, SIZES_DIFFER },
	{ "allreduce_coalesced", CW_OP_ALL_REDUCE, SIZES_INPUT },
	{ "barrier", CW_OP_ALL_REDUCE, SIZES_NONE },
	{ "broadcast", CW_OP_BROADCAST, SIZES_INPUT },
	{ "_broadcast_oop", CW_OP_BROADCAST, SIZES_OUTPUT },
	{ "reduce", CW_OP_REDUCE, SIZES_INPUT },
	{ "_reduce_oop", CW_OP_REDUCE, SIZES_INPUT },
	{ "all_gather", CW_OP_ALL_GATHER, SIZES_INPUT },
	{ "_all_gather_base", CW_OP_ALL_GATHER, SIZES_INPUT },
	{ "all_gather_into_tensor_coalesced", CW_OP_ALL_GATHER, SIZES_INPUT },
	{ "all_gather_single", CW_OP_ALL_GATHER, SIZES_INPUT },
	{ "all_gather_v", CW_OP_ALL_GATHER, SIZES_DIFFER },
	{ "reduce_scatter", CW_OP_REDUCE_SCATTER, SIZES_OUTPUT },
	{ "_reduce_scatter_base", CW_OP_REDUCE_SCATTER, SIZES_OUTPUT },
	{ "reduce_scatter_tensor_coalesced", CW_OP_REDUCE_SCATTER, SIZES_OUTPUT },
	{ "reduce_scatter_single", CW_OP_REDUCE_SCATTER, SIZES_OUTPUT },
	{ "reduce_scatter_v", CW_OP_REDUCE_SCATTER, SIZES_DIFFER },
	{ "all_to_all", CW_OP_ALL_TO_ALL, SIZES_DIFFER },
	{ "all_to_all_single", CW_OP_ALL_TO_ALL, SIZES_DIFFER },
	{ "all_to_all_v_single", CW_OP_ALL_TO_ALL, SIZES_DIFFER },
	{ "gather", CW_OP_GATHER, SIZES_INPUT },
	{ "scatter", CW_OP_SCATTER, SIZES_OUTPUT },
	{ "send", CW_OP_SEND, SIZES_INPUT },
	{ "recv", CW_OP_RECV, SIZES_OUTPUT },
	{ "recvAnySource", CW_OP_RECV, SIZES_OUTPUT },
	{ "recv_any_source", CW_OP_RECV, SIZES_OUTPUT },
	{ "recv_anysource", CW_OP_RECV, SIZES_OUTPUT },
};

static const char *const backends[] = { "nccl", "nccl2", "ncclx", "rccl", "rcclx",
					"gloo", "xccl",  "hccl",  "ucc",  "mpi" };

struct dtype_name {
	const char *name; /* c10::toString(ScalarType) */
	uint8_t dtype;
	uint8_t per_element; /* elements that count for one; a complex number is two elements */
};

static const struct dtype_name dtype_names[] = {
	{ "Float", CW_DTYPE_FP32, 1 },
	{ "BFloat16", CW_DTYPE_BF16, 1 },
	{ "Half", CW_DTYPE_FP16, 1 },
	{ "Double", CW_DTYPE_FP64, 1 },
	{ "Long", CW_DTYPE_INT64, 1 },
	{ "Int", CW_DTYPE_INT32, 1 },
	{ "Byte", CW_DTYPE_UINT8, 1 },
	{ "Bool", CW_DTYPE_UINT8, 1 },
	{ "Char", CW_DTYPE_INT8, 1 },
	{ "UInt32", CW_DTYPE_UINT32, 1 },
	{ "UInt64", CW_DTYPE_UINT64, 1 },
	{ "Float8_e4m3fn", CW_DTYPE_FP8_E4M3, 1 },
	{ "Float8_e5m2", CW_DTYPE_FP8_E5M2, 1 },
	{ "Short", CW_DTYPE_INT16, 1 },
	{ "UInt16", CW_DTYPE_UINT16, 1 },
	{ "Float8_e4m3fnuz", CW_DTYPE_FP8_E4M3FNUZ, 1 },
	{ "Float8_e5m2fnuz", CW_DTYPE_FP8_E5M2FNUZ, 1 },
	{ "Float8_e8m0fnu", CW_DTYPE_FP8_E8M0FNU, 1 },
	{ "Float4_e2m1fn_x2", CW_DTYPE_FP4_E2M1X2, 1 },
	{ "ComplexHalf", CW_DTYPE_FP16, 2 },
	{ "ComplexFloat", CW_DTYPE_FP32, 2 },
	{ "ComplexDouble", CW_DTYPE_FP64, 2 },
};

/* ---- names ---- */

static void note_unknown(char *first, size_t len, const char *name, uint32_t *count)
{
	if ((*count)++ == 0)
		snprintf(first, len, "%.*s", (int)len - 1, name);
}

static void check_backend(struct cw_fr_dump *dump, const char *name)
{
	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++)
		if (strcmp(name, backends[i]) == 0)
			return;
	note_unknown(dump->unknown_backend, sizeof(dump->unknown_backend), name,
		     &dump->n_unknown_backends);
}

/*
 * Returns the peer in "send 0->1" or "recv 0<-1". The first number is the caller. Both numbers are
 * positions in the group.
 */
static int32_t peer_of(const char *text)
{
	const char *arrow = strstr(text, "->");
	char *end;
	long v;

	if (!arrow)
		arrow = strstr(text, "<-");
	if (!arrow || arrow[2] < '0' || arrow[2] > '9')
		return CW_FR_NONE;
	v = strtol(arrow + 2, &end, 10);
	return *end == '\0' && v < INT32_MAX ? (int32_t)v : CW_FR_NONE;
}

/*
 * True for the name of the entry that ends a coalesced group. Since 2.5 the name is "coalesced",
 * and before "ALLGATHER_coalesced" and similar.
 */
static bool ends_group(const char *name)
{
	const char *suffix = strstr(name, "_coalesced");

	return strcmp(name, "coalesced") == 0 || (suffix && suffix[10] == '\0' && suffix > name &&
						  suffix[-1] >= 'A' && suffix[-1] <= 'Z');
}

/* Sets kind, peer and flags of the op. If the name is known, sets *ret_sizes. */
static void read_name(struct cw_fr_dump *dump, const struct cw_value *value, struct cw_fr_op *op,
		      enum sizes_of *ret_sizes)
{
	char text[96], *name = text, *colon, *space;

	(void)cw_value_copy_text(value, text, sizeof(text));
	colon = strchr(text, ':');
	if (colon) {
		*colon = '\0';
		check_backend(dump, text);
		name = colon + 1;
	}
	if (ends_group(name)) {
		op->flags |= CW_FR_GROUP_END | CW_FR_NO_SHAPE | CW_FR_COALESCED;
		return;
	}
	space = strchr(name, ' ');
	if (space) {
		op->peer = peer_of(space);
		*space = '\0';
	}
	for (size_t i = 0; i < sizeof(op_names) / sizeof(*op_names); i++) {
		if (strcmp(name, op_names[i].name) != 0)
			continue;
		op->kind = op_names[i].kind;
		*ret_sizes = op_names[i].sizes;
		return;
	}
	op->flags |= CW_FR_NO_SHAPE;
	note_unknown(dump->unknown_op, sizeof(dump->unknown_op), name, &dump->n_unknown_ops);
}

/* ---- sizes ---- */

/*
 * Counts the elements of all tensors in a list of shapes. Returns false if the value is no such
 * list, or if the number is absurd. A pickle can repeat one long list in each of its entries. So
 * max_extents limits all lists together.
 */
static bool count_elements(struct cw_fr_dump *dump, const struct cw_value *shapes, uint64_t *ret)
{
	uint64_t sum = 0;

	if (!shapes || shapes->type != CW_VALUE_LIST)
		return false;
	for (uint32_t i = 0; i < shapes->n; i++) {
		const struct cw_value *shape = shapes->items[i];
		uint64_t elements = 1;

		dump->n_extents += 1 + (uint64_t)cw_value_count(shape);
		if (dump->n_extents > dump->max_extents)
			return false;
		for (uint32_t d = 0; d < cw_value_count(shape); d++) {
			int64_t extent;

			if (!cw_value_int(shape->items[d], &extent) || extent < 0 ||
			    __builtin_mul_overflow(elements, (uint64_t)extent, &elements))
				return false;
		}
		if (__builtin_add_overflow(sum, elements, &sum))
			return false;
	}
	*ret = sum;
	return true;
}

static const struct dtype_name *find_dtype(const struct cw_value *dtypes)
{
	if (!cw_value_count(dtypes))
		return NULL;
	for (size_t i = 0; i < sizeof(dtype_names) / sizeof(*dtype_names); i++)
		if (cw_value_is_text(dtypes->items[0], dtype_names[i].name))
			return &dtype_names[i];
	return NULL;
}

static void read_exchange(struct cw_fr_dump *dump, const struct cw_value *entry,
			  struct cw_fr_op *op)
{
	const struct cw_value *sent = cw_value_get(entry, "input_sizes");
	const struct cw_value *taken = cw_value_get(entry, "output_sizes");

	if (cw_value_count(sent) && cw_value_count(taken) &&
	    count_elements(dump, sent, &op->sent) && count_elements(dump, taken, &op->taken))
		op->flags |= CW_FR_BOTH_SIZES;
}

static void read_sizes(struct cw_fr_dump *dump, const struct cw_value *entry, enum sizes_of which,
		       struct cw_fr_op *op)
{
	bool output = which == SIZES_OUTPUT;
	const struct cw_value *dtypes =
		cw_value_get(entry, output ? "output_dtypes" : "input_dtypes");
	const struct dtype_name *dtype = find_dtype(dtypes);

	if (which == SIZES_NONE)
		return;
	if (!cw_value_count(dtypes) ||
	    !count_elements(dump, cw_value_get(entry, output ? "output_sizes" : "input_sizes"),
			    &op->count)) {
		op->flags |= CW_FR_NO_SHAPE;
		return;
	}
	if (!dtype)
		op->flags |= CW_FR_ODD_DTYPE;
	op->dtype = dtype ? dtype->dtype : CW_DTYPE_OTHER;
	if (op->kind == CW_OP_ALL_TO_ALL)
		read_exchange(dump, entry, op);
	if (which == SIZES_DIFFER) {
		if (!cw_signature_is_bytewise(op->kind))
			op->count = 0;
		return;
	}
	if (!dtype) {
		op->bytes = op->count; /* we can compare this with calls of the same type */
		return;
	}
	if (__builtin_mul_overflow(op->count, dtype->per_element, &op->count) ||
	    __builtin_mul_overflow(op->count, cw_dtype_bytes(op->dtype), &op->bytes))
		op->flags |= CW_FR_NO_SHAPE;
}

/* ---- an entry ---- */

static int64_t int_at(const struct cw_value *entry, const char *key, int64_t fallback)
{
	int64_t v;

	return cw_value_int(cw_value_get(entry, key), &v) ? v : fallback;
}

/* Returns a wall time of the entry; 0 = unknown. An implausible time counts as unknown. */
static int64_t time_at(const struct cw_value *entry, const char *key)
{
	int64_t t = int_at(entry, key, 0);

	return t > 0 && t < INT64_MAX / 2 ? t : 0;
}

/*
 * True if Gloo retired the call. ProcessGroupGloo records calls without events, so no call ever
 * appears as started or completed. It retires each call at the end of its work (runLoop() in
 * ProcessGroupGloo.cpp). At that time the call has succeeded or failed, and we set CW_FR_ENDED.
 * With NCCL a retired call may not have ended: NCCL's watchdog also retires the calls that it gives
 * up.
 */
static bool is_retired_by_gloo(const struct cw_value *entry)
{
	static const char prefix[] = "gloo:";
	const struct cw_value *name = cw_value_get(entry, "profiling_name");

	return name && name->type == CW_VALUE_STR && name->len >= sizeof(prefix) - 1 &&
	       memcmp(name->text, prefix, sizeof(prefix) - 1) == 0 && int_at(entry, "retired", 0);
}

static uint8_t state_of(const struct cw_value *entry)
{
	const struct cw_value *state = cw_value_get(entry, "state");

	if (cw_value_is_text(state, "completed") || is_retired_by_gloo(entry))
		return CW_FR_COMPLETED;
	return cw_value_is_text(state, "started") ? CW_FR_STARTED : CW_FR_SCHEDULED;
}

bool cw_fr_entry_read(struct cw_fr_dump *dump, const struct cw_value *entry, struct cw_fr_op *op)
{
	int64_t coll = int_at(entry, "collective_seq_id", -1), started_ns, timeout_ms;
	enum sizes_of sizes = SIZES_DIFFER;

	/* Dumps before 2.3 have one number for both kinds of calls. */
	if (!entry || entry->type != CW_VALUE_DICT || coll < 0)
		return false;
	*op = (struct cw_fr_op){ .peer = CW_FR_NONE, .dtype = CW_DTYPE_NONE };
	read_name(dump, cw_value_get(entry, "profiling_name"), op, &sizes);
	if (op->kind != CW_OP_NONE)
		read_sizes(dump, entry, sizes, op);
	op->state = state_of(entry);
	op->coll_seq = (uint64_t)coll;
	op->p2p_seq = (uint64_t)int_at(entry, "p2p_seq_id", 0);
	op->created_ns = time_at(entry, "time_created_ns");
	op->completed_ns = time_at(entry, "time_discovered_completed_ns");
	timeout_ms = int_at(entry, "timeout_ms", 0);
	if (timeout_ms > 0 && timeout_ms < INT64_MAX / 4000000)
		op->timeout_ns = timeout_ms * 1000000;
	if (int_at(entry, "is_p2p", cw_op_is_p2p(op->kind)))
		op->flags |= CW_FR_P2P;
	/*
	 * We refuse a collective that claims to be point-to-point. Its number may count
	 * collectives or point-to-point calls.
	 */
	if (op->flags & CW_FR_P2P && cw_op_is_collective(op->kind))
		return false;
	if (is_retired_by_gloo(entry))
		op->flags |= CW_FR_ENDED;
	if (int_at(entry, "retired", 0) && op->state != CW_FR_COMPLETED)
		op->flags |= CW_FR_TIMED_OUT;
	started_ns = time_at(entry, "time_discovered_started_ns");
	if (op->state == CW_FR_STARTED || (started_ns && started_ns != op->completed_ns))
		dump->is_timed = true;
	return true;
}

/* ---- calls launched together ---- */

static bool is_same_launch(const struct cw_fr_op *a, const struct cw_fr_op *b)
{
	if (a->group != b->group || (a->flags ^ b->flags) & CW_FR_P2P)
		return false;
	return a->flags & CW_FR_P2P ? a->p2p_seq == b->p2p_seq : a->coll_seq == b->coll_seq;
}

/* Adds another member of a group of collectives to the first op of the group. */
static void add_to(struct cw_fr_op *first, struct cw_fr_op *member)
{
	if (first->kind != member->kind || first->dtype != member->dtype ||
	    __builtin_add_overflow(first->count, member->count, &first->count) ||
	    __builtin_add_overflow(first->bytes, member->bytes, &first->bytes))
		first->flags |= CW_FR_NO_SHAPE;
	first->flags |= member->flags & (CW_FR_NO_SHAPE | CW_FR_ODD_DTYPE);
	member->group = UINT32_MAX;
}

/*
 * True if op belongs to the launch that the entry `end` closes. In torch 2.4 to 2.13, the entry
 * that ends a batch of sends and receives claims not to be point-to-point. Like its members it has
 * both numbers, and no collective has both.
 */
static bool is_member(const struct cw_fr_op *op, const struct cw_fr_op *end)
{
	return is_same_launch(op, end) ||
	       (op->group == end->group && op->flags & CW_FR_P2P && !(end->flags & CW_FR_P2P) &&
		op->coll_seq == end->coll_seq && op->p2p_seq == end->p2p_seq);
}

/*
 * True if the buffer may have lost members of a launch before `first`, the first listed entry of
 * its group. Dumps of active entries omit entries for another reason. After a reset, a recorder
 * counts its entries from 0 again, but the group's numbers continue.
 */
static bool may_be_rest(const struct cw_fr_dump *dump, const struct cw_fr_op *first)
{
	return dump->is_cut ? dump->has_completed : first->coll_seq > 1;
}

/*
 * Gives the coalesced group that ends at ops[end] its state. The members of the group are the
 * entries with the same number before that entry.
 */
static void settle(struct cw_fr_dump *dump, uint32_t end)
{
	struct cw_fr_op *last = &dump->ops[end], *first = NULL;
	bool has_earlier = false;

	for (uint32_t i = end; i-- > 0 && end - i <= MAX_COALESCED;) {
		struct cw_fr_op *op = &dump->ops[i];

		if (op->group != last->group)
			continue;
		has_earlier = !is_member(op, last);
		if (has_earlier)
			break;
		last->flags |= op->flags & CW_FR_P2P;
		op->flags |= CW_FR_COALESCED;
		op->state = last->state;
		op->completed_ns = last->completed_ns;
		if (!(op->flags & CW_FR_P2P) && first)
			add_to(op, first);
		first = op;
	}
	/* The buffer lost some members, so the total size is unknown. */
	if (first && !has_earlier && may_be_rest(dump, first))
		first->flags |= CW_FR_NO_SHAPE;
	/*
	 * The end entry adds nothing if members are listed, or if it ends a p2p batch. We then drop
	 * it. Otherwise it is our only knowledge of the collectives.
	 */
	if (first || (last->flags & CW_FR_P2P))
		last->group = UINT32_MAX;
}

/*
 * Examines two calls with the same number and no end entry. A dump of active entries omits the end
 * entry of a coalesced group once that entry is completed. It still lists the members, which have
 * no state of their own. We mark them as orphans. A dump with completed calls contains the end
 * entry too, unless the launch is still in progress. A call that completed by itself is no member
 * of a group, so the shared number is bad.
 */
static void look_at_pair(const struct cw_fr_dump *dump, struct cw_fr_op *before,
			 struct cw_fr_op *op, bool *before_is_bad, bool *is_bad)
{
	if (!is_same_launch(before, op) || (before->flags | op->flags) & CW_FR_COALESCED)
		return;
	if (!dump->has_completed) {
		before->flags |= CW_FR_ORPHAN;
		op->flags |= CW_FR_ORPHAN;
	} else if (!(op->flags & CW_FR_P2P) &&
		   (before->state == CW_FR_COMPLETED || op->state == CW_FR_COMPLETED)) {
		*before_is_bad = *is_bad = true;
	}
}

static void mark_orphans(struct cw_fr_dump *dump)
{
	uint32_t *last = cw_or_exit(cw_arena_new_array(&dump->arena, uint32_t, dump->n_groups));
	bool *is_bad = cw_or_exit(cw_arena_new_array(&dump->arena, bool, dump->n_ops));

	for (uint32_t i = 0; i < dump->n_ops; i++) {
		struct cw_fr_op *op = &dump->ops[i];
		uint32_t before;

		if (op->group == UINT32_MAX)
			continue;
		before = last[op->group];
		last[op->group] = i + 1;
		if (before)
			look_at_pair(dump, &dump->ops[before - 1], op, &is_bad[before - 1],
				     &is_bad[i]);
	}
	for (uint32_t i = 0; i < dump->n_ops; i++) {
		if (!is_bad[i])
			continue;
		dump->ops[i].group = UINT32_MAX;
		dump->n_bad_entries++;
	}
}

/*
 * True if a send or receive that is alone in its group has completed. We use pg_status. If the
 * number there exceeds those of the collectives, it can only count point-to-point calls.
 */
static bool has_completed(const struct cw_fr_dump *dump, const struct cw_fr_op *op)
{
	const struct cw_fr_group *g = &dump->groups[op->group];

	if (op->flags & CW_FR_ORPHAN)
		return true;
	if (!g->has_status)
		return false;
	/* The entry may be the rest of a launch, if the group has no p2p calls. */
	if (!(op->flags & CW_FR_P2P))
		return dump->is_cut && op->order == 0 && !g->has_p2p &&
		       g->last_completed >= (int64_t)op->coll_seq;
	return g->last_completed > (int64_t)g->highest_coll &&
	       g->last_completed >= (int64_t)op->p2p_seq;
}

/*
 * True if an earlier op already represents this orphan. The first of several orphaned collectives
 * with the same number represents all of them.
 */
static bool is_repeated(const struct cw_fr_dump *dump, uint32_t n, const struct cw_fr_op *op)
{
	if (!(op->flags & CW_FR_ORPHAN) || op->flags & CW_FR_P2P)
		return false;
	for (uint32_t back = 0; n-- > 0 && back < MAX_COALESCED; back++)
		if (dump->ops[n].group == op->group)
			return is_same_launch(&dump->ops[n], op);
	return false;
}

static void settle_orphan(struct cw_fr_dump *dump, struct cw_fr_op *op)
{
	if (op->state == CW_FR_SCHEDULED && has_completed(dump, op))
		op->state = CW_FR_COMPLETED;
	if (op->flags & CW_FR_ORPHAN)
		op->flags |= CW_FR_COALESCED | CW_FR_NO_SHAPE;
}

void cw_fr_settle_coalesced(struct cw_fr_dump *dump)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < dump->n_ops; i++)
		if (dump->ops[i].flags & CW_FR_GROUP_END)
			settle(dump, i);
	mark_orphans(dump);
	for (uint32_t i = 0; i < dump->n_ops; i++) {
		struct cw_fr_op *op = &dump->ops[i];

		if (op->group == UINT32_MAX || is_repeated(dump, n, op))
			continue;
		settle_orphan(dump, op);
		dump->ops[n++] = *op;
	}
	dump->n_ops = n;
}
