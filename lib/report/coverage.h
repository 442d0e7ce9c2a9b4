/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report says of an incident's coverage: the ranks that were seen at that time, apart from
 * those of a node that had stopped reporting. Documents of before have no such part. Pure; any
 * thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Ranks that were seen when the incident was confirmed; coverage may be NULL. */
json_int_t cw_coverage_seen_now(const json_t *coverage);

/* "ranks 0-3 last heard from 18 s earlier" into buf. False: there are none; buf is untouched. */
bool cw_coverage_last_known(const json_t *coverage, char *buf, size_t len);
