/* SPDX-License-Identifier: Apache-2.0 */
/* The key that the daemons of one cluster share: made anew, as its file has it. */
#pragma once

#define CW_CLUSTER_KEY_BYTES 32
/* Hexadecimal digits, the end of the line, and 0. */
#define CW_CLUSTER_KEY_TEXT (2 * CW_CLUSTER_KEY_BYTES + 2)

/* 0, or -EIO where there are no random numbers. Whoever is done with it wipes it. */
int cw_cluster_key_make(char text[CW_CLUSTER_KEY_TEXT]);
void cw_cluster_key_wipe(char text[CW_CLUSTER_KEY_TEXT]);
