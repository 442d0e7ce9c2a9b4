/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects incidents from a list. The daemon filters its list before it cuts it to the size of
 * a message. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * At most this many hosts are kept per incident. An incident with more of them concerns a whole
 * network, and the summary gives their number.
 */
#define CW_INCIDENT_HOSTS_MAX 64u

/* Every criterion that is set must hold. Strings are borrowed. */
struct cw_incident_filter {
	int64_t since_wall_ns; /* confirmed then or later; 0 = any time */
	const char *class;     /* as in model/verdict_types.c; NULL = any */
	const char *node;      /* a culprit ran on it; NULL = any */
	const char *job;       /* the job's label, or the part after its colon; NULL = any */
};

/* Writes the arguments of the control verb "incidents"; NULL = out of memory. */
json_t *cw_incident_filter_write(const struct cw_incident_filter *filter);
/*
 * Reads the arguments that cw_incident_filter_write() wrote. They are untrusted, and strings are
 * borrowed from them.
 */
void cw_incident_filter_read(const json_t *arguments, struct cw_incident_filter *ret);

/* True if an entry of collwatch.incidents/1 (docs/schemas.md) with these values fits the filter. */
bool cw_incident_filter_wants(const struct cw_incident_filter *filter, const char *time,
			      const char *class, const char *job, const json_t *hosts);

/*
 * Returns the hosts of the culprits of an incident or a post-mortem, each once, as an array of
 * strings. A final null means that there are more than CW_INCIDENT_HOSTS_MAX. New reference;
 * NULL = out of memory.
 */
json_t *cw_incident_filter_hosts(const json_t *head);
