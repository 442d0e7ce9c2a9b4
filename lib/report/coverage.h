/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a report describes an incident's coverage: the ranks visible at that time, and separately the
 * ranks on nodes that had stopped reporting. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns the number of ranks that were visible when the incident was confirmed. coverage may
 * be NULL.
 */
json_int_t cw_coverage_seen_now(const json_t *coverage);

/*
 * Writes "ranks 0-3 last heard from 18 s earlier" into buf: the ranks on nodes that had stopped
 * reporting. Returns false and leaves buf untouched if there are none.
 */
bool cw_coverage_last_known(const json_t *coverage, char *buf, size_t len);
