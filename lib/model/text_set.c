/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int append(struct cw_text_set *set, const char *text, size_t bytes)
{
	/*
	 * We use realloc(), because reallocarray() needs glibc 2.26. The product cannot overflow: n
	 * is below 2^32.
	 */
	const char **more = realloc(set->texts, ((size_t)set->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	set->texts = more;
	more[set->n] = strdup(text);
	if (!more[set->n])
		return -ENOMEM;
	set->n++;
	set->bytes += bytes;
	return 0;
}

int cw_text_set_add(struct cw_text_set *set, const char *text, uint32_t *ret_number)
{
	size_t bytes = strlen(text) + 1;
	int r;

	for (uint32_t i = 0; i < set->n; i++) {
		if (strcmp(set->texts[i], text) == 0) {
			*ret_number = i + 1;
			return 0;
		}
	}
	*ret_number = 0;
	if (set->n >= set->max || bytes > set->max_bytes - set->bytes)
		return 0;
	r = append(set, text, bytes);
	if (r == 0)
		*ret_number = set->n;
	return r;
}

void cw_text_set_clear(struct cw_text_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		free((char *)(uintptr_t)set->texts[i]);
	free(set->texts);
	set->texts = NULL;
	set->n = 0;
	set->bytes = 0;
}
