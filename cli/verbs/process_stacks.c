/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/process_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "python/reader/python_doc.h"

static json_t *read_python(pid_t pid)
{
	struct cw_python_process *process;
	int r = cw_python_process_open(pid, &process);
	json_t *part;

	if (r < 0)
		return cw_python_doc_not_opened(r);
	part = cw_python_doc(process, pid);
	(void)cw_python_process_free(process); /* always NULL */
	return part;
}

/* Writes the start of the process in clock ticks, field 22 of stat; see proc(5). */
static void read_start(pid_t pid, char *ret, size_t size)
{
	char path[32], text[1024], *field;
	FILE *file;
	size_t n;

	(void)snprintf(ret, size, "0");
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	n = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	text[n] = '\0';
	field = strrchr(text, ')'); /* the name before the ) may contain any character */
	for (unsigned i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	if (field)
		(void)snprintf(ret, size, "%.*s", (int)strspn(field + 1, "0123456789"), field + 1);
}

int cw_process_stacks_read(pid_t pid, json_t **ret)
{
	char taken[32], start[24], host[256] = "";
	json_t *doc;

	read_start(pid, start, sizeof(start));
	(void)gethostname(host, sizeof(host) - 1); /* "" if it fails */
	(void)cw_wall_format(cw_clock_wall_ns(&cw_clock_system), taken);
	doc = json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:n, s:n, s:o}", "schema",
			"collwatch.evidence/1", "host", host, "pid", (int)pid, "start_ticks", start,
			"rank", -1, "taken", taken, "proc", "native", "python", read_python(pid));
	if (!doc)
		return -ENOMEM;
	*ret = doc;
	return 0;
}
