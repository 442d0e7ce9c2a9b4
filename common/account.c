/* SPDX-License-Identifier: Apache-2.0 */
#include "common/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

/* What the child writes, whole: it is smaller than PIPE_BUF. */
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

/* group: NULL = the user's name is wanted. */
static _Noreturn void run_child(int out_fd, const char *group, uid_t uid)
{
	struct answer answer;

	memset(&answer, 0, sizeof(answer)); /* its padding is written, too */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (group)
		find_group(group, &answer);
	else
		find_user(uid, &answer);
	_exit(write(out_fd, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
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
		run_child(fds[1], group, uid);
	(void)close(fds[1]);
	if (child < 0)
		return -errno;
	came = poll(&p, 1, CW_ACCOUNT_MS) == 1;
	if (came)
		came = read(in_fd, ret, sizeof(*ret)) == sizeof(*ret);
	else
		is_silent = true;
	(void)kill(child, SIGKILL);
	/* One that hangs in the kernel does not die: it is left to init. */
	(void)waitpid(child, NULL, came ? 0 : WNOHANG);
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
