/* SPDX-License-Identifier: Apache-2.0 */
/* Document members that say where a rank's process runs, besides host and pid. */
#pragma once

#include <jansson.h>

struct cw_snap_rank;

/*
 * If the process runs in a pod, adds the known ones of pod, pod_namespace, container and own_pid.
 * Returns 0 or -1.
 */
int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank);
