/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/kernel_threads.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/blocked_on.h"
#include "daemon/evidence/procfacts.h"
#include "daemon/kernel/procfs.h"
#include "tests/support/node/frozen_fs.h"

static struct cw_kernel_threads *kernel;
static struct frozen_fs frozen;
static pid_t target;
static char text[CW_KERNEL_THREADS_MAX_BYTES];

static void set_up(void)
{
	struct cw_err err;

	(void)cw_kernel_threads_new(&kernel, &err); /* tests that need it look */
}

static void tear_down(void)
{
	(void)cw_kernel_threads_free(kernel); /* always NULL */
	if (frozen.guard_fd > 0)
		frozen_fs_thaw(&frozen);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
}

TestSuite(kernel_threads, .init = set_up, .fini = tear_down, .timeout = 300);

static int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

static void need_bpf(void)
{
	struct cw_err err = { "" };

	if (kernel)
		return;
	(void)cw_kernel_threads_new(&kernel, &err);
	cr_assert_neq(strlen(err.text), 0);
	cr_skip_test("no BPF iterator here: %s", err.text);
}

static char state_of(pid_t pid)
{
	struct cw_procfs_stat st = { .state = '?' };

	(void)cw_procfs_stat(pid, 0, &st);
	return st.state;
}

/* Until the target sleeps in the kernel, in a function of this name or part of one. */
static void wait_until_in(char state, const char *function)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	char wchan[128] = "";

	while (state_of(target) != state || !strstr(wchan, function)) {
		cr_assert_lt(now_ns(), deadline, "state %c in %s", state_of(target), wchan);
		if (cw_procfs_read_task(target, target, "wchan", wchan, sizeof(wchan)) < 0)
			wchan[0] = '\0';
		sched_yield();
	}
}

static void start_reader(void)
{
	int fds[2];
	char byte;

	cr_assert_eq(pipe(fds), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(fds[0], &byte, 1) == 1 ? 0 : 1);
	}
	wait_until_in('S', "pipe_read");
}

