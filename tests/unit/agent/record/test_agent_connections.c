/* SPDX-License-Identifier: Apache-2.0 */
/* The connections in the record of this process, and their counts. */
#include <criterion/criterion.h>
#include <stddef.h>

#include "agent/agent.h"
#include "agent/record/connections.h"
#include "agent/record/record.h"

static void set_up(void)
{
	cr_assert(cw_agent_live());
}

TestSuite(agent_connections, .init = set_up);

static struct cw_connection_part part_to(int peer)
{
	return (struct cw_connection_part){
		.owner = 1,
		.rank = 2,
		.peer = peer,
		.comm = 5,
		.op = 40,
		.steps = 100,
		.channel = 3,
		.flags = CW_REC_CONNECTION_SEND | CW_REC_CONNECTION_DETAILED,
	};
}

static uint64_t open_to(int peer)
{
	struct cw_connection_part part = part_to(peer);

	return cw_connections_open(&part);
}

/* The slot of the only connection to that peer; NULL = there is none. */
static const struct cw_rec_connection *slot_of(int peer)
{
	const struct cw_rec_connection *found = NULL;

	for (unsigned i = 0; i < CW_REC_CONNECTIONS; i++) {
		const struct cw_rec_connection *slot = &cw_record.connections[i];

		cr_assert_eq(slot->sequence % 2, 0);
		if (!(slot->flags & CW_REC_CONNECTION_USED) || slot->peer != peer)
			continue;
		cr_assert_null(found, "one slot per connection");
		found = slot;
	}
	return found;
}

static uint64_t lost(void)
{
	return cw_record.header->drops[CW_REC_DROP_CONNECTIONS];
}

Test(agent_connections, has_a_slot_while_an_op_is_open)
{
	uint64_t part = open_to(7);
	const struct cw_rec_connection *slot = slot_of(7);

	cr_assert(cw_connections_is_part(part));
	cr_assert_not(cw_connections_is_step(part));
	cr_assert_not_null(slot);
	cr_assert_eq(slot->comm_plus_1, 6);
	cr_assert_eq(slot->rank, 2);
	cr_assert_eq(slot->pid, 0);
	cr_assert_eq(slot->op, 40);
	cr_assert_eq(slot->steps, 100);
	cr_assert_eq(slot->channel, 3);
	cr_assert_eq(slot->open_ops, 1);
	cr_assert_eq(slot->flags,
		     CW_REC_CONNECTION_USED | CW_REC_CONNECTION_SEND | CW_REC_CONNECTION_DETAILED);
	cw_connections_close(part);
	cr_assert_null(slot_of(7));
	cr_assert_eq(lost(), 0);
}

/* NCCL repeats some events on each turn of its loop, and several steps are open at once. */
Test(agent_connections, counts_by_the_number_of_the_step)
{
	uint64_t part = open_to(7), steps[3];
	const struct cw_rec_connection *slot = slot_of(7);
	uint64_t newest;

	for (unsigned i = 0; i < 3; i++) {
		steps[i] = cw_connections_step(part, i);
		cr_assert(cw_connections_is_step(steps[i]));
		cw_connections_count(steps[i], CW_REC_STEP_POSTED, 0);
	}
	cr_assert_eq(slot->counts[CW_REC_STEP_POSTED], 3);
	cw_connections_count(steps[0], CW_REC_STEP_HANDED, 4096);
	cr_assert_eq(slot->counts[CW_REC_STEP_HANDED], 1);
	cr_assert_eq(slot->bytes, 4096);
	newest = slot->newest_ns;
	cr_assert_gt(newest, 0);
	for (unsigned i = 0; i < 1000; i++)
		cw_connections_count(steps[0], CW_REC_STEP_HANDED, 4096);
	cr_assert_eq(slot->counts[CW_REC_STEP_HANDED], 1);
	cr_assert_eq(slot->bytes, 4096);
	cr_assert_eq(slot->newest_ns, newest, "the time of the first of them");
	cw_connections_count(steps[1], CW_REC_STEP_HANDED, 100);
	cw_connections_count(steps[0], CW_REC_STEP_DONE, 0);
	cr_assert_eq(slot->counts[CW_REC_STEP_HANDED], 2);
	cr_assert_eq(slot->counts[CW_REC_STEP_DONE], 1);
	cr_assert_eq(slot->bytes, 4196);
}

