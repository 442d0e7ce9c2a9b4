/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_COMPLETE=DIRECTORY: a reader (`collwatch baseline --complete`) takes each summary, and
 * marks it in a file in that directory (record/summary_taken.h). We then overwrite a summary only
 * after the reader has taken it, and calls of the program wait for that. No other part of the agent
 * makes calls wait; here the user asked for it. If a wait is in vain, the call goes on and we skip
 * the summary.
 *
 * All functions may run in any thread. They keep no descriptor and are no cancellation point.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Call this before the first summary. Waits until the reader has found the record, 10 s at most,
 * and records that it has. Runs once; other threads wait meanwhile.
 */
void cw_summary_reader_meet(void);

/* True if a reader has found our record. */
bool cw_summary_reader_is_there(void);

/* True if the reader has this summary, or if there is no reader. */
bool cw_summary_reader_has(uint64_t publish);

/*
 * Pauses for a fifth of a millisecond. False if 10 s have passed since `since_ns` (cw_now_ns()), or
 * if the agent is disarmed.
 */
bool cw_summary_reader_wait(uint64_t since_ns);
