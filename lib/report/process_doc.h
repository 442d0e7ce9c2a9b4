/* SPDX-License-Identifier: Apache-2.0 */
/* Adds members about the place and the state of a rank's process to a document. */
#pragma once

#include <jansson.h>

struct cw_snap_rank;

/*
 * If the process runs in a pod, adds the members pod, pod_namespace, container and own_pid, if
 * known. Returns 0 or -1.
 */
int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank);

/*
 * If we know the cause of the process's death or stop, adds cause_kind and cause_by. Returns 0 or
 * -1.
 */
int cw_process_doc_add_cause(json_t *doc, const struct cw_snap_rank *rank);

/*
 * Returns the verb between a process and the text of its cause: "was ", or "" if the text has a
 * verb. doc must contain the members that cw_process_doc_add_cause() adds.
 */
const char *cw_process_doc_verb(const json_t *doc);
