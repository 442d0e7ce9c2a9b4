/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects incidents of a list. The daemon filters its list before it cuts the list to the size
 * of a message; the command line filters again, because older daemons send the whole list. Pure;
 * any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Hosts kept per incident: an incident with more concerns a whole network, and the summary
 * counts them.
 */
#define CW_INCIDENT_HOSTS_MAX 64u

/* Every criterion that is set must hold. Strings are borrowed. */
struct cw_incident_filter {
	int64_t since_wall_ns; /* confirmed then or later; 0 = any time */
	const char *class;     /* as in model/verdict_types.c; NULL = any */
	const char *node;      /* a culprit ran on it; NULL = any */
	const char *job;       /* its label, or the part of it after the colon; NULL = any */
};

/* Writes the arguments of the control verb "incidents"; NULL = out of memory. */
json_t *cw_incident_filter_write(const struct cw_incident_filter *filter);
/* Reads them; strings are borrowed from arguments, which are untrusted. */
void cw_incident_filter_read(const json_t *arguments, struct cw_incident_filter *ret);

/* entry: an entry of collwatch.incidents/1 (docs/schemas.md). */
bool cw_incident_filter_matches(const struct cw_incident_filter *filter, const json_t *entry);
/* The same, from the values of an entry that does not exist yet. */
bool cw_incident_filter_wants(const struct cw_incident_filter *filter, const char *time,
			      const char *class, const char *job, const json_t *hosts);

/*
 * The hosts of an incident's or a post-mortem's culprits, each once: an array of strings. A final
 * null means that there are more than CW_INCIDENT_HOSTS_MAX. NULL = out of memory.
 */
json_t *cw_incident_filter_hosts(const json_t *head);
