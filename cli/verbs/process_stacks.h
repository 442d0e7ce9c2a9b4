/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads stacks for `collwatch stacks --pid`: the Python stacks of one process on this machine, with
 * the rights of the caller. Needs no agent in the process and no daemon.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/*
 * Reads the stacks. *ret is a collwatch.evidence/1 object (docs/schemas.md). Its python part has
 * the stacks, or the reason why there are none. Returns 0 or -ENOMEM. Blocks while another thread
 * holds the memory lock of the process.
 */
int cw_process_stacks_read(pid_t pid, json_t **ret);
