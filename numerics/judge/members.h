/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the platforms of a call's members: the models of devices, and the versions of driver
 * and NCCL.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numerics/judge/numerics.h"

enum cw_members_by {
	CW_MEMBERS_BY_DEVICE,
	CW_MEMBERS_BY_CUDA_DRIVER,
	CW_MEMBERS_BY_NCCL,
	CW_MEMBERS_BY__MAX,
};

struct cw_member {
	uint32_t sample;
	const char *device; /* never NULL */
	uint32_t version;   /* version of driver or NCCL, whichever we sort by */
};

/*
 * Sorts the members of these n summaries into v, which has room for n. Members with equal
 * properties become adjacent; those with an unknown property come last. Returns true if known
 * properties differ.
 */
bool cw_members_sort(const struct cw_numerics_job *job, const uint32_t *samples, uint32_t n,
		     enum cw_members_by by, struct cw_member *v);

/* Returns the end of the members with the same property as v[i]. */
uint32_t cw_members_end(const struct cw_member *v, uint32_t n, uint32_t i);

/* Writes "NVIDIA H100 80GB HBM3", "12.4" or "2.27.3"; "" = unknown. Returns buf. */
char *cw_members_text(const struct cw_member *m, enum cw_members_by by, char *buf, size_t len);
