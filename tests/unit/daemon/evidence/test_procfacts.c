/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/procfacts.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/torch_settings.h"
#include "daemon/kernel/procfs.h"

static pid_t target;

static void tear_down(void)
{
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
}

TestSuite(procfacts, .fini = tear_down, .timeout = 300);

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t start_blocked_reader(void)
{
	int64_t deadline = cw_clock_now_ns(&cw_clock_system) + 120 * CW_NS_PER_S;
	struct cw_procfs_syscall sc;
	struct cw_procfs_stat st;
	char text[256], byte;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a) R 1\x01");
		_exit(read(fds[0], &byte, 1) == 1 ? 0 : 1);
	}
	while (cw_procfs_read_task(target, target, "syscall", text, sizeof(text)) <= 0 ||
	       cw_procfs_parse_syscall(text, &sc) != 0 || sc.number != SYS_read) {
		cr_assert_lt(cw_clock_now_ns(&cw_clock_system), deadline);
		sched_yield();
	}
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	return st.start_ticks;
}

/* The line of CPUs in the kernel's text about a process; static. */
static const char *text_of_status(pid_t pid)
{
	static char text[8192];
	const char *line;

	cr_assert_gt(cw_procfs_read(pid, "status", text, sizeof(text)), 0);
	line = strstr(text, "\nCpus_allowed_list:");
	cr_assert_not_null(line);
	text[line + 1 - text + strcspn(line + 1, "\n")] = '\0';
	return line;
}

Test(procfacts, tell_what_a_blocked_process_waits_in)
{
	uint64_t ticks = start_blocked_reader();
	json_t *facts = cw_procfacts(target, ticks, geteuid(), -1, CW_PROCFS_MAX_THREADS);
	const json_t *thread = json_array_get(json_object_get(facts, "threads"), 0);
	char *text = json_dumps(facts, JSON_COMPACT), command[256];

	cr_assert_gt(cw_procfs_read(getpid(), "cmdline", command, sizeof(command)), 0);
	cr_assert_str_eq(text_of(facts, "status"), "ok", "%s", text);
	cr_assert_str_eq(text_of(facts, "state"), "S");
	cr_assert_eq(strncmp(text_of(facts, "command"), command, strlen(command)), 0, "%s", text);
	cr_assert_gt(json_integer_value(json_object_get(facts, "rss_kib")), 0);
	cr_assert_not_null(strstr(text_of_status(target), text_of(facts, "cpus")), "%s", text);
	cr_assert_eq(json_integer_value(json_object_get(facts, "tracer")), 0);
	cr_assert_eq(json_integer_value(json_object_get(facts, "thread_count")), 1);
	cr_assert_eq(json_integer_value(json_object_get(thread, "tid")), target);
	cr_assert_str_eq(text_of(thread, "name"), "a) R 1?");
	cr_assert_str_eq(text_of(thread, "state"), "S");
	cr_assert_str_eq(text_of(thread, "syscall"), "read");
	cr_assert_not_null(strstr(text_of(thread, "wchan"), "pipe"), "%s", text);
	free(text);
	json_decref(facts);
}

Test(procfacts, are_absent_for_a_process_that_is_gone_or_another)
{
	uint64_t ticks = start_blocked_reader();
	json_t *facts = cw_procfacts(target, ticks + 1, geteuid(), -1, CW_PROCFS_MAX_THREADS);

	cr_assert_str_eq(text_of(facts, "status"), "absent");
	cr_assert_eq(json_array_size(json_object_get(facts, "threads")), 0);
	json_decref(facts);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	facts = cw_procfacts(target, ticks, geteuid(), -1, CW_PROCFS_MAX_THREADS);
	target = 0;
	cr_assert_str_eq(text_of(facts, "status"), "absent");
	json_decref(facts);
}

/* In a process of its own: this one must be able to kill the target afterwards. */
static int look_unprivileged(uint64_t ticks)
{
	const json_t *thread;
	json_t *facts;

	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		return 1;
	facts = cw_procfacts(target, ticks, 0, -1, CW_PROCFS_MAX_THREADS);
	thread = json_array_get(json_object_get(facts, "threads"), 0);
	if (strcmp(text_of(facts, "status"), "partial") != 0)
		return 2;
	if (strcmp(text_of(facts, "state"), "S") != 0)
		return 3;
	return json_is_null(json_object_get(thread, "syscall")) ? 0 : 4;
}

