/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An all_to_all in which ranks may pass sizes of their own: dumps hold how much each sends and
 * takes in all, not how much of it goes to whom. torch's own analyser adds both up, and names
 * nobody.
 *
 * Where they do not add up, it is one member's doing most often, whose size stands out from those
 * of the others: a rank has as many tokens as any other, and it is the router that deals them out
 * unevenly. Else it tells who is done: a member that sends too little is, and all that it leaves
 * short are not; of one that waits alone, any of the others may have left it short.
 */
#pragma once

#include "import/fr_member.h"

/* Sets uneven_seq and uneven_member. After all other fields of fr_comm_prepare(). 0 or -ENOMEM. */
int fr_exchange_compare(struct fr_comm *comm, struct cw_arena *arena);
