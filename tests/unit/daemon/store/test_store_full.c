/* SPDX-License-Identifier: Apache-2.0 */
/* A store whose disk is full. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/node/store_fixture.h"

TestSuite(store_full, .init = store_setup, .fini = store_teardown);

/* A small file system of our own, seen by this test's process only. */
static bool mount_small(const char *size)
{
	char path[PATH_MAX], options[64];

	(void)snprintf(path, sizeof(path), "%s/lib", root);
	(void)snprintf(options, sizeof(options), "size=%s", size);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(path, 0755) == 0 &&
	       mount("none", path, "tmpfs", 0, options) == 0;
}

static void unmount_small(void)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/lib", root);
	cr_assert_eq(umount2(path, MNT_DETACH), 0);
}

static void filler_path(char *path)
{
	(void)snprintf(path, PATH_MAX, "%s/lib/filler", root);
}

static void fill_disk(void)
{
	char path[PATH_MAX], block[4096] = { 1 };
	int fd;

	filler_path(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	cr_assert_eq(errno, ENOSPC);
	close(fd);
}

Test(store_full, snapshot_larger_than_any_answer_is_not_read_for_one)
{
	struct cw_bundle bundle = { 0 };
	struct cw_store *store;

	if (geteuid() != 0 || !mount_small("256k"))
		cr_skip_test("needs root: mounts a small file system");
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(put(store, "a2", 5 << 20, NULL), -ENOSPC);
	cr_assert_eq(cw_store_get(store, "a2", &bundle), 0);
	cr_expect_not_null(bundle.incident);
	cr_expect_null(bundle.snapshot, "held in memory");
	cw_bundle_fini(&bundle);
	cw_store_close(store);
	unmount_small();
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(put(store, "a3", 5 << 20, NULL), 0);
	cr_assert_eq(cw_store_get(store, "a3", &bundle), 0);
	cr_expect_not_null(bundle.incident);
	cr_expect_null(bundle.snapshot, "on disk");
	cw_bundle_fini(&bundle);
	cw_store_close(store);
}

Test(store_full, keeps_a_bundle_in_memory_until_a_full_disk_has_room)
{
	json_t *add;
	char path[PATH_MAX], filler[PATH_MAX];
	struct cw_bundle bundle = { 0 };
	struct cw_store *store;

	if (geteuid() != 0 || !mount_small("256k"))
		cr_skip_test("needs root: mounts a small file system");
	store = open_store(1 << 30, 30 * DAY_NS);
	fill_disk();
	cr_assert_eq(put(store, "a1", 10000, path), -ENOSPC);
	cr_assert(is_listed(store, "a1"));
	cr_assert_eq(cw_store_get(store, "a1", &bundle), 0);
	cr_assert_str_eq(json_string_value(json_object_get(bundle.incident, "id")), "a1");
	cr_assert(json_is_object(bundle.snapshot));
	cw_bundle_fini(&bundle);
	cr_assert_eq(cw_store_mark_sent(store, 1000, "a1", ""), -ENOSPC);
	add = json_string("{}");
	cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4711", "a1", 1, add), -EBUSY);
	cr_assert(cw_store_was_sent(store, 1000, "a1"));
	cr_assert_eq(cw_store_retry(store), 1);
	cr_assert_eq(access(path, F_OK), -1);

	filler_path(filler);
	cr_assert_eq(unlink(filler), 0);
	cr_assert_eq(cw_store_retry(store), 0);
	cr_assert_eq(access(path, F_OK), 0);
	cw_store_close(store);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert(is_listed(store, "a1"));
	cr_assert(cw_store_was_sent(store, 1000, "a1"));
	cw_store_close(store);
	json_decref(add);
	unmount_small();
}

Test(store_full, gives_up_old_bundles_for_a_new_one_on_a_full_disk)
{
	struct cw_store *store;

	if (geteuid() != 0 || !mount_small("256k"))
		cr_skip_test("needs root: mounts a small file system");
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(put(store, "a1", 100000, NULL), 0);
	cr_assert_eq(put(store, "a2", 50000, NULL), 0);
	cr_assert_eq(put(store, "a3", 100000, NULL), 0);
	cr_assert_not(is_listed(store, "a1"));
	cr_assert(is_listed(store, "a2"));
	cr_assert(is_listed(store, "a3"));
	cr_assert_eq(cw_store_retry(store), 0);
	cw_store_close(store);
	unmount_small();
}

Test(store_full, holds_a_bounded_number_in_memory)
{
	struct cw_store *store;
	char id[16];

	if (geteuid() != 0 || !mount_small("64k"))
		cr_skip_test("needs root: mounts a small file system");
	store = open_store(1 << 30, 30 * DAY_NS);
	fill_disk();
	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(id, sizeof(id), "%02x", i);
		cr_assert_eq(put(store, id, 10, NULL), -ENOSPC);
	}
	cr_assert_eq(cw_store_retry(store), 16);
	cr_assert_eq(list_len(store), 16);
	cr_assert_not(is_listed(store, "03"));
	cr_assert(is_listed(store, "04"));
	cr_assert(is_listed(store, "13"));
	cw_store_close(store);
	unmount_small();
}
