/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster_key.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

int cw_cluster_key_make(char text[CW_CLUSTER_KEY_TEXT])
{
	unsigned char bytes[CW_CLUSTER_KEY_BYTES];

	if (RAND_priv_bytes(bytes, sizeof(bytes)) != 1)
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	memcpy(text + 2 * sizeof(bytes), "\n", 2);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return 0;
}

void cw_cluster_key_wipe(char text[CW_CLUSTER_KEY_TEXT])
{
	OPENSSL_cleanse(text, CW_CLUSTER_KEY_TEXT);
}
