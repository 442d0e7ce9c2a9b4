/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of CPU time per user, for reading the user's records and processes.
 *
 * We read a record at registration, on ticks, at the end of a process, after an urgent event, and
 * for windows. The program that writes the record decides how long a reading takes and how often
 * one is needed. So we charge each reading to its user, in CPU time of the loop. Users with recent
 * readings share a quarter of a core equally. Each user may spend up to a burst at once. If the
 * budget is spent, the caller postpones the reading.
 *
 * Loop thread only; does not block. If memory runs out, we allow every reading.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

/* The readings of all users together get 1/CW_READING_SHARE of a core. */
#define CW_READING_SHARE 4
/*
 * Maximum CPU time that a user can save up. It suffices for the last samples of two thousand ranks
 * that end at the same time.
 */
#define CW_READING_BURST_NS (200 * CW_NS_PER_MS)

struct cw_reading_budget;

int cw_reading_budget_new(const struct cw_clock *clock, struct cw_reading_budget **ret);
/* Takes NULL; returns NULL. */
struct cw_reading_budget *cw_reading_budget_free(struct cw_reading_budget *b);

/* True if we may read something of this user now. We count each refusal. */
bool cw_reading_budget_allows(struct cw_reading_budget *b, uid_t uid);
void cw_reading_budget_charge(struct cw_reading_budget *b, uid_t uid, int64_t cpu_ns);
/* Returns the number of readings postponed because the user's budget was spent. */
uint64_t cw_reading_budget_postponed(const struct cw_reading_budget *b);
