/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

/* Each criterion test is a process of its own: its stderr can be replaced. */
static int pipe_read = -1;

static void capture_stderr(void)
{
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	cr_assert_geq(dup2(fds[1], STDERR_FILENO), 0);
	pipe_read = fds[0];
	unsetenv("JOURNAL_STREAM");
}

static const char *captured(void)
{
	static char buf[8192];
	ssize_t n = read(pipe_read, buf, sizeof(buf) - 1);

	buf[n < 0 ? 0 : n] = '\0';
	return buf;
}

static void claim_journal(void)
{
	struct stat st;
	char text[64];

	cr_assert_eq(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
}

Test(log, writes_one_plain_line, .init = capture_stderr)
{
	log_warn("rank %d is late", 3);
	cr_expect_str_eq(captured(), "rank 3 is late\n");
}

Test(log, prefixes_the_priority_on_the_journals_stream, .init = capture_stderr)
{
	claim_journal();
	log_err("broken");
	cr_expect_str_eq(captured(), "<3>broken\n");
}

Test(log, does_not_trust_an_inherited_journal_stream, .init = capture_stderr)
{
	static const char *const others[] = { "1:2", "x", "1", "1:", "1:2x", "" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		setenv("JOURNAL_STREAM", others[i], 1);
		log_err("broken");
		cr_expect_str_eq(captured(), "broken\n", "'%s'", others[i]);
	}
}

Test(log, leaves_out_what_is_above_the_level, .init = capture_stderr)
{
	log_info("unasked");
	cr_expect_str_eq(captured(), "");
	cw_log_set_level(CW_LOG_DEBUG);
	log_debug("asked");
	cr_expect_str_eq(captured(), "asked\n");
	cw_log_set_level(CW_LOG_ERR);
	log_warn("unasked");
	cr_expect_str_eq(captured(), "");
}

Test(log, text_from_outside_cannot_forge_a_line, .init = capture_stderr)
{
	log_warn("job=%s", "a\nroot logged in\x1b[2J");
	cr_expect_str_eq(captured(), "job=a?root logged in?[2J\n");
}

/* U+202E turns the rest of the line around, U+009B is ESC [ to a terminal. */
Test(log, text_from_outside_commands_no_terminal, .init = capture_stderr)
{
	log_warn("job=%s\tx", "a\u202eb\xc2\x9b"
			      "2Jc\xff"
			      "d\u00e9");
	cr_expect_str_eq(captured(), "job=a???b??2Jc?d\u00e9 x\n");
}

Test(log, cuts_long_lines_and_still_ends_them, .init = capture_stderr)
{
	char text[6000];
	const char *line;

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_warn("%s", text);
	line = captured();
	cr_expect_lt(strlen(line), 5000u);
	cr_expect_gt(strlen(line), 4000u);
	cr_expect_eq(line[strlen(line) - 1], '\n');
}

Test(log, keeps_errno_and_prints_it, .init = capture_stderr)
{
	errno = ENOENT;
	log_err("cannot open: %m");
	cr_expect_eq(errno, ENOENT);
	cr_expect_str_eq(captured(), "cannot open: No such file or directory\n");
}

Test(log, events_are_plain_lines_without_a_journal, .init = capture_stderr)
{
	static const char *const fields[] = { "COLLWATCH_JOB=x", NULL };

	cw_log_event(CW_LOG_ERR, "0123456789abcdef0123456789abcdef", "rank 3 hangs", fields);
	cr_expect_str_eq(captured(), "rank 3 hangs\n");
	cw_log_event(CW_LOG_DEBUG, NULL, "unasked", NULL);
	cr_expect_str_eq(captured(), "");
}

static char sent[512];

static int keep_sent(const struct iovec *fields, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		snprintf(sent + strlen(sent), sizeof(sent) - strlen(sent), "%.*s\n",
			 (int)fields[i].iov_len, (const char *)fields[i].iov_base);
	return 0;
}

static int take_nothing(const struct iovec *fields, unsigned n)
{
	return -ENOENT;
}

Test(log, sends_events_to_the_journal_with_their_fields, .init = capture_stderr)
{
	static const char *const fields[] = { "COLLWATCH_JOB=x", NULL };
	static char name[] = "test_log";

	claim_journal();
	program_invocation_short_name = name; /* criterion's is its own */
	cw_log_set_journal(keep_sent);
	cw_log_event(CW_LOG_ERR, "0123456789abcdef0123456789abcdef", "rank 3 hangs", fields);
	cr_expect_str_eq(sent, "MESSAGE=rank 3 hangs\nPRIORITY=3\nSYSLOG_IDENTIFIER=test_log\n"
			       "MESSAGE_ID=0123456789abcdef0123456789abcdef\nCOLLWATCH_JOB=x\n");
	cr_expect_str_eq(captured(), "");
	cw_log_set_journal(take_nothing);
	cw_log_event(CW_LOG_ERR, NULL, "rank 4 hangs", fields);
	cr_expect_str_eq(captured(), "<3>rank 4 hangs\n");
}

/* Readers of the journal print fields as they are: `journalctl -o cat`, log shippers. */
Test(log, text_from_outside_cannot_forge_an_event, .init = capture_stderr)
{
	static const char *const fields[] = { "COLLWATCH_JOB=x\nPRIORITY=0\x1b[2J\u202e", "A=b",
					      NULL };

	claim_journal();
	cw_log_set_journal(keep_sent);
	cw_log_event(CW_LOG_ERR, NULL, "job=x\nroot logged in\x1b[2J\u202e hangs", fields);
	cr_expect_not_null(strstr(sent, "MESSAGE=job=x?root logged in?[2J??? hangs\n"), "%s", sent);
	cr_expect_not_null(strstr(sent, "\nCOLLWATCH_JOB=x?PRIORITY=0?[2J???\nA=b\n"), "%s", sent);
}

Test(log, level_names)
{
	cr_expect_eq(cw_log_level_from_name("err"), CW_LOG_ERR);
	cr_expect_eq(cw_log_level_from_name("debug"), CW_LOG_DEBUG);
	cr_expect_eq(cw_log_level_from_name("loud"), -1);
}

static unsigned lines_in(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* A user that can cause a line can cause it as often as they like. */
static void be_refused(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		log_warn("no %u", 7);
}

Test(log, limits_the_lines_that_one_call_writes, .init = capture_stderr)
{
	be_refused(100000);
	cr_expect_leq(lines_in(captured()), 300);
	log_warn("of another call");
	cr_expect_str_eq(captured(), "of another call\n");
}

static int64_t now_ns = CW_NS_PER_S;

static int64_t fake_now(void *user)
{
	return now_ns;
}

Test(log, says_how_many_lines_it_omitted, .init = capture_stderr)
{
	const struct cw_clock fake = { .monotonic_ns = fake_now };

	cw_log_set_clock(&fake);
	be_refused(CW_LOG_BURST + 5);
	cr_expect_eq(lines_in(captured()), CW_LOG_BURST);
	now_ns += CW_NS_PER_S / CW_LOG_PER_S;
	be_refused(2);
	cr_expect_str_eq(captured(), "5 lines like the next were left out\nno 7\n");
	now_ns += 3600 * CW_NS_PER_S;
	be_refused(CW_LOG_BURST + 1);
	cr_expect_eq(lines_in(captured()), CW_LOG_BURST + 1, "one of them says what was left out");
}

/* ---- a reader that does not read ---- */

/* Fills a page of a pipe, or a socket's buffer; blocking, as a service's stderr is. */
static void fill_stderr(int fds[2])
{
	static const char page[4096] = { 0 };

	cr_assert_geq(dup2(fds[1], STDERR_FILENO), 0);
	pipe_read = fds[0];
	unsetenv("JOURNAL_STREAM");
	cr_assert_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
	while (write(STDERR_FILENO, page, sizeof(page)) > 0)
		;
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(fcntl(STDERR_FILENO, F_SETFL, 0), 0);
	(void)alarm(20); /* ends a process that waits for its reader */
}

static void fill_pipe(void)
{
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	fill_stderr(fds);
}

static void fill_stream(void)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fill_stderr(fds);
}

/* Reads all text in there, without the zeroes of before. */
static const char *read_on(void)
{
	static char text[8192];
	char chunk[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(pipe_read, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (chunk[i] && len < sizeof(text) - 1)
				text[len++] = chunk[i];
	text[len] = '\0';
	return text;
}

static void lose_lines_and_go_on(void)
{
	const char *text;

	log_warn("lost");
	cw_log_event(CW_LOG_ERR, NULL, "lost, too", NULL);
	(void)read_on();
	log_warn("taken");
	text = read_on();
	cr_expect_not_null(strstr(text, "taken\n"), "%s", text);
	cr_expect_null(strstr(text, "lost, too"), "%s", text);
	cr_expect_eq(strncmp(text, "2 lines of this log were lost", 29), 0, "%s", text);
	log_warn("again");
	cr_expect_str_eq(read_on(), "again\n");
}

Test(log, does_not_wait_for_the_reader_of_a_pipe, .init = fill_pipe)
{
	lose_lines_and_go_on();
	cr_expect_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0, "others share the description");
}

Test(log, does_not_wait_for_a_journal_that_does_not_read, .init = fill_stream)
{
	lose_lines_and_go_on();
}
