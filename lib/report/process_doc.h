/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a document about where a rank's process runs, besides host and pid. */
#pragma once

#include <jansson.h>

struct cw_snap_rank;

/*
 * Adds the known ones of pod, pod_namespace, container and own_pid if the process runs in a pod. 0
 * or -1.
 */
int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank);
