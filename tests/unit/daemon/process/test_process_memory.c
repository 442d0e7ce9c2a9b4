/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/process_memory.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct cw_process *table;

static struct cw_process *add(uint64_t pid, uid_t uid, size_t tracks)
{
	struct cw_process *p = calloc(1, sizeof(*p));

	cr_assert_not_null(p);
	p->key.pid = pid;
	p->uid = uid;
	p->sampler.cap = tracks;
	HASH_ADD(hh, table, key, sizeof(p->key), p);
	return p;
}

static void tear_down(void)
{
	struct cw_process *p, *tmp;

	HASH_ITER (hh, table, p, tmp) {
		HASH_DEL(table, p);
		free(p);
	}
}

TestSuite(process_memory, .fini = tear_down);

Test(process_memory, nobody_goes_while_there_is_room)
{
	cr_assert_null(cw_processes_largest_memory_user(table, 0));
	add(1, 1000, 1000);
	add(2, 1001, 1000);
	cr_assert_null(cw_processes_largest_memory_user(table, 2 * cw_process_memory(table)));
}

Test(process_memory, the_user_who_takes_most_gives_up_its_costliest)
{
	struct cw_process *costliest;

	add(1, 1000, 500); /* more than any single one of the other user */
	for (uint64_t pid = 2; pid < 12; pid++)
		add(pid, 1001, 100);
	costliest = add(12, 1001, 101);
	add(13, 1002, 300);
	cr_assert_eq(cw_processes_largest_memory_user(table, 1000), costliest);
}
