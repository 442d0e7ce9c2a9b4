/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"

static void expect(const char *in, const char *out)
{
	char buf[64];

	(void)snprintf(buf, sizeof(buf), "%s", in);
	cw_text_sanitise(buf);
	cr_expect_str_eq(buf, out);
}

Test(text, keeps_valid_utf8_tabs_and_newlines)
{
	expect("", "");
	expect("plain\ttext\n", "plain\ttext\n");
	expect("é漢😀", "é漢😀");
	expect("\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
	       "\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}

Test(text, replaces_control_characters)
{
	expect("a\x1b[2J\r\x7f\x01", "a?[2J???");
	expect("\xc2\x85\xc2\x9b", "????"); /* C1: a terminal may take them for escapes */
}

Test(text, replaces_what_is_not_utf8)
{
	expect("\x80\xff\xfe", "???");
	expect("\xc0\xaf\xc1\xbf", "????"); /* overlong */
	expect("\xe0\x80\xaf\xf0\x80\x80\xaf", "???????");
	expect("\xed\xa0\x80", "???");           /* surrogate */
	expect("\xf4\x90\x80\x80\xf5", "?????"); /* above U+10FFFF */
	expect("\xe6\xbc", "??");                /* cut off */
	expect("\xe6\xbc-\xc3", "?\?-?");
}

Test(text, a_line_has_no_newline)
{
	char buf[] = "a\tb\nc\xff";

	cw_text_sanitise_line(buf);
	cr_expect_str_eq(buf, "a?b?c?");
}

Test(text, replaces_what_turns_the_rest_around)
{
	/* an override (U+202E), its end (U+202C), an isolate (U+2066), a mark (U+061C) */
	expect("a\xe2\x80\xae"
	       "cod.exe\xe2\x80\xac",
	       "a???cod.exe???");
	expect("\xe2\x81\xa6x\xd8\x9cy", "???x??y");
	expect("\xe2\x80\xa8\xe2\x80\x8b\xef\xbb\xbf", "?????????"); /* breaks, not to be seen */
	expect("\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c");              /* right to left by itself */
}

/* A shell must read it as one argument, the path itself. */
static void expect_argument(const char *path, const char *out, const char *seen)
{
	char *command = cw_text_command("printf '%s|'", path), got[128] = "";
	char *argument = cw_text_argument(path);
	FILE *shell;

	cr_assert_not_null(argument);
	cr_expect_str_eq(argument, out);
	cr_assert_not_null(command);
	shell = popen(command, "re");
	cr_assert_not_null(shell);
	(void)fread(got, 1, sizeof(got) - 1, shell);
	cr_expect(pclose(shell) == 0);
	cr_expect_str_eq(got, seen, "%s: %s", command, got);
	free(command);
	free(argument);
}

Test(text, a_path_is_one_argument_of_a_command)
{
	expect_argument("/var/lib/x_1.so", "/var/lib/x_1.so", "/var/lib/x_1.so|");
	expect_argument("a b", "'a b'", "a b|");
	expect_argument("it's; echo x; '", "'it'\\''s; echo x; '\\'''", "it's; echo x; '|");
	expect_argument("'", "''\\'''", "'|");
	expect_argument("/$(echo x)/`echo y`\n", "'/$(echo x)/`echo y`\n'",
			"/$(echo x)/`echo y`\n|");
	expect_argument("~root/*", "'~root/*'", "~root/*|");
	expect_argument("-R", "./-R", "./-R|");
	expect_argument("-o 'x", "'./-o '\\''x'", "./-o 'x|");
	expect_argument("=ls", "'=ls'", "=ls|"); /* zsh would look it up */
	expect_argument("", "''", "|");
}

Test(text, appends_what_fits_and_cuts_the_rest)
{
	char text[8] = "";

	cw_text_append(text, sizeof(text), "%s", "");
	cr_assert_str_eq(text, "");
	cw_text_append(text, sizeof(text), "rank %d", 3);
	cr_assert_str_eq(text, "rank 3");
	cw_text_append(text, sizeof(text), "%d", 456);
	cr_assert_str_eq(text, "rank 34", "only the NUL has room behind it");
	cw_text_append(text, sizeof(text), "7");
	cr_assert_str_eq(text, "rank 34");
}

Test(text, takes_what_is_behind_the_last_slash)
{
	cr_expect_str_eq(cw_text_base_name("/usr/lib/libc.so.6"), "libc.so.6");
	cr_expect_str_eq(cw_text_base_name("train.py"), "train.py");
	cr_expect_str_eq(cw_text_base_name("lib/"), "");
	cr_expect_str_eq(cw_text_base_name(""), "");
}
