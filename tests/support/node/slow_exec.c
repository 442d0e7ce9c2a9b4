/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for the part of FUSE that is needed to open one file. It never answers the request to
 * close the file.
 */
#include "tests/support/node/slow_exec.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_INODE 2

static void fill_attr(struct fuse_attr *attr, uint64_t ino)
{
	*attr = (struct fuse_attr){ .ino = ino,
				    .mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
				    .nlink = 1,
				    .blksize = 4096 };
}

/*
 * Makes the answer to a request. Returns its bytes after the header, or -1 for no answer.
 * *ret_error: -errno for the header.
 */
static ssize_t answer(const struct fuse_in_header *in, void *out, int *ret_error)
{
	struct fuse_init_out *init = out;
	struct fuse_attr_out *attr = out;
	struct fuse_entry_out *entry = out;

	switch (in->opcode) {
	case FUSE_INIT:
		*init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
						.minor = 31,
						.max_readahead = 65536,
						.max_write = 65536,
						.time_gran = 1 };
		return sizeof(*init);
	case FUSE_GETATTR:
		*attr = (struct fuse_attr_out){ .attr_valid = 1 };
		fill_attr(&attr->attr, in->nodeid);
		return sizeof(*attr);
	case FUSE_LOOKUP:
		*entry = (struct fuse_entry_out){ .nodeid = FILE_INODE,
						  .entry_valid = 1,
						  .attr_valid = 1 };
		fill_attr(&entry->attr, FILE_INODE);
		return sizeof(*entry);
	case FUSE_OPEN:
		*(struct fuse_open_out *)out = (struct fuse_open_out){ .fh = 1 };
		return sizeof(struct fuse_open_out);
	case FUSE_FLUSH:
	case FUSE_FORGET:
		return -1;
	default:
		*ret_error = -38; /* ENOSYS */
		return 0;
	}
}

static void serve(int fd, int to_parent)
{
	static char in[1 << 17];
	struct {
		struct fuse_out_header header;
		char body[512];
	} out;
	const struct fuse_in_header *h = (const struct fuse_in_header *)in;

	while (read(fd, in, sizeof(in)) > 0) {
		int error = 0;
		ssize_t n = answer(h, out.body, &error);

		if (h->opcode == FUSE_FLUSH)
			(void)!write(to_parent, "f", 1);
		if (n < 0)
			continue;
		out.header = (struct fuse_out_header){ .len = (uint32_t)(sizeof(out.header) + n),
						       .error = error,
						       .unique = h->unique };
		if (write(fd, &out, out.header.len) < 0)
			break;
	}
	_exit(0);
}

static bool mount_fuse(struct slow_exec *s)
{
	char options[128];

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/collwatch-slow-XXXXXX");
	if (geteuid() != 0 || !mkdtemp(s->dir))
		return false;
	s->fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0",
		       s->fuse_fd);
	if (s->fuse_fd >= 0 && mount("slow", s->dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return true;
	(void)rmdir(s->dir);
	return false;
}

/*
 * Starts a process that ends the FUSE connection when the test ends for any reason. Then every
 * waiting request ends.
 */
static void start_guard(struct slow_exec *s)
{
	int fds[2];
	char byte;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	s->guard = fork();
	if (s->guard == 0) {
		(void)setsid(); /* the runner kills the test's whole process group */
		(void)close(fds[1]);
		(void)close(s->fuse_fd);
		while (read(fds[0], &byte, 1) > 0)
			;
		(void)umount2(s->dir, MNT_FORCE | MNT_DETACH);
		(void)rmdir(s->dir);
		_exit(0);
	}
	(void)close(fds[0]);
	s->guard_fd = fds[1];
}

bool slow_exec_start(struct slow_exec *s)
{
	char path[96], byte;
	int fds[2];

	if (!mount_fuse(s))
		return false;
	start_guard(s);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	s->server = fork();
	if (s->server == 0) {
		(void)close(s->guard_fd); /* otherwise the guard would also wait for this process */
		serve(s->fuse_fd, fds[1]);
	}
	(void)close(s->fuse_fd);
	(void)close(fds[1]);
	(void)snprintf(path, sizeof(path), "%s/file", s->dir);
	s->pid = fork();
	if (s->pid == 0) {
		(void)close(s->guard_fd);
		if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
			(void)execl("/bin/sleep", "sleep", "3600", (char *)NULL);
		_exit(1);
	}
	return read(fds[0], &byte, 1) == 1;
}

void slow_exec_stop(struct slow_exec *s)
{
	(void)kill(s->server, SIGKILL);
	(void)waitpid(s->server, NULL, 0);
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	(void)close(s->guard_fd);
	(void)waitpid(s->guard, NULL, 0);
}
