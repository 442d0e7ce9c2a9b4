/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that the demo can freeze. A process that writes to it then sleeps uninterruptibly,
 * as on a dead NFS server, and even SIGKILL does not end it. So a separate guard process thaws and
 * removes the file system at the end of the demo, even if the demo crashes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "lab/demo/demo.h"

struct demo_freeze {
	char path[PATH_MAX / 2]; /* mount point; the image is next to it */
	int fd;                  /* descriptor of the mount point */
	int guard_fd;            /* a pipe; its end makes the guard remove everything */
	pid_t guard;
};

/* Runs a script, which is constant text, with the path as $1. */
static bool run(const char *script, const char *path)
{
	pid_t pid = fork();
	int status, null_fd;

	if (pid == 0) {
		null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null_fd >= 0)
			for (int fd = 0; fd < 3; fd++)
				(void)dup2(null_fd, fd); /* we do not need the script's messages */
		(void)execl("/bin/sh", "sh", "-c", script, "sh", path, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool make(const char *path)
{
	return run("PATH=$PATH:/usr/sbin:/sbin; truncate -s 4M \"$1.img\" && "
		   "mkfs.ext4 -q \"$1.img\" && mkdir \"$1\" && mount -o loop \"$1.img\" \"$1\"",
		   path);
}

static bool unmake(const char *path)
{
	return run("PATH=$PATH:/usr/sbin:/sbin; umount -l \"$1\"; rmdir \"$1\"; "
		   "rm -f \"$1.img\"; test ! -e \"$1\"",
		   path);
}

static void guard(const struct demo_freeze *freeze, int until_closed)
{
	char byte;

	(void)setsid(); /* a terminal's Ctrl-C must not end the guard */
	while (read(until_closed, &byte, 1) > 0)
		;
	(void)ioctl(freeze->fd, FITHAW, 0); /* fails if it is not frozen */
	(void)close(freeze->fd);
	_exit(unmake(freeze->path) ? 0 : 1);
}

static bool start_guard(struct demo_freeze *freeze)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	freeze->guard = fork();
	if (freeze->guard == 0) {
		(void)close(fds[1]);
		guard(freeze, fds[0]);
	}
	(void)close(fds[0]);
	freeze->guard_fd = fds[1];
	return freeze->guard > 0;
}

int demo_freeze_make(const char *path, struct demo_freeze **ret, struct cw_err *err)
{
	struct demo_freeze *freeze = calloc(1, sizeof(*freeze));

	if (!freeze)
		return cw_err_set(err, ENOMEM, "out of memory");
	freeze->fd = freeze->guard_fd = -1;
	snprintf(freeze->path, sizeof(freeze->path), "%s", path);
	if (strlen(path) < sizeof(freeze->path) && make(path))
		freeze->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (freeze->fd < 0 || !start_guard(freeze) || ioctl(freeze->fd, FIFREEZE, 0) < 0) {
		if (freeze->guard <= 0)
			(void)unmake(path); /* remove the parts that exist */
		demo_freeze_remove(freeze);
		return cw_err_set(err, ENOTSUP,
				  "there is no file system to freeze: this scenario needs root, "
				  "mkfs.ext4 (package e2fsprogs) and a loop device");
	}
	*ret = freeze;
	return 0;
}

void demo_freeze_thaw(struct demo_freeze *freeze)
{
	(void)ioctl(freeze->fd, FITHAW, 0); /* if this fails, the guard does it */
}

void demo_freeze_remove(struct demo_freeze *freeze)
{
	if (!freeze)
		return;
	closep(&freeze->fd);
	closep(&freeze->guard_fd);
	if (freeze->guard > 0)
		/* Fails if another call has collected the guard. */
		(void)waitpid(freeze->guard, NULL, 0);
	free(freeze);
}
