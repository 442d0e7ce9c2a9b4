/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit_status.h"

#include <errno.h>

const struct cw_exit_row cw_exit_table[] = {
	{ CW_EXIT_OK, "healthy, or done" },
	{ CW_EXIT_ERROR, "usage or I/O error" },
	{ CW_EXIT_HANG, "a hang or another finding" },
	{ CW_EXIT_NO_DATA, "unknown: not enough data" },
	{ CW_EXIT_NOT_EXECUTABLE, "run: the program cannot be executed" },
	{ CW_EXIT_NOT_FOUND, "run: the program is not found" },
};
const size_t cw_exit_count = sizeof(cw_exit_table) / sizeof(*cw_exit_table);

void cw_exit_print(FILE *out, bool has_run)
{
	fputs("Exit status:\n", out);
	for (size_t i = 0; i < cw_exit_count; i++)
		if (has_run || cw_exit_table[i].status < CW_EXIT_NOT_EXECUTABLE)
			fprintf(out, "  %-13d %s\n", (int)cw_exit_table[i].status,
				cw_exit_table[i].meaning);
}

void cw_exit_print_scdoc(FILE *out)
{
	for (size_t i = 0; i < cw_exit_count; i++)
		fprintf(out, "%d\n\t%s\n", (int)cw_exit_table[i].status, cw_exit_table[i].meaning);
}

enum cw_exit cw_exit_of_exec(int error)
{
	return error == ENOENT || error == ENOTDIR ? CW_EXIT_NOT_FOUND : CW_EXIT_NOT_EXECUTABLE;
}
