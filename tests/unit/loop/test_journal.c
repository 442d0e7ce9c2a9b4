/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/journal.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int journal = -1;

static void set_up(void)
{
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/cw-journal-%d", (int)getpid());
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(journal, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void tear_down(void)
{
	close(journal);
	unlink(address.sun_path);
}

TestSuite(journal, .init = set_up, .fini = tear_down);

static struct iovec field(const char *text)
{
	return (struct iovec){ (char *)(uintptr_t)text, strlen(text) };
}

static void expect_datagram(const void *bytes, size_t len)
{
	char got[4096];

	cr_assert_eq(recv(journal, got, sizeof(got), MSG_DONTWAIT), (ssize_t)len);
	cr_expect_arr_eq(got, bytes, len);
}

Test(journal, sends_all_fields_in_one_datagram)
{
	static const char wanted[] = "MESSAGE=a=b\nPRIORITY=5\nEMPTY=\n";
	struct iovec fields[] = { field("MESSAGE=a=b"), field("PRIORITY=5"), field("EMPTY=") };

	cr_assert_eq(cw_journal_send_to(address.sun_path, fields, 3), 0);
	expect_datagram(wanted, sizeof(wanted) - 1);
}

/* Otherwise a second line would be a field of its own, and any user could write it. */
Test(journal, gives_a_value_of_several_lines_its_length)
{
	static const char wanted[] = "MESSAGE\n\x0c\0\0\0\0\0\0\0one\nPRIORITY\nA=b\n";
	struct iovec fields[] = { field("MESSAGE=one\nPRIORITY"), field("A=b") };

	cr_assert_eq(cw_journal_send_to(address.sun_path, fields, 2), 0);
	expect_datagram(wanted, sizeof(wanted) - 1);
}

Test(journal, takes_nothing_that_is_too_long_or_no_field)
{
	static char big[70000];
	struct iovec fields[2] = { field("MESSAGE=small") };

	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "A=", 2);
	fields[1] = field(big);
	cr_assert_eq(cw_journal_send_to(address.sun_path, fields, 2), -EMSGSIZE);
	fields[1] = field("without a value");
	cr_assert_eq(cw_journal_send_to(address.sun_path, fields, 2), -EINVAL);
	cr_assert_eq(recv(journal, big, sizeof(big), MSG_DONTWAIT), -1);
}

Test(journal, says_where_there_is_none)
{
	struct iovec fields[] = { field("MESSAGE=x") };

	cr_assert_eq(cw_journal_send_to("/nowhere/socket", fields, 1), -ENOENT);
}

Test(journal, does_not_wait_for_one_that_does_not_read)
{
	struct iovec fields[] = { field("MESSAGE=x") };
	int r = 0;

	(void)alarm(120); /* ends a child that waits forever */
	for (int i = 0; i < 100000 && r == 0; i++)
		r = cw_journal_send_to(address.sun_path, fields, 1);
	cr_assert_eq(r, -EAGAIN);
	(void)alarm(20); /* 50 ms each would be 50 s */
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(cw_journal_send_to(address.sun_path, fields, 1), -EAGAIN);
}
