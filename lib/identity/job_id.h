/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job: whose it is and what it is called (docs/design/leader.md#what-a-job-is). Everything
 * that matches a process, a digest or a message with a job compares the whole of this; the key
 * alone is never enough, and a table is only searched by it.
 *
 * A job id is one piece of memory without padding, label filled up with zeros, so that memcmp() and
 * uthash compare all of it: HASH_FIND_BYHASHVALUE() with cw_job_id_bucket().
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
	struct cw_job_key key;          /* finds */
	uint32_t uid;                   /* … and these decide */
	char label[CW_JOB_LABEL_BYTES]; /* zeros to its end */
};

_Static_assert(sizeof(struct cw_job_id) == CW_JOB_KEY_BYTES + 4 + CW_JOB_LABEL_BYTES,
	       "padding would be compared");

/* What cw_job_id_read() says of a message of the version before, which names no job. */
#define CW_JOB_ID_ABSENT 1

/* 0, -EINVAL: no label or one that is too long, -ENOMEM. */
int cw_job_id_make(uint32_t uid, const char *label, struct cw_job_id *ret);

/*
 * The job a message is about: its job_key, uid and label. Without a key, as peers of the version
 * before send it, uid and label are enough. 0, CW_JOB_ID_ABSENT: no label; -EBADMSG: the key is not
 * that label's; and as cw_job_id_make().
 */
int cw_job_id_read(const struct cw_job_key *key, uint32_t uid, const char *label,
		   struct cw_job_id *ret);

/*
 * What the message says, its key unchecked: only to be looked up among jobs whose keys were
 * checked, which costs no hash of the label. False: it names no job, or has no key.
 */
bool cw_job_id_claimed(const struct cw_job_key *key, uint32_t uid, const char *label,
		       struct cw_job_id *ret);

static inline bool cw_job_id_is_equal(const struct cw_job_id *a, const struct cw_job_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* For uthash. */
static inline unsigned cw_job_id_bucket(const struct cw_job_id *job)
{
	unsigned h;

	memcpy(&h, job->key.bytes, sizeof(h));
	return h;
}

/* What peers of the version before call it, and the weight of its leaders; two jobs may share it.
 */
static inline uint64_t cw_job_id_route(const struct cw_job_id *job)
{
	return cw_job_route(job->label, job->uid);
}
