/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "common/parse.h"

#define SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"

static bool is_off; /* we set it before we start the helper thread */

void cw_tracer_start(void)
{
	const char *value = getenv("COLLWATCH_PTRACER");
	bool is_on = true;

	if (value)
		(void)cw_parse_switch(value, &is_on); /* is_on stays true if the value is invalid */
	is_off = !is_on;
}

/*
 * Returns whether Yama's scope is 1. In no other scope does it help to name a tracer. With 0 every
 * process of the user may trace. With 2 only a process with the capability may trace, and with 3 no
 * process may.
 */
static bool is_by_descent(const char *scope_path)
{
	int fd = open(scope_path, O_RDONLY | O_CLOEXEC);
	char text[4];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	(void)close(fd);
	return (n == 1 || (n == 2 && text[1] == '\n')) && text[0] == '1';
}

/*
 * Returns whether our real, effective and saved uid are all equal to uid. ptrace() compares the
 * same three. If the program has changed its user, we name no tracer.
 */
static bool is_all_of_us(uid_t uid)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && uid == real && uid == effective &&
	       uid == saved;
}

pid_t cw_tracer_wanted(int socket, const char *scope_path)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return 0;
	/*
	 * A peer with pid 0 is in another pid namespace. We refuse pid 1, because its descendants,
	 * which are all processes, could then trace us.
	 */
	if (peer.pid <= 1 || peer.pid == getpid() || !is_all_of_us(peer.uid))
		return 0;
	return is_by_descent(scope_path) ? peer.pid : 0;
}

void cw_tracer_name(int socket)
{
	pid_t daemon = is_off ? 0 : cw_tracer_wanted(socket, SCOPE_PATH);

	if (!daemon)
		return;
	if (prctl(PR_SET_PTRACER, (unsigned long)daemon, 0, 0, 0) < 0)
		cw_log("the daemon may not trace: %s", strerror(errno));
	else
		cw_log("the daemon (pid %d) may trace", (int)daemon);
}
