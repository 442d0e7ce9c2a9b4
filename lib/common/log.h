/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging for daemon and CLI (never the agent): one line per call to stderr, with "<N>" priority
 * prefixes when stderr is the journal's stream. Thread: main thread only.
 *
 * Does not wait for the reader of stderr, unless stderr is a file: a line for which there is no
 * room is lost and counted, and the first line that is taken again is preceded by their number.
 *
 * Say what failed, on which object, and "…, ignoring" when going on; ids as job= comm= rank= inc=.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/clock.h"

/*
 * So many lines at once of one call, then so many a second; the rest is left out and counted in the
 * next that is not. Users and peers can cause most lines as often as they like, and a journal that
 * is flooded leaves out lines of others. Debug lines and events have no limit.
 */
#define CW_LOG_BURST 256u
#define CW_LOG_PER_S 10u

enum cw_log_level {
	CW_LOG_ERR = 3,
	CW_LOG_WARN = 4,
	CW_LOG_NOTICE = 5,
	CW_LOG_INFO = 6,
	CW_LOG_DEBUG = 7,
};

/* Default: CW_LOG_NOTICE. */
void cw_log_set_level(int level);
/* For tests; the default is cw_clock_system. */
void cw_log_set_clock(const struct cw_clock *clock);
/* Takes an event of n fields, "NAME=value" each; 0, or -errno: it becomes a plain line. */
typedef int (*cw_log_journal_fn)(const struct iovec *fields, unsigned n);
/* The default is none. */
void cw_log_set_journal(cw_log_journal_fn fn);
/* Lines lost since the start. */
uint64_t cw_log_lost(void);
/* Reports lost lines once stderr takes some again and no other line does. Once a second or so. */
void cw_log_tick(void);
int cw_log_level_from_name(const char *name); /* -1 = unknown */

void cw_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* fmt is the caller's own: by its address lines of one call are counted. */
void cw_log_v(int level, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

#define log_err(...) cw_log(CW_LOG_ERR, __VA_ARGS__)
#define log_warn(...) cw_log(CW_LOG_WARN, __VA_ARGS__)
#define log_notice(...) cw_log(CW_LOG_NOTICE, __VA_ARGS__)
#define log_info(...) cw_log(CW_LOG_INFO, __VA_ARGS__)
#define log_debug(...) cw_log(CW_LOG_DEBUG, __VA_ARGS__)

/*
 * Sent to the journal with fields when stderr is connected to it ("KEY=value" strings, NULL ends
 * the list) and there is a way to it, else as a plain line. message_id: 32 hex digits fixed per
 * kind of event, or NULL.
 */
void cw_log_event(int level, const char *message_id, const char *text, const char *const *fields);
