/* SPDX-License-Identifier: Apache-2.0 */
/* Eight peers whose main threads are in the same functions, unless a test says otherwise. */
#include "analysis/stacks/different.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

#define MAX 32u

static struct cw_stack_sample samples[MAX];
static size_t n, n_found;
static struct cw_stack_difference *found;

static void add(uint32_t rank, uint64_t functions)
{
	samples[n++] = (struct cw_stack_sample){
		.rank = rank, .is_main = true, .functions = functions, .lines = functions
	};
}

static void set_up(void)
{
	n = 0;
	for (uint32_t i = 0; i < 8; i++)
		add(i, 100);
}

static void tear_down(void)
{
	free(found);
}

TestSuite(different, .init = set_up, .fini = tear_down);

static void find(bool moves)
{
	free(found);
	found = NULL;
	cr_assert_eq(cw_stack_differences_find(samples, n, moves, &found, &n_found), 0);
}

static void set_hosts(uint32_t host)
{
	for (size_t i = 0; i < n; i++)
		samples[i].host = host;
}

Test(different, is_the_rank_in_other_functions)
{
	samples[5].functions = 7;
	find(false);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(found[0].sample, 5);
	cr_expect_eq(samples[found[0].usual].functions, 100);
	cr_expect_eq(found[0].n_peers, 8);
	cr_expect_eq(found[0].n_usual, 7);
	cr_expect_eq(found[0].confidence, CW_CONFIDENCE_LIKELY);
}

Test(different, is_no_rank_in_a_symmetric_state)
{
	find(false);
	cr_expect_eq(n_found, 0);
}

Test(different, is_less_sure_with_few_peers)
{
	n = 5;
	samples[0].functions = 7;
	find(false);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(found[0].confidence, CW_CONFIDENCE_POSSIBLE);
	n = 3;
	find(false);
	cr_expect_eq(n_found, 0);
}

Test(different, are_a_few_and_no_more)
{
	samples[1].functions = 7;
	samples[2].functions = 8;
	find(false);
	cr_expect_eq(n_found, 0, "two of eight");
	for (uint32_t i = 8; i < 16; i++)
		add(i, 100);
	find(false);
	cr_assert_eq(n_found, 2, "two of sixteen");
	cr_expect_eq(found[0].sample + found[1].sample, 3);
}

Test(different, compares_peers_only)
{
	samples[5].functions = 7;
	for (size_t i = 0; i < n; i++)
		samples[i].peers = i < 5 ? 0 : 5;
	find(false);
	cr_expect_eq(n_found, 0, "one of three");
	for (size_t i = 0; i < n; i++)
		samples[i].peers = CW_SNAP_NONE;
	find(false);
	cr_expect_eq(n_found, 0, "roles are not known");
}

Test(different, needs_an_idle_host_where_the_job_moves)
{
	samples[5].functions = 7;
	set_hosts(CW_STACK_HOST_BUSY);
	find(true);
	cr_expect_eq(n_found, 0);
	samples[5].host = CW_STACK_HOST_IDLE;
	find(true);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(found[0].confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(different, is_the_busy_rank_that_idle_peers_wait_for)
{
	samples[5].functions = 7;
	set_hosts(CW_STACK_HOST_IDLE);
	samples[5].host = CW_STACK_HOST_BUSY;
	find(true);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(found[0].confidence, CW_CONFIDENCE_LIKELY);
}

Test(different, takes_another_line_only_with_another_use_of_the_processor)
{
	samples[5].lines = 7;
	find(false);
	cr_expect_eq(n_found, 0);
	set_hosts(CW_STACK_HOST_BUSY);
	find(false);
	cr_expect_eq(n_found, 0);
	samples[5].host = CW_STACK_HOST_IDLE;
	find(false);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(found[0].sample, 5);
	cr_expect_eq(found[0].confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(different, takes_a_helper_thread_only_of_an_idle_host)
{
	for (uint32_t i = 0; i < 8; i++) {
		add(i, i == 2 ? 8 : 9);
		samples[n - 1].is_main = false;
		samples[n - 1].role = 77;
	}
	find(false);
	cr_expect_eq(n_found, 0);
	set_hosts(CW_STACK_HOST_IDLE);
	find(false);
	cr_assert_eq(n_found, 1);
	cr_expect_eq(samples[found[0].sample].rank, 2);
	cr_expect_not(samples[found[0].sample].is_main);
	/* A thread of a pool is anywhere. */
	add(4, 9);
	samples[n - 1].is_main = false;
	samples[n - 1].role = 77;
	find(false);
	cr_expect_eq(n_found, 0);
}

Test(different, names_a_rank_once)
{
	samples[2].functions = 7;
	for (uint32_t i = 0; i < 8; i++) {
		add(i, i == 2 ? 8 : 9);
		samples[n - 1].is_main = false;
		samples[n - 1].role = 77;
	}
	set_hosts(CW_STACK_HOST_IDLE);
	find(false);
	cr_assert_eq(n_found, 1);
	cr_expect(samples[found[0].sample].is_main);
}
