/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the arguments of sayings from the snapshot. We copy names, lists and clauses into the
 * verdict's arena. If the arena is out of memory, a name becomes empty, and a list of ranks loses
 * its labels and keeps only their number.
 */
#pragma once

#include <stdint.h>

#include "analysis/culprit/diagnosis.h"
#include "model/saying.h"

/* Returns an empty clause in the verdict's arena. */
static inline struct cw_clause clause_of(const struct diagnosis *diag)
{
	return (struct cw_clause){ .arena = diag->arena };
}

/*
 * True if the rank is known from a recording without calls, that is, from a dump without entries.
 */
bool arg_is_empty_recording(const struct cw_snap_rank *rank);

/*
 * Return one rank or a rank set. `ranks` are indices into the snapshot, `labels` are rank numbers.
 */
struct cw_arg arg_rank(const struct diagnosis *diag, uint32_t rank);
struct cw_arg arg_ranks(const struct diagnosis *diag, const uint32_t *ranks, uint32_t n);
struct cw_arg arg_labels(const struct diagnosis *diag, const int32_t *labels, uint32_t n);
/* Returns a single rank with its host and pid. */
struct cw_arg arg_process(const struct diagnosis *diag, uint32_t rank);
/* Returns a process if n is 1, otherwise a rank set. */
struct cw_arg arg_who(const struct diagnosis *diag, const uint32_t *ranks, uint32_t n);
struct cw_arg arg_host(const struct diagnosis *diag, uint32_t node);
/* Returns several nodes, in the order of their names. If out of memory, the list is empty. */
struct cw_arg arg_hosts(const struct diagnosis *diag, const uint32_t *nodes, uint32_t n);
struct cw_arg arg_comm(const struct diagnosis *diag, uint32_t comm);

/*
 * Returns a call. We name the peer of a send or receive by its rank in the job, like all other
 * ranks of a sentence. If the peer is not visible, or the comm is CW_SNAP_NONE, we name it by its
 * rank in the communicator. op may be NULL for an unknown call.
 */
struct cw_arg arg_call(const struct diagnosis *diag, uint32_t comm, const struct cw_op *op);
/* Returns a call of which only the kind is known. */
struct cw_arg arg_kind(unsigned kind);
struct cw_arg arg_op(const struct cw_op *op);

/* Returns the time since then_ns, a time on the snapshot's timeline; 0 = unknown. */
struct cw_arg arg_since(const struct diagnosis *diag, int64_t then_ns);
/* Returns a duration of "less than ns". ns is a whole number of seconds. */
struct cw_arg arg_less_than(int64_t ns);

struct cw_arg arg_error(const struct diagnosis *diag, int32_t result, const char *text);
struct cw_arg arg_text(const struct diagnosis *diag, const char *text);
struct cw_arg arg_clause(const struct cw_clause *clause);

static inline struct cw_arg arg_count(uint64_t count)
{
	return (struct cw_arg){ .kind = CW_ARG_COUNT, .count = count };
}

/* Returns a signed number, a signal, or the value of an enum. */
static inline struct cw_arg arg_number(enum cw_arg_kind kind, int32_t number)
{
	return (struct cw_arg){ .kind = kind, .number = number };
}

/*
 * Says the trait of a rank that differs from the other members: "loaded NCCL 2.21.5", "created the
 * communicator with 7 ranks". detail: CW_DETAIL_VERSION, CW_DETAIL_MEMBERSHIP,
 * CW_DETAIL_ENVIRONMENT or CW_DETAIL_ORDER.
 */
void say_trait(const struct diagnosis *diag, uint32_t comm, uint32_t rank, enum cw_detail detail,
	       struct cw_clause *clause);
