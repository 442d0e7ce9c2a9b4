/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_RECORD names a directory for copies of the record, for use without a daemon. The helper
 * thread writes them, so that a hung disk blocks no other thread. The exiting thread writes one
 * more copy when the process exits normally.
 */
#pragma once

/* Reads the variable. A thread of the application calls it once, after the record exists. */
void cw_save_start(void);

/*
 * Writes a copy if a second has passed since the last copy. Only the helper thread calls this.
 * Blocks on the disk.
 */
void cw_save_step(void);
