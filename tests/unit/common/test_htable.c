/* SPDX-License-Identifier: Apache-2.0 */
#include "common/htable.h"

#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#define KEY_MAX 64

Test(htable, hashes_keys_of_any_length_and_place_as_uthash)
{
	char bytes[KEY_MAX + 8];

	for (size_t len = 0; len <= KEY_MAX; len++) {
		for (size_t at = 0; at < 8; at++) {
			unsigned wanted;

			for (size_t i = 0; i < len; i++)
				bytes[at + i] = (char)(i * 37 + len);
			HASH_JEN(bytes + at, len, wanted);
			cr_expect_eq(cw_htable_hash(bytes + at, len), wanted, "%zu at %zu", len,
				     at);
		}
	}
}

Test(htable, finds_each_of_a_thousand_elements_and_no_other)
{
	struct element {
		uint64_t key;
		UT_hash_handle hh;
	} elements[1000], *table = NULL, *found;
	uint64_t key;

	memset(elements, 0, sizeof(elements));
	for (uint64_t i = 0; i < 1000; i++) {
		elements[i].key = i << 40 | i;
		HASH_ADD(hh, table, key, sizeof(elements[i].key), &elements[i]);
		cr_assert(cw_htable_added(&elements[i]));
	}
	for (uint64_t i = 0; i < 1000; i++) {
		key = i << 40 | i;
		HASH_FIND(hh, table, &key, sizeof(key), found);
		cr_expect_eq(found, &elements[i]);
		key++;
		HASH_FIND(hh, table, &key, sizeof(key), found);
		cr_expect_null(found);
	}
	HASH_CLEAR(hh, table);
}
