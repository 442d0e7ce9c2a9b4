/* SPDX-License-Identifier: Apache-2.0 */
/* /proc on a process's pid in its own namespace, and on control groups. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/procstat.h"
#include "daemon/process/proc_pod.h"

#define BEFORE "Name:\tNSpid:\t9\nGroups:\t0 \nNStgid:\t812\t17\n"

Test(proc_pod, own_pid_is_the_innermost)
{
	cr_expect_eq(cw_proc_pod_own_pid(BEFORE "NSpid:\t812\t17\nNSpgid:\t812\t17\n"), 17);
	cr_expect_eq(cw_proc_pod_own_pid(BEFORE "NSpid:\t812\t40\t1\n"), 1);
	cr_expect_eq(cw_proc_pod_own_pid(BEFORE "NSpid:\t812\nNSpgid:\t812\n"), 0, "it has one");
}

Test(proc_pod, own_pid_is_not_known_of_other_text)
{
	static const char *const texts[] = {
		"",
		"NSpid:",
		BEFORE,
		BEFORE "NSpid:\n",
		BEFORE "NSpid:\t812\t17",
		BEFORE "NSpid:\t812\t\n",
		BEFORE "NSpid:\t812\t0\n",
		BEFORE "NSpid:\t812\t-4x\n",
		BEFORE "NSpid:\t812\t99999999999999999999\n",
		BEFORE "NSpid:\t812\t4294967297\n",
		BEFORE "NSpid:17\n",
	};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_eq(cw_proc_pod_own_pid(texts[i]), 0, "%s", texts[i]);
}

Test(proc_pod, of_a_process_without_namespaces_of_its_own_is_empty)
{
	_cleanup_(closep) int fd = cw_procstat_open(getpid());
	struct cw_proc_pod pod;

	cr_assert_geq(fd, 0);
	cw_proc_pod_read(fd, &pod);
	cr_expect_eq(pod.own_pid, 0);
	cw_proc_pod_read(-1, &pod);
	cr_expect_eq(pod.own_pid, 0);
	cr_expect_str_eq(pod.ids.name, "");
}
