/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "lab/demo/demo.h"

#define HIERARCHY "/sys/fs/cgroup/memory"

int demo_cgroup_make(struct demo *demo, int memory_mb, struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	char path[PATH_MAX], name[64], limit[32];
	int n = snprintf(limit, sizeof(limit), "%dM", memory_mb);

	snprintf(name, sizeof(name), HIERARCHY "/collwatch-demo.%d", (int)getpid());
	if (mkdir(name, 0755) < 0)
		return cw_err_set(err, errno,
				  "%s: %s (this scenario needs root and version 1 of "
				  "the memory controller)",
				  name, strerror(errno));
	snprintf(demo->cgroup, sizeof(demo->cgroup), "%s", name);
	snprintf(path, sizeof(path), "%s/memory.limit_in_bytes", demo->cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, limit, (size_t)n) != n)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	return 0;
}

void demo_cgroup_remove(struct demo *demo)
{
	if (demo->cgroup[0])
		(void)rmdir(demo->cgroup); /* if this fails, the cgroup stays, but is empty */
	demo->cgroup[0] = '\0';
}
