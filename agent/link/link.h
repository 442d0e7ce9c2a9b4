/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread "collwatch": beats once a second, and the features with it, keeps a connection
 * to the node's daemon, hands it the record, answers its requests. The job never waits for it, and
 * it never waits for the daemon: a daemon that is absent, stopped or not reading costs a failed
 * connect a second.
 *
 * It never calls CUDA, NCCL or the loader, and holds no lock anybody else takes.
 */
#pragma once

/* Starts the thread; without it the record is complete all the same. Once, from cw_agent_start().
 */
void cw_link_start(void);

/*
 * Registers a process without a record, and with the errno for which there is none, so that the
 * daemon can report it. Tries once and waits for nothing. Instead of cw_link_start(), by the thread
 * that would call it. Changes errno.
 */
void cw_link_report_no_record(int error);
