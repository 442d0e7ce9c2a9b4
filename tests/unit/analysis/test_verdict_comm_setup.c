/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a comm that do not have everything in common that they should. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_comm_setup, .init = verdict_setup, .fini = verdict_teardown);

static void set_versions(uint32_t odd, uint32_t version)
{
	for (uint32_t i = 0; i < 8; i++)
		b->ranks[i].nccl_version = i == odd ? version : 22809;
}

/* Every rank is inside a collective that does not end. */
static void full_call(uint64_t done)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, done), SB_MAX_RANKS, 40 * SB_S);
}

/* Every rank is in the making of the comm. */
static void full_init(void)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 300 * SB_S);
	}
}

static bool has_ruled_out(const char *what)
{
	for (uint32_t i = 0; i < v.n_ruled_out; i++)
		if (strstr(said_text(&v.ruled_out_said[i]), what))
			return true;
	return false;
}

Test(verdict_comm_setup, another_version_explains_a_first_call_that_does_not_end)
{
	full_call(0);
	set_versions(5, 22105);
	expect(CW_CLASS_MISMATCH, "version", "5", "0-4,6-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect(!v.is_proof);
	cr_expect_not_null(strstr(said_text(&v.said),
				  "rank 5 loaded NCCL 2.21.5, but ranks 0-4,6-7 loaded "
				  "NCCL 2.28.9"),
			   "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "2.21.5"), "%s",
			   said_text(&v.culprits[0].said));
}

/* It has worked so far with the same versions. */
Test(verdict_comm_setup, another_version_is_an_alternative_in_a_later_call)
{
	full_call(41);
	set_versions(5, 22105);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_eq(v.n_alternatives, 1);
	cr_expect_eq(v.alternatives[0].verdict_class, CW_CLASS_MISMATCH);
	cr_assert_eq(v.alternatives[0].n_culprits, 1);
	cr_expect_eq(v.alternatives[0].culprits[0], 5);
	cr_expect_not_null(strstr(said_text(&v.alternatives[0].said), "2.21.5"), "%s",
			   said_text(&v.alternatives[0].said));
}

Test(verdict_comm_setup, same_version_and_environment_are_ruled_out)
{
	full_call(41);
	set_versions(8, 0);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect_eq(v.n_alternatives, 0);
	cr_expect(has_ruled_out("all members loaded NCCL 2.28.9"));
}

Test(verdict_comm_setup, other_environment_explains_an_init_that_does_not_end)
{
	full_init();
	b->ranks[2].env_hash = 77;
	expect(CW_CLASS_MISMATCH, "environment", "2", "0-1,3-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect_not_null(strstr(said_text(&v.said), "NCCL_* variables that differ"), "%s",
			   said_text(&v.said));
}

Test(verdict_comm_setup, environments_without_a_majority_are_possible)
{
	full_call(0);
	for (uint32_t i = 0; i < 4; i++)
		b->ranks[i].env_hash = 77;
	expect(CW_CLASS_MISMATCH, "environment", "0-7", "");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_comm_setup, environments_that_all_differ_are_meant_to)
{
	full_call(0);
	set_versions(8, 0);
	for (uint32_t i = 0; i < 8; i++)
		b->ranks[i].env_hash = 100 + i;
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect(!has_ruled_out("NCCL_*"));
}

static void set_nvls(uint32_t version, const char *variables)
{
	for (uint32_t i = 0; i < 8; i++) {
		b->ranks[i].nccl_version = version;
		b->ranks[i].nccl_variables = variables;
	}
}

Test(verdict_comm_setup, an_initialisation_without_a_missing_rank_may_be_a_known_hang)
{
	full_init();
	set_nvls(22809, "NCCL_DEBUG=INFO");
	expect(CW_CLASS_INIT_STUCK, "init", "", "0-7");
	cr_assert_eq(v.n_known_hangs, 1);
	cr_expect_str_eq(v.known_hangs[0].name, "NCCL_NVLS_ENABLE");
}

Test(verdict_comm_setup, a_known_hang_of_the_initialisation_needs_version_and_variable)
{
	full_init();
	set_nvls(22809, "NCCL_NVLS_ENABLE=0");
	expect(CW_CLASS_INIT_STUCK, "init", "", "0-7");
	cr_expect_eq(v.n_known_hangs, 0);
}

Test(verdict_comm_setup, another_version_has_no_known_hang_of_the_initialisation)
{
	full_init();
	set_nvls(22907, "none");
	expect(CW_CLASS_INIT_STUCK, "init", "", "0-7");
	cr_expect_eq(v.n_known_hangs, 0);
}

static bool says_also(const char *what)
{
	for (uint32_t i = 0; i < v.n_also; i++)
		if (strstr(said_text(&v.also_said[i]), what))
			return true;
	return false;
}

Test(verdict_comm_setup, each_variable_that_differs_is_named_with_its_values)
{
	full_call(41);
	set_versions(8, 0);
	for (uint32_t i = 0; i < 8; i++)
		b->ranks[i].nccl_variables =
			i == 5   ? "NCCL_ALGO=Tree NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5_0"
			: i == 6 ? "NCCL_ALGO=Ring NCCL_NTHREADS=64 NCCL_DEBUG=INFO"
				 : "NCCL_ALGO=Ring NCCL_DEBUG=INFO";
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_assert_eq(v.n_also, 3);
	cr_expect_str_eq(said_text(&v.also_said[0]),
			 "NCCL_ALGO differs: Ring on ranks 0-4,6-7, Tree on rank 5; ranks that "
			 "differ in it are known to hang");
	cr_expect_str_eq(said_text(&v.also_said[1]),
			 "NCCL_NTHREADS differs: not set on ranks 0-5,7, 64 on rank 6; it should "
			 "be the same on all ranks");
	cr_expect_str_eq(said_text(&v.also_said[2]),
			 "NCCL_IB_HCA differs: not set on ranks 0-4,6-7, mlx5_0 on rank 5");
	cr_expect(has_ruled_out("agree in the NCCL_* variables that must be equal"));
	cr_expect(!has_ruled_out("the same NCCL_* variables"));
}

Test(verdict_comm_setup, equal_and_unknown_variables_do_not_differ)
{
	full_call(41);
	set_versions(8, 0);
	for (uint32_t i = 0; i < 8; i++)
		b->ranks[i].nccl_variables = i % 2 ? "NCCL_ALGO=Tree" : i % 4 ? "" : NULL;
	b->ranks[7].nccl_variables = "NCCL_DEBUG=INFO NCCL_ALGO=Tree";
	b->ranks[1].nccl_variables_omitted = 1;
	b->ranks[3].nccl_variables_omitted = 1;
	b->ranks[5].nccl_variables_omitted = 1;
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect_eq(v.n_also, 0, "%s", v.n_also ? said_text(&v.also_said[0]) : "");
	cr_expect(has_ruled_out("the same NCCL_* variables"));
}

Test(verdict_comm_setup, many_values_and_many_variables_are_counted)
{
	static char texts[8][1000];

	full_call(41);
	for (uint32_t i = 0; i < 8; i++) {
		for (unsigned k = 0; k < 10; k++)
			(void)snprintf(texts[i] + strlen(texts[i]), 100, "%sNCCL_X%u=%u",
				       k ? " " : "", k, i);
		b->ranks[i].nccl_variables = texts[i];
	}
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_assert_eq(v.n_also, 9);
	cr_expect(says_also("NCCL_X0 differs: 0 on rank 0, 1 on rank 1, 2 on rank 2, and 5 more "
			    "ranks have other values"),
		  "%s", said_text(&v.also_said[0]));
	cr_expect(says_also("2 more NCCL_* variables differ"));
}

/*
 * Every rank is inside a group of two calls, each with its size; `odd` made them in reverse order.
 */
static void full_group(uint32_t odd, uint64_t first_bytes, uint64_t second_bytes)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 40 * SB_S);
	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].entered = c->members[m].returned = c->members[m].reached = 43;
		c->members[m].has_window = true;
		c->members[m].known &= ~(unsigned)CW_KNOWN_HASH; /* the builder's knows no groups */
		for (uint64_t i = 0; i < 2; i++) {
			struct cw_op *op = sb_odd(c, m, 42 + i);
			bool is_first = (i == 0) != (m == odd);

			op->kind = is_first ? CW_OP_ALL_REDUCE : CW_OP_REDUCE_SCATTER;
			op->bytes = is_first ? first_bytes : second_bytes;
			op->count = op->bytes / 4;
			op->flags |= CW_OPF_GROUPED;
			op->group_id = 7;
		}
	}
}

