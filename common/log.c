/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/text.h"

/* The journal cuts at 48 KiB; a line for people that is longer than this helps nobody. */
#define LINE_MAX_BYTES 4096
/* MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID and what callers add; more are dropped. */
#define FIELDS_MAX 32
/* Of those of the callers: labels and numbers. One for which there is no room is dropped. */
#define FIELDS_MAX_BYTES 16384

/* Calls, known by their format; far more than there are. Further ones have no limit. */
#define SITES_MAX 512u

struct site {
	const char *fmt;
	int64_t since_ns; /* until when `lines` is current */
	uint32_t lines;   /* of CW_LOG_BURST */
	uint64_t left_out;
};

static int max_level = CW_LOG_NOTICE;
static const struct cw_clock *log_clock = &cw_clock_system;
static cw_log_journal_fn journal_fn;
static struct site sites[SITES_MAX];

void cw_log_set_level(int level)
{
	max_level = level;
}

void cw_log_set_clock(const struct cw_clock *clock)
{
	log_clock = clock;
}

void cw_log_set_journal(cw_log_journal_fn fn)
{
	journal_fn = fn;
}

int cw_log_level_from_name(const char *name)
{
	static const struct {
		const char *name;
		int level;
	} names[] = {
		{ "err", CW_LOG_ERR },      { "error", CW_LOG_ERR },     { "warn", CW_LOG_WARN },
		{ "warning", CW_LOG_WARN }, { "notice", CW_LOG_NOTICE }, { "info", CW_LOG_INFO },
		{ "debug", CW_LOG_DEBUG },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].level;
	return -1;
}

/*
 * $JOURNAL_STREAM names the device and inode of the journal's end of stdout/stderr: a shell that
 * inherited the variable but redirected stderr to a file must not get prefixes. Looked up per line,
 * because a test or a daemonising parent may replace descriptor 2; an fstat is cheap beside a log
 * line.
 */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	char *end;
	struct stat st;

	if (!stream || stream[0] < '0' || stream[0] > '9')
		return false;
	dev = strtoumax(stream, &end, 10);
	if (*end != ':' || end[1] < '0' || end[1] > '9')
		return false;
	ino = strtoumax(end + 1, &end, 10);
	if (*end != '\0' || fstat(STDERR_FILENO, &st) < 0)
		return false;
	return st.st_dev == dev && st.st_ino == ino;
}

/*
 * Job labels and commands come from outside: they must neither forge further lines nor command the
 * terminal of who reads them, nor turn around what is read.
 */
static void defuse(char *line)
{
	for (char *p = line; (p = strchr(p, '\t'));)
		*p = ' ';
	cw_text_sanitise_line(line);
}

static void write_all(const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* nobody reads stderr: there is nowhere to say so */
		buf += n;
		len -= (size_t)n;
	}
}

static void write_line(int level, const char *text, bool journal)
{
	char line[LINE_MAX_BYTES + 8];
	int n;

	n = journal ? snprintf(line, sizeof(line) - 1, "<%d>%s", level, text)
		    : snprintf(line, sizeof(line) - 1, "%s", text);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n] = '\0';
	defuse(line);
	line[n] = '\n';
	write_all(line, (size_t)n + 1);
}

static struct site *find_site(const char *fmt)
{
	size_t first = (uintptr_t)fmt / 8;

	for (size_t i = 0; i < SITES_MAX; i++) {
		struct site *site = &sites[(first + i) % SITES_MAX];

		if (!site->fmt)
			site->fmt = fmt;
		if (site->fmt == fmt)
			return site;
	}
	return NULL;
}

/* False: leave this one out. */
static bool is_within_limit(int level, const char *fmt)
{
	int64_t now = cw_clock_now_ns(log_clock), step = CW_NS_PER_S / CW_LOG_PER_S, back;
	struct site *site = find_site(fmt);
	char text[128];

	if (!site)
		return true;
	back = (now - site->since_ns) / step;
	if (!site->lines || back > site->lines) {
		site->lines = 0;
		site->since_ns = now;
	} else if (back > 0) {
		site->lines -= (uint32_t)back;
		site->since_ns += back * step;
	}
	if (site->lines == CW_LOG_BURST) {
		site->left_out++;
		return false;
	}
	site->lines++;
	if (site->left_out) {
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %s like the next %s left out",
			       site->left_out, site->left_out == 1 ? "line" : "lines",
			       site->left_out == 1 ? "was" : "were");
		site->left_out = 0;
		write_line(level, text, stderr_is_journal());
	}
	return true;
}

void cw_log_v(int level, const char *fmt, va_list ap)
{
	int saved_errno = errno; /* for %m, and so that logging never changes it */
	char text[LINE_MAX_BYTES];

	if (level > max_level || (level < CW_LOG_DEBUG && !is_within_limit(level, fmt)))
		return;
	errno = saved_errno;
	if (vsnprintf(text, sizeof(text), fmt, ap) >= 0)
		write_line(level, text, stderr_is_journal());
	errno = saved_errno;
}

void cw_log(int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cw_log_v(level, fmt, ap);
	va_end(ap);
}

static struct iovec iov_of(char *text)
{
	return (struct iovec){ .iov_base = text, .iov_len = strlen(text) };
}

/* False: the journal did not take it. */
static bool send_to_journal(int level, const char *message_id, const char *text,
			    const char *const *fields)
{
	char message[LINE_MAX_BYTES], priority[16], name[64], id[64], copies[FIELDS_MAX_BYTES];
	struct iovec iov[FIELDS_MAX];
	unsigned n = 0;

	(void)snprintf(message, sizeof(message), "MESSAGE=%s", text);
	defuse(message);
	(void)snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	iov[n++] = iov_of(message);
	iov[n++] = iov_of(priority);
	(void)snprintf(name, sizeof(name), "SYSLOG_IDENTIFIER=%s", program_invocation_short_name);
	iov[n++] = iov_of(name);
	if (message_id) {
		(void)snprintf(id, sizeof(id), "MESSAGE_ID=%s", message_id);
		iov[n++] = iov_of(id);
	}
	for (char *copy = copies; fields && *fields && n < FIELDS_MAX; fields++) {
		size_t len = strlen(*fields) + 1, left = (size_t)(copies + sizeof(copies) - copy);

		if (len > left)
			continue;
		memcpy(copy, *fields, len);
		defuse(copy);
		iov[n++] = iov_of(copy);
		copy += len;
	}
	return journal_fn(iov, n) == 0;
}

void cw_log_event(int level, const char *message_id, const char *text, const char *const *fields)
{
	int saved_errno = errno;
	bool journal = stderr_is_journal();

	if (level <= max_level &&
	    !(journal && journal_fn && send_to_journal(level, message_id, text, fields)))
		write_line(level, text, journal);
	errno = saved_errno;
}
