/* SPDX-License-Identifier: Apache-2.0 */
/* Sayings as text, for assertions and their messages. */
#pragma once

#include "model/verdict_types.h"
#include "say/english.h"

/* Static; each call writes over the fourth call before it. */
static inline const char *said_text(const struct cw_clause *clause)
{
	static char texts[4][CW_VERDICT_TEXT_MAX];
	static unsigned next;

	next = (next + 1) % 4;
	return cw_say_text(clause, texts[next], sizeof(texts[next]));
}
