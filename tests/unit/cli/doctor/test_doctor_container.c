/* SPDX-License-Identifier: Apache-2.0 */
/* The signs of a container that doctor looks for; the test fakes files and namespaces. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor/doctor.h"

static const char *mark = ""; /* the file that is there */
static bool is_first_namespace;

int __wrap_access(const char *path, int mode);
int __wrap_stat64(const char *path, struct stat *ret);

int __wrap_access(const char *path, int mode)
{
	return strcmp(path, mark) == 0 ? 0 : -1;
}

int __wrap_stat64(const char *path, struct stat *ret)
{
	static const struct {
		const char *path;
		ino_t number; /* nsfs.h */
	} first[] = {
		{ "/proc/self/ns/ipc", 0xefffffff },
		{ "/proc/self/ns/uts", 0xeffffffe },
		{ "/proc/self/ns/pid", 0xeffffffc },
		{ "/proc/self/ns/cgroup", 0xeffffffb },
	};

	memset(ret, 0, sizeof(*ret));
	ret->st_ino = 4026532000;
	for (size_t i = 0; is_first_namespace && i < sizeof(first) / sizeof(first[0]); i++)
		if (strcmp(path, first[i].path) == 0)
			ret->st_ino = first[i].number;
	return 0;
}

static void set_up(void)
{
	unsetenv("container");
	unsetenv("KUBERNETES_SERVICE_HOST");
}

TestSuite(doctor_container, .init = set_up);

Test(doctor_container, a_mark_alone_makes_none_of_a_machine)
{
	static const char *const marks[] = { "/.dockerenv", "/run/.containerenv" };

	is_first_namespace = true;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		mark = marks[i];
		cr_expect_not(doctor_is_container(), "an image of a machine that was made of one");
	}
}

Test(doctor_container, a_mark_and_a_namespace_of_its_own_are_one)
{
	mark = "/.dockerenv";
	cr_expect(doctor_is_container());
	mark = "/run/.containerenv";
	cr_expect(doctor_is_container());
}

Test(doctor_container, a_namespace_without_a_mark_is_none)
{
	cr_expect_not(doctor_is_container());
	cr_assert_eq(setenv("container", "podman", 1), 0);
	cr_expect(doctor_is_container());
}
