/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out: a test's program whose every allocation can fail, those of the libraries it
 * uses too. no_memory.c defines malloc() and its kin for the whole program, so it is a source of
 * the test's own, in no library.
 *
 * A scenario is run again and again. In the first run its first allocation fails, in the second its
 * second, and so on, until a run comes through in which there was nothing left to fail. Then once
 * more with all that come after the failing one failing too, as when memory is really gone.
 *
 * One thread; other threads' allocations neither count nor fail.
 */
#pragma once

#include <stdbool.h>

/*
 * Runs it until nothing fails any more. After each run all that was allocated in it must have been
 * freed: the test fails by name of the scenario and number of the allocation, and tells where it
 * was asked for and what was left behind, and so it does when the scenario itself crashes.
 *
 * Returns how many allocations there were, never 0: a scenario in which nothing can fail is a
 * mistake.
 */
unsigned no_memory_walk(const char *scenario, void (*run)(void *userdata), void *userdata);

/* For the scenario: what lies between these may fail. What does not, sets up, checks and ends. */
void no_memory_begin(void);
void no_memory_end(void);

/* For what hands out memory in pieces of its own: counts one; true = this one fails. */
bool no_memory_fails(void);

/* Whether in this run something has failed so far. */
bool no_memory_happened(void);
