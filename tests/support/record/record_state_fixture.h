/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record with one communicator (index 0, eight ranks, this is rank 3), and a reader of it. Each
 * test that uses it must run in its own process.
 */
#pragma once

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

extern struct cw_test_record *rec;
extern struct cw_record *reader;

void record_setup(void);
void record_teardown(void);

/* Returns the present state of a communicator in the record. */
struct cw_record_state state_of(size_t index);
/* Adds a collective of 10 elements that the rank called and that returned. Returns its op_index. */
uint64_t enqueue(unsigned kind);
/* Adds a call with these flags that has not returned. Returns its op_index. */
uint64_t enter_flagged(unsigned kind, unsigned flags, uint16_t slot);
