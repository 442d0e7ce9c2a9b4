/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/uid_count.h"

#include <criterion/criterion.h>

Test(uid_count, counts_each_user_and_forgets_who_has_nothing)
{
	struct cw_uid_count *table = NULL;

	cr_assert_eq(cw_uid_count_get(table, 7), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(cw_uid_count_add(&table, 7), 0);
	cr_assert_eq(cw_uid_count_add(&table, 8), 0);
	cr_assert_eq(cw_uid_count_get(table, 7), 3);
	cr_assert_eq(cw_uid_count_get(table, 8), 1);
	cr_assert_eq(cw_uid_count_get(table, 9), 0);
	cw_uid_count_remove(&table, 8);
	cr_assert_eq(cw_uid_count_get(table, 8), 0);
	for (int i = 0; i < 3; i++)
		cw_uid_count_remove(&table, 7);
	cr_assert_null(table);
	cw_uid_count_remove(&table, 7);
}
