/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the key that the daemons of a cluster share, in the format of its file. */
#pragma once

#define CW_CLUSTER_KEY_BYTES 32
/* Size of the key's text: hexadecimal digits, a line feed and a NUL. */
#define CW_CLUSTER_KEY_TEXT (2 * CW_CLUSTER_KEY_BYTES + 2)

/*
 * Makes a key. Returns 0, or -EIO if the system has no random numbers. The caller wipes the key
 * after use.
 */
int cw_cluster_key_make(char text[CW_CLUSTER_KEY_TEXT]);
void cw_cluster_key_wipe(char text[CW_CLUSTER_KEY_TEXT]);
