/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the ranks of a job on several nodes. The local daemon forwards our queries to the
 * daemons of the nodes. We add their answers to the local processes that `numerics` has read.
 * Blocks for a second per node, and for ten seconds for a node without an answer.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "numerics/cli/numerics_gather.h"
#include "numerics/read/numerics_files.h"

struct numerics_nodes {
	const char *control; /* path of the control socket, from cw_control_path() */
	const char *job;     /* the user's name for the job */
	int64_t uid;         /* the job's user if given; -1 = any user */
	bool is_quiet;       /* show no progress */
};

/*
 * Adds the ranks of all nodes to g. in: the local ranks, which determine the job's user and label;
 * it also receives the names of nodes without an answer. Returns 0; *ret_asked says whether a local
 * daemon answered. -ENOTUNIQ, -ENOMEM: err is set.
 */
int numerics_nodes_gather(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
			  struct numerics_gather *g, bool *ret_asked, struct cw_err *err);
