/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the ranks of a job on several nodes. The local daemon forwards the questions to the
 * nodes' daemons; their answers join the local processes that `numerics` has read. Blocks: a second
 * per node, ten for a node without an answer.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "numerics/cli/numerics_gather.h"
#include "numerics/read/numerics_files.h"

struct numerics_nodes {
	const char *control; /* from cw_control_path() */
	const char *job;     /* the user's name for it */
	int64_t uid;         /* its user as given, -1 = any user */
	bool is_quiet;       /* show no progress */
};

/*
 * in: the local ranks, which fix the job's user and label; it also receives the names of silent
 * nodes. 0, and *ret_asked: a daemon answered here; or -ENOTUNIQ, -ENOMEM with err set.
 */
int numerics_nodes_gather(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
			  struct numerics_gather *g, bool *ret_asked, struct cw_err *err);
