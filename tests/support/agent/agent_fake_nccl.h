/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake NCCL that returns the results that the test sets, and short functions that call it through
 * the agent's wrappers. Each test that uses it must run in its own process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/hooks/real.h"
#include "agent/record/record.h"

/* The behaviour of the fake from now on. */
extern ncclResult_t answer;
extern int ranks, my_rank;
extern bool has_handle;      /* init and split return a handle at once */
extern void (*inside)(void); /* called from within the fake */
extern char handles[256];
extern struct cw_real fake;

/* Make calls of this rank, through the agent's wrappers. */
ncclUniqueId uid(unsigned n);
ncclComm_t init(unsigned n);
ncclResult_t all_reduce(ncclComm_t comm, size_t count);
void send_to(ncclComm_t comm, int peer, size_t count);
void receive_from(ncclComm_t comm, int peer, size_t count);
void start(void);
ncclResult_t end(void);

/* Read the flight record that the agent writes. */
struct cw_rec_comm *entry(ncclComm_t comm); /* fails the test if the comm has no entry */
const struct cw_rec_op *last(const struct cw_rec_comm *rc);
uint64_t signature_of(size_t count); /* signature of an all_reduce() with this count */

/* Set inside = look to read the state of the communicator `watched` during a call. */
extern struct cw_rec_comm *watched;
extern uint64_t seen_entered, seen_returned, seen_seq;
extern unsigned seen_flags;
void look(void);
