/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a page is well-formed. It is a small reader of XML's structure, because tests have no
 * parser.
 */
#pragma once

#include <stdbool.h>

/*
 * True if the page is well-formed: every tag is closed in order, attributes are quoted, and no bare
 * '<' or '&' is in text. The page must also contain no script and nothing that a browser would
 * fetch or run. On false *ret_at points to the first fault.
 */
bool markup_is_harmless(const char *page, const char **ret_at);
