/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/blocked_on.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/kernel/procfs.h"

#define MAX_PATH_BYTES 256u
#define MAX_NAME_BYTES 128u
/* Maximum size of mountinfo. A node with a thousand mounts has some 150 KiB. */
#define MAX_MOUNTINFO (1u << 20)

/* System calls whose first argument is the descriptor that they use. */
static const long on_descriptor[] = {
	SYS_read,       SYS_write,     SYS_readv,           SYS_writev,    SYS_pread64,
	SYS_pwrite64,   SYS_preadv,    SYS_pwritev,         SYS_preadv2,   SYS_pwritev2,
	SYS_fsync,      SYS_fdatasync, SYS_ftruncate,       SYS_fallocate, SYS_ioctl,
	SYS_getdents64, SYS_syncfs,    SYS_sync_file_range, SYS_sendfile,  SYS_close,
	SYS_fstat,      SYS_lseek,     SYS_fadvise64,       SYS_flock,
};

/*
 * Returns the descriptor that the thread's system call uses. -1 = the thread is in none of these
 * calls.
 */
static int descriptor_of_call(pid_t pid, pid_t tid)
{
	char text[256];
	int64_t number;
	uint64_t fd;

	if (cw_procfs_read_task(pid, tid, "syscall", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%" SCNd64 " %" SCNx64, &number, &fd) != 2)
		return -1;
	for (size_t i = 0; i < sizeof(on_descriptor) / sizeof(on_descriptor[0]); i++)
		if (on_descriptor[i] == number)
			return fd <= INT_MAX ? (int)fd : -1;
	return -1;
}

int cw_blocked_on_mount(const char *mountinfo, int mount_id, json_t *doc)
{
	const char *line = mountinfo;
	char device[24], fs[64], source[256];
	int id;

	for (; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *end = line + strcspn(line, "\n");
		const char *dash = strstr(line, " - ");

		/*
		 * A line is "36 35 98:0 /root /mount options … - type source options"; see proc(5).
		 */
		if (sscanf(line, "%d %*d %23s", &id, device) != 2 || id != mount_id)
			continue;
		if (!dash || dash > end || sscanf(dash + 3, "%63s %255s", fs, source) != 2)
			return -ENOENT;
		(void)json_object_set_new(doc, "device",
					  cw_evidence_text(device, strlen(device), sizeof(device)));
		(void)json_object_set_new(doc, "fs",
					  cw_evidence_text(fs, strlen(fs), MAX_NAME_BYTES));
		(void)json_object_set_new(doc, "source",
					  cw_evidence_text(source, strlen(source), MAX_NAME_BYTES));
		return 0;
	}
	return -ENOENT;
}

static void add_mount(pid_t pid, int fd, json_t *doc)
{
	_cleanup_(freep) char *mounts = malloc(MAX_MOUNTINFO);
	char file[40], text[4096];
	const char *at;
	int id;

	(void)snprintf(file, sizeof(file), "fdinfo/%d", fd);
	if (!mounts || cw_procfs_read(pid, file, text, sizeof(text)) <= 0)
		return;
	at = strstr(text, "mnt_id:");
	if (at && sscanf(at, "mnt_id: %d", &id) == 1 &&
	    cw_procfs_read(pid, "mountinfo", mounts, MAX_MOUNTINFO) > 0)
		/* Fails for a pipe or a socket, which is on no mount. */
		(void)cw_blocked_on_mount(mounts, id, doc);
}

json_t *cw_blocked_on(pid_t pid, pid_t tid)
{
	int fd = descriptor_of_call(pid, tid);
	char link[64], path[PATH_MAX];
	json_t *doc;
	ssize_t n;

	if (fd < 0)
		return NULL;
	(void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, fd);
	/* Does not block, because the kernel has the path in memory. */
	n = readlink(link, path, sizeof(path));
	if (n <= 0)
		return NULL;
	doc = json_pack("{s:i, s:o, s:n, s:n, s:n}", "fd", fd, "path",
			cw_evidence_text(path, (size_t)n, MAX_PATH_BYTES), "device", "fs",
			"source");
	if (doc)
		add_mount(pid, fd, doc);
	return doc;
}
