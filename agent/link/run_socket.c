/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/run_socket.h"

#include <stdlib.h>
#include <unistd.h>

#include "proto/run_report.h"

void cw_run_socket_report(int error)
{
	const struct cw_run_report report = { .magic = CW_RUN_MAGIC, .error = error };
	const char *name = getenv(CW_RUN_VARIABLE);
	struct sockaddr_un to;
	socklen_t len = name ? cw_run_address(name, &to) : 0;
	int fd = len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

	if (fd < 0)
		return;
	(void)sendto(fd, &report, sizeof(report), MSG_DONTWAIT | MSG_NOSIGNAL,
		     (const struct sockaddr *)&to, len);
	(void)close(fd);
}
