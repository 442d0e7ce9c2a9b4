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
 * Adds the known ones of host_wait (of a living process), end_by and term_signal (of a dead one).
 * Advice decides by them. Returns 0 or -1.
 */
int cw_process_doc_add_state(json_t *doc, const struct cw_snap_rank *rank);
