/* SPDX-License-Identifier: Apache-2.0 */
/* A file that does not come: a FIFO without a writer, or a file system that is silent. */
#include "daemon/config/config_reader.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/support/node/hung_fs.h"

static char dir[] = "/tmp/cw-reader-XXXXXX";
static char path[64];
static struct event_base *base;
static struct cw_config_reader *reader;
static struct cw_config *config;
static struct cw_err err;
static int result;
static unsigned answers, iterations;

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	base = event_base_new();
	cr_assert_eq(cw_config_reader_new(base, NULL, &reader), 0);
}

static void tear_down(void)
{
	(void)cw_config_reader_free(reader);
	event_base_free(base);
	(void)cw_config_free(config);
	(void)unlink(path);
	(void)rmdir(dir);
}

TestSuite(config_reader, .init = set_up, .fini = tear_down, .timeout = 110);

static void on_config(struct cw_config *c, int r, const struct cw_err *e, void *user)
{
	answers++;
	config = c;
	result = r;
	err = *e;
}

static int start(uint32_t within_ms)
{
	const struct cw_config_source source = { .path = path, .within_ms = within_ms };

	return cw_config_reader_start(reader, &source, on_config, NULL, &err);
}

static void on_iteration(evutil_socket_t fd, short what, void *user)
{
	iterations++;
}

static void wait_for_answer(void)
{
	struct event *timer = event_new(base, -1, EV_PERSIST, on_iteration, NULL);
	const struct timeval often = { .tv_usec = 20000 };

	event_add(timer, &often);
	while (!answers)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(timer);
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

Test(config_reader, a_file_that_does_not_come_keeps_nobody_waiting)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(start(1000), 0);
	wait_for_answer();
	cr_assert_eq(result, -ETIMEDOUT);
	cr_assert_null(config);
	cr_expect_not_null(strstr(err.text, "conf: reading it takes longer than 1 s"), "%s",
			   err.text);
	cr_expect_gt(iterations, 3, "the loop ran meanwhile");
	/* And the next time it is there. */
	answers = 0;
	cr_assert_eq(unlink(path), 0);
	write_file("node_name = n\n");
	cr_assert_eq(start(60000), 0);
	wait_for_answer();
	cr_assert_eq(result, 0, "%s", err.text);
	cr_expect_str_eq(config->node_name, "n");
}

/* With a header file in directory `where`. */
static void write_with_headers(const char *where)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "node_name = n\nwebhook_url = \"http://127.0.0.1:9/\"\n"
		       "webhook_header_file = \"%s/headers\"\n",
		       where);
	write_file(text);
}

Test(config_reader, headers_that_do_not_come_keep_nobody_waiting)
{
	char hung[] = "/tmp/cw-hung-XXXXXX";
	bool is_mounted;

	cr_assert_not_null(mkdtemp(hung));
	is_mounted = hung_fs_mount(hung);
	if (is_mounted) {
		write_with_headers(hung);
		cr_assert_eq(start(1000), 0);
		wait_for_answer();
		hung_fs_unmount(hung);
	}
	cr_assert_eq(rmdir(hung), 0);
	if (!is_mounted)
		cr_skip_test("needs root and FUSE");
	cr_assert_eq(result, -ETIMEDOUT);
	cr_assert_null(config);
	cr_expect_not_null(
		strstr(err.text, "conf: reading the webhook_header_file takes longer than 1 s"),
		"%s", err.text);
	cr_expect_gt(iterations, 3, "the loop ran meanwhile");
}

Test(config_reader, headers_come_with_the_configuration)
{
	char headers[80];
	FILE *f;

	(void)snprintf(headers, sizeof(headers), "%s/headers", dir);
	write_with_headers(dir);
	cr_assert_eq(start(60000), 0);
	wait_for_answer();
	cr_assert_eq(result, 0, "the rest of it is good: %s", err.text);
	cr_expect_null(config->webhook_headers.text);
	cr_expect_eq(config->webhook_headers.r, -ENOENT);
	cr_expect_not_null(strstr(config->webhook_headers.err.text, headers), "%s",
			   config->webhook_headers.err.text);
	config = cw_config_free(config);
	answers = 0;

	(void)umask(077);
	f = fopen(headers, "w");
	cr_assert(f && fputs("X-A: 1\n", f) >= 0 && fclose(f) == 0);
	cr_assert_eq(start(60000), 0);
	wait_for_answer();
	(void)unlink(headers);
	cr_assert_eq(result, 0, "%s", err.text);
	cr_assert_str_eq(config->webhook_headers.text, "X-A: 1\n");
}

Test(config_reader, one_at_a_time_and_none_after_the_end)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(start(60000), 0);
	cr_assert_eq(start(60000), -EBUSY);
	cr_expect_not_null(strstr(err.text, "an earlier attempt"), "%s", err.text);
	reader = cw_config_reader_free(reader);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	cr_expect_eq(answers, 0);
}

/* The only child there is; -1 = none. */
static pid_t only_child(void)
{
	char name[64], text[64] = "";
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(name, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	(void)fclose(f);
	return *text ? (pid_t)atoi(text) : -1;
}

/* The highest descriptor that it has open; -1 = it cannot be seen. */
static int highest_descriptor(pid_t pid)
{
	struct dirent *d;
	int highest = -1;
	char name[64];
	DIR *fds;

	(void)snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	fds = opendir(name);
	while (fds && (d = readdir(fds)))
		if (d->d_name[0] != '.' && atoi(d->d_name) > highest)
			highest = atoi(d->d_name);
	if (fds)
		(void)closedir(fds);
	return highest;
}

Test(config_reader, who_reads_has_none_of_the_daemons_descriptors)
{
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + 60 * CW_NS_PER_S;
	int own = open("/dev/null", O_RDONLY | O_CLOEXEC), highest;
	pid_t child;

	cr_assert_geq(fcntl(own, F_DUPFD_CLOEXEC, 100), 100);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(start(60000), 0);
	child = only_child();
	if (child < 0)
		cr_skip_test("the kernel lists no children");
	do /* until it has come so far */
		highest = highest_descriptor(child);
	while (highest > 4 && cw_clock_now_ns(&cw_clock_system) < end_ns);
	cr_assert_eq(highest, 4, "its pipe, and the memory of its answer");
}

static unsigned count_shared_pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:collwatch-config") != NULL;
	if (maps)
		(void)fclose(maps);
	return n;
}

/* They will hold webhook_url. */
Test(config_reader, later_children_do_not_inherit_the_values)
{
	unsigned before = count_shared_pages();
	int status;
	pid_t pid;

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(start(60000), 0);
	cr_assert_eq(count_shared_pages(), before + 1);
	pid = fork();
	if (pid == 0)
		_exit((int)count_shared_pages());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(WEXITSTATUS(status), (int)before);
}

Test(config_reader, a_file_may_be_missing_where_that_is_said)
{
	struct cw_config_source source = { .path = path, .within_ms = 60000 };

	cr_assert_eq(cw_config_reader_start(reader, &source, on_config, NULL, &err), 0);
	wait_for_answer();
	cr_assert_eq(result, -ENOENT);
	answers = 0;
	source.may_be_missing = true;
	cr_assert_eq(cw_config_reader_start(reader, &source, on_config, NULL, &err), 0);
	wait_for_answer();
	cr_assert_eq(result, 0, "%s", err.text);
	cr_assert_str_eq(config->control_group, "collwatch");
}
