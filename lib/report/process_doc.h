/* SPDX-License-Identifier: Apache-2.0 */
/* Document members about the place and the state of a rank's process. */
#pragma once

#include <jansson.h>

struct cw_snap_rank;

/*
 * If the process runs in a pod, adds the known ones of pod, pod_namespace, container and own_pid.
 * Returns 0 or -1.
 */
int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank);

/*
 * Adds the known ones of host_wait (of a living process), end_by and term_signal (of a dead one),
 * and cw_process_doc_add_cause(). Advice decides by them. Returns 0 or -1.
 */
int cw_process_doc_add_state(json_t *doc, const struct cw_snap_rank *rank);

/* If the cause of its death or stop is known, adds cause_kind and cause_by. Returns 0 or -1. */
int cw_process_doc_add_cause(json_t *doc, const struct cw_snap_rank *rank);

/*
 * The verb between a process and the text of its cause, in a document with these members: "was ",
 * or "" if that text has a verb of its own.
 */
const char *cw_process_doc_verb(const json_t *doc);
