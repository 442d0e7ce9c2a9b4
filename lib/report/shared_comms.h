/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds jobs that share a communicator. Such ranks belong to one job, but their environment gives
 * them different job labels. Then no leader sees all of them. The input is the nodes' lists of
 * communicators (collwatch.communicators/1). Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Why the ranks of a job have several labels. */
enum cw_split_cause {
	CW_SPLIT_USERS = 0,         /* the ranks run as different users */
	CW_SPLIT_NAMESPACES,        /* the ranks' pods are in different namespaces */
	CW_SPLIT_NAMESPACE_MISSING, /* some ranks state their namespace, others do not */
	/* some ranks set no COLLWATCH_JOB, and the launchers' names differ */
	CW_SPLIT_JOB_MISSING,
	CW_SPLIT_JOB_DIFFERS, /* all ranks set COLLWATCH_JOB, but to different values */
	CW_SPLIT__MAX,
};

/*
 * True if the caller should query the nodes for shared communicators. That is so if a job of this
 * collwatch.status/1 has another node as leader or lacks ranks.
 */
bool cw_shared_comms_may_be(const json_t *status);

/*
 * Finds the shared communicators in a collwatch.communicators/1, which may be NULL. Returns an
 * array of {"comm","nranks","jobs":[{"job","uid"}],"cause","missing","missing_in":[job]}. New
 * reference; NULL = out of memory.
 */
json_t *cw_shared_comms_find(const json_t *doc);

/* Formats one element of cw_shared_comms_find() as a sentence. */
void cw_shared_comms_format(const json_t *shared, char *buf, size_t len);
