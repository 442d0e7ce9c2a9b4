/* SPDX-License-Identifier: Apache-2.0 */
/* The document of `numerics --json`: each finding with its numbers, its ranks and its sentence. */
#include "numerics/cli/numerics_doc.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "model/op.h"
#include "report/json_util.h"

static struct cw_numerics_sample samples[4];
static const struct cw_numerics_comm comms[] = { { .id = 0xabc, .name = "dp", .nranks = 4 } };
static struct cw_numerics_rank ranks[4];
static struct cw_numerics_rank_said said_of[4];
static struct cw_numerics_source sources[4];
static struct cw_numerics_input in;
static struct cw_numerics_report said;
static json_t *doc;

static void setup(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		ranks[i] = (struct cw_numerics_rank){ .rank = (int32_t)i + 4 };
		samples[i] = (struct cw_numerics_sample){ .rank = i,
							  .seq = 31,
							  .step = 812,
							  .offered = 8192,
							  .elements = 4096,
							  .kind = CW_OP_ALL_REDUCE,
							  .dtype = CW_DTYPE_FP16,
							  .redop = CW_REDOP_SUM,
							  .checksum = i == 1 ? 7 : 9 };
		said_of[i] = (struct cw_numerics_rank_said){ .first_bad = CW_NUMERICS_NONE };
		sources[i] =
			(struct cw_numerics_source){ .path = "/r/1", .n_ops = 40, .n_kept = 1 };
	}
	in = (struct cw_numerics_input){ .job = { samples, 4, comms, 1, ranks, 4 },
					 .sources = sources };
	said = (struct cw_numerics_report){ .ranks = said_of };
}

static void teardown(void)
{
	json_decref(doc);
}

TestSuite(numerics_doc, .init = setup, .fini = teardown);

/* The only one of that sort of finding. */
static const json_t *only(const char *name)
{
	const json_t *list;

	doc = numerics_doc(&in, &said, 2);
	list = json_object_get(doc, name);
	cr_assert_eq(json_array_size(list), 1, "%s", name);
	cr_assert_neq(*cw_json_str(json_array_get(list, 0), "text", "?"), '\0');
	return json_array_get(list, 0);
}

static double real(const json_t *of, const char *name)
{
	cr_assert(json_is_real(json_object_get(of, name)), "%s", name);
	return json_real_value(json_object_get(of, name));
}

Test(numerics_doc, of_a_value_that_comes_near_its_types_limit)
{
	const json_t *it;

	said.headroom[0] = (struct cw_numerics_headroom){ .sample = 2,
							  .value = 48000,
							  .limit = 65504,
							  .is_sum = true,
							  .growth = 1.25,
							  .steps_left = INFINITY,
							  .warned_step = 800 };
	said.n_headroom = 1;
	said.n_headroom_over_limit = 3;
	it = only("headroom");
	cr_expect_eq(cw_json_int(it, "rank", -1), 6);
	cr_expect_eq(real(it, "value"), 48000);
	cr_expect_eq(real(it, "limit"), 65504);
	cr_expect(json_is_true(json_object_get(it, "summed")));
	cr_expect_eq(real(it, "growth"), 1.25);
	cr_expect(json_is_null(json_object_get(it, "steps_left")),
		  "no number of steps is infinite");
	cr_expect_eq(cw_json_int(it, "since_step", -1), 800);
	cr_expect_eq(cw_json_int(it, "step", -1), 812);
	cr_expect_eq(cw_json_int(it, "elements", -1), 8192);
	cr_expect_eq(cw_json_int(it, "looked_at", -1), 4096);
	cr_expect_eq(cw_json_int(json_object_get(doc, "over_limit"), "headroom", -1), 3);
}

Test(numerics_doc, of_the_ends_of_a_type)
{
	const json_t *it;

	said.ranges[0] = (struct cw_numerics_range){
		.sample = 1, .n_steps = 3, .share = 0.25, .end = CW_NUMERICS_LOWER, .room = INFINITY
	};
	said.n_ranges = 1;
	said.n_ranges_over_limit = 2;
	it = only("ranges");
	cr_expect_str_eq(cw_json_str(it, "end", ""), "denormal");
	cr_expect_eq(real(it, "share"), 0.25);
	cr_expect(json_is_null(json_object_get(it, "room")));
	cr_expect_eq(cw_json_int(it, "steps", -1), 3);
	cr_expect_eq(cw_json_int(it, "rank", -1), 5);
	cr_expect_eq(cw_json_int(json_object_get(doc, "over_limit"), "ranges", -1), 2);
	json_decref(doc);
	said.ranges[0].end = CW_NUMERICS_UPPER;
	cr_expect_str_eq(cw_json_str(only("ranges"), "end", ""), "at_limit");
}

