/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/record/record_state_fixture.h"

#include <criterion/criterion.h>

struct cw_test_record *rec;
struct cw_record *reader;

void record_setup(void)
{
	rec = cw_test_record_new();
	cw_test_record_comm(rec, 0x1111, 8, 3);
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
}

void record_teardown(void)
{
	reader = cw_record_close(reader);
	rec = cw_test_record_free(rec);
}

struct cw_record_state state_of(size_t index)
{
	const struct cw_record_comm *comms;
	struct cw_record_state state;
	size_t n;

	cr_assert_eq(cw_record_refresh(reader), 0);
	comms = cw_record_comms(reader, &n);
	cr_assert_lt(index, n);
	cr_assert_eq(cw_record_state(reader, &comms[index], &state), 0);
	return state;
}

uint64_t enqueue(unsigned kind)
{
	uint64_t op = cw_test_record_collective(rec, 0, kind, 10);

	cw_test_record_return(rec, 0, op, 0);
	return op;
}

uint64_t enter_flagged(unsigned kind, unsigned flags, uint16_t slot)
{
	struct cw_rec_op op = { .kind = (uint8_t)kind,
				.flags = (uint16_t)flags,
				.progress_slot = slot,
				.root_or_peer = -1 };

	return cw_test_record_enter(rec, 0, &op);
}
