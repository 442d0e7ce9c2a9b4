/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_COMPLETE=DIRECTORY: somebody reads each summary (`collwatch baseline --complete`) and
 * tells in a file there which ones it has (record/summary_taken.h). Summaries are then overwritten
 * only once they have been read, and calls wait for that: the one thing of the agent that does,
 * because its user asked for it. Whoever waits in vain goes on, and the summary is left out.
 *
 * All functions: any thread; keep no descriptor, are no cancellation point.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Before the first summary: waits until the reader has found the record, 10 s at most, and says in
 * the record that it has. Once; whoever comes meanwhile waits, too.
 */
void cw_summary_reader_meet(void);

/* One was met. */
bool cw_summary_reader_is_there(void);

/* Always, where there is no reader. */
bool cw_summary_reader_has(uint64_t publish);

/* A pause of a fifth of a millisecond. False: it has been 10 s since `since_ns` (cw_now_ns()). */
bool cw_summary_reader_wait(uint64_t since_ns);
