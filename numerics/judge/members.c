/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/judge/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cw_member member_of(const struct cw_numerics_job *job, uint32_t sample,
				  enum cw_members_by by)
{
	const struct cw_numerics_rank *rank = &job->ranks[job->samples[sample].rank];
	struct cw_member m = { .sample = sample, .device = "" };

	if (by == CW_MEMBERS_BY_DEVICE && rank->device)
		m.device = rank->device;
	else if (by == CW_MEMBERS_BY_CUDA_DRIVER)
		m.version = rank->cuda_driver;
	else if (by == CW_MEMBERS_BY_NCCL)
		m.version = rank->nccl;
	return m;
}

static bool is_known(const struct cw_member *m)
{
	return *m->device || m->version;
}

static int compare_values(const struct cw_member *a, const struct cw_member *b)
{
	if (is_known(a) != is_known(b))
		return is_known(a) ? -1 : 1;
	if (a->version != b->version)
		return a->version < b->version ? -1 : 1;
	return strcmp(a->device, b->device);
}

static int compare_members(const void *a, const void *b)
{
	const struct cw_member *x = a, *y = b;
	int r = compare_values(x, y);

	return r ? r : (x->sample > y->sample) - (x->sample < y->sample);
}

bool cw_members_sort(const struct cw_numerics_job *job, const uint32_t *samples, uint32_t n,
		     enum cw_members_by by, struct cw_member *v)
{
	uint32_t end;

	for (uint32_t i = 0; i < n; i++)
		v[i] = member_of(job, samples[i], by);
	if (n == 0)
		return false;
	qsort(v, n, sizeof(*v), compare_members);
	end = cw_members_end(v, n, 0);
	return end < n && is_known(&v[end]);
}

uint32_t cw_members_end(const struct cw_member *v, uint32_t n, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < n && compare_values(&v[k], &v[i]) == 0)
		k++;
	return k;
}

char *cw_members_text(const struct cw_member *m, enum cw_members_by by, char *buf, size_t len)
{
	unsigned v = m->version;

	if (!is_known(m))
		(void)snprintf(buf, len, "%s", "");
	else if (by == CW_MEMBERS_BY_DEVICE)
		(void)snprintf(buf, len, "%s", m->device);
	else if (by == CW_MEMBERS_BY_CUDA_DRIVER)
		(void)snprintf(buf, len, "%u.%u", v / 1000, v % 1000 / 10);
	else if (v < 10000) /* the format of versions up to 2.8 */
		(void)snprintf(buf, len, "%u.%u.%u", v / 1000, v / 100 % 10, v % 100);
	else
		(void)snprintf(buf, len, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
	return buf;
}
