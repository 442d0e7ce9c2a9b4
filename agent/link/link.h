/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread "collwatch". Once a second it stores a beat (the current time) in the record
 * and calls the features' beat. It keeps a connection to the node's daemon, passes the record to
 * the daemon, and answers its requests. The job never waits for the helper thread, and the helper
 * thread never waits for the daemon. If the daemon is absent, stopped or not reading, the helper
 * thread only retries, a few times a second at most.
 *
 * The helper thread never calls CUDA, NCCL or the loader, and shares no lock with other threads.
 */
#pragma once

/*
 * Starts the helper thread. If that fails, this process has no connection to the daemon, but the
 * record is still complete. cw_agent_start() calls this function once.
 */
void cw_link_start(void);

/*
 * Reports to the daemon that this process has no record. `error` is the errno that explains why.
 * Tries once and never blocks. Call this function instead of cw_link_start(), in the same thread.
 * Changes errno.
 */
void cw_link_report_no_record(int error);