Test(procfacts, say_what_may_not_be_read)
{
	uint64_t ticks;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root: gives it up");
	ticks = start_blocked_reader();
	pid = fork();
	if (pid == 0)
		_exit(look_unprivileged(ticks));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

Test(procfacts, parse_only_well_formed_files)
{
	static const char *const bad_stats[] = {
		"", "1", "1 (a", "1 a) S", "1 )a( S 1 2 3", "1 (a) S 1 2 3"
	};
	static const char *const bad_calls[] = { "", "x", "7", "7 0x1 0x2", "-1", "-1 0x7f" };
	struct cw_procfs_syscall sc;
	struct cw_procfs_stat st;

	for (size_t i = 0; i < sizeof(bad_stats) / sizeof(bad_stats[0]); i++)
		cr_assert_eq(cw_procfs_parse_stat(bad_stats[i], &st), -EBADMSG, "%s", bad_stats[i]);
	for (size_t i = 0; i < sizeof(bad_calls) / sizeof(bad_calls[0]); i++)
		cr_assert_eq(cw_procfs_parse_syscall(bad_calls[i], &sc), -EBADMSG, "%s",
			     bad_calls[i]);
	cr_assert_eq(cw_procfs_parse_syscall("running\n", &sc), -EAGAIN);
	cr_assert_eq(cw_procfs_parse_syscall("-1 0x7ffc 0x40\n", &sc), 0);
	cr_assert_eq(sc.number, -1);
	cr_assert_eq(cw_procfs_parse_syscall("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc 0x40\n", &sc), 0);
	cr_assert_eq(sc.number, 202);
	cr_assert_eq(sc.sp, 0x7ffc);
	cr_assert_eq(sc.pc, 0x40);
}

Test(procfacts, make_text_printable_and_bounded)
{
	static const struct {
		const char *from, *to;
		size_t len, max;
	} cases[] = {
		{ "plain", "plain", 5, 16 },
		{ "a\0b\x1b\x7f", "a?b??", 5, 16 },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", 6, 16 },
		{ "\xff\xc3(\xe2\x82",
		  "??"
		  "(??",
		  5, 16 },
		{ "\xc0\xaf\xed\xa0\x80", "?????", 5, 16 }, /* overlong, surrogate */
		{ "\xe2\x80\xae", "???", 3, 16 },           /* right-to-left override */
		{ "0123456789", "01234\xe2\x80\xa6", 10, 8 },
		{ "0123\xc3\xbc\xc3\xbc\xc3\xbc", "0123\xe2\x80\xa6", 10, 8 },
		{ "", "", 0, 8 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = cw_evidence_text(cases[i].from, cases[i].len, cases[i].max);

		cr_assert_str_eq(json_string_value(json), cases[i].to, "case %zu: %s", i,
				 json_string_value(json));
		json_decref(json);
	}
}

static const char *setting(const json_t *list, size_t i)
{
	const char *text = json_string_value(json_array_get(list, i));

	return text ? text : "";
}

Test(procfacts, pick_what_pytorch_is_told_out_of_any_environment)
{
	static const char environment[] = "PATH=/bin\0"
					  "TORCH_NCCL_BLOCKING_WAIT=1\0"
					  "MY_TORCH_NCCL_X=1\0"
					  "NCCL_BLOCKING_WAIT=0\0"
					  "NCCL_BLOCKING_WAITS=0\0"
					  "NCCL_TIMEOUT=3600\0"
					  "TORCH_FR_DUMP_TEMP_FILE=/tmp/\x1b[2J\xff\0"
					  "TORCH_NCCL_NO_VALUE\0"
					  "\0"
					  "TORCH_NCCL_DUMP_ON_TIMEOUT=10"; /* perhaps of 1000 */
	char many[CW_TORCH_SETTINGS_MAX * 32 * 2] = "";
	json_t *list = cw_torch_settings(environment, sizeof(environment) - 1);

	cr_assert_eq(json_array_size(list), 4);
	cr_expect_str_eq(setting(list, 0), "TORCH_NCCL_BLOCKING_WAIT=1");
	cr_expect_str_eq(setting(list, 1), "NCCL_BLOCKING_WAIT=0");
	cr_expect_str_eq(setting(list, 2), "NCCL_TIMEOUT=3600");
	cr_expect_str_eq(setting(list, 3), "TORCH_FR_DUMP_TEMP_FILE=/tmp/?[2J?");
	json_decref(list);
	for (size_t at = 0; at < sizeof(many); at += 32)
		memcpy(many + at, "TORCH_NCCL_X=1", 15);
	list = cw_torch_settings(many, sizeof(many));
	cr_expect_eq(json_array_size(list), CW_TORCH_SETTINGS_MAX);
	json_decref(list);
	list = cw_torch_settings("", 0);
	cr_expect_eq(json_array_size(list), 0);
	json_decref(list);
}

Test(procfacts, tell_what_a_process_tells_pytorch)
{
	char lang[] = "LANG=C", dumps[] = "TORCH_NCCL_DUMP_ON_TIMEOUT=0";
	char *const environment[] = { lang, dumps, NULL };
	struct cw_procfs_stat st;
	json_t *facts, *list;
	int fds[2];
	char byte;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execle("/bin/sleep", "sleep", "300", (char *)NULL, environment);
		_exit(127);
	}
	(void)close(fds[1]);
	cr_assert_eq(read(fds[0], &byte, 1), 0, "it runs another program now");
	(void)close(fds[0]);
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	facts = cw_procfacts(target, st.start_ticks, geteuid(), -1, CW_PROCFS_MAX_THREADS);
	list = json_object_get(facts, "torch_settings");
	cr_assert_eq(json_array_size(list), 1);
	cr_expect_str_eq(setting(list, 0), dumps);
	json_decref(facts);
}
