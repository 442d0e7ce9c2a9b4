/* SPDX-License-Identifier: Apache-2.0 */
/* Real children looking at real processes; the node, which knows the agents, is played here. */
#include "daemon/evidence/capture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/procfs.h"
#include "daemon/node/node.h"
#include "leader/incident/evidence_brief.h"
#include "tests/support/node/mute_fuse.h"

#define TRACEBACK                                                                                  \
	"Current thread 0x7f (most recent call first):\n"                                          \
	"  File \"train_loop.py\", line 88 in read_sample\n"

static struct event_base *base;
static struct cw_capture *capture;
static pid_t target;

/* ---- the node ---- */

static struct {
	bool is_known;
	struct cw_node_process process;
	int ask_result;
	bool is_silent; /* never answers */
	unsigned asked, cancelled;
	cw_node_python_fn fn;
	void *user;
	struct event *answer;
} node;

bool cw_node_find(struct cw_node *n, pid_t pid, uint64_t start_ticks, struct cw_node_process *ret)
{
	if (!node.is_known || pid != node.process.pid || start_ticks != node.process.start_ticks)
		return false;
	*ret = node.process;
	return true;
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	node.fn(CW_PYTHON_OK, TRACEBACK, node.user);
}

int cw_node_python_stacks(struct cw_node *n, pid_t pid, uint64_t start_ticks, uint32_t deadline_ms,
			  cw_node_python_fn fn, void *user, uint64_t *ret_handle)
{
	struct timeval soon = { 0, 1000 };

	node.asked++;
	node.fn = fn;
	node.user = user;
	*ret_handle = 7;
	if (node.ask_result == 0 && !node.is_silent)
		evtimer_add(node.answer, &soon);
	return node.ask_result;
}

void cw_node_python_cancel(struct cw_node *n, uint64_t handle)
{
	cr_assert_eq(handle, 7);
	node.cancelled++;
}

/* ---- the test ---- */

static struct {
	unsigned calls;
	json_t *doc; /* of the last call */
	int32_t pids[64];
	bool is_in_request;
} got;

static void set_up(void)
{
	struct cw_capture_config config = {
		.clock = &cw_clock_system, .node_name = "node-a", .max_running = 2, .max_queued = 8
	};

	config.base = base = event_base_new();
	cr_assert_eq(cw_capture_new(&config, &capture), 0);
	node.answer = evtimer_new(base, on_answer, NULL);
}

static void tear_down(void)
{
	capture = cw_capture_free(capture);
	event_free(node.answer);
	event_base_free(base);
	json_decref(got.doc);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
}

TestSuite(capture, .init = set_up, .fini = tear_down, .timeout = 300);

__attribute__((noinline, noclone)) static int data_loader_next(int fd)
{
	volatile char byte = 0;

	return read(fd, (char *)&byte, 1) == 1 ? byte : -1;
}

static void start_target(void)
{
	struct cw_procfs_syscall sc;
	struct cw_procfs_stat st;
	char text[256];
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(data_loader_next(fds[0]));
	}
	while (cw_procfs_read_task(target, target, "syscall", text, sizeof(text)) <= 0 ||
	       cw_procfs_parse_syscall(text, &sc) != 0 || sc.number != SYS_read)
		sched_yield(); /* the suite's time limit ends it */
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	node.is_known = true;
	node.process = (struct cw_node_process){ .pid = target,
						 .start_ticks = st.start_ticks,
						 .uid = geteuid(),
						 .gid = getegid(),
						 .pidfd = -1,
						 .rank = 3,
						 .has_python = true,
						 .idle_ns = 10 * CW_NS_PER_S };
}

static void on_captured(const struct cw_msg_evidence_target *t, const char *json, void *user)
{
	struct cw_capture_stats stats;

	cr_assert_not(got.is_in_request);
	cw_capture_stats(capture, &stats);
	cr_assert_leq(stats.running, 2);
	got.pids[got.calls++ % 64] = t->pid;
	json_decref(got.doc);
	got.doc = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(got.doc, "%s", json);
	event_base_loopbreak(base);
}

static int request(uint32_t what, uint32_t deadline_ms)
{
	struct cw_msg_evidence_target t = { target, node.process.start_ticks, what };
	int r;

	got.is_in_request = true;
	r = cw_capture_request(capture, &t, deadline_ms, on_captured, NULL);
	got.is_in_request = false;
	return r;
}

#define ALL (CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE | CW_EVIDENCE_PYTHON)
#define MANY (CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE | CW_EVIDENCE_BRIEF)

static void wait_for(unsigned calls)
{
	while (got.calls < calls)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(got.calls, calls);
}

static const char *text_at(const char *part, const char *key)
{
	const char *text = json_string_value(json_object_get(json_object_get(got.doc, part), key));

	return text ? text : "";
}

