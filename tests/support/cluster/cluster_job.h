/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job of the cluster in memory: the calls of its ranks, and the digests of their nodes. Only
 * cluster.c uses it. Tests set its faults by cluster_fault() and cluster_heal().
 */
#pragma once

#include "cluster.h"

/* Sends the node's digests of the ranks that the node sees; none if it sees no rank. */
void cluster_job_publish(struct cluster *c, struct network_node *n);
/* Sends the node's windows to the asking node `from`; q is borrowed. */
void cluster_job_answer_windows(struct cluster *c, struct network_node *n, const char *from,
				const struct cw_msg_window_request *q);
/* Makes the job's steps that are due by now. */
void cluster_job_train(struct cluster *c);
