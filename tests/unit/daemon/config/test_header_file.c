/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/header_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char dir[] = "/tmp/cw-headers-XXXXXX";
static char path[64], text[4096];
static struct cw_err err;
static bool gives_little;

/* Ahead of the C library's, for this program. */
ssize_t read(int fd, void *buf, size_t len)
{
	return syscall(SYS_read, fd, buf, gives_little && len > 5 ? 5 : len);
}

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/headers", dir);
}

static void tear_down(void)
{
	(void)unlink(path);
	(void)rmdir(dir);
}

TestSuite(header_file, .init = set_up, .fini = tear_down, .timeout = 60);

static void write_file(const char *name, const char *what)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, what, strlen(what)), (ssize_t)strlen(what));
	(void)close(fd);
}

/* 0 or why not. */
static int try(void)
{
	err = (struct cw_err){ "" };
	return cw_header_file_read(path, text, sizeof(text), &err);
}

Test(header_file, is_read_whole_or_not_at_all)
{
	static char long_text[sizeof(text) + 1];

	write_file(path, "X-A: 1\nX-B: 2\n");
	cr_assert_eq(try(), 0, "%s", err.text);
	cr_expect_str_eq(text, "X-A: 1\nX-B: 2\n");
	memset(long_text, 'a', sizeof(text));
	write_file(path, long_text);
	cr_assert_eq(try(), -EFBIG);
	cr_expect_not_null(strstr(err.text, "larger than 4 KiB"), "%s", err.text);
	cr_assert_eq(truncate(path, sizeof(text) - 1), 0);
	cr_assert_eq(try(), 0, "%s", err.text);
	cr_expect_eq(strlen(text), sizeof(text) - 1);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(try(), -ENOENT);
	cr_expect_not_null(strstr(err.text, path), "%s", err.text);
}

/* As from a FUSE file system with direct_io, or over NFS. */
Test(header_file, is_read_whole_where_a_read_gives_little)
{
	write_file(path, "Authorization: Bearer s3cret\n");
	gives_little = true;
	cr_assert_eq(try(), 0, "%s", err.text);
	gives_little = false;
	cr_expect_str_eq(text, "Authorization: Bearer s3cret\n");
}

/* The daemon would wait for a FIFO, and a device may do anything. */
Test(header_file, is_a_regular_file)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_lt(try(), 0);
	cr_expect_neq(err.text[0], '\0');
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(symlink("/dev/zero", path), 0);
	cr_assert_lt(try(), 0);
}

Test(header_file, is_refused_where_strangers_can_get_at_it)
{
	static const mode_t refused[] = { 0604, 0644, 0602, 0620, 0660, 0610 };
	static const mode_t taken[] = { 0600, 0400, 0640, 0440 };
	char want[64];

	write_file(path, "Authorization: Bearer s3cret\n");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		cr_assert_eq(chmod(path, refused[i]), 0);
		cr_assert_eq(try(), -EACCES, "%o", refused[i]);
		cr_assert_not_null(strstr(err.text, "chmod 640"), "%s", err.text);
		cr_assert_null(strstr(err.text, "s3cret"), "%s", err.text);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		cr_assert_eq(chmod(path, taken[i]), 0);
		cr_assert_eq(try(), 0, "%o: %s", taken[i], err.text);
	}
	if (geteuid() == 0) {
		cr_assert_eq(chown(path, (uid_t)-1, 4321), 0);
		cr_assert_eq(try(), -EACCES);
		(void)snprintf(want, sizeof(want), "chgrp %u", getegid());
		cr_assert_not_null(strstr(err.text, want), "%s", err.text);
		cr_assert_eq(chmod(path, 0600), 0);
		cr_assert_eq(try(), 0, "%s", err.text);
		cr_assert_eq(chown(path, 4321, (gid_t)-1), 0);
		cr_assert_eq(try(), -EACCES);
		cr_assert_not_null(strstr(err.text, "belongs to user 4321"), "%s", err.text);
	}
}
