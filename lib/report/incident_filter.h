/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which incidents of a list somebody wants to see. The daemon filters what it lists, before it cuts
 * the list to what fits a message; the command line filters again what older daemons sent whole.
 * Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Hosts kept of one incident: more are those of a whole network, and the summary counts them. */
#define CW_INCIDENT_HOSTS_MAX 64u

/* What is set must hold, all of it. Strings are borrowed. */
struct cw_incident_filter {
	int64_t since_wall_ns; /* confirmed then or later; 0 = any time */
	const char *class;     /* as in model/verdict_types.c; NULL = any */
	const char *node;      /* a culprit was on it; NULL = any */
	const char *job;       /* its label, or the part of it after the colon; NULL = any */
};

/* The arguments of the control verb "incidents"; NULL = out of memory. */
json_t *cw_incident_filter_write(const struct cw_incident_filter *filter);
/* The other way; strings are borrowed from arguments, which may be anybody's. */
void cw_incident_filter_read(const json_t *arguments, struct cw_incident_filter *ret);

/* entry: one of a collwatch.incidents/1 (docs/schemas.md). */
bool cw_incident_filter_matches(const struct cw_incident_filter *filter, const json_t *entry);
/* The same of what is in such an entry, before there is one. */
bool cw_incident_filter_wants(const struct cw_incident_filter *filter, const char *time,
			      const char *class, const char *job, const json_t *hosts);

/*
 * The hosts of an incident's or an epitaph's culprits, each once: an array of strings, with null
 * behind them where there are more than CW_INCIDENT_HOSTS_MAX. NULL = out of memory.
 */
json_t *cw_incident_filter_hosts(const json_t *head);
