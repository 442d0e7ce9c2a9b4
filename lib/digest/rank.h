/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a job from its node's view: its flight record, the sampler's results, and facts
 * about the process that the record lacks. The caller fills it in, with the current time in now_ns.
 * Nothing here reads a clock or refreshes a record.
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
	const struct cw_nonfinite_input *nonfinite_input; /* NULL = not checked */
	/*
	 * The moment of the digest, on the clock of this file's times and of the record. All ranks
	 * share the moment. If a record is from another host, the same moment is another number on
	 * its clock.
	 */
	int64_t now_ns;

	int32_t pid;
	int32_t own_pid;          /* in its own pid namespace; 0 = the same as pid, or not known */
	const struct cw_pod *pod; /* from its control group; NULL = not checked */
	uint64_t start_ticks;
	uint64_t started_age_ns; /* age of the process; 0 = unknown */
	uint32_t uid;
	uint32_t liveness;     /* enum cw_liveness */
	struct cw_death death; /* ended_ns 0 = alive or not known */
	bool is_oom_killed;
	bool is_d_state, is_child_busy;
	bool is_frozen;
	uint32_t host_wait;           /* enum cw_host_wait */
	int64_t host_activity_ns;     /* 0 = not known */
	const char *host_activity_by; /* NULL = "" */
	const char *command;
	const struct cw_cause *cause; /* of its death or stop; NULL = unknown */
	uint32_t end_by;              /* enum cw_end_by */
	int32_t end_sender;           /* a pid; 0 = none known */
};

static inline bool cw_digest_rank_is_dead(const struct cw_digest_rank *p)
{
	return p->death.ended_ns != 0;
}
