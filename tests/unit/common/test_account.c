/* SPDX-License-Identifier: Apache-2.0 */
#include "common/account.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* State of the child while a directory service's code runs in it. */
static struct seen {
	unsigned n_fds;
	uint32_t capabilities;
	int dumpable;
} * seen;

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Replaces the C library's function, and the modules that nsswitch.conf makes it load. */
struct group *getgrnam(const char *name)
{
	static struct group answer = { .gr_gid = 4711 };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	seen->n_fds = count_fds();
	seen->dumpable = prctl(PR_GET_DUMPABLE);
	(void)syscall(SYS_capget, &header, data);
	seen->capabilities = data[0].effective | data[0].permitted | data[0].inheritable |
			     data[1].effective | data[1].permitted;
	if (strcmp(name, "hangs") == 0)
		for (;;)
			(void)pause();
	return &answer;
}

static void set_up(void)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(seen, MAP_FAILED);
}

TestSuite(account, .init = set_up);

Test(account, who_is_asked_has_neither_descriptors_nor_capabilities_of_the_asker)
{
	gid_t gid = 0;
	int pair[2];

	for (int i = 0; i < 20; i++)
		cr_assert_eq(pipe(pair), 0); /* not even close-on-exec */
	cr_assert_eq(cw_account_group("anybody", &gid), 0);
	cr_assert_eq(gid, 4711);
	cr_assert_leq(seen->n_fds, 4, "%u", seen->n_fds);
	cr_assert_eq(seen->capabilities, 0, "%x", seen->capabilities);
	cr_assert_eq(seen->dumpable, 0, "others of its user may look into it");
}

Test(account, one_that_hangs_is_ended_and_reaped)
{
	gid_t gid;

	cr_assert_eq(cw_account_group("hangs", &gid), -ETIMEDOUT);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "it is left");
	cr_assert_eq(errno, ECHILD);
}
