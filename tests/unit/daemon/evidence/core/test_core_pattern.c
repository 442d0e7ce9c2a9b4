/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/core/core_pattern.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <limits.h>

static const struct {
	const char *pattern, *dir, *name;
	enum cw_core_pattern_kind kind;
	bool uses_pid;
} cases[] = {
	{ "core\n", "/job", "core", CW_CORE_FILE, false },
	{ "core\n", "/job", "core.17", CW_CORE_FILE, true },
	{ "core.%p\n", "/job", "core.17", CW_CORE_FILE, true },
	{ "", "/job", ".17", CW_CORE_FILE, true },
	{ "\n", "", "", CW_CORE_NONE, false },
	{ "cores/core.%P.%u.%g.%h.%%%", "/job/cores", "core.812.1000.100.node-a.%", CW_CORE_FILE,
	  false },
	{ "/var/cores/%e.%p.%t", "/var/cores", "\1.17.\1", CW_CORE_FILE, false },
	{ "/var/cores/%u/core", "/var/cores/1000", "core", CW_CORE_FILE, false },
	{ "/var/%e/core", "", "", CW_CORE_UNKNOWN, false },
	{ "/core.%z", "/", "core.", CW_CORE_FILE, false },
	{ "|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h", "", "", CW_CORE_SYSTEMD,
	  false },
	{ "| /usr/share/apport/apport -p%p", "", "", CW_CORE_PROGRAM, false },
	{ "@/run/coredump.socket", "", "", CW_CORE_PROGRAM, false },
	{ "/var/cores/", "", "", CW_CORE_UNKNOWN, false },
};

Test(core_pattern, gives_directory_and_name)
{
	const struct cw_core_subject subject = {
		.pid = 812, .own_pid = 17, .uid = 1000, .gid = 100, .cwd = "/job", .host = "node-a"
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char dir[PATH_MAX], name[CW_CORE_NAME_MAX];

		cr_expect_eq(cw_core_pattern_expand(cases[i].pattern, cases[i].uses_pid, &subject,
						    dir, name),
			     cases[i].kind, "%s", cases[i].pattern);
		if (cases[i].kind != CW_CORE_FILE)
			continue;
		cr_expect_str_eq(dir, cases[i].dir, "%s", cases[i].pattern);
		cr_expect_str_eq(name, cases[i].name, "%s", cases[i].pattern);
	}
}

Test(core_pattern, needs_the_working_directory_of_a_relative_pattern)
{
	const struct cw_core_subject subject = { .cwd = "", .host = "" };
	char dir[PATH_MAX], name[CW_CORE_NAME_MAX];

	cr_expect_eq(cw_core_pattern_expand("core", false, &subject, dir, name), CW_CORE_UNKNOWN);
	cr_expect_eq(cw_core_pattern_expand("/core", false, &subject, dir, name), CW_CORE_FILE);
}

Test(core_pattern, unknown_parts_fit_any_text)
{
	cr_expect(cw_core_pattern_fits("\1.17.\1", "python3.17.1795"));
	cr_expect(cw_core_pattern_fits("\1.17.\1", "a.17.b.17.3"));
	cr_expect(cw_core_pattern_fits("core", "core"));
	cr_expect(cw_core_pattern_fits("core.\1", "core."));
	cr_expect(!cw_core_pattern_fits("core", "core.1"));
	cr_expect(!cw_core_pattern_fits("\1.17.\1", "python3.18.1795"));
	cr_expect(!cw_core_pattern_fits("core.\1", "core"));
}
