/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a call may take before the job's own watchdog ends it, as whoever started the process
 * said: in its environment, or among its arguments, where trainers have an option for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job_env.h"

/* Whoever gives more wants none: --ddp_timeout 180000000 is in many examples. */
#define CW_JOB_TIMEOUT_LONGEST_NS (UINT64_C(86400) * 1000000000)

struct cw_job_timeout {
	uint64_t ns; /* 0 = not known, or there is none */
	/*
	 * For people, "--distributed-timeout-minutes 30 in its arguments": what says so, or says
	 * something of which no time follows; then nothing is to be assumed. "" = nobody said any.
	 */
	char source[64];
};

/* Arguments are longer and names are not; a longer one is none that is known. */
#define CW_JOB_ARGUMENT_BYTES 64u
#define CW_JOB_OPTIONS 5u

/* What was read of the arguments; all 0 at first. */
struct cw_job_arguments {
	char word[CW_JOB_ARGUMENT_BYTES]; /* the argument being read, its beginning */
	size_t word_bytes;                /* all of it so far */
	uint32_t option_plus_1;           /* whose value the next argument is; 0 = no option's */
	bool is_transformers;             /* one that only Transformers' TrainingArguments has */
	struct {
		bool is_given;
		uint64_t value; /* of the last one; 0 = no number */
		char name[48];  /* as it was written */
	} options[CW_JOB_OPTIONS];
};

/*
 * The next bytes of the arguments, each of which ends with a NUL: without one it is none. Any
 * bytes, in any pieces.
 */
void cw_job_arguments_feed(struct cw_job_arguments *args, const char *bytes, size_t n);

/*
 * What the environment and the arguments say; args may be NULL. COLLWATCH_JOB_TIMEOUT is taken
 * before all others.
 */
void cw_job_timeout_of(const struct cw_env *env, const struct cw_job_arguments *args,
		       struct cw_job_timeout *ret);

/* Likewise of this process. Reads 256 KiB of /proc/self/cmdline at most; does not allocate. */
void cw_job_timeout_read(const struct cw_env *env, struct cw_job_timeout *ret);
