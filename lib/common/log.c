/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/text.h"

/*
 * The longest line that we write. The journal would take 48 KiB, but people do not read lines
 * longer than this.
 */
#define LINE_MAX_BYTES 4096
_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a pipe takes a line whole or not at all");
/*
 * The most fields of an event: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID and the caller's
 * fields. We drop further fields.
 */
#define FIELDS_MAX 32
/*
 * Space for copies of the caller's fields (labels and numbers). We drop a field that does not fit.
 */
#define FIELDS_MAX_BYTES 16384

/*
 * The most call sites that we limit. Their format identifies them. We have far fewer; sites beyond
 * this number would have no limit.
 */
#define SITES_MAX 512u

struct site {
	const char *fmt;
	int64_t since_ns; /* time for which `lines` is right */
	uint32_t lines;   /* lines of the burst that are used up, at most CW_LOG_BURST */
	uint64_t omitted;
};

static int max_level = CW_LOG_NOTICE;
static const struct cw_clock *log_clock = &cw_clock_system;
static cw_log_journal_fn journal_fn;
static struct site sites[SITES_MAX];

/* All lines lost since the start, and the part of them that we have not reported yet. */
static uint64_t n_lost, n_unreported;
/*
 * True if the stream holds only a part of the last line. The next line then begins with '\n' to end
 * it.
 */
static bool is_torn;
/*
 * A second descriptor of the pipe or terminal behind stderr, which never blocks. O_NONBLOCK on
 * descriptor 2 itself would affect all programs that share it.
 */
static struct {
	int fd;
	dev_t dev;
	ino_t ino;
} own = { .fd = -1 };

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
 * $JOURNAL_STREAM names the device and inode of the journal's end of stdout/stderr. A shell may
 * inherit the variable but redirect stderr to a file, and that file must not get prefixes. We check
 * stderr for each line, because a test or a daemonising parent may replace descriptor 2. An fstat()
 * is cheap compared to a log line.
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
 * Replaces dangerous characters of a line. Job labels and commands come from outside. They must
 * neither forge further lines, nor control the reader's terminal, nor reverse the text on it.
 */
static void defuse(char *line)
{
	for (char *p = line; (p = strchr(p, '\t'));)
		*p = ' ';
	cw_text_sanitise_line(line);
}

static bool is_file(int fd, dev_t dev, ino_t ino)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/*
 * Opens the pipe or terminal behind stderr a second time, and keeps that descriptor in `own`.
 * Returns the descriptor; -1 if we cannot open it.
 */
static int open_own(const struct stat *st)
{
	if (own.fd >= 0 && own.dev == st->st_dev && own.ino == st->st_ino &&
	    is_file(own.fd, own.dev, own.ino))
		return own.fd;
	/*
	 * Close our descriptor only if it is still ours. A child may have closed all descriptors,
	 * and the number may belong to another file now.
	 */
	if (own.fd >= 0 && is_file(own.fd, own.dev, own.ino))
		(void)close(own.fd);
	own.dev = st->st_dev;
	own.ino = st->st_ino;
	own.fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own.fd;
}

/* Writes to stderr like write(2), but fails with EAGAIN instead of waiting for the reader. */
static ssize_t write_some(const char *buf, size_t len)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st) < 0)
		return -1;
	if (S_ISSOCK(st.st_mode)) /* the journal's stream is a socket */
		return send(STDERR_FILENO, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return write(STDERR_FILENO, buf, len);
	fd = open_own(&st);
	if (fd >= 0)
		return write(fd, buf, len);
	/*
	 * We cannot open stderr ourselves. If poll() reports room in its pipe, a page is free, and
	 * the pipe takes a whole line at once.
	 */
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		return write(STDERR_FILENO, buf, len);
	errno = EAGAIN;
	return -1;
}

/* Returns false if the stream did not take all bytes. */
static bool write_all(const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write_some(buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	is_torn = done ? done < len : is_torn;
	return done == len;
}

static bool put_line(int level, const char *text, bool journal)
{
	char line[LINE_MAX_BYTES];
	size_t begin = is_torn, room = sizeof(line) - begin - 1;
	int n;

	n = journal ? snprintf(line + begin, room, "<%d>%s", level, text)
		    : snprintf(line + begin, room, "%s", text);
	if (n < 0)
		return true; /* no line can get lost here */
	if ((size_t)n > room - 1)
		n = (int)room - 1;
	defuse(line + begin);
	if (begin)
		line[0] = '\n';
	line[begin + (size_t)n] = '\n';
	return write_all(line, begin + (size_t)n + 1);
}

static bool report_lost(bool journal)
{
	char text[192];

	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " %s of this log %s lost: %s did not read; %s", n_unreported,
		       n_unreported == 1 ? "line" : "lines", n_unreported == 1 ? "was" : "were",
		       journal ? "the journal" : "the reader of stderr",
		       journal ? "check systemd-journald" : "check that reader");
	if (!put_line(CW_LOG_WARN, text, journal))
		return false;
	n_unreported = 0;
	return true;
}

/* Writes a line. Returns false if the line is lost, in which case we have counted it. */
static bool write_line(int level, const char *text, bool journal)
{
	if ((!n_unreported || report_lost(journal)) && put_line(level, text, journal))
		return true;
	n_lost++;
	n_unreported++;
	return false;
}

uint64_t cw_log_lost(void)
{
	return n_lost;
}

void cw_log_tick(void)
{
	int saved_errno = errno;

	if (n_unreported)
		/* If this fails, the next tick reports them. */
		(void)report_lost(stderr_is_journal());
	errno = saved_errno;
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

/* Applies the limit of a call site. Returns false if the caller must drop this line. */
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
		site->omitted++;
		return false;
	}
	site->lines++;
	if (site->omitted) {
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %s like the next %s left out",
			       site->omitted, site->omitted == 1 ? "line" : "lines",
			       site->omitted == 1 ? "was" : "were");
		if (write_line(level, text, stderr_is_journal()))
			site->omitted = 0;
	}
	return true;
}

void cw_log_v(int level, const char *fmt, va_list ap)
{
	int saved_errno = errno; /* %m needs errno, and logging never changes it */
	char text[LINE_MAX_BYTES];

	if (level > max_level || (level < CW_LOG_DEBUG && !is_within_limit(level, fmt)))
		return;
	errno = saved_errno;
	if (vsnprintf(text, sizeof(text), fmt, ap) >= 0)
		/* Counts the line if it is lost. */
		(void)write_line(level, text, stderr_is_journal());
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

/* Returns false if the journal refused the event. */
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
		(void)write_line(level, text, journal); /* counts the line if it is lost */
	errno = saved_errno;
}
