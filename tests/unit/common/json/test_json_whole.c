/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory runs out jansson loses bytes; tests/support/memory/no_memory.h makes it. */
#include "common/json/json_whole.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/memory/no_memory.h"

/*
 * Texts and numbers with sizes at and around the growth steps of jansson's buffer, escapes,
 * nesting.
 */
static char *document(void)
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	fputs("{\"numbers\": [0", out);
	for (unsigned digits = 1; digits < 18; digits++)
		fprintf(out, ", %.*s, -%.*s.5e1", (int)digits, "123456789012345678", (int)digits,
			"123456789012345678");
	fputs("],\n\"texts\": {\"\": true", out);
	for (int n = 1; n < 140; n += 3)
		fprintf(out, ", \"%0*d\": \"%0*d\\\"\\\\\\u00e9\"", n, n, n, n);
	fputs("}, \"deep\": [[[[null, [], {}]]]]}", out);
	cr_assert_eq(fclose(out), 0);
	return text;
}

static char *text;
static json_t *right;

static void set_up(void)
{
	text = document();
	right = json_loads(text, 0, NULL);
	cr_assert_not_null(right);
}

static void tear_down(void)
{
	json_decref(right);
	free(text);
}

TestSuite(json_whole, .init = set_up, .fini = tear_down);

static void parse(void *userdata)
{
	json_error_t error;
	json_t *doc;
	int seen;

	no_memory_begin();
	doc = cw_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
	seen = errno;
	no_memory_end();
	cr_assert_eq(doc == NULL, no_memory_happened());
	if (!doc) {
		cr_assert_eq(seen, ENOMEM);
		doc = cw_json_parse_text(text, 0);
	}
	cr_assert(json_equal(doc, right));
	json_decref(doc);
}

Test(json_whole, a_text_is_parsed_whole_or_not_at_all)
{
	no_memory_walk("parse", parse, NULL);
}

static void parse_fd(void *userdata)
{
	int fd = *(int *)userdata, seen;
	json_t *doc;

	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	no_memory_begin();
	doc = cw_json_parse_fd(fd, 0, NULL);
	seen = errno;
	no_memory_end();
	cr_assert_eq(doc == NULL, no_memory_happened());
	cr_assert(doc || seen == ENOMEM);
	cr_assert(!doc || json_equal(doc, right));
	json_decref(doc);
}

Test(json_whole, so_is_a_file)
{
	int fd = memfd_create("json", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	no_memory_walk("parse a file", parse_fd, &fd);
	close(fd);
}

static void write_text(void *userdata)
{
	char *now, *whole = userdata;

	no_memory_begin();
	now = cw_json_write(right, JSON_COMPACT | JSON_SORT_KEYS);
	no_memory_end();
	cr_assert(now || no_memory_happened()); /* qsort() does without */
	cr_assert(!now || strcmp(now, whole) == 0);
	free(now);
}

Test(json_whole, a_document_is_written_whole_or_not_at_all)
{
	char *whole = json_dumps(right, JSON_COMPACT | JSON_SORT_KEYS);

	cr_assert_eq(strlen(whole), json_dumpb(right, NULL, 0, JSON_COMPACT));
	no_memory_walk("write", write_text, whole);
	free(whole);
}

Test(json_whole, what_is_no_json_is_told_from_no_memory)
{
	json_error_t error;

	errno = 0;
	cr_assert_null(cw_json_parse("{\"a\":1", 6, 0, &error));
	cr_assert_eq(errno, EBADMSG);
	cr_assert_eq(json_error_code(&error), json_error_premature_end_of_input);
	errno = 0;
	cr_assert_null(cw_json_parse_text("{\"a\":1,\"a\":2}", JSON_REJECT_DUPLICATES));
	cr_assert_eq(errno, EBADMSG);
	cr_assert_null(cw_json_parse_fd(-1, 0, NULL));
	cr_assert_eq(errno, EBADF);
}
