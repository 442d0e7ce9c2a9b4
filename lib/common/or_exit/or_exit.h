/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for programs that end soon: if there is none, the program ends. Agent, daemon, their
 * libraries and programs that live as long as jobs handle each failed allocation instead, so
 * tests/rooms/arrows admits only commands and the laboratory.
 */
#pragma once

#include <stdarg.h>

/*
 * Returns `memory`, the result of any allocation. If it is NULL, prints "collwatch: out of memory"
 * to standard error and calls exit(1). Do not pass the result of an allocation of zero bytes.
 */
void *cw_or_exit(void *memory) __attribute__((returns_nonnull));
/* Returns `r`, the result of any function. -ENOMEM ends the program in the same way. */
int cw_or_exit_result(int r);
/* Returns the text; the caller frees it. */
char *cw_or_exit_printf(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));
char *cw_or_exit_vprintf(const char *fmt, va_list args)
	__attribute__((format(printf, 1, 0), returns_nonnull));