/* NCCL sorts the calls of a group by their size: of one size, it takes them as they come. */
Test(verdict_comm_setup, another_order_in_the_group_explains_that_it_does_not_end)
{
	full_group(5, 64, 64);
	expect(CW_CLASS_MISMATCH, "order", "5", "0-4,6-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect(!v.is_proof);
	cr_expect_not_null(strstr(said_text(&v.said),
				  "rank 5 made the calls of an NCCL group in a different order "
				  "from the other ranks (ranks 0-4,6-7); "),
			   "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "a different order"), "%s",
			   said_text(&v.culprits[0].said));
}

Test(verdict_comm_setup, order_of_calls_that_nccl_sorts_explains_nothing)
{
	full_group(5, 64, 65536);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
}

Test(verdict_comm_setup, same_order_in_the_group_explains_nothing)
{
	full_group(SB_MAX_RANKS, 64, 64);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
}

Test(verdict_comm_setup, explains_nothing_where_somebody_is_missing)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, 0), 3, 40 * SB_S);
	set_versions(5, 22105);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
}

Test(verdict_comm_setup, is_no_trouble_of_a_job_that_runs)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	set_versions(5, 22105);
	b->ranks[2].env_hash = 77;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict_comm_setup, rank_that_was_told_another_size_is_a_proof)
{
	full_init();
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 8; m++)
		snap->comms[0].members[m].nranks = m == 6 ? 7 : 8;
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_eq(v.detail, CW_DETAIL_MEMBERSHIP);
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect_str_eq(sb_culprits(snap, &v), "6");
	cr_expect_not_null(strstr(said_text(&v.said),
				  "rank 6 created the communicator with 7 ranks, but ranks "
				  "0-5,7 created the communicator with 8 ranks"),
			   "%s", said_text(&v.said));
}
