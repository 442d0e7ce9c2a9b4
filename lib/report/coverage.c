/* SPDX-License-Identifier: Apache-2.0 */
#include "report/coverage.h"

#include <stdio.h>

#include "common/parse.h"
#include "report/json_util.h"

/* A century, in seconds. We ignore a larger age, because only a hostile document has one. */
#define MAX_AGE_S 3.2e9

json_int_t cw_coverage_seen_now(const json_t *coverage)
{
	json_int_t seen = cw_json_int(coverage, "ranks_seen", 0);
	json_int_t gone = cw_json_int(json_object_get(coverage, "last_known"), "count", 0);

	return gone > 0 && gone <= seen ? seen - gone : seen;
}

bool cw_coverage_last_known(const json_t *coverage, char *buf, size_t len)
{
	const json_t *known = json_object_get(coverage, "last_known");
	double age_s = json_number_value(json_object_get(known, "age_s"));
	const char *ranks = cw_json_str(known, "ranks", "");
	char span[64];

	if (cw_json_int(known, "count", 0) <= 0)
		return false;
	if (!(age_s >= 0 && age_s < MAX_AGE_S))
		age_s = 0;
	(void)snprintf(buf, len, "%s%s%s last heard from %s earlier",
		       cw_json_int(known, "count", 0) == 1 ? "rank" : "ranks", *ranks ? " " : "",
		       ranks, cw_format_duration((int64_t)(age_s * 1e9), span, sizeof(span)));
	return true;
}
