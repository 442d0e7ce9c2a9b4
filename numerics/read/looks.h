/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor summaries of one job's ranks, as the judge of its numbers wants them
 * (numerics/judge/numerics.h): flight records are added one by one, and what another has
 * gathered so; ranks that share a communicator then share it here.
 *
 * A record keeps the last summaries of its rank and, for each device, the first tensor with NaN or
 * infinity. What the calls they belong to were (operator, time, call site) is known as long as the
 * record has the calls. Records of living processes are each of the moment they were last
 * refreshed. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "numerics/judge/numerics.h"
#include "record/record_reader.h"

/* Zeroed is empty. */
struct cw_looks {
	struct cw_numerics_look *looks;
	struct cw_numerics_comm *comms;
	struct cw_numerics_rank *ranks;
	uint32_t n_looks, room_looks, n_comms, room_comms, n_ranks, room_ranks;
	struct cw_arena texts;
};

/* Of one record. */
struct cw_looks_count {
	uint64_t newest; /* tensors that the rank has looked at */
	uint64_t kept;   /* … of which these are here */
};

/*
 * Adds a rank's, whose index is the number of those added before. Borrows the record until it
 * returns. 0 or -errno; after an error only cw_looks_fini() may follow.
 */
int cw_looks_add(struct cw_looks *l, struct cw_record *record, struct cw_looks_count *ret);

/*
 * Adds the ranks of `more` that are wanted (NULL = all), whose texts are copied. 0, -E2BIG or
 * -ENOMEM; after an error only cw_looks_fini() may follow.
 */
int cw_looks_join(struct cw_looks *l, const struct cw_numerics_job *more, const bool *wanted);

/* All that were added; borrowed until the next is. */
struct cw_numerics_job cw_looks_job(const struct cw_looks *l);

/* Leaves it empty. */
void cw_looks_fini(struct cw_looks *l);
