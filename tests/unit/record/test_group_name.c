/* SPDX-License-Identifier: Apache-2.0 */
/* The names of torch's groups in reports, for the names in its communicators and its dumps. */
#include "record/group_name.h"

#include <criterion/criterion.h>

#define HASH "1a2b3c4d5e6f708192a3b4c5d6e7f80912345678"

Test(group_name, of_communicators_is_like_that_of_dumps)
{
	static const struct {
		const char *name, *said;
	} cases[] = {
		{ "default_pg:0", "default_pg (0)" },
		{ "mesh_dp_shard:12", "mesh_dp_shard (12)" },
		{ "undefined:0", "default_pg (0)" },
		{ ":0", "default_pg (0)" },
		{ "undefined:7", "7" },
		{ ":7", "7" },
		{ "a:b:3", "a:b (3)" },
		{ "mesh_tp:" HASH, "mesh_tp (1a2b3c4d)" },
		{ "undefined:" HASH, "group 1a2b3c4d" },
		{ "a_mesh_dimension_of_a_very_long_name:31", "a_mesh_dimension_of_a_very (31)" },
		{ "dp:1234567890123456789012345678901234", " (12345678901234567890123456789" },
		/* Of others. */
		{ "tp_group", "tp_group" },
		{ "host:port", "host:port" },
		{ "mesh_tp:", "mesh_tp:" },
		{ ":", ":" },
		{ "", "" },
		{ "tensor_parallel_group_of_the_decoder", "tensor_parallel_group_of_the_de" },
	};
	char said[32];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(cw_group_name_of_comm(cases[i].name, said, sizeof(said)),
				 cases[i].said, "%s: %s", cases[i].name, said);
}

Test(group_name, of_dumps_has_all_that_torch_says)
{
	char said[64];

	cr_expect_str_eq(cw_group_name("mesh_tp", "4", said, sizeof(said)), "mesh_tp (4)");
	cr_expect_str_eq(cw_group_name("mesh_tp", "two", said, sizeof(said)), "mesh_tp (two)");
	cr_expect_str_eq(cw_group_name("", "4", said, sizeof(said)), "4");
	cr_expect_str_eq(cw_group_name("undefined", HASH, said, sizeof(said)), "group 1a2b3c4d");
}
