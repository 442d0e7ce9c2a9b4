/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time for reading the records and processes of one user. A record is read at registration, on
 * ticks, at the end of a process, after something urgent and when windows are wanted. The program
 * that writes the record decides how long a reading takes, and how often one is due. So each
 * reading is charged to its user, in CPU time of the loop: users who have spent something lately
 * share a quarter of a core equally, and each may spend up to a burst at once. A reading for which
 * its user has nothing left comes later.
 *
 * Loop thread only; does not block. Out of memory nothing is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

/* All users together: one part in so many of a core. */
#define CW_READING_SHARE 4
/* The last words of two thousand ranks that end at once take that long. */
#define CW_READING_BURST_NS (200 * CW_NS_PER_MS)

struct cw_reading_budget;

int cw_reading_budget_new(const struct cw_clock *clock, struct cw_reading_budget **ret);
/* Takes NULL; returns NULL. */
struct cw_reading_budget *cw_reading_budget_free(struct cw_reading_budget *b);

/* Whether something of this user's may be read now; false is counted. */
bool cw_reading_budget_allows(struct cw_reading_budget *b, uid_t uid);
void cw_reading_budget_charge(struct cw_reading_budget *b, uid_t uid, int64_t cpu_ns);
/* Readings that came later, because their user had spent his share. */
uint64_t cw_reading_budget_postponed(const struct cw_reading_budget *b);
