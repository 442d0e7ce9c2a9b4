/* SPDX-License-Identifier: Apache-2.0 */
/* What documents say of where a rank's process is, besides host and pid. */
#pragma once

#include <jansson.h>

struct cw_snap_rank;

/* Of one in a pod: pod, pod_namespace, container, own_pid, each where it is known. 0 or -1. */
int cw_process_doc_add_pod(json_t *doc, const struct cw_snap_rank *rank);
