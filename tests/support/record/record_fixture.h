/* SPDX-License-Identifier: Apache-2.0 */
/* A flight record that the test writes, and readers of it. */
#pragma once

#include <stdbool.h>

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

/* Fresh for each test: valid, without comms. */
extern struct cw_test_record *rec;

void record_setup(void);
void record_teardown(void);

/* cw_record_open() on the record; a failure must come with a text. */
int record_try_open(bool require_seals, struct cw_record **ret);
/* The same with seals, which must succeed; the caller's. */
struct cw_record *record_must_open(void);
/* For _cleanup_(). */
void record_closep(struct cw_record **r);

/* The comms of the last refresh; at least one must exist. Borrowed until the next refresh. */
const struct cw_record_comm *record_first_comm(struct cw_record *r);
