/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinct texts, numbered from 1 on in the order they came; as many as are allowed. For tens or
 * hundreds of them: they are compared one by one. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_text_set {
	const char **texts; /* number - 1; owned */
	uint32_t n, max;    /* max: how many there may be */
	size_t bytes, max_bytes;
};

/* The number of a text that is in it or comes into it; 0 = there is no place. 0 or -ENOMEM. */
int cw_text_set_add(struct cw_text_set *set, const char *text, uint32_t *ret_number);

/* Forgets all texts; what is allowed stays. */
void cw_text_set_clear(struct cw_text_set *set);
