/* SPDX-License-Identifier: Apache-2.0 */
#include "common/or_exit/or_exit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void *cw_or_exit(void *memory)
{
	if (memory)
		return memory;
	fputs("collwatch: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

int cw_or_exit_result(int r)
{
	if (r == -ENOMEM)
		(void)cw_or_exit(NULL);
	return r;
}

char *cw_or_exit_vprintf(const char *fmt, va_list args)
{
	char *text;

	return cw_or_exit(vasprintf(&text, fmt, args) < 0 ? NULL : text);
}

char *cw_or_exit_printf(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = cw_or_exit_vprintf(fmt, args);
	va_end(args);
	return text;
}
