/* SPDX-License-Identifier: Apache-2.0 */
/*
 * English text from sayings (model/saying.h) and from the names of their arguments. Pure; any
 * thread; nothing blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/saying.h"

/*
 * Writes the clause's text into buf and ends it with a NUL. A text that does not fit is cut. Names
 * in the text are as they came from outside: whoever prints the text replaces treacherous
 * characters (common/text.h). Returns buf.
 */
char *cw_say_text(const struct cw_clause *clause, char *buf, size_t len);

/* True if the clause ends with a full stop, so that another sentence may follow. */
bool cw_say_ends_sentence(const struct cw_clause *clause);

/* Like cw_say_text() for one argument: "ranks 0-2", "rank 3 (node-a, pid 812)", "12 s". */
char *cw_say_arg(const struct cw_arg *arg, char *buf, size_t len);

/*
 * "all_reduce"; for calls that make or end communicators NCCL's function, "ncclCommSplit". For
 * CW_OP_NONE "collective", because the record then still has the number of the call. Static.
 */
const char *cw_say_call_kind(unsigned kind);
