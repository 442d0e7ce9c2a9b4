/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves copies of the record for use without a daemon, in the directory that COLLWATCH_RECORD
 * names. The helper thread writes the copies, so that a hung disk blocks no other thread. When the
 * process exits normally, the exiting thread writes one more copy.
 */
#pragma once

/*
 * Reads COLLWATCH_RECORD. A thread of the application calls this function once, after the record
 * exists.
 */
void cw_save_start(void);

/*
 * Writes a copy if a second has passed since the last copy. Only the helper thread calls this
 * function. Blocks on the disk.
 */
void cw_save_step(void);
