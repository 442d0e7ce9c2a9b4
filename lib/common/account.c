/* SPDX-License-Identifier: Apache-2.0 */
#include "common/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/close_from.h"

/*
 * The child runs foreign code (the modules of the name service), which may wait for anything. We
 * therefore kill the child after a deadline, as loop/children.h does.
 */
#define KILL_WAIT_MS 500
#define OUT_FD 3

/*
 * The child's answer, which it writes with one write(). The answer arrives whole, because it is
 * smaller than PIPE_BUF.
 */
struct answer {
	bool is_known;
	gid_t gid;
	char name[CW_ACCOUNT_NAME_MAX];
};

static bool is_silent;

static void find_group(const char *name, struct answer *ret)
{
	const struct group *g = getgrnam(name);

	ret->is_known = g != NULL;
	if (g)
		ret->gid = g->gr_gid;
}

static void find_user(uid_t uid, struct answer *ret)
{
	const struct passwd *pw = getpwuid(uid);

	if (!pw || strlen(pw->pw_name) >= sizeof(ret->name))
		return;
	ret->is_known = true;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", pw->pw_name);
}

/*
 * Drops all rights of the child that the modules of the name service do not need: every descriptor
 * but out_fd, and every capability. Our memory and our user remain.
 */
static int let_go(int out_fd)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (out_fd != OUT_FD && dup2(out_fd, OUT_FD) < 0)
		return -1;
	if (cw_close_from(OUT_FD + 1) < 0)
		return -1;
	/* PR_CAP_AMBIENT fails on kernels before 4.3. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* never fails */
	return (int)syscall(SYS_capset, &header, none);
}

/* Runs the query in the child and exits. If group is NULL, looks up the name of the user uid. */
static _Noreturn void cw_run_child(int out_fd, const char *group, uid_t uid)
{
	struct answer answer;

	memset(&answer, 0, sizeof(answer)); /* clear the padding, too, because we write it */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * The child's memory is a copy of ours. After we drop the capabilities below, any process
	 * of our user could read it. A child that is not dumpable is protected.
	 */
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (let_go(out_fd) < 0)
		_exit(1);
	if (group)
		find_group(group, &answer);
	else
		find_user(uid, &answer);
	_exit(write(OUT_FD, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
}

static void end(pid_t child)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN };

	(void)kill(child, SIGKILL);
	if (p.fd >= 0)
		(void)poll(&p, 1, KILL_WAIT_MS);
	closep(&p.fd);
	/* A child that hangs in the kernel survives SIGKILL. We leave such a child to init. */
	(void)waitpid(child, NULL, WNOHANG);
}

static int ask(const char *group, uid_t uid, struct answer *ret)
{
	_cleanup_(closep) int in_fd = -1;
	struct pollfd p = { .events = POLLIN };
	int fds[2];
	bool came;
	pid_t child;

	if (is_silent)
		return -ETIMEDOUT;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	p.fd = in_fd = fds[0];
	child = fork();
	if (child == 0)
		cw_run_child(fds[1], group, uid);
	(void)close(fds[1]);
	if (child < 0)
		return -errno;
	came = poll(&p, 1, CW_ACCOUNT_MS) == 1;
	if (came)
		came = read(in_fd, ret, sizeof(*ret)) == sizeof(*ret);
	else
		is_silent = true;
	end(child);
	if (is_silent)
		return -ETIMEDOUT;
	return came && ret->is_known ? 0 : -ENOENT;
}

int cw_account_group(const char *name, gid_t *ret)
{
	struct answer answer;
	int r = ask(name, 0, &answer);

	if (r == 0)
		*ret = answer.gid;
	return r;
}

int cw_account_user(uid_t uid, char *buf)
{
	struct answer answer;
	int r = ask(NULL, uid, &answer);

	if (r == 0)
		memcpy(buf, answer.name, sizeof(answer.name));
	return r;
}
