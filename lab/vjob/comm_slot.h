/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a rank in a scenario's families of comms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/scenario/scenario.h"

struct suite_comm_slot {
	uint32_t comm;   /* index in the family, from 0 */
	uint32_t place;  /* comm rank */
	uint32_t nranks; /* number of the comm's members */
};

/* Returns the number of members of each comm in the family. */
uint32_t cw_suite_family_size(const struct suite_scenario *s, uint32_t family);

/* Returns the number of comms in the family; 0 = the job cannot be divided like this. */
uint32_t cw_suite_family_comms(const struct suite_scenario *s, uint32_t family);

/* Finds the rank's position. Returns false if none of the family's comms has the rank. */
bool suite_comm_slot(const struct suite_scenario *s, uint32_t family, uint32_t rank,
		     struct suite_comm_slot *ret);

/*
 * Returns the peer's comm rank for a send or receive of the member at `slot`. -1 = there is no
 * peer, so skip the call.
 */
int64_t suite_peer(const struct suite_call *call, const struct suite_comm_slot *slot);
