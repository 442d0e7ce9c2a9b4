/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A NCCL made of a few functions with answers that the test sets, and short names for calls through
 * the agent's wrappers. For tests that run each in a process of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/hooks/real.h"
#include "agent/record/record.h"

/* How the fake behaves from now on. */
extern ncclResult_t answer;
extern int ranks, my_rank;
extern bool has_handle;      /* init and split give out a handle at once */
extern void (*inside)(void); /* called from within the fake */
extern char handles[256];
extern struct cw_real fake;

/* Calls of this rank, through the wrappers. */
ncclUniqueId uid(unsigned n);
ncclComm_t init(unsigned n);
ncclResult_t all_reduce(ncclComm_t comm, size_t count);
void send_to(ncclComm_t comm, int peer, size_t count);
void receive_from(ncclComm_t comm, int peer, size_t count);
void start(void);
ncclResult_t end(void);

/* The record. */
struct cw_rec_comm *entry(ncclComm_t comm); /* fails the test when there is none */
const struct cw_rec_op *last(const struct cw_rec_comm *rc);
uint64_t signature_of(size_t count); /* of all_reduce() with this count */

/* The state of one communicator, seen from within the fake; inside = look. */
extern struct cw_rec_comm *watched;
extern uint64_t seen_entered, seen_returned, seen_seq;
extern unsigned seen_flags;
void look(void);
