/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_tag.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

static bool write_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, len);
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (n > 0) {
			buf += n;
			len -= (size_t)n;
			/* another process made our output non-blocking */
		} else if (n < 0 && errno == EAGAIN) {
			(void)poll(&p, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			return false;
		}
	}
	return true;
}

static void close_stream(struct run_tag *t)
{
	closep(&t->from);
	t->from = -1;
}

/* Writes prefix and line in one call, so that lines of several ranks do not mix. */
static void put(struct run_tag *t, size_t len, bool is_whole)
{
	size_t prefix_len = t->is_continued ? 0 : strlen(t->prefix);
	_cleanup_(freep) char *out = malloc(prefix_len + len);
	bool ok;

	if (len == 0)
		return;
	if (out) {
		memcpy(out, t->prefix, prefix_len);
		memcpy(out + prefix_len, t->line, len);
		ok = write_all(t->to, out, prefix_len + len);
	} else {
		ok = write_all(t->to, t->prefix, prefix_len) && write_all(t->to, t->line, len);
	}
	memmove(t->line, t->line + len, t->len - len);
	t->len -= len;
	t->is_continued = !is_whole;
	if (!ok)
		close_stream(t); /* the program then gets SIGPIPE, as it would without us */
}

/*
 * Returns the length of the first complete line, or 0 if there is none. A '\r' at the very end may
 * be half of "\r\n", so it does not complete a line.
 */
static size_t first_line(const struct run_tag *t)
{
	for (size_t i = 0; i < t->len; i++) {
		if (t->line[i] == '\n')
			return i + 1;
		if (t->line[i] == '\r' && i + 1 < t->len)
			return t->line[i + 1] == '\n' ? i + 2 : i + 1;
	}
	return 0;
}

void run_tag_init(struct run_tag *t, int from, int to, const char *prefix)
{
	*t = (struct run_tag){
		.from = from, .to = to, .prefix = prefix, .line = malloc(RUN_TAG_MAX_LINE)
	};
	if (!t->line)
		close_stream(t);
}

void run_tag_read(struct run_tag *t)
{
	ssize_t n = read(t->from, t->line + t->len, RUN_TAG_MAX_LINE - t->len);
	size_t len;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		put(t, t->len, false);
		close_stream(t);
		return;
	}
	t->len += (size_t)n;
	while (t->from >= 0 && (len = first_line(t)) > 0)
		put(t, len, true);
	if (t->from >= 0 && t->len == RUN_TAG_MAX_LINE)
		put(t, t->len, false);
}

void run_tag_fini(struct run_tag *t)
{
	if (t->from >= 0 && t->len)
		put(t, t->len, false);
	close_stream(t);
	free(t->line);
	t->line = NULL;
}
