/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects incidents from a list. The daemon filters first and then cuts the list to the size of a
 * message. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/incident_list.h"

/*
 * We keep at most this many hosts per incident. An incident with more hosts concerns a whole
 * network, and its summary gives the number.
 */
#define CW_INCIDENT_HOSTS_MAX 64u

/*
 * Criteria for incidents. An incident must meet every criterion that is set. Strings are borrowed.
 */
struct cw_incident_filter {
	int64_t since_wall_ns; /* the earliest time of confirmation, wall ns; 0 = any time */
	const char *class;     /* name of the class as in model/verdict_types.c; NULL = any */
	const char *node;      /* name of a node that a culprit ran on; NULL = any */
	const char *job;       /* the job's label, or the part after its colon; NULL = any */
};

/* Writes the arguments of the control verb "incidents"; NULL = out of memory. */
json_t *cw_incident_filter_write(const struct cw_incident_filter *filter);
/*
 * Reads the untrusted arguments that cw_incident_filter_write() wrote. *ret borrows strings from
 * them.
 */
void cw_incident_filter_read(const json_t *arguments, struct cw_incident_filter *ret);

/*
 * True if an entry of collwatch.incidents/1 (docs/schemas.md) meets the filter. The caller passes
 * the values of the entry.
 */
bool cw_incident_filter_wants(const struct cw_incident_filter *filter, const char *time,
			      const char *class, const char *job, const json_t *hosts);

/*
 * Returns the hosts of the culprits of an incident or post-mortem as an array of strings, each host
 * once. If there are more than CW_INCIDENT_HOSTS_MAX, the array ends with null. New reference; NULL
 * = out of memory.
 */
json_t *cw_incident_filter_hosts(const struct cw_incident_facts *incident);
