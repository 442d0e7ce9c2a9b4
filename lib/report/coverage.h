/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a report describes an incident's coverage: the ranks visible at that time, and separately the
 * ranks on nodes that had stopped reporting. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/incident_list.h"

/* Returns the number of ranks that were visible when the incident was confirmed. */
uint32_t cw_coverage_seen_now(const struct cw_incident_coverage *coverage);

/*
 * Writes "ranks 0-3 last heard from 18 s earlier" into buf: the ranks on nodes that had stopped
 * reporting. Returns false and leaves buf untouched if there are none.
 */
bool cw_coverage_last_known(const struct cw_incident_coverage *coverage, char *buf, size_t len);
