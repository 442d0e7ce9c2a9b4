/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_output.h"

#include <stdio.h>
#include <unistd.h>

void cw_print_json(const json_t *doc)
{
	size_t flags = JSON_INDENT(1);

	if (isatty(STDOUT_FILENO))
		flags |= JSON_ENSURE_ASCII;
	(void)json_dumpf(doc, stdout, flags);
	(void)putchar('\n');
}
