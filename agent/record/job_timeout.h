/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job timeout: how long a call may take before the job's own watchdog ends the job. The user
 * sets the timeout in the environment, or with an option of the trainer among the arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job_env.h"

/*
 * Longer timeouts count as none, because their users want none: many examples have --ddp_timeout
 * 180000000.
 */
#define CW_JOB_TIMEOUT_LONGEST_NS (UINT64_C(86400) * 1000000000)

struct cw_job_timeout {
	uint64_t ns; /* 0 = unknown, or the job has no timeout */
	/*
	 * Name and place of the setting for reports, like "--distributed-timeout-minutes 30 in its
	 * arguments". "" = we found no setting. If source is set and ns is 0, a setting exists but
	 * gives no timeout, and we must not assume one.
	 */
	char source[64];
};

/* Limit of an argument that we look at. Every known name and number is shorter. */
#define CW_JOB_ARGUMENT_BYTES 64u
#define CW_JOB_OPTIONS 5u

/* The state of the argument parser. All fields are 0 at the start. */
struct cw_job_arguments {
	char word[CW_JOB_ARGUMENT_BYTES]; /* beginning of the current argument */
	/* Length of the current argument so far, at most sizeof(word). */
	size_t word_bytes;
	/* Index + 1 of the option whose value is the next argument; 0 = none. */
	uint32_t option_plus_1;
	/* True after an option that only Transformers' TrainingArguments has. */
	bool is_transformers;
	struct {
		bool is_given;
		uint64_t value; /* the last value given; 0 = not a number */
		char name[48];  /* name of the option, as the user spelled it */
	} options[CW_JOB_OPTIONS];
};

/*
 * Parses the next bytes of the arguments. Each argument ends with a NUL. We ignore a last argument
 * without a NUL. The caller may pass any bytes, in any pieces.
 */
void cw_job_arguments_feed(struct cw_job_arguments *args, const char *bytes, size_t n);

/*
 * Derives the timeout from environment and arguments. args may be NULL. COLLWATCH_JOB_TIMEOUT takes
 * precedence over all other settings.
 */
void cw_job_timeout_of(const struct cw_env *env, const struct cw_job_arguments *args,
		       struct cw_job_timeout *ret);

/*
 * Derives the timeout from `env` and the arguments of this process, like cw_job_timeout_of(). Reads
 * at most 256 KiB of /proc/self/cmdline. Does not allocate.
 */
void cw_job_timeout_read(const struct cw_env *env, struct cw_job_timeout *ret);
