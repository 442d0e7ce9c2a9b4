/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collwatch stacks --pid`: the Python stacks of one process on this machine, with the rights of
 * the caller. Needs no agent in the process and no daemon.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/*
 * Reads the stacks. *ret is one collwatch.evidence/1 object (docs/schemas.md) whose python part
 * has the stacks, or the reason why there are none. 0 or -ENOMEM. Blocks while the process's memory
 * lock is held.
 */
int cw_process_stacks_read(pid_t pid, json_t **ret);
