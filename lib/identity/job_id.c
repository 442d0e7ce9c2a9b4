/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/job_id.h"

#include <errno.h>

static bool name(uint32_t uid, const char *label, struct cw_job_id *ret)
{
	size_t len = label ? strnlen(label, sizeof(ret->label)) : 0;

	if (len == 0 || len == sizeof(ret->label))
		return false;
	*ret = (struct cw_job_id){ .uid = uid };
	memcpy(ret->label, label, len);
	return true;
}

int cw_job_id_make(uint32_t uid, const char *label, struct cw_job_id *ret)
{
	struct cw_job_id job;
	int r;

	if (!name(uid, label, &job))
		return -EINVAL;
	r = cw_job_key_make(uid, label, &job.key);
	if (r < 0)
		return r;
	*ret = job;
	return 0;
}

bool cw_job_id_claimed(const struct cw_job_key *key, uint32_t uid, const char *label,
		       struct cw_job_id *ret)
{
	if (!cw_job_key_is_set(key) || !name(uid, label, ret))
		return false;
	ret->key = *key;
	return true;
}

int cw_job_id_read(const struct cw_job_key *key, uint32_t uid, const char *label,
		   struct cw_job_id *ret)
{
	struct cw_job_id job;
	int r = cw_job_id_make(uid, label, &job);

	if (r < 0)
		return r;
	if (cw_job_key_is_set(key) && !cw_job_key_is_equal(key, &job.key))
		return -EBADMSG;
	*ret = job;
	return 0;
}
