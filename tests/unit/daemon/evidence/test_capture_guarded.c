/* SPDX-License-Identifier: Apache-2.0 */
/* The view that a user gets of programs of his that he may not read; the test plays the node. */
#include "daemon/evidence/capture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/kernel/kernel_threads.h"
#include "daemon/node/node.h"
#include "tests/support/agent/guarded_program.h"

static struct event_base *base;
static struct cw_capture *capture;
static struct cw_node_process process;
static json_t *doc;
static bool has_kernel_side;
static unsigned *kernel_reads; /* shared with the children */

ssize_t __real_cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len);
ssize_t __wrap_cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len);

ssize_t __wrap_cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len)
{
	(*kernel_reads)++;
	return __real_cw_kernel_threads_read(program, pid, buf, len);
}

bool cw_node_find(struct cw_node *n, pid_t pid, uint64_t start_ticks, struct cw_node_process *ret)
{
	*ret = process;
	return pid == process.pid && start_ticks == process.start_ticks;
}

int cw_node_python_stacks(struct cw_node *n, pid_t pid, uint64_t start_ticks, uint32_t deadline_ms,
			  cw_node_python_fn fn, void *user, uint64_t *ret_handle)
{
	return -ENOTCONN;
}

void cw_node_python_cancel(struct cw_node *n, uint64_t handle)
{
}

static void set_up(void)
{
	struct cw_capture_config config = {
		.clock = &cw_clock_system, .node_name = "node-a", .max_running = 2, .max_queued = 8
	};

	struct cw_kernel_threads *kernel = NULL;

	kernel_reads = mmap(NULL, sizeof(*kernel_reads), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(kernel_reads, MAP_FAILED);
	guarded_set_up();
	has_kernel_side = cw_kernel_threads_new(&kernel, NULL) == 0;
	cw_kernel_threads_free(kernel);
	config.base = base = event_base_new();
	cr_assert_eq(cw_capture_new(&config, &capture), 0);
}

static void tear_down(void)
{
	guarded_tear_down();
	capture = cw_capture_free(capture);
	if (base)
		event_base_free(base);
	json_decref(doc);
}

TestSuite(capture_guarded, .init = set_up, .fini = tear_down, .timeout = 300);

static void on_captured(const struct cw_msg_evidence_target *t, const char *json, void *user)
{
	doc = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(doc, "%s", json);
	event_base_loopbreak(base);
}

static void look_at(enum guard guard)
{
	struct cw_msg_evidence_target t = { .what = CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE };

	t.pid = guarded_start(guard, GUARD_NONE);
	t.start_ticks = guarded_start_ticks(t.pid);
	process = (struct cw_node_process){
		.pid = t.pid,
		.start_ticks = t.start_ticks,
		.uid = NOBODY,
		.gid = NOBODY,
		.pidfd = -1,
	};
	cr_assert_eq(cw_capture_request(capture, &t, 60000, on_captured, NULL), 0);
	while (!doc)
		event_base_loop(base, EVLOOP_ONCE);
}

static const json_t *at(const char *part, const char *key)
{
	return json_object_get(json_object_get(doc, part), key);
}

static const json_t *of_thread(const char *key)
{
	return json_object_get(json_array_get(at("proc", "threads"), 0), key);
}

static void expect_hidden(void)
{
	static const char *const secret[] = { "syscall", "wchan", "off_cpu_s", "kernel_stack",
					      "waits_for" };

	cr_expect_str_eq(json_string_value(at("native", "status")), "refused", "%s",
			 json_string_value(at("native", "reason")));
	cr_expect_eq(json_array_size(at("native", "threads")), 0);
	cr_expect_str_eq(json_string_value(at("proc", "status")), "partial");
	cr_expect(json_is_null(at("proc", "read_bytes")), "its I/O is shown");
	cr_expect(json_is_null(at("proc", "write_bytes")), "its I/O is shown");
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		cr_expect(json_is_null(of_thread(secret[i])), "%s is shown", secret[i]);
	cr_expect_eq(*kernel_reads, 0,
		     "where its threads sleep is read, and only then thrown away");
	/* Fields that ps shows to every user. */
	cr_expect_str_eq(json_string_value(at("proc", "state")), "S");
	cr_expect_eq(strncmp(json_string_value(at("proc", "command")), "rank", 4), 0);
	cr_expect_eq(json_integer_value(at("proc", "thread_count")), 1);
}

static void expect_shown(void)
{
	cr_expect_str_eq(json_string_value(at("native", "status")), "ok", "%s",
			 json_string_value(at("native", "reason")));
	cr_expect_gt(json_array_size(at("native", "threads")), 0);
	cr_expect_str_eq(json_string_value(at("proc", "status")), "ok");
	cr_expect_str_eq(json_string_value(of_thread("syscall")), "read");
	cr_expect_eq(*kernel_reads, has_kernel_side ? 1 : 0);
}

Test(capture_guarded, shows_an_ordinary_program)
{
	look_at(GUARD_NONE);
	expect_shown();
}

Test(capture_guarded, hides_a_program_that_may_be_run_but_not_read)
{
	look_at(GUARD_UNREADABLE);
	expect_hidden();
}

Test(capture_guarded, hides_a_set_user_id_program)
{
	look_at(GUARD_SETUID);
	expect_hidden();
}

Test(capture_guarded, hides_a_set_group_id_program)
{
	look_at(GUARD_SETGID);
	expect_hidden();
}

Test(capture_guarded, hides_a_program_whose_file_has_capabilities)
{
	look_at(GUARD_CAPABILITIES);
	expect_hidden();
}

Test(capture_guarded, hides_a_program_that_has_withdrawn)
{
	look_at(GUARD_WITHDRAWN);
	expect_hidden();
}

/* Dumpable, and yet the kernel would not let its user trace it. */
Test(capture_guarded, hides_a_program_with_more_rights_than_its_user)
{
	look_at(GUARD_AMBIENT);
	expect_hidden();
}

/* Its capabilities count in the namespace only, and that one is its user's. */
Test(capture_guarded, shows_a_program_in_a_user_namespace_of_its_user)
{
	look_at(GUARD_NAMESPACE);
	expect_shown();
}
