/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes, details and confidences, as incidents carry them. */
#include <criterion/criterion.h>

#include "model/verdict_types.h"

Test(verdict_types, reads_each_name_it_writes)
{
	for (unsigned i = 0; i < CW_CLASS__MAX; i++)
		cr_expect_eq(cw_class_from_name(cw_class_name(i)), (int)i);
	for (unsigned i = 0; i < CW_DETAIL__MAX; i++)
		cr_expect_eq(cw_detail_from_name(cw_detail_name(i)), (int)i, "%s",
			     cw_detail_name(i));
	for (unsigned i = 0; i <= CW_CONFIDENCE_CERTAIN; i++)
		cr_expect_eq(cw_confidence_from_name(cw_confidence_name(i)), (int)i);
}

Test(verdict_types, knows_no_detail_of_a_newer_version)
{
	cr_expect_eq(cw_detail_from_name("of_a_newer_version"), -1);
	cr_expect_eq(cw_detail_from_name(NULL), -1);
	cr_expect_str_eq(cw_detail_name(CW_DETAIL__MAX), "");
}

Test(verdict_types, has_no_detail_by_an_empty_name)
{
	cr_expect_eq(cw_detail_from_name(""), CW_DETAIL_NONE);
}