static void expect_status(const char *part, const char *status)
{
	cr_assert_str_eq(text_at(part, "status"), status, "%s: %s", part, text_at(part, "reason"));
}

static bool has_native_symbol(const char *symbol)
{
	char *text = json_dumps(json_object_get(got.doc, "native"), 0), quoted[64];
	bool found;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", symbol);
	found = strstr(text, quoted) != NULL;
	free(text);
	return found;
}

static size_t count_threads(const char *part)
{
	return json_array_size(json_object_get(json_object_get(got.doc, part), "threads"));
}

Test(capture, gives_proc_python_and_native_stacks_in_one_document)
{
	json_t *frame;

	start_target();
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(1);
	cr_assert_str_eq(json_string_value(json_object_get(got.doc, "schema")),
			 "collwatch.evidence/1");
	cr_assert_str_eq(json_string_value(json_object_get(got.doc, "host")), "node-a");
	cr_assert_eq(json_integer_value(json_object_get(got.doc, "pid")), target);
	cr_assert_eq(json_integer_value(json_object_get(got.doc, "rank")), 3);
	expect_status("proc", "ok");
	expect_status("python", "ok");
	expect_status("native", "ok");
	cr_assert_str_eq(text_at("proc", "state"), "S");
	frame = json_array_get(
		json_object_get(
			json_array_get(
				json_object_get(json_object_get(got.doc, "python"), "threads"), 0),
			"frames"),
		0);
	cr_assert_str_eq(json_string_value(json_object_get(frame, "function")), "read_sample");
	cr_assert(has_native_symbol("data_loader_next"));
}

Test(capture, gives_only_what_was_asked_for)
{
	start_target();
	cr_assert_eq(request(CW_EVIDENCE_NATIVE, 20000), 0);
	wait_for(1);
	expect_status("native", "ok");
	cr_assert(json_is_null(json_object_get(got.doc, "proc")));
	cr_assert(json_is_null(json_object_get(got.doc, "python")));
	cr_assert_eq(node.asked, 0);
}

Test(capture, asks_no_interpreter_that_runs_or_is_not_there)
{
	start_target();
	node.process.idle_ns = CW_NS_PER_S;
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(1);
	expect_status("python", "refused");
	cr_assert_not_null(strstr(text_at("python", "reason"), "running"));
	expect_status("native", "ok");

	node.process.idle_ns = -1;
	cr_assert_eq(request(CW_EVIDENCE_PYTHON, 20000), 0);
	wait_for(2);
	expect_status("python", "refused");

	node.process.has_python = false;
	cr_assert_eq(request(CW_EVIDENCE_PYTHON, 20000), 0);
	wait_for(3);
	expect_status("python", "absent");
	cr_assert_eq(node.asked, 0);
}

Test(capture, does_not_ask_a_stopped_process_for_python_stacks)
{
	int status;

	start_target();
	cr_assert_eq(kill(target, SIGSTOP), 0);
	cr_assert_eq(waitpid(target, &status, WUNTRACED), target);
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(1);
	cr_assert_str_eq(text_at("proc", "state"), "T");
	expect_status("python", "refused");
	expect_status("native", "ok");
	cr_assert(has_native_symbol("data_loader_next"));
	cr_assert_eq(node.asked, 0);
}

/* An interpreter that nothing but its memory gives away. */
static void start_python(void)
{
	struct cw_procfs_stat st;
	char byte;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(fds[1], STDOUT_FILENO);
		execlp("python3", "python3", "-c",
		       "import sys, time\n"
		       "def rest():\n"
		       "    print(flush=True)\n"
		       "    time.sleep(1000)\n"
		       "rest()\n",
		       NULL);
		_exit(127);
	}
	(void)close(fds[1]);
	cr_assert_eq(read(fds[0], &byte, 1), 1, "python3 runs");
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	node.is_known = true;
	node.process = (struct cw_node_process){ .pid = target,
						 .start_ticks = st.start_ticks,
						 .uid = geteuid(),
						 .gid = getegid(),
						 .pidfd = -1,
						 .rank = 3,
						 .idle_ns = 0 };
}

static void expect_python_stack(void)
{
	const json_t *threads = json_object_get(json_object_get(got.doc, "python"), "threads");
	const json_t *frames = json_object_get(json_array_get(threads, 0), "frames");
	const json_t *inner = json_array_get(frames, 0);

	expect_status("python", "ok");
	cr_assert_eq(json_array_size(threads), 1);
	cr_assert_eq(json_array_size(frames), 2);
	cr_expect_str_eq(json_string_value(json_object_get(inner, "function")), "rest");
	cr_expect_str_eq(json_string_value(json_object_get(inner, "file")), "<string>");
}

