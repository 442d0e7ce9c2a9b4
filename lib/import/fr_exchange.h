/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uneven exchanges: an all_to_all in which each rank chooses its sizes, and the sizes do not match.
 * Dumps contain the total that each rank sends and receives, but not the amount per peer. The
 * analyser of torch only adds up both totals and names no rank.
 *
 * If the totals do not match, usually one member is at fault, and its size differs from the others'
 * common size. Normally all ranks have the same number of tokens, and only the router distributes
 * them unevenly. If no size stands out, we look at completion. A member that sends too little
 * completes, but the members that get too little from it do not. If only one member waits, any of
 * the others may have sent too little.
 */
#pragma once

#include "import/fr_member.h"

/*
 * Sets uneven_seq and uneven_member of comm. fr_comm_prepare() must have set all other fields
 * before.
 */
void fr_exchange_compare(struct fr_comm *comm, struct cw_arena *arena);
