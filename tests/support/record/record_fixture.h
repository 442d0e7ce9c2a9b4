/* SPDX-License-Identifier: Apache-2.0 */
/* A flight record that the test writes, and readers of it. */
#pragma once

#include <stdbool.h>

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

/* New for each test: a valid record without communicators. */
extern struct cw_test_record *rec;

void record_setup(void);
void record_teardown(void);

/* Calls cw_record_open() on the record. Asserts that a failure comes with a text. */
int record_try_open(bool require_seals, struct cw_record **ret);
/*
 * Opens the record, which must be sealed, and fails the test if that fails. The caller owns the
 * reader.
 */
struct cw_record *record_must_open(void);
/* Closes the reader at the end of a scope, with _cleanup_(). */
void record_closep(struct cw_record **r);

/*
 * Returns the communicators of the last refresh, and fails the test if there are none. Borrowed
 * until the next refresh.
 */
const struct cw_record_comm *record_first_comm(struct cw_record *r);
