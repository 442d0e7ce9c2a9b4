/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_RECORD: copies of the record in a directory, for use without a daemon. Written by the
 * helper thread, so that a disk that hangs holds up nobody else, and once more when the process
 * ends by itself.
 */
#pragma once

/* Reads the variable. Once, by a thread of the application, when the record is there. */
void cw_save_start(void);

/* Writes when a second has passed. Helper thread; blocks on the disk. */
void cw_save_step(void);
