/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_COMPLETE=DIRECTORY: a reader (`collwatch baseline --complete`) copies each summary, and
 * marks it in a file in that directory (record/summary_taken.h). We then overwrite a summary only
 * after the reader has copied it, and calls of the program wait for that. No other part of the
 * agent makes calls wait; here the user asked for it. If a wait is in vain, the call goes on and we
 * skip the summary.
 *
 * All functions may run in any thread. They keep no descriptor open and are no cancellation point.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Waits until the reader has found the record, 10 s at most, and notes whether it has. Call this
 * function before the first summary. It runs once; other threads wait for the end of that run.
 */
void cw_summary_reader_meet(void);

/* Returns whether a reader has found our record. */
bool cw_summary_reader_is_there(void);

/* Returns whether the reader has copied this summary, or there is no reader. */
bool cw_summary_reader_has(uint64_t publish);

/*
 * Pauses for a fifth of a millisecond. Returns false if 10 s have passed since `since_ns`
 * (cw_now_ns()), or if the agent is disarmed.
 */
bool cw_summary_reader_wait(uint64_t since_ns);
