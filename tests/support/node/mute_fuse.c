/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node/mute_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define ROOT_NODE 1u
#define FILE_NODE 2u
#define MAX_REQUEST (1u << 18)
#define STACK_BYTES (64u << 10)

static void answer(int fd, uint64_t unique, int error, const void *body, size_t len)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + len),
					  .error = -error,
					  .unique = unique };
	char out[512];

	memcpy(out, &header, sizeof(header));
	if (len)
		memcpy(out + sizeof(header), body, len);
	(void)!write(fd, out, sizeof(header) + len); /* the write fails if the reader has gone */
}

static struct fuse_attr attr_of(uint64_t node)
{
	bool is_file = node == FILE_NODE;

	return (struct fuse_attr){ .ino = node,
				   .size = is_file ? (uint64_t)MUTE_FUSE_PART * MUTE_FUSE_PARTS : 0,
				   .mode = is_file ? S_IFREG | 0666 : S_IFDIR | 0755,
				   .nlink = 1,
				   .blksize = 4096 };
}

static void serve_one(int fd, const struct fuse_in_header *in, const void *body)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE,
					.entry_valid = 3600,
					.attr_valid = 3600,
					.attr = attr_of(FILE_NODE) };
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attr_of(in->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		answer(fd, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		if (strcmp(body, "file") == 0)
			answer(fd, in->unique, 0, &entry, sizeof(entry));
		else
			answer(fd, in->unique, ENOENT, NULL, 0);
		return;
	case FUSE_GETATTR:
		answer(fd, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(fd, in->unique, 0, &opened, sizeof(opened));
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(fd, in->unique, 0, NULL, 0);
		return;
	case FUSE_READ:
	case FUSE_INTERRUPT:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	default:
		answer(fd, in->unique, ENOSYS, NULL, 0);
	}
}

static void serve(int fd)
{
	static char request[MAX_REQUEST];
	ssize_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((n = read(fd, request, sizeof(request) - 1)) > 0 || errno == EINTR ||
	       errno == ENOENT) {
		struct fuse_in_header in;

		if (n < (ssize_t)sizeof(in))
			continue;
		memcpy(&in, request, sizeof(in));
		request[n] = '\0';
		serve_one(fd, &in, request + sizeof(in));
	}
	_exit(0);
}

bool mute_fuse_mount(struct mute_fuse *fs)
{
	char options[128];
	int fd;

	if (geteuid() != 0)
		return false;
	if (*fs->dir ? mkdir(fs->dir, 0755) < 0
		     : !mkdtemp(strcpy(fs->dir, "/tmp/collwatch-mute-XXXXXX")))
		return false;
	(void)chmod(fs->dir, 0755);
	(void)snprintf(fs->file, sizeof(fs->file), "%s/file", fs->dir);
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	if (fd < 0 || mount("mute", fs->dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		(void)close(fd);
		(void)rmdir(fs->dir);
		return false;
	}
	fs->server = fork();
	if (fs->server == 0)
		serve(fd);
	(void)close(fd); /* the server has a copy; all waits end when the server ends */
	return fs->server > 0;
}

void mute_fuse_end(struct mute_fuse *fs)
{
	if (fs->server <= 0)
		return;
	(void)kill(fs->server, SIGKILL);
	(void)waitpid(fs->server, NULL, 0);
	(void)umount2(fs->dir, MNT_DETACH);
	(void)rmdir(fs->dir);
	fs->server = 0;
}

static struct {
	void (*fn)(void *user);
	void *user;
} job;

static void run_job(void)
{
	job.fn(job.user);
}

bool mute_fuse_run_below(const char *file, unsigned part, void (*fn)(void *user), void *user)
{
	static ucontext_t here, there;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, STACK_BYTES + MUTE_FUSE_PART, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || at == MAP_FAILED ||
	    mmap(at + STACK_BYTES, MUTE_FUSE_PART, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		 (off_t)part * MUTE_FUSE_PART) == MAP_FAILED)
		return false;
	(void)close(fd);
	if (getcontext(&there) < 0)
		return false;
	there.uc_stack.ss_sp = at;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	job.fn = fn;
	job.user = user;
	makecontext(&there, run_job, 0);
	return swapcontext(&here, &there) == 0;
}
