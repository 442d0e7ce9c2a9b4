/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/progress_bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"

/* A shorter operation shows no line. */
#define PATIENCE_NS (CW_NS_PER_S / 2)
#define EVERY_NS (CW_NS_PER_S / 10)
/*
 * We estimate the remaining time only after this time, because an earlier estimate means nothing.
 */
#define ESTIMATE_AFTER_NS (2 * CW_NS_PER_S)

#define BAR_MAX 30u
#define BAR_MIN 8u
#define LINE_MAX 160u

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void cw_progress_bar_begin(struct cw_progress_bar *p, const char *what, uint64_t total, bool is_off)
{
	int64_t now = cw_clock_now_ns(&cw_clock_system);

	*p = (struct cw_progress_bar){ .what = what,
				       .total = total,
				       .begun_ns = now,
				       .drawn_ns = now + PATIENCE_NS - EVERY_NS,
				       .is_on = !is_off && is_terminal() };
}

/* Formats ", 12 s left". Assumes that each of the remaining items takes as long as before. */
static void print_left(const struct cw_progress_bar *p, uint64_t done, int64_t elapsed_ns,
		       char *text, size_t len)
{
	double s;

	*text = '\0';
	if (!done || done >= p->total || elapsed_ns < ESTIMATE_AFTER_NS)
		return;
	s = (double)elapsed_ns / CW_NS_PER_S * (double)(p->total - done) / (double)done;
	if (s < 100)
		(void)snprintf(text, len, ", %.0f s left", s);
	else if (s < 6000)
		(void)snprintf(text, len, ", %.0f min left", s / 60);
	else
		(void)snprintf(text, len, ", %.0f h left", s / 3600);
}

/*
 * Formats "[####----] ", as wide as the room allows, but at most BAR_MAX. Writes "" if the room is
 * too small.
 */
static void print_bar(const struct cw_progress_bar *p, uint64_t done, size_t room, char *text)
{
	size_t n = room < BAR_MAX + 3 ? room - (room < 3 ? room : 3) : BAR_MAX, full;

	*text = '\0';
	if (n < BAR_MIN)
		return;
	full = (size_t)((double)n * (double)done / (double)p->total);
	text[0] = '[';
	for (size_t i = 0; i < n; i++)
		text[i + 1] = i < full ? '#' : '-';
	memcpy(text + n + 1, "] ", 3);
}

void cw_progress_bar_line(const struct cw_progress_bar *p, uint64_t done, const char *note,
			  int64_t elapsed_ns, unsigned columns, char *text, size_t len)
{
	char rest[LINE_MAX], left[32], bar[BAR_MAX + 4] = "";
	const char *comma = note && *note ? ", " : "";
	size_t used;

	note = note ? note : "";
	if (len > (size_t)columns + 1)
		len = (size_t)columns + 1;
	if (!p->total) {
		(void)snprintf(text, len, "collwatch: %" PRIu64 " %s%s%s, %.0f s", done, p->what,
			       comma, note, (double)elapsed_ns / CW_NS_PER_S);
		return;
	}
	if (done > p->total)
		done = p->total;
	print_left(p, done, elapsed_ns, left, sizeof(left));
	used = (size_t)snprintf(rest, sizeof(rest), "%3u %% %" PRIu64 "/%" PRIu64 " %s%s%s%s",
				(unsigned)(100 * (double)done / (double)p->total), done, p->total,
				p->what, comma, note, left);
	used += sizeof("collwatch: ") - 1;
	print_bar(p, done, columns > used ? columns - used : 0, bar);
	(void)snprintf(text, len, "collwatch: %s%s", bar, rest);
}

void cw_progress_bar_at(struct cw_progress_bar *p, uint64_t done, const char *note)
{
	struct winsize size = { 0 };
	char line[LINE_MAX];
	int64_t now;

	if (!p->is_on)
		return;
	now = cw_clock_now_ns(&cw_clock_system);
	if (now - p->drawn_ns < EVERY_NS)
		return;
	p->drawn_ns = now;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		size.ws_col = 80;
	/* Leave the last column free, because some terminals wrap there. */
	cw_progress_bar_line(p, done, note, now - p->begun_ns, size.ws_col - 1u, line,
			     sizeof(line));
	fprintf(stderr, "\r%s\033[K", line);
	p->is_drawn = true;
}

void cw_progress_bar_end(struct cw_progress_bar *p)
{
	if (p->is_drawn)
		fputs("\r\033[K", stderr);
	p->is_on = p->is_drawn = false;
}
