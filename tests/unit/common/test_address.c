/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"

Test(address, numbers_and_names_are_told_apart)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
		bool is_numeric, is_loopback, is_any;
	} cases[] = {
		{ "127.0.0.1:7411", "127.0.0.1", 7411, true, true, false },
		{ "127.9.8.7:1", "127.9.8.7", 1, true, true, false },
		{ "10.0.0.1:65535", "10.0.0.1", 65535, true, false, false },
		{ "0.0.0.0:5", "0.0.0.0", 5, true, false, true },
		{ "[::1]:7411", "::1", 7411, true, true, false },
		{ "[fd00::17]:7411", "fd00::17", 7411, true, false, false },
		{ "[::]:7411", "::", 7411, true, false, true },
		{ "node-a:7411", "node-a", 7411, false, false, false },
		{ "a.b.example.org:7411", "a.b.example.org", 7411, false, false, false },
		{ "0x.node:1", "0x.node", 1, false, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_address a;
		struct cw_err err;

		cr_assert_eq(cw_address_parse(cases[i].text, &a, &err), 0, "%s", cases[i].text);
		cr_expect_str_eq(a.host, cases[i].host);
		cr_expect_eq(a.port, cases[i].port);
		cr_expect_eq(a.len > 0, cases[i].is_numeric, "%s", cases[i].text);
		cr_expect_eq(cw_address_is_loopback(&a), cases[i].is_loopback, "%s", cases[i].text);
		cr_expect_eq(cw_address_is_any(&a), cases[i].is_any, "%s", cases[i].text);
	}
}

Test(address, what_is_neither_is_refused_with_a_sentence)
{
	static const char *const cases[] = {
		"",
		":",
		":7411",
		"7411",
		"node-a",
		"node-a:",
		"node-a:0",
		"node-a:x",
		"[]:1",
		"[::1:1",
		"[:1",
		"10.0.0.300:1",
		"10.0.0:1",
		"no de:1",
		"node\":1",
		"::1:7411",
		"-n:1",
		"node-a:65536",
		"[1.2.3.4]:1",
		"[node]:17",
		"a..:7",
		"fd00::1:5",
		"node/a:741",
		"n\n:1",
	};
	char host[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_address a;
		struct cw_err err = { "" };

		cr_expect_eq(cw_address_parse(cases[i], &a, &err), -EINVAL, "%s", cases[i]);
		cr_expect_neq(err.text[0], '\0', "%s", cases[i]);
	}
	memset(host, 'h', sizeof(host));
	memcpy(host + sizeof(host) - 3, ":1", 3);
	cr_expect_eq(cw_address_parse(host, &(struct cw_address){ .len = 0 }, NULL), -EINVAL);
}

Test(address, node_names_have_a_form_and_a_length)
{
	char name[CW_NODE_NAME_MAX + 1];

	memset(name, 'n', sizeof(name));
	cr_assert(cw_node_name_is_valid(name, CW_NODE_NAME_MAX - 1));
	cr_assert_not(cw_node_name_is_valid(name, CW_NODE_NAME_MAX));
	cr_assert_not(cw_node_name_is_valid("", 0));
	cr_assert_not(cw_node_name_is_valid("a b", 3));
	cr_assert_not(cw_node_name_is_valid("a/b", 3));
	cr_assert_not(cw_node_name_is_valid("a\0b", 3));
	cr_assert(cw_node_name_is_valid("node-a_1.x", 10));
}
