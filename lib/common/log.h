/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging for daemon and CLI (never the agent). Each call writes one line to stderr. If stderr is
 * the journal's stream, the line begins with its priority, "<N>". Only the main thread may log.
 *
 * Logging does not wait for the reader of stderr, unless stderr is a file. If there is no room for
 * a line, we drop and count the line. Before the next line that fits we report the number of lost
 * lines.
 *
 * A message says what failed and on which object. If the program goes on, the message ends in "…,
 * ignoring". Ids have the form job= comm= rank= inc=.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/clock.h"

/*
 * Limits of each call site: a burst of CW_LOG_BURST lines, and then CW_LOG_PER_S lines per second.
 * We drop and count further lines, and report their number before the next line that we write.
 * Users and peers can trigger most lines as often as they like. A flooded journal would drop lines
 * of other services. Debug lines and events have no limit.
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

/* Sets the level up to which we write lines. Default: CW_LOG_NOTICE. */
void cw_log_set_level(int level);
/* Sets the clock that limits lines per second. For tests; the default is cw_clock_system. */
void cw_log_set_clock(const struct cw_clock *clock);
/*
 * Sends n fields of an event to the journal, each "NAME=value". Returns 0 or -errno. After an error
 * we write a plain line.
 */
typedef int (*cw_log_journal_fn)(const struct iovec *fields, unsigned n);
/* Sets the function that sends events to the journal. By default there is no such function. */
void cw_log_set_journal(cw_log_journal_fn fn);
/* Returns the number of lines lost since the start. */
uint64_t cw_log_lost(void);
/*
 * Reports lost lines as soon as stderr accepts output again, even if no other line follows. Callers
 * call this function about once a second.
 */
void cw_log_tick(void);
int cw_log_level_from_name(const char *name); /* returns -1 if the name is unknown */

void cw_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Writes a line, like cw_log(). The address of fmt identifies the call site for the limits, so fmt
 * must be the format string of the caller.
 */
void cw_log_v(int level, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

#define log_err(...) cw_log(CW_LOG_ERR, __VA_ARGS__)
#define log_warn(...) cw_log(CW_LOG_WARN, __VA_ARGS__)
#define log_notice(...) cw_log(CW_LOG_NOTICE, __VA_ARGS__)
#define log_info(...) cw_log(CW_LOG_INFO, __VA_ARGS__)
#define log_debug(...) cw_log(CW_LOG_DEBUG, __VA_ARGS__)

/*
 * Sends an event with fields to the journal if stderr is the journal's stream and a journal
 * function is set. Otherwise writes a plain line. fields: "KEY=value" strings; NULL ends the list.
 * message_id: 32 hex digits, fixed per kind of event; NULL = none.
 */
void cw_log_event(int level, const char *message_id, const char *text, const char *const *fields);
