/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation for programs that end soon: if memory runs out, the program ends. Other programs must
 * not use these functions. Agent, daemon, their libraries and programs that live as long as jobs
 * handle each failed allocation instead. tests/rooms/arrows therefore admits only commands, rooms
 * that only commands use, and the laboratory.
 */
#pragma once

#include <stdarg.h>

/*
 * Returns `memory`, the result of any allocation. If `memory` is NULL, prints "collwatch: out of
 * memory" to standard error and calls exit(1). Do not pass the result of an allocation of zero
 * bytes, which may be NULL without an error.
 */
void *cw_or_exit(void *memory) __attribute__((returns_nonnull));
/*
 * Returns `r`, the result of any function. If `r` is -ENOMEM, ends the program like cw_or_exit().
 */
int cw_or_exit_result(int r);
/* Returns the formatted text; the caller frees it. */
char *cw_or_exit_printf(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));
char *cw_or_exit_vprintf(const char *fmt, va_list args)
	__attribute__((format(printf, 1, 0), returns_nonnull));
