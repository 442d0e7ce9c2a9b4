/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a page is well-formed: a small reader of XML's structure, for tests without a parser. */
#pragma once

#include <stdbool.h>

/*
 * Every tag closed in order, attributes quoted, no bare '<' or '&' in text, no script, nothing that
 * would be fetched or run. On false *ret_at points to where it is not so.
 */
bool markup_is_harmless(const char *page, const char **ret_at);