Test(agent_connections, shows_the_op_of_the_newest_step)
{
	struct cw_connection_part part = part_to(7);
	uint64_t first = cw_connections_open(&part), second;
	const struct cw_rec_connection *slot = slot_of(7);

	part.op = 41;
	second = cw_connections_open(&part);
	cr_assert_eq(slot_of(7), slot);
	cr_assert_eq(slot->op, 40, "the later one waits behind it");
	cr_assert_eq(slot->open_ops, 2);
	cw_connections_count(cw_connections_step(first, 99), CW_REC_STEP_DONE, 0);
	cw_connections_close(first);
	cr_assert_eq(slot->op, 40);
	cr_assert_eq(slot->counts[CW_REC_STEP_DONE], 100);
	cr_assert_eq(slot->open_ops, 1);
	(void)cw_connections_step(second, 0);
	cr_assert_eq(slot->op, 41);
	cr_assert_eq(slot->counts[CW_REC_STEP_DONE], 0);
	cw_connections_close(second);
	cr_assert_null(slot_of(7));
}

/* The third takes the memory of the first, whose counts the slot still shows. */
Test(agent_connections, mixes_no_op_with_one_that_has_ended)
{
	struct cw_connection_part part = part_to(7);
	uint64_t first = cw_connections_open(&part), third;
	const struct cw_rec_connection *slot = slot_of(7);

	part.op = 41;
	(void)cw_connections_open(&part);
	cw_connections_count(cw_connections_step(first, 9), CW_REC_STEP_POSTED, 0);
	cw_connections_close(first);
	part.op = 42;
	third = cw_connections_open(&part);
	cr_assert_eq(third >> 50, first >> 50, "or this tests nothing");
	cw_connections_count(cw_connections_step(third, 0), CW_REC_STEP_POSTED, 0);
	cr_assert_eq(slot->op, 42);
	cr_assert_eq(slot->counts[CW_REC_STEP_POSTED], 1);
}

Test(agent_connections, tells_connections_apart)
{
	struct cw_connection_part part = part_to(7);
	unsigned n = 0;

	(void)cw_connections_open(&part);
	part.channel++;
	(void)cw_connections_open(&part);
	part.flags &= ~CW_REC_CONNECTION_SEND;
	(void)cw_connections_open(&part);
	part.flags |= CW_REC_CONNECTION_P2P;
	(void)cw_connections_open(&part);
	part.owner++;
	(void)cw_connections_open(&part);
	part.pid = 17;
	(void)cw_connections_open(&part);
	part.rank++;
	(void)cw_connections_open(&part);
	for (unsigned i = 0; i < CW_REC_CONNECTIONS; i++)
		n += cw_record.connections[i].flags & CW_REC_CONNECTION_USED;
	cr_assert_eq(n, 7);
}

Test(agent_connections, ignores_a_stale_handle)
{
	uint64_t part = open_to(7), step = cw_connections_step(part, 0), other;

	cw_connections_close(part);
	other = open_to(8);
	cw_connections_count(step, CW_REC_STEP_POSTED, 0);
	cw_connections_close(part);
	cr_assert_eq(cw_connections_step(part, 0), 0);
	cr_assert_not_null(slot_of(8));
	cr_assert_eq(slot_of(8)->counts[CW_REC_STEP_POSTED], 0);
	cw_connections_close(other);
}

Test(agent_connections, counts_the_loss_when_all_slots_are_in_use)
{
	uint64_t parts[CW_REC_CONNECTIONS];

	for (int i = 0; i < CW_REC_CONNECTIONS; i++) {
		parts[i] = open_to(i);
		cr_assert_neq(parts[i], 0, "connection %d", i);
	}
	cr_assert_eq(lost(), 0);
	cr_assert_eq(open_to(CW_REC_CONNECTIONS), 0);
	cr_assert_eq(lost(), 1);
	cr_assert_neq(open_to(5), 0, "one that has a slot keeps it");
	cw_connections_close(parts[9]);
	cr_assert_neq(open_to(CW_REC_CONNECTIONS), 0);
	cr_assert_eq(lost(), 1);
	for (int i = 0; i < CW_REC_CONNECTIONS; i++)
		cw_connections_close(parts[i]);
	for (int i = 0; i < CW_REC_CONNECTIONS; i++)
		cr_assert_eq(slot_of(i) != NULL, i == 5, "connection %d", i);
}

Test(agent_connections, counts_the_loss_when_too_many_ops_are_open)
{
	unsigned n = 0;

	while (n < 10000 && open_to(7))
		n++;
	cr_assert_eq(n, 4096);
	cr_assert_eq(lost(), 1);
	cr_assert_eq(slot_of(7)->open_ops, 255);
}

Test(agent_connections, forgets_those_of_a_communicator)
{
	struct cw_connection_part part = part_to(7);

	(void)cw_connections_open(&part);
	part.peer = 8;
	part.pid = 17; /* the entry is another process's */
	(void)cw_connections_open(&part);
	part.peer = 9;
	part.pid = 0;
	part.comm = 6;
	(void)cw_connections_open(&part);
	cw_connections_forget(5);
	cr_assert_null(slot_of(7));
	cr_assert_not_null(slot_of(8));
	cr_assert_not_null(slot_of(9));
	cw_connections_forget(-1);
	cr_assert_null(slot_of(8));
	cr_assert_null(slot_of(9));
}
