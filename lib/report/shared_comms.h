/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that share a communicator. Their ranks belong to one job, but their environment gives them
 * several labels, so that no leader sees all of them. We find them in the nodes' lists of
 * communicators (collwatch.communicators/1). Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Why the job has several labels. */
enum cw_split_cause {
	CW_SPLIT_USERS = 0,         /* they run as different users */
	CW_SPLIT_NAMESPACES,        /* their pods are in different namespaces */
	CW_SPLIT_NAMESPACE_MISSING, /* some ranks state their namespace, and some do not */
	CW_SPLIT_JOB_MISSING,       /* some set no COLLWATCH_JOB, and the launcher's names differ */
	CW_SPLIT_JOB_DIFFERS,       /* all set COLLWATCH_JOB, to different values */
	CW_SPLIT__MAX,
};

/*
 * True if a query for shared communicators is worthwhile: a job of this collwatch.status/1 is led
 * by another node or lacks ranks.
 */
bool cw_shared_comms_may_be(const json_t *status);

/*
 * Returns an array of
 * {"comm","nranks","jobs":[{"job","uid"}],"cause","missing","missing_in":[job]}. doc may be NULL.
 * New reference; NULL = out of memory.
 */
json_t *cw_shared_comms_find(const json_t *doc);

/* Formats one element of cw_shared_comms_find() as a sentence. */
void cw_shared_comms_format(const json_t *shared, char *buf, size_t len);
