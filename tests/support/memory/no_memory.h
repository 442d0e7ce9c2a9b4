/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes memory run out: every allocation of a test's program can fail, also those of libraries.
 * no_memory.c defines malloc() and related functions for the whole program. So each test compiles
 * it as its own source, and no library contains it.
 *
 * We run a scenario again and again. In the first run its first allocation fails, in the second run
 * its second one, and so on, until a run completes without a failure. Then we repeat the series,
 * and every allocation after the failing one fails too, as if memory were exhausted.
 *
 * One thread. Allocations of other threads neither count nor fail.
 */
#pragma once

#include <stdbool.h>

/*
 * Runs the scenario until no allocation fails any more. After each run, the scenario must have
 * freed all of its memory. Otherwise the test fails: it names the scenario and the number of the
 * allocation, and prints the stacks of the failed and of the leaked allocations. A crash of the
 * scenario gives the same output.
 *
 * Returns the number of allocations. It is never 0, because a scenario without an allocation is a
 * mistake.
 */
unsigned no_memory_walk(const char *scenario, void (*run)(void *userdata), void *userdata);

/*
 * The scenario calls these. Allocations between the two calls may fail. Setup, checks and cleanup
 * belong outside.
 */
void no_memory_begin(void);
void no_memory_end(void);

/*
 * An allocator calls this when it returns a piece of a larger block. It counts one piece, and
 * returns true if this piece must fail.
 */
bool no_memory_fails(void);

/* True if an allocation has failed in this run. */
bool no_memory_happened(void);
