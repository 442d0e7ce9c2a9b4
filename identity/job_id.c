/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/job_id.h"

#include <errno.h>

int cw_job_id_make(uint32_t uid, const char *label, struct cw_job_id *ret)
{
	struct cw_job_id job = { .uid = uid };
	size_t len = label ? strnlen(label, sizeof(job.label)) : 0;
	int r;

	if (len == 0 || len == sizeof(job.label))
		return -EINVAL;
	memcpy(job.label, label, len);
	r = cw_job_key_make(uid, label, &job.key);
	if (r < 0)
		return r;
	*ret = job;
	return 0;
}

int cw_job_id_read(const struct cw_job_key *key, uint32_t uid, const char *label,
		   struct cw_job_id *ret)
{
	struct cw_job_id job;
	int r;

	if (!label || !*label)
		return CW_JOB_ID_ABSENT;
	r = cw_job_id_make(uid, label, &job);
	if (r < 0)
		return r;
	if (cw_job_key_is_set(key) && !cw_job_key_is_equal(key, &job.key))
		return -EBADMSG;
	*ret = job;
	return 0;
}
