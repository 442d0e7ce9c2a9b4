/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank is in a scenario's families of comms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/scenario/scenario.h"

struct suite_comm_slot {
	uint32_t comm;   /* which of the family's, from 0 */
	uint32_t place;  /* comm rank */
	uint32_t nranks; /* members of it */
};

/* Members of each of the family's comms. */
uint32_t cw_suite_family_size(const struct suite_scenario *s, uint32_t family);

/* Comms of the family; 0 = the job cannot be cut like that. */
uint32_t cw_suite_family_comms(const struct suite_scenario *s, uint32_t family);

/* False: the rank is in none of the family's. */
bool suite_comm_slot(const struct suite_scenario *s, uint32_t family, uint32_t rank,
		     struct suite_comm_slot *ret);

/* The comm rank that a send or receive of the member at `slot` is for; -1 = nobody: not called. */
int64_t suite_peer(const struct suite_call *call, const struct suite_comm_slot *slot);