/* Sleeps in write() to a file that was opened before the file system stopped. */
static void start_writer(void)
{
	int go[2], fd;
	char byte = 'x';

	if (!frozen_fs_mount(&frozen))
		cr_skip_test("needs root, a loop device and mkfs.ext4");
	fd = open(frozen.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert(frozen_fs_freeze(&frozen));
	cr_assert_eq(pipe(go), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(frozen.guard_fd);
		_exit(write(fd, &byte, 1) == 1 ? 0 : 1);
	}
	wait_until_in('D', "");
}

static bool has_symbol(const json_t *stack, const char *part)
{
	const json_t *name;
	size_t i;

	json_array_foreach (stack, i, name)
		if (strstr(json_string_value(name), part))
			return true;
	return false;
}

static ssize_t read_threads(char *buf, size_t len)
{
	return cw_kernel_threads_read(cw_kernel_threads_program(kernel, target), target, buf, len);
}

Test(kernel_threads, shows_where_a_sleeping_thread_is_and_since_when)
{
	int64_t started, off_cpu_ns = 0, deadline;
	json_t *stack = NULL;

	need_bpf();
	started = now_ns();
	start_reader();
	deadline = now_ns() + 120 * CW_NS_PER_S;
	/* It sleeps ever longer. */
	while (off_cpu_ns < 200 * CW_NS_PER_MS) {
		cr_assert_lt(now_ns(), deadline, "%s", text);
		json_decref(stack);
		cr_assert_gt(read_threads(text, sizeof(text)), 0);
		stack = cw_kernel_threads_find(text, target, &off_cpu_ns);
		cr_assert_leq(off_cpu_ns, now_ns() - started, "%s", text);
		sched_yield();
	}
	cr_assert(has_symbol(stack, "pipe_read"), "%s", text);
	cr_assert(has_symbol(stack, "vfs_read"), "%s", text);
	json_decref(stack);
}

Test(kernel_threads, shows_nothing_but_the_process_that_is_asked_for)
{
	json_t *stack;
	int64_t ns;

	need_bpf();
	start_reader();
	cr_assert_gt(read_threads(text, sizeof(text)), 0);
	stack = cw_kernel_threads_find(text, getpid(), &ns);
	cr_assert_null(stack);
	cr_assert_eq(ns, -1);
	cr_assert_null(strstr(text + 1, "\nthread "), "%s", text);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	cr_assert_leq(read_threads(text, sizeof(text)), 0);
	target = 0;
}

Test(kernel_threads, says_what_a_thread_in_uninterruptible_sleep_waits_for)
{
	char device[32];
	json_t *facts, *thread, *waits_for;
	struct cw_procfs_stat st;
	struct stat on;

	start_writer();
	cr_assert_eq(fstat(frozen.fd, &on), 0);
	(void)snprintf(device, sizeof(device), "%u:%u", major(on.st_dev), minor(on.st_dev));
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	facts = cw_procfacts(target, st.start_ticks, geteuid(),
			     cw_kernel_threads_program(kernel, target), CW_PROCFS_MAX_THREADS);
	thread = json_array_get(json_object_get(facts, "threads"), 0);
	waits_for = json_object_get(thread, "waits_for");
	cr_assert_str_eq(json_string_value(json_object_get(thread, "state")), "D");
	cr_assert_str_eq(json_string_value(json_object_get(waits_for, "path")), frozen.file);
	cr_assert_str_eq(json_string_value(json_object_get(waits_for, "device")), device);
	cr_assert_str_eq(json_string_value(json_object_get(waits_for, "fs")), "ext4");
	/* By BPF, or as root from /proc. */
	cr_assert(has_symbol(json_object_get(thread, "kernel_stack"), "vfs_write"), "%s",
		  json_dumps(facts, 0));
	json_decref(facts);
}

Test(kernel_threads, reads_the_text_of_one_thread_among_others)
{
	static const char some[] =
		"thread 12 5000000 1\nfutex_wait_queue+0x1/0x2\n"
		"thread 1 7 2\nfolio_wait_bit+0x1/0x2\next4_sync_file+0x3/0x4 [ext4]\n"
		"do_syscall_64+0x3b/0x90\nthread 2 0 0\nthread 3 9 1\n";
	json_t *stack;
	int64_t ns;

	stack = cw_kernel_threads_find(some, 1, &ns);
	cr_assert_eq(ns, 7);
	cr_assert_eq(json_array_size(stack), 2);
	cr_assert_str_eq(json_string_value(json_array_get(stack, 0)), "folio_wait_bit");
	cr_assert_str_eq(json_string_value(json_array_get(stack, 1)), "ext4_sync_file");
	json_decref(stack);
	cr_assert_null(cw_kernel_threads_find(some, 2, &ns)); /* runs */
	cr_assert_eq(ns, -1);
	cr_assert_null(cw_kernel_threads_find(some, 3, &ns)); /* no frames */
	cr_assert_eq(ns, 9);
	cr_assert_null(cw_kernel_threads_find(some, 4, &ns));
	cr_assert_null(cw_kernel_threads_find("", 1, &ns));
	cr_assert_null(cw_kernel_threads_find(NULL, 1, &ns));
	cr_assert_eq(ns, -1);
	stack = cw_kernel_stack_parse("[<0>] folio_wait_bit+0x1/0x2\n[<0>] x\n\n", 38);
	cr_assert_eq(json_array_size(stack), 2);
	json_decref(stack);
}

Test(kernel_threads, finds_a_mount_by_its_number)
{
	static const char mounts[] =
		"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
		"36 35 98:0 /a /mnt rw master:1 shared:2 - nfs4 server:/export rw,errors=continue\n"
		"37 35 98:1 / /odd rw\n";
	json_t *doc = json_object();

	cr_assert_eq(cw_blocked_on_mount(mounts, 36, doc), 0);
	cr_assert_str_eq(json_string_value(json_object_get(doc, "device")), "98:0");
	cr_assert_str_eq(json_string_value(json_object_get(doc, "fs")), "nfs4");
	cr_assert_str_eq(json_string_value(json_object_get(doc, "source")), "server:/export");
	cr_assert_eq(cw_blocked_on_mount(mounts, 37, doc), -ENOENT);
	cr_assert_eq(cw_blocked_on_mount(mounts, 3, doc), -ENOENT);
	cr_assert_eq(cw_blocked_on_mount("", 3, doc), -ENOENT);
	json_decref(doc);
}
