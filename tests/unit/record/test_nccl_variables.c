/* SPDX-License-Identifier: Apache-2.0 */
/* The NCCL_* variables of a process as a text: as the agent writes it, and as strangers write it.
 */
#include "record/nccl_variables.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

static char text[CW_NCCL_VARIABLES_BYTES];

static uint32_t write_text(const char *const *environment)
{
	return cw_nccl_variables_write((char *const *)environment, text, sizeof(text));
}

static void expect_text(const char *want, const char *const *environment)
{
	cr_expect_eq(write_text(environment), 0);
	cr_expect_str_eq(text, want);
	cr_expect_str_eq(cw_nccl_variables_check(text, sizeof(text)), want);
}

Test(nccl_variables, lists_only_nccls_variables_with_those_that_must_agree_first)
{
	expect_text("NCCL_ALGO=Ring NCCL_PROTO=LL NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0",
		    (const char *[]){ "NCCL_SOCKET_IFNAME=eth0", "HOME=/", "NCCL_PROTO=LL",
				      "XNCCL_ALGO=Tree", "NCCL_ALGO=Ring", "NCCL_DEBUG=INFO",
				      "NCCL_NOTHING", NULL });
	expect_text("NCCL_ALGO=", (const char *[]){ "NCCL_ALGO=", NULL });
	expect_text("none", (const char *[]){ "HOME=/", NULL });
	expect_text("none", NULL);
}

Test(nccl_variables, replaces_characters_that_are_not_plain)
{
	expect_text(
		"NCCL_ALGO=a??[31mb NCCL_PROTO=x?NCCL_DEBUG=y",
		(const char *[]){ "NCCL_ALGO=a\n\033[31mb", "NCCL_PROTO=x NCCL_DEBUG=y", NULL });
	expect_text("NCCL_ALGO=allreduce:tree;broadcast:ring NCCL_RINGS=0 1 2 3|3 2 1 0",
		    (const char *[]){ "NCCL_RINGS=0 1 2 3|3 2 1 0",
				      "NCCL_ALGO=allreduce:tree;broadcast:ring", NULL });
}

Test(nccl_variables, hides_values_that_may_be_secrets)
{
	expect_text("NCCL_ENCRYPTION_KEY=(hidden) NCCL_TLS_PSK_FILE=(hidden)",
		    (const char *[]){ "NCCL_TLS_PSK_FILE=hunter2", "NCCL_ENCRYPTION_KEY=hunter2",
				      NULL });
}

Test(nccl_variables, cuts_a_long_value_and_keeps_two_of_them_different)
{
	char a[4096] = "NCCL_TOPO_FILE=", b[4096] = "NCCL_TOPO_FILE=", first[sizeof(text)];

	memset(a + strlen(a), 'x', 3000);
	memset(b + strlen(b), 'x', 3000);
	strcat(a, "1");
	strcat(b, "2");
	cr_expect_eq(write_text((const char *[]){ a, NULL }), 0);
	cr_expect_eq(strlen(text), strlen("NCCL_TOPO_FILE=") + CW_NCCL_VARIABLE_VALUE_BYTES - 1);
	strcpy(first, text);
	cr_expect_eq(write_text((const char *[]){ b, NULL }), 0);
	cr_expect_str_neq(text, first);
}

Test(nccl_variables, counts_the_variables_that_do_not_fit)
{
	static char entries[200][128];
	const char *environment[201] = { NULL };
	const char *at = text;
	struct cw_nccl_variable v;
	uint32_t omitted, n = 0;

	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(entries[i], sizeof(entries[i]), "NCCL_VARIABLE_%u=%060u", i, i);
		environment[i] = entries[i];
	}
	environment[199] = "NCCL_PROTO=LL128";
	omitted = write_text(environment);
	while (cw_nccl_variables_next(&at, &v))
		n++;
	cr_expect_gt(n, 5);
	cr_expect_eq(n + omitted, 200);
	cr_expect_lt(strlen(text), sizeof(text));
	environment[1] = NULL;
	entries[0][5] = 'x';
	cr_expect_eq(write_text(environment), 1, "a name that no variable of NCCL has");
	cr_expect_str_eq(text, "");
}

Test(nccl_variables, reads_each_variable_of_a_text_once)
{
	const char *at = "NCCL_ALGO=Ring NCCL_RINGS=0 1 NCCL_DEBUG NCCL_PROTO=";
	struct cw_nccl_variable v;

	cr_assert(cw_nccl_variables_next(&at, &v));
	cr_expect(v.name_len == 9 && strncmp(v.name, "NCCL_ALGO", 9) == 0);
	cr_expect(v.value_len == 4 && strncmp(v.value, "Ring", 4) == 0);
	cr_assert(cw_nccl_variables_next(&at, &v));
	cr_expect(v.value_len == 3 && strncmp(v.value, "0 1", 3) == 0);
	cr_assert(cw_nccl_variables_next(&at, &v), "NCCL_DEBUG has no value");
	cr_expect(v.name_len == 10 && v.value_len == 0);
	cr_expect_not(cw_nccl_variables_next(&at, &v));
	at = "none";
	cr_expect_not(cw_nccl_variables_next(&at, &v));
}

Test(nccl_variables, accepts_no_text_that_no_agent_writes)
{
	static const char *const texts[] = { "NCCL_ALGO=\033[31m", "NCCL_ALGO=a\nb", "PATH=/",
					     " NCCL_ALGO=Ring", "NCCL_ALGO=\xc3\xa4" };
	char full[CW_NCCL_VARIABLES_BYTES];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_str_eq(cw_nccl_variables_check(texts[i], strlen(texts[i]) + 1), "", "%zu",
				 i);
	memset(full, 'x', sizeof(full));
	memcpy(full, "NCCL_", 5);
	cr_expect_str_eq(cw_nccl_variables_check(full, sizeof(full)), "");
}

Test(nccl_variables, rules_are_sorted_by_name)
{
	for (size_t i = 1; i < cw_n_nccl_variable_rules; i++)
		cr_expect_lt(
			strcmp(cw_nccl_variable_rules[i - 1].name, cw_nccl_variable_rules[i].name),
			0, "%s", cw_nccl_variable_rules[i].name);
}

Test(nccl_variables, are_read_from_a_record)
{
	struct cw_test_record *rec = cw_test_record_new();
	struct cw_record *reader;
	struct cw_rec_variables found;

	strcpy(rec->variables->text, "NCCL_ALGO=Ring");
	rec->variables->omitted = 3;
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
	cr_assert_eq(cw_record_nccl_variables(reader, &found), 0);
	cr_expect_str_eq(found.text, "NCCL_ALGO=Ring");
	cr_expect_eq(found.omitted, 3);
	strcpy(rec->variables->text, "NCCL_ALGO=\033c");
	cr_assert_eq(cw_record_nccl_variables(reader, &found), 0);
	cr_expect_str_eq(found.text, "");
	cr_expect_eq(found.omitted, 0);
	cw_record_close(reader);
	cw_test_record_free(rec);
}
