/* SPDX-License-Identifier: Apache-2.0 */
#include "common/htable.h"

unsigned cw_htable_hash(const void *key, size_t len)
{
	unsigned hash;

	HASH_JEN(key, len, hash);
	return hash;
}
