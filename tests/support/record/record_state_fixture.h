/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of one communicator (index 0, eight ranks, this is rank 3), and a reader of it. For
 * tests that run each in a process of its own.
 */
#pragma once

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

extern struct cw_test_record *rec;
extern struct cw_record *reader;

void record_setup(void);
void record_teardown(void);

/* The record's present state of a communicator. */
struct cw_record_state state_of(size_t index);
/* A collective of 10 elements that was called and came back; its op_index. */
uint64_t enqueue(unsigned kind);
/* A call with these flags that is under way; its op_index. */
uint64_t enter_flagged(unsigned kind, unsigned flags, uint16_t slot);
