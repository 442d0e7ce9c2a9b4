/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job of the cluster in memory: what its ranks have called, and what their nodes say of it. For
 * cluster.c alone; tests give it faults by cluster_fault() and cluster_heal().
 */
#pragma once

#include "cluster.h"

/* The node's digests, with those of its ranks that it sees; none when it sees none. */
void cluster_job_publish(struct cluster *c, struct network_node *n);
/* Sends the node's windows to the one that asks; q is borrowed. */
void cluster_job_answer_windows(struct cluster *c, struct network_node *n, const char *from,
				const struct cw_msg_window_request *q);
/* Takes the steps that are due by now. */
void cluster_job_train(struct cluster *c);
