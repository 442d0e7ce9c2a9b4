/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a job: 128 bits by which nodes find the job. cw_job_key_make() computes the key
 * (identity/job_label.h). The key alone does not prove that two jobs are the same. After each
 * look-up we compare uid and label (identity/job_id.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CW_JOB_KEY_BYTES 16

/* A job key. If all bytes are zero, there is no key. */
struct cw_job_key {
	uint8_t bytes[CW_JOB_KEY_BYTES];
};

static inline bool cw_job_key_is_equal(const struct cw_job_key *a, const struct cw_job_key *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static inline bool cw_job_key_is_set(const struct cw_job_key *key)
{
	static const struct cw_job_key none;

	return !cw_job_key_is_equal(key, &none);
}
