/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a job from its node's view: its flight record, the sampler's results, and facts
 * about the process that the record lacks. The caller fills in all fields, including the current
 * time in now_ns. No function of this library reads a clock or refreshes a record.
 *
 * Plain data, all borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "digest/nonfinite_input.h"
#include "digest/sampler.h"
#include "model/cause.h"
#include "model/death.h"
#include "record/record_reader.h"

struct cw_pod;

struct cw_digest_rank {
	struct cw_record *record;
	const struct cw_sampler *sampler;
	/* NULL = the caller has not checked for one. */
	const struct cw_nonfinite_input *nonfinite_input;
	/*
	 * The moment of the digest, which is the same for all ranks. It is on the clock of the
	 * record and of the other times in this struct. For a record from another host, the same
	 * moment is another number.
	 */
	int64_t now_ns;

	int32_t pid;
	/* Pid of the process in its own pid namespace; 0 = the same as pid, or not known. */
	int32_t own_pid;
	const struct cw_pod *pod; /* pod by its control group; NULL = the caller has not checked */
	uint64_t start_ticks;
	uint64_t started_age_ns; /* age of the process; 0 = unknown */
	uint32_t uid;
	uint32_t liveness;     /* enum cw_liveness */
	struct cw_death death; /* ended_ns = 0: the process lives, or we do not know */
	bool is_oom_killed;
	bool is_d_state, is_child_busy;
	bool is_frozen;
	uint32_t host_wait; /* enum cw_host_wait */
	/* Time of the last sign that the process works; 0 = not known. */
	int64_t host_activity_ns;
	const char *host_activity_by; /* kind of the last host activity, such as "cpu"; NULL = "" */
	const char *command;
	const struct cw_cause *cause; /* cause of the process's death or stop; NULL = unknown */
	uint32_t end_by;              /* enum cw_end_by */
	/* Pid of the sender of the signal that ended the process; 0 = not known. */
	int32_t end_sender;
};

static inline bool cw_digest_rank_is_dead(const struct cw_digest_rank *p)
{
	return p->death.ended_ns != 0;
}
