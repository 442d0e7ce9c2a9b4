/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest file system in user space: one file, "f". It can be opened, and the server
 * never answers its close (FUSE_FLUSH). A process that closes it sleeps uninterruptibly
 * until the server goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/hostile.h"

/* Anything but /tmp, where the sockets of tests are. */
#define MOUNT_POINT "/mnt"
#define FILE_INODE 2u

/* Closings that wait for an answer; shared with the server. */
static unsigned *n_hanging;

struct reply {
	struct fuse_out_header head;
	union {
		struct fuse_init_out init;
		struct fuse_attr_out attr;
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	};
};

static struct fuse_attr attr_of(uint64_t inode)
{
	return (struct fuse_attr){ .ino = inode,
				   .mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444,
				   .nlink = 1 };
}

/* Size of the answer's body; -errno; 1 = no answer ever. */
static int answer(const struct fuse_in_header *in, struct reply *reply)
{
	switch (in->opcode) {
	case FUSE_INIT:
		reply->init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
						      .minor = FUSE_KERNEL_MINOR_VERSION,
						      .max_write = 4096 };
		return sizeof(reply->init);
	case FUSE_GETATTR:
		reply->attr =
			(struct fuse_attr_out){ .attr_valid = 1, .attr = attr_of(in->nodeid) };
		return sizeof(reply->attr);
	case FUSE_LOOKUP:
		reply->entry = (struct fuse_entry_out){ .nodeid = FILE_INODE,
							.entry_valid = 1,
							.attr_valid = 1,
							.attr = attr_of(FILE_INODE) };
		return sizeof(reply->entry);
	case FUSE_OPEN:
		reply->open = (struct fuse_open_out){ .fh = 1 };
		return sizeof(reply->open);
	case FUSE_FLUSH:
		return 1;
	default:
		return -ENOSYS;
	}
}

static void serve(int dev)
{
	static char request[FUSE_MIN_READ_BUFFER + 8192];
	const struct fuse_in_header *in = (const void *)request;

	while (read(dev, request, sizeof(request)) > 0) {
		struct reply reply = { 0 };
		int r = answer(in, &reply);

		if (r == 1) {
			__atomic_add_fetch(n_hanging, 1, __ATOMIC_RELAXED);
			continue;
		}
		reply.head = (struct fuse_out_header){
			.len = (uint32_t)sizeof(reply.head) + (r > 0 ? (uint32_t)r : 0),
			.error = r < 0 ? r : 0,
			.unique = in->unique,
		};
		if (write(dev, &reply, reply.head.len) < 0)
			return;
	}
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* In a user and mount namespace of its own any user may mount; ids stay the same. */
static bool enter_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char uids[64], gids[64];

	(void)snprintf(uids, sizeof(uids), "%u %u 1", uid, uid);
	(void)snprintf(gids, sizeof(gids), "%u %u 1", gid, gid);
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", uids) && write_text("/proc/self/gid_map", gids);
}

static int not_possible(struct hostile *h, const char *what)
{
	(void)snprintf(h->fuse, sizeof(h->fuse), "not sent: %s: %s", what, strerror(errno));
	return -1;
}

/* The kernel wants the device opened in the namespace that mounts. */
int hostile_fuse_file(struct hostile *h)
{
	const char *path = getenv("CW_HOSTILE_FUSE");
	char options[128];
	int dev, fd;

	n_hanging = mmap(NULL, sizeof(*n_hanging), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n_hanging == MAP_FAILED)
		return not_possible(h, "no memory");
	if (!enter_namespace())
		return not_possible(h, "no user namespace");
	dev = open(path ? path : "/dev/fuse", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return not_possible(h, path ? path : "/dev/fuse");
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", dev,
		       (unsigned)geteuid(), (unsigned)getegid());
	if (mount("fuse", MOUNT_POINT, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return not_possible(h, "no mount");
	h->fuse_server = fork();
	if (h->fuse_server < 0)
		return not_possible(h, "no process");
	if (h->fuse_server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGTERM, SIG_IGN);
		serve(dev);
		_exit(0);
	}
	(void)close(dev);
	fd = open(MOUNT_POINT "/f", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? not_possible(h, "no file") : fd;
}

void hostile_fuse_end(struct hostile *h, int sent)
{
	if (h->fuse_server <= 0)
		return;
	if (sent > 0) /* else it says why not */
		(void)snprintf(h->fuse, sizeof(h->fuse), "sent %d times, %u closings hang", sent,
			       __atomic_load_n(n_hanging, __ATOMIC_RELAXED));
	(void)kill(h->fuse_server, SIGKILL);
	(void)waitpid(h->fuse_server, NULL, 0);
}
