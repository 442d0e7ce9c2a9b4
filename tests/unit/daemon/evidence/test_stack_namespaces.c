/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank in a container: its own mount and pid namespace, its program on a file system that
 * no other process sees. The target is a copy of this very program: a constructor turns it
 * into a rank.
 */
#include <cap-ng.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/kernel/procfs.h"
#include "tests/support/evidence/stack_fixture.h"

#define AS_RANK "TEST_STACK_NAMESPACES_FD"
#define PROGRAM "/rank-in-a-container"

static char dir[] = "/tmp/cw-stack-XXXXXX";

static void set_up(void)
{
	stack_fixture_set_up();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	cr_assert_not_null(mkdtemp(dir));
}

static void tear_down(void)
{
	stack_fixture_tear_down();
	(void)rmdir(dir);
}

TestSuite(stack_namespaces, .init = set_up, .fini = tear_down, .timeout = 300);

/* Before criterion's main(): the copy that was started as a rank is one. */
__attribute__((constructor)) static void become_rank(void)
{
	const char *fd = getenv(AS_RANK);

	if (!fd)
		return;
	pipe_fds[0] = atoi(fd);
	_exit(run_reader());
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct stat st;
	ssize_t n = 0;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return -1;
	for (off_t left = st.st_size; left > 0 && n >= 0; left -= n)
		n = sendfile(out, in, NULL, (size_t)left);
	(void)close(in);
	(void)close(out);
	return n < 0 ? -1 : 0;
}

/* In a namespace of its own from here on. Tells the pid its child has outside. */
static int start_container(int report_fd)
{
	char program[128], text[16];
	pid_t pid;

	(void)snprintf(program, sizeof(program), "%s" PROGRAM, dir);
	(void)snprintf(text, sizeof(text), "%d", pipe_fds[0]);
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("rank", dir, "tmpfs", 0, "size=64m") < 0)
		return 77;
	if (copy_file("/proc/self/exe", program) < 0 || setenv(AS_RANK, text, 1) < 0)
		return 78;
	pid = fork(); /* pid 1 in there */
	if (pid == 0) {
		(void)close(pipe_fds[1]); /* a test that dies ends its read */
		(void)execl(program, program, NULL);
		_exit(79);
	}
	return pid > 0 && write(report_fd, &pid, sizeof(pid)) == sizeof(pid) ? 0 : 80;
}

/* Not in one of the reads of its loader. */
static void wait_until_reads_pipe(void)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	char text[128] = "";

	while (!strstr(text, "pipe_read") && now_ns() < deadline) {
		if (cw_procfs_read_task(target, target, "wchan", text, sizeof(text)) < 0)
			text[0] = '\0';
		sched_yield();
	}
	wait_until_in(target, SYS_read, 0);
}

static void start_rank(void)
{
	int report[2], status;
	pid_t pid;

	cr_assert_eq(pipe2(report, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		_exit(start_container(report[1]));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		cr_skip_test("no right to make namespaces");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	cr_assert_eq(read(report[0], &target, sizeof(target)), sizeof(target));
	wait_until_reads_pipe();
}

/*
 * Looks as a daemon that may trace, but not read map_files: it finds a mapped file by its
 * path in there.
 */
static int look_through_root(int out_fd, const void *arg)
{
	if (capng_get_caps_process() < 0 ||
	    capng_updatev(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_ADMIN,
			  CAP_CHECKPOINT_RESTORE, -1) < 0 ||
	    capng_apply(CAPNG_SELECT_CAPS) < 0)
		return 1;
	return cw_stack_child(out_fd, arg);
}

static const json_t *main_thread(const json_t *native)
{
	return json_array_get(json_object_get(native, "threads"), 0);
}

static void expect_symbols(const json_t *native)
{
	char *text = json_dumps(native, JSON_INDENT(1));
	int inner = frame_of(main_thread(native), "data_loader_next");
	const json_t *frame;

	cr_assert_str_eq(text_of(native, "status"), "ok", "%s", text);
	cr_assert_gt(inner, 0, "%s", text);
	cr_assert_gt(frame_of(main_thread(native), "train_step"), inner, "%s", text);
	frame = json_array_get(json_object_get(main_thread(native), "frames"), (size_t)inner);
	/* " (deleted)" may follow. */
	cr_assert_eq(strncmp(text_of(frame, "module"), &PROGRAM[1], strlen(PROGRAM) - 1), 0, "%s",
		     text);
	free(text);
}

Test(stack_namespaces, a_rank_in_a_container_gets_symbols_of_files_only_it_can_see)
{
	struct cw_stack_target t;
	char outside[160];
	json_t *native;

	if (geteuid() != 0)
		cr_skip_test("needs root: makes namespaces");
	start_rank();
	(void)snprintf(outside, sizeof(outside), "%s" PROGRAM, dir);
	cr_assert_eq(access(outside, F_OK), -1, "it can be seen from here");
	t = target_of(target, 0);
	native = look_at(&t);
	expect_symbols(native);
	json_decref(native);
	native = look_at_by(look_through_root, &t);
	expect_symbols(native);
	json_decref(native);
}

Test(stack_namespaces, a_file_that_took_the_place_of_the_mapped_one_gives_no_wrong_symbols)
{
	char program[192], other[200];
	struct cw_stack_target t;
	const json_t *frames, *frame;
	json_t *native;
	size_t i;

	if (geteuid() != 0)
		cr_skip_test("needs root: makes namespaces");
	start_rank();
	(void)snprintf(program, sizeof(program), "/proc/%d/root%s" PROGRAM, (int)target, dir);
	(void)snprintf(other, sizeof(other), "%s.new", program);
	cr_assert_eq(copy_file("/bin/true", other), 0);
	cr_assert_eq(rename(other, program), 0);
	t = target_of(target, 0);
	/* The mapped file itself still exists for a process that may open it. */
	native = look_at(&t);
	expect_symbols(native);
	json_decref(native);
	native = look_at_by(look_through_root, &t);
	frames = json_object_get(main_thread(native), "frames");
	cr_assert_gt(json_array_size(frames), 0);
	json_array_foreach (frames, i, frame)
		if (strncmp(text_of(frame, "module"), &PROGRAM[1], strlen(PROGRAM) - 1) == 0)
			cr_assert_str_eq(text_of(frame, "symbol"), "", "a symbol of /bin/true");
	json_decref(native);
}
