/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a job that runs on several nodes: their daemons' answers, by way of the daemon here,
 * beside what `numerics` has read of the processes on this host. Blocks, some seconds for a node
 * that does not answer.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "import/numerics_files.h"

struct numerics_nodes {
	const char *control; /* of cw_control_path() */
	const char *job;     /* as people name it */
	int64_t uid;         /* whose; -1 = of whoever has one */
	bool is_quiet;       /* no progress is shown */
};

/*
 * in: what was read here; of this node the daemon is asked only where that was nothing. Ranks that
 * were found are added, and nodes that did not answer named in it. 0, also where no daemon is here
 * or it knows nothing: then there is nothing more; -ENOTUNIQ, -EBADMSG, -E2BIG, -ENOMEM with err
 * set.
 */
int numerics_nodes_add(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
		       struct cw_err *err);