/* Ranks by their values: equal ones stand together. */
Test(numerics_doc, of_copies_that_differ)
{
	uint32_t divergent[] = { 1, 0, 2, 3 };
	const json_t *it, *groups;

	said.divergences[0] = (struct cw_numerics_divergence){
		.sample = 1, .first = 0, .count = 4, .has_majority = true
	};
	said.n_divergences = 1;
	said.divergent = divergent;
	said.n_divergent = 4;
	it = only("divergences");
	cr_expect(json_is_true(json_object_get(it, "has_majority")));
	groups = json_object_get(it, "groups");
	cr_assert_eq(json_array_size(groups), 2);
	cr_expect_str_eq(cw_json_str(json_array_get(groups, 0), "checksum", ""),
			 "0x0000000000000007");
	cr_expect_str_eq(cw_json_str(json_array_get(groups, 1), "checksum", ""),
			 "0x0000000000000009");
	groups = json_object_get(json_array_get(groups, 1), "ranks");
	cr_assert_eq(json_array_size(groups), 3);
	cr_expect_eq(json_integer_value(json_array_get(groups, 2)), 7, "by its label");
	cr_expect_eq(json_object_size(json_object_get(it, "unlike")), 0, "not known to be");
}

/* In their own list; the members' devices, in the order of it. */
Test(numerics_doc, of_sums_that_differ_where_devices_do)
{
	uint32_t divergent[] = { 1, 0, 2, 3 };
	const json_t *it, *unlike, *driver;

	said.roundings[0] = (struct cw_numerics_divergence){ .sample = 1, .first = 0, .count = 4 };
	said.n_roundings = 1;
	said.n_roundings_over_limit = 5;
	said.divergent = divergent;
	said.n_divergent = 4;
	for (uint32_t i = 0; i < 4; i++) {
		ranks[i].device = i == 1 ? "B" : "A";
		ranks[i].cuda_driver = i == 3 ? 0 : 12040 + i / 2 * 40;
		ranks[i].nccl = 22703;
	}
	it = only("roundings");
	cr_expect(json_is_false(json_object_get(doc, "alarm")));
	cr_expect_eq(json_array_size(json_object_get(doc, "divergences")), 0);
	cr_expect_eq(cw_json_int(json_object_get(doc, "over_limit"), "roundings", -1), 5);
	cr_expect_eq(json_array_size(json_object_get(it, "groups")), 2);
	unlike = json_object_get(it, "unlike");
	cr_expect_eq(json_object_size(unlike), 2, "not NCCL");
	cr_expect_str_eq(cw_json_str(json_array_get(json_object_get(unlike, "device_model"), 1),
				     "value", ""),
			 "B");
	driver = json_object_get(unlike, "cuda_driver");
	cr_assert_eq(json_array_size(driver), 3);
	cr_expect_str_eq(cw_json_str(json_array_get(driver, 1), "value", ""), "12.8");
	driver = json_array_get(driver, 2);
	cr_expect(json_is_null(json_object_get(driver, "value")));
	driver = json_object_get(driver, "ranks");
	cr_expect_eq(json_integer_value(json_array_get(driver, 0)), 7);
}

Test(numerics_doc, of_a_device_that_is_suspect)
{
	const json_t *it;

	said.suspects[0] =
		(struct cw_numerics_suspect){ .rank = 1, .n_divergences = 9, .n_comms = 2 };
	said.n_suspects = 1;
	it = only("suspects");
	cr_expect_eq(cw_json_int(it, "rank", -1), 5);
	cr_expect_eq(cw_json_int(it, "divergences", -1), 9);
	cr_expect_eq(cw_json_int(it, "communicators", -1), 2);
}

Test(numerics_doc, of_a_sum_that_is_none)
{
	const json_t *it;

	samples[0].is_output = true;
	said.imbalances[0] =
		(struct cw_numerics_imbalance){ .sample = 0, .in = 8, .out = 9.5, .bound = 0.25 };
	said.n_imbalances = 1;
	it = only("imbalances");
	cr_expect_str_eq(cw_json_str(it, "side", ""), "output");
	cr_expect_eq(real(it, "sum_in"), 8);
	cr_expect_eq(real(it, "sum_out"), 9.5);
	cr_expect_eq(real(it, "bound"), 0.25);
}
