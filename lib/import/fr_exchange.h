/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An all_to_all with sizes that each rank chooses. Dumps contain the totals that each rank sends
 * and receives, but not the amount per peer. torch's own analyser adds up both totals and names
 * no rank.
 *
 * A mismatch is usually the fault of one member whose size differs from the others' common one.
 * Normally all ranks have the same number of tokens, and only the router deals them out unevenly.
 * Without such a member, we look at completion. A member that sends too little completes, and the
 * members that it leaves short do not. If only one member waits, any of the others may have left
 * it short.
 */
#pragma once

#include "import/fr_member.h"

/*
 * Sets uneven_seq and uneven_member; call it after fr_comm_prepare() has set all other fields. 0
 * or -ENOMEM.
 */
int fr_exchange_compare(struct fr_comm *comm, struct cw_arena *arena);
