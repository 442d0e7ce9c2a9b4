/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes English text from sayings (model/saying.h) and their arguments. Pure; any thread; nothing
 * blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/saying.h"

/*
 * Writes the clause's text into buf and ends it with a NUL. We cut a text that does not fit. Names
 * in the text come from outside and may contain treacherous characters. The code that prints the
 * text replaces these characters (common/text.h). Returns buf.
 */
char *cw_say_text(const struct cw_clause *clause, char *buf, size_t len);

/* True if the clause ends with a full stop, so that another sentence may follow. */
bool cw_say_ends_sentence(const struct cw_clause *clause);

/*
 * Like cw_say_text(), for one argument. Examples: "ranks 0-2", "rank 3 (node-a, pid 812)", "12 s".
 */
char *cw_say_arg(const struct cw_arg *arg, char *buf, size_t len);

/*
 * Returns the name of a kind of call: "all_reduce". For calls that make or end communicators the
 * name is NCCL's function, for example "ncclCommSplit". Otherwise the name is that of
 * cw_op_kind_text(). The text is static.
 */
const char *cw_say_call_kind(unsigned kind);
