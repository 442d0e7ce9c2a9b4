/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

/* sd_notify() failing means that nobody listens: there is nothing to do about it. */

void cw_notify_ready(const char *status)
{
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void cw_notify_reloading(int64_t monotonic_ns)
{
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(monotonic_ns / 1000));
}

void cw_notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

void cw_notify_status(const char *status)
{
	(void)sd_notifyf(0, "STATUS=%s", status);
}

int64_t cw_notify_watchdog_ns(void)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) <= 0 || usec > INT64_MAX / 1000)
		return 0;
	return (int64_t)usec * 1000;
}

void cw_notify_alive(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}

int cw_notify_listen_fd(const char *name)
{
	char **names = NULL;
	int n, fd = -1;

	n = sd_listen_fds_with_names(0, &names);
	for (int i = 0; i < n; i++) {
		if (fd < 0 && !strcmp(names[i], name) &&
		    sd_is_socket_unix(SD_LISTEN_FDS_START + i, SOCK_STREAM, 1, NULL, 0) > 0)
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n)
{
	struct cw_passed_fd *list;
	char **names = NULL;
	size_t found = 0;
	int n = sd_listen_fds_with_names(0, &names);

	list = calloc(n > 0 ? (size_t)n : 1, sizeof(*list));
	for (int i = 0; i < n; i++) {
		if (list && strncmp(names[i], prefix, strlen(prefix)) == 0)
			list[found++] = (struct cw_passed_fd){ SD_LISTEN_FDS_START + i, names[i] };
		else
			free(names[i]);
	}
	free(names);
	if (!list || n == -ENOMEM) {
		free(list);
		return -ENOMEM;
	}
	*ret = list;
	*ret_n = found;
	return 0;
}

void cw_notify_store_fds(const char *name, const int *fds, unsigned n)
{
	char text[256];

	/* FDPOLL=0: a pidfd hangs up when its process is reaped, and then it is wanted most. */
	(void)snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	(void)sd_pid_notify_with_fds(0, 0, text, fds, n);
}

void cw_notify_remove_fds(const char *name)
{
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}
