/* SPDX-License-Identifier: Apache-2.0 */
/* The names of enums in documents. */
#include "model/facts.h"

#include <criterion/criterion.h>

#include "model/peer.h"

Test(facts, names_are_read_as_written)
{
	for (unsigned i = 0; i < CW_END_BY__MAX; i++)
		cr_expect_eq(cw_end_by_from_name(cw_end_by_name(i)), i);
	for (unsigned i = 0; i < CW_HOST_WAIT__MAX; i++)
		cr_expect_eq(cw_host_wait_from_name(cw_host_wait_name(i)), i);
	for (int i = CW_PEER_NOT_REFUSED + 1; i < CW_PEER_REFUSAL__MAX; i++)
		cr_expect_eq(cw_peer_refusal_from_name(cw_peer_refusal_name((unsigned)i)), i);
}

Test(facts, numbers_and_names_of_a_newer_version_are_unknown)
{
	cr_expect_str_eq(cw_end_by_name(CW_END_BY__MAX), "");
	cr_expect_str_eq(cw_host_wait_name(CW_HOST_WAIT__MAX), "");
	cr_expect_null(cw_peer_refusal_name(CW_PEER_REFUSAL__MAX));
	cr_expect_eq(cw_end_by_from_name("newer"), CW_END_BY_UNKNOWN);
	cr_expect_eq(cw_host_wait_from_name("newer"), CW_HOST_WAIT_UNKNOWN);
	cr_expect_eq(cw_peer_refusal_from_name("newer"), -1);
}
