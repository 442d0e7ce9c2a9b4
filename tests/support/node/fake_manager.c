/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node/fake_manager.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "loop/sd_notify.h"

void fake_manager_start(struct fake_manager *m)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	*m = (struct fake_manager){ .sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
	snprintf(m->path, sizeof(m->path), "/tmp/cw-manager-%d", (int)getpid());
	strcpy(addr.sun_path, m->path);
	cr_assert_eq(bind(m->sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(setenv("NOTIFY_SOCKET", m->path, 1), 0);
}

void fake_manager_stop(struct fake_manager *m)
{
	fake_manager_read(m);
	for (size_t i = 0; i < m->n; i++)
		close(m->kept[i].fd);
	close(m->sock);
	cr_assert_eq(unlink(m->path), 0);
	cr_assert_eq(unsetenv("NOTIFY_SOCKET"), 0);
}

static void store(struct fake_manager *m, const char *name, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cr_assert_lt(m->n, FAKE_MANAGER_MAX);
		memmove(&m->kept[1], &m->kept[0], m->n * sizeof(m->kept[0]));
		m->kept[0].fd = fds[i];
		snprintf(m->kept[0].name, sizeof(m->kept[0].name), "%s", name);
		m->n++;
	}
}

static void forget(struct fake_manager *m, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (strcmp(m->kept[i].name, name) == 0)
			close(m->kept[i].fd);
		else
			m->kept[n++] = m->kept[i];
	}
	m->n = n;
}

static bool read_one(struct fake_manager *m)
{
	union {
		char space[CMSG_SPACE(4 * sizeof(int)) + CMSG_SPACE(64)];
		struct cmsghdr align;
	} control;
	char text[512] = "";
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const char *name;
	int fds[4];
	size_t n = 0;

	if (recvmsg(m->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	name = strstr(text, "FDNAME=");
	if (!name)
		return true; /* a message about readiness, for example */
	name += strlen("FDNAME=");
	if (strncmp(text, "FDSTORE=1\n", strlen("FDSTORE=1\n")) == 0) {
		cr_assert(strstr(text, "\nFDPOLL=0\n"), "an ended process would be dropped");
		store(m, name, fds, n);
		m->stored++;
	} else {
		cr_assert(strncmp(text, "FDSTOREREMOVE=1\n", strlen("FDSTOREREMOVE=1\n")) == 0);
		forget(m, name);
		m->removed++;
	}
	return true;
}

void fake_manager_read(struct fake_manager *m)
{
	while (read_one(m))
		;
}

void fake_manager_pass(struct fake_manager *m, struct cw_fdstore_entry **ret, size_t *ret_n)
{
	struct cw_passed_fd *passed;

	fake_manager_read(m);
	passed = calloc(m->n + 1, sizeof(*passed));
	for (size_t i = 0; i < m->n; i++)
		passed[i] = (struct cw_passed_fd){ fcntl(m->kept[i].fd, F_DUPFD_CLOEXEC, 3),
						   strdup(m->kept[i].name) };
	cr_assert_eq(cw_fdstore_group(passed, m->n, &cw_clock_system, ret, ret_n), 0);
}
