/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts, as an operator writes them. */
#include <criterion/criterion.h>
#include <string.h>

#include "say/hosts.h"

static char buf[120];

#define SAY(...)                                                                                   \
	cw_say_hosts((const char *const[]){ __VA_ARGS__ },                                         \
		     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), buf,           \
		     sizeof(buf))

Test(hosts, fold_letters)
{
	cr_assert_str_eq(SAY("node-a", "node-b", "node-c", "node-d"), "node-[a-d]");
	cr_assert_str_eq(SAY("node-a", "node-b", "node-d"), "node-[a,b,d]");
}

Test(hosts, fold_numbers)
{
	cr_assert_str_eq(SAY("gpu01", "gpu02", "gpu03", "gpu07"), "gpu[01-03,07]");
	cr_assert_str_eq(SAY("n8", "n9", "n10"), "n[8-10]");
	cr_assert_str_eq(SAY("r1n1.site7.org", "r1n2.site7.org"), "r1n[1,2].site7.org");
}

Test(hosts, keep_widths_apart)
{
	cr_assert_str_eq(SAY("n09", "n10", "n011"), "n[09,10],n011");
}

Test(hosts, stand_alone_if_nothing_folds)
{
	cr_assert_str_eq(SAY("login", "node-a"), "login,node-a");
	cr_assert_str_eq(SAY("node-a"), "node-a");
	cr_assert_str_eq(cw_say_hosts(NULL, 0, buf, sizeof(buf)), "");
}

Test(hosts, that_do_not_fit_are_counted)
{
	const char *const names[] = { "login-of-the-first-cluster", "gateway-of-the-second-one" };

	cr_assert_str_eq(cw_say_hosts(names, 2, buf, 64), "login-of-the-first-cluster… (2 hosts)");
	cr_assert_str_eq(cw_say_hosts(names, 2, buf, 40), "… (2 hosts)");
}

/* No name comes from our own hand: a node chooses its name. */
Test(hosts, survive_strange_names)
{
	cr_assert_str_eq(SAY("", ""), ",");
	cr_assert_str_eq(SAY("[", "]"), "[,]");
	cr_assert_str_eq(SAY("9", "10"), "[9,10]");
	cr_assert_str_eq(SAY("n99999999999999999999", "n99999999999999999998"),
			 "n99999999999[999999999,999999998]");
}
