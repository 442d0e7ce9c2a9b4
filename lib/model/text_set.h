/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded set of distinct texts, numbered from 1 on in the order of arrival. Use it for tens or
 * hundreds of texts: the search is linear. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_text_set {
	const char **texts; /* the set owns the texts; index = number - 1 */
	uint32_t n, max;    /* max is the limit of n */
	size_t bytes, max_bytes;
};

/*
 * Finds or adds a text and stores its number. If the set is full, *ret_number is 0. Returns 0 or
 * -ENOMEM.
 */
int cw_text_set_add(struct cw_text_set *set, const char *text, uint32_t *ret_number);

/* Frees all texts. The limit `max` stays. */
void cw_text_set_clear(struct cw_text_set *set);
