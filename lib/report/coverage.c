/* SPDX-License-Identifier: Apache-2.0 */
#include "report/coverage.h"

#include <stdio.h>

#include "common/parse.h"

/* A century, in seconds. We ignore a larger age, because only a hostile document has one. */
#define MAX_AGE_S 3.2e9

uint32_t cw_coverage_seen_now(const struct cw_incident_coverage *coverage)
{
	uint32_t seen = coverage->ranks_seen;
	uint32_t gone = coverage->last_known ? coverage->last_known->count : 0;

	return gone <= seen ? seen - gone : seen;
}

bool cw_coverage_last_known(const struct cw_incident_coverage *coverage, char *buf, size_t len)
{
	const struct cw_incident_last_known *known = coverage->last_known;
	const char *ranks = known && known->ranks ? known->ranks : "";
	double age_s;
	char span[64];

	if (!known || !known->count)
		return false;
	age_s = known->age_s >= 0 && known->age_s < MAX_AGE_S ? known->age_s : 0;
	(void)snprintf(buf, len, "%s%s%s last heard from %s earlier",
		       known->count == 1 ? "rank" : "ranks", *ranks ? " " : "", ranks,
		       cw_format_duration((int64_t)(age_s * 1e9), span, sizeof(span)));
	return true;
}
