/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the lines of a scenario file into words, and expands repeats and definitions
 * (docs/lab/suite.md, "Repetition").
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define LEXER_WORDS_MAX 48u
#define LEXER_WORD_BYTES 128u

/* One line, with its variables replaced. */
struct lexer_line {
	unsigned line; /* line number in the file */
	uint32_t n;
	char w[LEXER_WORDS_MAX][LEXER_WORD_BYTES];
};

typedef int (*lexer_fn)(void *user, const struct lexer_line *words);

/*
 * Calls fn for each line that is not empty, at most max_lines times. Returns 0; -EINVAL with
 * "file:line: …" in err; -E2BIG; or the result of fn.
 */
int lexer_read(const char *text, size_t len, const char *file, uint64_t max_lines, lexer_fn fn,
	       void *user, struct cw_err *err);
