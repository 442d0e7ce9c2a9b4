/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

FILE *cw_page_file_open(const char *path)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640) : -1;
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!path)
		return stdout;
	if (out)
		return out;
	fprintf(stderr, "collwatch: cannot write %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return NULL;
}

int cw_page_file_close(FILE *out, int r)
{
	if (out != stdout && fclose(out) != 0 && r == 0)
		return -errno;
	return r;
}
