/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a scenario file, cut into words, with repeats and definitions expanded
 * (docs/lab/suite.md, "Repetition").
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define WORDS_MAX 48u
#define WORD_BYTES 128u

/* One line, variables replaced. */
struct words {
	unsigned line; /* in the file */
	uint32_t n;
	char w[WORDS_MAX][WORD_BYTES];
};

typedef int (*words_fn)(void *user, const struct words *words);

/*
 * Calls fn for each line that is not empty, at most max_lines times. 0, -EINVAL with "file:line: …"
 * in err, -E2BIG, -ENOMEM, or what fn returned.
 */
int words_read(const char *text, size_t len, const char *file, uint64_t max_lines, words_fn fn,
	       void *user, struct cw_err *err);
