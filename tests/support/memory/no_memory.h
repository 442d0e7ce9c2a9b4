/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out: every allocation of a test's program can fail, also in the libraries it
 * uses. no_memory.c defines malloc() and its kin for the whole program, so each test compiles it as
 * a source of its own, and no library has it.
 *
 * We run a scenario again and again. In the first run its first allocation fails, in the second its
 * second, and so on, until a run completes without a failure. Then we repeat the series, and every
 * allocation after the failing one fails too, as when memory is really gone.
 *
 * One thread; other threads' allocations neither count nor fail.
 */
#pragma once

#include <stdbool.h>

/*
 * Runs it until no allocation fails any more. After each run, the scenario must have freed all of
 * its memory. Otherwise the test fails: it names the scenario and the number of the allocation, and
 * prints the stacks of the failed and of the leaked allocations. It does the same when the scenario
 * itself crashes.
 *
 * Returns the number of allocations, never 0: a scenario without an allocation is a mistake.
 */
unsigned no_memory_walk(const char *scenario, void (*run)(void *userdata), void *userdata);

/*
 * For the scenario: allocations between these may fail. Setup, checks and cleanup belong outside.
 */
void no_memory_begin(void);
void no_memory_end(void);

/* For allocators that hand out memory in pieces: counts one piece; true = this one fails. */
bool no_memory_fails(void);

/* Whether in this run something has failed so far. */
bool no_memory_happened(void);