Test(capture, reads_python_stacks_of_a_process_that_runs_or_is_stopped)
{
	int status;

	start_python();
	cr_assert_eq(request(CW_EVIDENCE_PYTHON_READ, 20000), 0);
	wait_for(1);
	expect_python_stack();
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(2);
	expect_python_stack();
	expect_status("native", "ok");
	cr_assert_eq(kill(target, SIGSTOP), 0);
	cr_assert_eq(waitpid(target, &status, WUNTRACED), target);
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(3);
	cr_assert_str_eq(text_at("proc", "state"), "T");
	expect_python_stack();
	cr_assert_eq(node.asked, 0, "the agent need not answer");
}

#define SWEPT                                                                                      \
	(CW_EVIDENCE_PROC | CW_EVIDENCE_PYTHON_READ | CW_EVIDENCE_NATIVE_ELSE | CW_EVIDENCE_BRIEF)

/* The target, and a process that the node does not know. */
static int request_all(uint32_t deadline_ms)
{
	struct cw_msg_evidence_target list[] = {
		{ 1, 17, SWEPT },
		{ target, node.process.start_ticks, SWEPT },
	};

	return cw_capture_request_all(capture, list, 2, deadline_ms, on_captured, NULL);
}

static void expect_gone(void)
{
	cr_expect_eq(json_integer_value(json_object_get(got.doc, "pid")), 1);
	expect_status("python", "absent");
}

Test(capture, reads_many_processes_with_one_child_and_holds_none)
{
	start_python();
	cr_assert_eq(request_all(20000), 0);
	wait_for(1);
	cr_expect_eq(json_integer_value(json_object_get(got.doc, "pid")), target);
	cr_expect_eq(json_integer_value(json_object_get(got.doc, "rank")), 3);
	expect_python_stack();
	cr_expect_eq(count_threads("proc"), 1);
	cr_expect(json_is_null(json_object_get(got.doc, "native")));
	wait_for(2);
	expect_gone();
}

Test(capture, takes_native_stacks_where_a_sweep_finds_no_python)
{
	start_target();
	cr_assert_eq(request_all(20000), 0);
	for (unsigned i = 1; i <= 2; i++) {
		wait_for(i);
		if (json_integer_value(json_object_get(got.doc, "pid")) == 1) {
			expect_gone();
			continue;
		}
		expect_status("python", "absent");
		expect_status("native", "ok");
		cr_expect(has_native_symbol("data_loader_next"));
	}
	cr_assert_eq(node.asked, 0);
}

Test(capture, answers_for_each_process_of_a_sweep_that_has_no_time)
{
	start_python();
	cr_assert_eq(request_all(1), 0);
	wait_for(2);
	cr_expect_neq(got.pids[0], got.pids[1]);
}

Test(capture, asks_no_agent_for_what_is_only_read)
{
	start_target();
	cr_assert_eq(request(CW_EVIDENCE_PYTHON_READ, 20000), 0);
	wait_for(1);
	expect_status("python", "absent");
	cr_assert_eq(node.asked, 0);
}

Test(capture, goes_on_when_the_agent_cannot_be_asked)
{
	start_target();
	node.ask_result = -ENOTCONN;
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(1);
	expect_status("python", "failed");
	expect_status("native", "ok");
}

Test(capture, ends_at_its_deadline_with_what_there_is)
{
	struct cw_capture_stats stats;
	unsigned n = 0;

	start_target();
	node.is_silent = true;
	/* On a busy machine the child may not be through by then: it gets more time. */
	for (uint32_t ms = 1500; strcmp(text_at("proc", "status"), "ok") != 0 && ms < 120000;
	     ms *= 2) {
		cr_assert_eq(request(ALL, ms), 0);
		wait_for(++n);
	}
	expect_status("proc", "ok");
	expect_status("python", "failed");
	expect_status("native", "failed");
	cr_assert_eq(node.cancelled, node.asked);
	cw_capture_stats(capture, &stats);
	cr_assert_eq(stats.timed_out, n);
	cr_assert_eq(stats.failed, n);
	cr_assert_eq(stats.running, 0);
}

Test(capture, says_that_a_process_is_gone)
{
	start_target();
	node.process.is_dead = true;
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(1);
	expect_status("proc", "absent");
	expect_status("native", "absent");
	expect_status("python", "absent");
	node.is_known = false;
	cr_assert_eq(request(ALL, 20000), 0);
	wait_for(2);
	expect_status("proc", "absent");
	expect_status("native", "absent");
	expect_status("python", "absent");
	cr_assert_eq(json_integer_value(json_object_get(got.doc, "rank")), -1);
}

