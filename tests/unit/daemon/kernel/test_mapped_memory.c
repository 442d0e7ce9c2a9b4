/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/mapped_memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char mounts[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2\n"
	"31 22 0:41 / /mnt/a\\040b rw - fuse.sshfs host:/ rw,user_id=1000\n"
	"32 22 0:42 / /share rw - 9p share rw,trans=virtio\n"
	"33 22 0:43 / /old rw - nfs server:/old rw\n"
	"34 22 0:44 / /box/good rw - overlay overlay rw,lowerdir=/var/a:/var/b,upperdir=/var/c\n"
	"35 22 0:45 / /box/bad rw - overlay overlay rw,lowerdir=/var/a:/home/x,workdir=/var/w\n"
	"36 22 0:46 / /box/near rw - overlay overlay rw,lowerdir=l/A:l/B,upperdir=u\n"
	"37 22 0:47 / /homes rw - tmpfs tmpfs rw\n"
	"38 22 0:48 / /box/on rw - overlay overlay rw,lowerdir=/box/bad/y\n"
	"39 30 0:49 / /home/local rw - tmpfs tmpfs rw\n"
	"40 22 0:50 / /var/disk rw - fuseblk /dev/sdb1 rw\n"
	"41 22 0:51 / /var/disk rw - tmpfs tmpfs rw\n"
	"garbage\n";

Test(mapped_memory, knows_a_device_by_its_mount)
{
	static const struct {
		unsigned minor;
		enum cw_mount_kind trusted, other;
	} cases[] = {
		{ 40, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 41, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 42, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 43, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 44, CW_MOUNT_LOCAL, CW_MOUNT_REMOTE },
		{ 45, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 46, CW_MOUNT_LOCAL, CW_MOUNT_REMOTE },
		{ 47, CW_MOUNT_LOCAL, CW_MOUNT_LOCAL },
		{ 48, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 50, CW_MOUNT_REMOTE, CW_MOUNT_REMOTE },
		{ 99, CW_MOUNT_UNKNOWN, CW_MOUNT_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t dev = makedev(0, cases[i].minor);

		cr_expect_eq(cw_mapped_memory_kind(mounts, dev, true), cases[i].trusted, "0:%u",
			     cases[i].minor);
		cr_expect_eq(cw_mapped_memory_kind(mounts, dev, false), cases[i].other, "0:%u",
			     cases[i].minor);
	}
	cr_expect_eq(cw_mapped_memory_kind(mounts, makedev(8, 1), false), CW_MOUNT_LOCAL);
}

Test(mapped_memory, the_layers_of_a_containers_root_are_paths_of_the_host)
{
	static const char inside[] =
		"50 49 0:60 / / rw - overlay overlay rw,lowerdir=/var/l:/var/m,upperdir=/var/u\n"
		"51 50 0:61 / /nfs rw - nfs4 server:/x rw\n";

	cr_expect_eq(cw_mapped_memory_kind(inside, makedev(0, 60), true), CW_MOUNT_LOCAL);
	cr_expect_eq(cw_mapped_memory_kind(inside, makedev(0, 61), true), CW_MOUNT_REMOTE);
}

Test(mapped_memory, knows_a_path_by_the_mount_that_holds_it)
{
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/usr/lib/x.so"), CW_MOUNT_LOCAL);
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/home/me/x.so"), CW_MOUNT_REMOTE);
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/home"), CW_MOUNT_REMOTE);
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/homes/x.so"), CW_MOUNT_LOCAL);
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/home/local/x"), CW_MOUNT_LOCAL);
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/var/disk/x"), CW_MOUNT_LOCAL,
		     "the last mount hides the one before");
	cr_expect_eq(cw_mapped_memory_kind_of_path(mounts, "/mnt/a b/x"), CW_MOUNT_REMOTE);
	cr_expect_eq(cw_mapped_memory_kind_of_path("", "/x"), CW_MOUNT_UNKNOWN);
}

Test(mapped_memory, a_swap_file_may_lie_behind_a_server)
{
	static const char head[] = "Filename Type Size Used Priority\n";
	char text[256];

	cr_expect_not(cw_mapped_memory_swaps_remotely(head, mounts));
	(void)snprintf(text, sizeof(text), "%s/dev/sda2 partition 1 0 -2\n/var/swap file 1 0 -3\n",
		       head);
	cr_expect_not(cw_mapped_memory_swaps_remotely(text, mounts));
	(void)snprintf(text, sizeof(text), "%s/var/swap file 1 0 -3\n/home/swap file 1 0 -4\n",
		       head);
	cr_expect(cw_mapped_memory_swaps_remotely(text, mounts));
}

Test(mapped_memory, reads_its_own_memory_up_to_a_hole)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct cw_mapped_memory *m = NULL;
	static const char text[] = "of the program's own file";

	cr_assert(at != MAP_FAILED);
	cr_assert_eq(munmap(at + 2 * page, page), 0);
	cr_assert_eq(cw_mapped_memory_new(getpid(), &m), 0);
	cr_expect_eq(cw_mapped_memory_readable(m, (uintptr_t)at + 8, 4 * page), 2 * page - 8);
	cr_expect_eq(cw_mapped_memory_readable(m, (uintptr_t)at + 2 * page, 1), 0);
	cr_expect_eq(cw_mapped_memory_readable(m, (uintptr_t)text, sizeof(text)), sizeof(text));
	cr_expect(cw_mapped_memory_has_local_start(getpid()));
	m = cw_mapped_memory_free(m);
	cr_expect_null(m);
}
