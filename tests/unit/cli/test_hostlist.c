/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's host lists, right and wrong ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/hostlist.h"

/* The names with blanks between them. */
static void is(const char *text, const char *names)
{
	char said[512] = "";
	struct cw_err err = { "" };
	char **v;
	unsigned n;

	cr_assert_eq(cw_hostlist_expand(text, 16, &v, &n, &err), 0, "%s: %s", text, err.text);
	cr_expect_null(v[n]);
	for (unsigned i = 0; i < n; i++) {
		strcat(said, i ? " " : "");
		strcat(said, v[i]);
	}
	cr_expect_str_eq(said, names);
	cr_expect_null(cw_hostlist_free(v));
}

static void is_wrong(const char *text, int error, const char *word)
{
	struct cw_err err = { "" };
	char **v = NULL;
	unsigned n;

	cr_expect_eq(cw_hostlist_expand(text, 16, &v, &n, &err), -error, "%s", text);
	cr_expect(strstr(err.text, word), "%s: %s", text, err.text);
	cr_expect_null(v);
}

Test(hostlist, names_each_host)
{
	is("gpu1", "gpu1");
	is("gpu[1-3]", "gpu1 gpu2 gpu3");
	is("gpu[008-011]", "gpu008 gpu009 gpu010 gpu011");
	is("gpu[9-11]", "gpu9 gpu10 gpu11");
	is("gpu[1,3,05-06],login1", "gpu1 gpu3 gpu05 gpu06 login1");
	is("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02");
	is("a[1-2].example,b[3]", "a1.example a2.example b3");
	is("[1-2]", "1 2");
}

Test(hostlist, says_what_is_wrong)
{
	is_wrong("", EINVAL, "name is missing");
	is_wrong("a,,b", EINVAL, "name is missing");
	is_wrong("a,", EINVAL, "name is missing");
	is_wrong("gpu[", EINVAL, "[ without");
	is_wrong("gpu[1-3", EINVAL, "[ without");
	is_wrong("gpu]", EINVAL, "] without");
	is_wrong("gpu[]", EINVAL, "number is missing");
	is_wrong("gpu[1-]", EINVAL, "number is missing");
	is_wrong("gpu[-1]", EINVAL, "number is missing");
	is_wrong("gpu[1,]", EINVAL, "number is missing");
	is_wrong("gpu[3-1]", EINVAL, "ends before it begins");
	is_wrong("gpu[a-b]", EINVAL, "number is missing");
	is_wrong("gpu[1-2-3]", EINVAL, "numbers, ");
	is_wrong("gpu[1[2]]", EINVAL, "] without");
	is_wrong("gpu[1234567890]", EINVAL, "too long");
}

Test(hostlist, is_bounded)
{
	char longer[400];

	is("a[1-16]", "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16");
	is_wrong("a[1-17]", E2BIG, "more than 16");
	is_wrong("a[0-999999999]b[0-999999999]c[0-999999999]", E2BIG, "more than 16");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	is_wrong(longer, EINVAL, "too long");
}