Test(capture, queues_and_refuses_beyond_its_limit)
{
	struct cw_capture_stats stats;

	start_target();
	for (int i = 0; i < 7; i++) /* of 8 places: one is for others */
		cr_assert_eq(request(CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE, 60000), 0);
	cr_assert_eq(request(ALL, 60000), -EAGAIN);
	wait_for(7);
	cw_capture_stats(capture, &stats);
	cr_assert_eq(stats.refused, 1);
	cr_assert_eq(stats.queued, 0);
	cr_assert_eq(stats.running, 0);
	cr_assert_eq(stats.done + stats.failed, 7);
}

Test(capture, is_brief_about_one_of_many_and_takes_it_last)
{
	start_target();
	for (int i = 0; i < 6; i++) /* a quarter of the queue is not theirs */
		cr_assert_eq(request(MANY, 60000), 0);
	cr_assert_eq(request(MANY, 60000), -EAGAIN);
	cr_assert_eq(request(CW_EVIDENCE_PROC, 60000), 0);
	wait_for(1);
	cr_assert(json_is_null(json_object_get(got.doc, "native")), "another one came first");
	wait_for(7);
	expect_status("native", "ok");
	cr_assert(has_native_symbol("data_loader_next"));
	cr_assert_eq(count_threads("native"), 1);
	cr_assert_eq(count_threads("proc"), 1);
}

Test(capture, keeps_of_many_threads_those_that_say_where_the_rank_is)
{
	static const char text[] =
		"{\"pid\":7,\"proc\":{\"threads\":[{\"tid\":7},{\"tid\":8},{\"tid\":9}]},"
		"\"native\":{\"threads\":[{\"tid\":7,\"frames\":[]},"
		"{\"tid\":8,\"frames\":[{\"module\":\"libc.so.6\"}]},"
		"{\"tid\":9,\"frames\":[{\"module\":\"libnccl.so.2\"},"
		"{\"module\":\"libcollwatch.so\"}]}]},"
		"\"python\":{\"threads\":[{\"id\":\"0x1\"},{\"id\":\"0x2\"}]}}";

	got.doc = json_loads(text, 0, NULL);
	cw_evidence_brief(got.doc, false);
	cr_assert_eq(count_threads("native"), 2);
	cr_assert_eq(count_threads("proc"), 2);
	cr_assert_eq(count_threads("python"), 1);
	cr_assert_str_eq(
		json_string_value(json_object_get(
			json_array_get(
				json_object_get(json_object_get(got.doc, "python"), "threads"), 0),
			"id")),
		"0x2");
	cw_evidence_brief(NULL, false); /* of any shape */
}

Test(capture, calls_nobody_back_after_its_end)
{
	unsigned calls;

	start_target();
	node.is_silent = true;
	cr_assert_eq(request(CW_EVIDENCE_PYTHON, 20000), 0);
	cr_assert_eq(request(CW_EVIDENCE_NATIVE, 20000), 0);
	cr_assert_eq(request(ALL, 20000), 0);
	while (node.asked == 0)
		event_base_loop(base, EVLOOP_ONCE);
	calls = got.calls; /* the native stacks may come first */
	capture = cw_capture_free(capture);
	cr_assert_eq(node.cancelled, node.asked);
	event_base_loop(base, EVLOOP_NONBLOCK);
	cr_assert_eq(got.calls, calls);
}

static void wait_below(void *user)
{
	_exit(data_loader_next(*(int *)user));
}

static bool start_below(const char *file)
{
	struct cw_procfs_syscall sc;
	struct cw_procfs_stat st;
	char text[256];
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(mute_fuse_run_below(file, 0, wait_below, &fds[0]) ? 0 : 1);
	}
	while (cw_procfs_read_task(target, target, "syscall", text, sizeof(text)) <= 0 ||
	       cw_procfs_parse_syscall(text, &sc) != 0 || sc.number != SYS_read ||
	       !strstr(text, " "))
		sched_yield(); /* the suite's time limit ends it */
	cr_assert_eq(cw_procfs_stat(target, 0, &st), 0);
	node.is_known = true;
	node.process = (struct cw_node_process){ .pid = target,
						 .start_ticks = st.start_ticks,
						 .uid = geteuid(),
						 .gid = getegid(),
						 .pidfd = -1 };
	return true;
}

/*
 * Above the stack lie pages of a file, and its program would wait for them forever: the copy goes
 * on there.
 */
Test(capture, takes_a_stack_below_a_file_whose_pages_never_come)
{
	struct cw_capture_stats stats;
	struct mute_fuse fs = { 0 };

	if (!mute_fuse_mount(&fs))
		cr_skip_test("needs root and FUSE");
	start_below(fs.file);
	cr_assert_eq(request(CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE, 20000), 0);
	wait_for(1);
	mute_fuse_end(&fs);
	expect_status("native", "ok");
	cr_expect(has_native_symbol("data_loader_next"));
	cw_capture_stats(capture, &stats);
	cr_expect_eq(stats.timed_out + stats.abandoned, 0);
}
