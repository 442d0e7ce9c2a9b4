/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a job that runs on several nodes: their daemons' answers, by way of the daemon here,
 * beside what `numerics` has read of the processes on this host. Blocks: a second for a node, ten
 * for one that does not answer.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "numerics/cli/numerics_gather.h"
#include "numerics/read/numerics_files.h"

struct numerics_nodes {
	const char *control; /* of cw_control_path() */
	const char *job;     /* as people name it */
	int64_t uid;         /* whose, as they said; -1 = of whoever has one */
	bool is_quiet;       /* no progress is shown */
};

/*
 * in: what was read here, whose job's user and label are kept to; nodes that did not answer are
 * named in it. 0, with *ret_asked: a daemon was here; or -ENOTUNIQ, -ENOMEM with err set.
 */
int numerics_nodes_gather(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
			  struct numerics_gather *g, bool *ret_asked, struct cw_err *err);
