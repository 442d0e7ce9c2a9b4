/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs labelled scenarios as real processes: ranks that make the scenario's calls on the simulated
 * device, the real agent and daemons, an alert over HTTP. We compare each result with the engine's
 * verdict on the same scenario in virtual time. Several run at once, each in a process of its own.
 *
 * We skip scenarios that one machine cannot run, and give the reason: lost nodes and daemons, busy
 * storage and children, large jobs, long waits.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "lab/suite/scenario/scenario.h"

struct suite_processes;

/* At most `at_once` scenarios at a time. NULL = out of memory. */
struct suite_processes *suite_processes_new(unsigned at_once);
/* Takes NULL. Ends scenarios that still run. */
struct suite_processes *suite_processes_free(struct suite_processes *p);

/* Why the scenario cannot run as processes; NULL = it can. */
const char *suite_processes_obstacle(const struct suite_scenario *s);

/*
 * Starts the scenario, the nth of its file (from 0); blocks while too many run. Prints results on
 * standard error as they come. 0 or -errno.
 */
int suite_processes_add(struct suite_processes *p, const struct suite_scenario *s, uint64_t nth,
			struct cw_err *err);
/* Counts a skipped scenario. */
void suite_processes_skip(struct suite_processes *p);
/* Blocks until all have ended. */
void suite_processes_wait(struct suite_processes *p);

/* True if some verdict differs from the engine's, or some scenario did not run. */
bool suite_processes_differ(const struct suite_processes *p);
void suite_processes_print(const struct suite_processes *p, FILE *out);
/* New reference; NULL = out of memory. */
json_t *suite_processes_doc(const struct suite_processes *p);
