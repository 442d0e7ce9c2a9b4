/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a job: its owner and its label (docs/design/leader.md#what-a-job-is). Code that
 * matches a process, a digest or a message with a job compares the whole identity. The key alone is
 * never enough, because another label may have the same key: we only use it to search a table.
 *
 * A job id is one block of memory without padding, and zeros fill its label to the end. memcmp()
 * and uthash can therefore compare the whole id. For uthash use HASH_FIND_BYHASHVALUE() with
 * cw_job_id_bucket().
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "identity/job_label.h"
#include "model/job_key.h"

struct cw_job_id {
	struct cw_job_key key;          /* only for the search in tables */
	uint32_t uid;                   /* uid and label decide whether two jobs are equal */
	char label[CW_JOB_LABEL_BYTES]; /* zeros fill it to its end */
};

_Static_assert(sizeof(struct cw_job_id) == CW_JOB_KEY_BYTES + 4 + CW_JOB_LABEL_BYTES,
	       "padding would be compared");

/* Makes the identity of a job. Returns 0; -EINVAL: the label is missing or too long; or -ENOMEM. */
int cw_job_id_make(uint32_t uid, const char *label, struct cw_job_id *ret);

/*
 * Reads the job of a message from its job_key, uid and label. The key may be absent, because uid
 * and label are enough. Returns 0; -EBADMSG: the key does not match the label; or an error of
 * cw_job_id_make().
 */
int cw_job_id_read(const struct cw_job_key *key, uint32_t uid, const char *label,
		   struct cw_job_id *ret);

/*
 * Reads the job of a message without a check of its key. A check would cost a hash of the label.
 * The result may be false, so use it only to search jobs whose keys we have checked. Returns false
 * if the message names no job, or has no key.
 */
bool cw_job_id_claimed(const struct cw_job_key *key, uint32_t uid, const char *label,
		       struct cw_job_id *ret);

static inline bool cw_job_id_is_equal(const struct cw_job_id *a, const struct cw_job_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Returns the job's hash value for uthash. */
static inline unsigned cw_job_id_bucket(const struct cw_job_id *job)
{
	unsigned h;

	memcpy(&h, job->key.bytes, sizeof(h));
	return h;
}

/*
 * Returns the job hash, a weight in the election of the job's leaders. Two jobs may have the same
 * hash.
 */
static inline uint64_t cw_job_id_hash(const struct cw_job_id *job)
{
	return cw_job_hash(job->label, job->uid);
}
