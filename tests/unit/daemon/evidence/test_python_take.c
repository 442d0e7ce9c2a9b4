/* SPDX-License-Identifier: Apache-2.0 */
/* What a child writes that a hostile process may have taken over. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/evidence/python_part.h"

static json_t *part;

static void take(const char *output)
{
	json_decref(part);
	part = cw_python_take_read(output, strlen(output), true);
	cr_assert(json_is_object(part), "%s", output);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *thread(size_t i)
{
	return json_array_get(json_object_get(part, "threads"), i);
}

Test(python_take, keeps_the_fields_that_it_knows)
{
	const json_t *frame;

	take("{\"status\":\"ok\",\"reason\":\"\",\"more\":1,\"threads\":[{\"id\":\"0x7f\",\"tid\":7,"
	     "\"current\":true,\"name\":\"python3\",\"gil\":\"holds\",\"note\":null,\"more\":1,"
	     "\"frames\":[{\"file\":\"a.py\",\"line\":3,\"function\":\"f\",\"entry\":true,"
	     "\"more\":1}]}]}");
	cr_expect_str_eq(text_of(part, "status"), "ok");
	cr_expect_null(json_object_get(part, "more"));
	cr_expect_eq(json_integer_value(json_object_get(thread(0), "tid")), 7);
	cr_expect(json_is_false(json_object_get(thread(0), "current")));
	cr_expect_str_eq(text_of(thread(0), "gil"), "holds");
	cr_expect_null(json_object_get(thread(0), "more"));
	frame = json_array_get(json_object_get(thread(0), "frames"), 0);
	cr_expect_str_eq(text_of(frame, "file"), "a.py");
	cr_expect_eq(json_integer_value(json_object_get(frame, "line")), 3);
	cr_expect(json_is_true(json_object_get(frame, "entry")));
	cr_expect_eq(json_object_size(frame), 4);
}

Test(python_take, cleans_words_and_names)
{
	take("{\"status\":\"splendid\",\"reason\":7,\"threads\":[1,null,{\"gil\":\"eats\",\"name\":[],"
	     "\"frames\":[2,{\"file\":\"\\u001b[31m\",\"line\":\"3\",\"function\":{}}]}]}");
	cr_expect_str_eq(text_of(part, "status"), "failed");
	cr_assert_eq(json_array_size(json_object_get(part, "threads")), 1);
	cr_expect(json_is_null(json_object_get(thread(0), "gil")));
	cr_expect(json_is_null(json_object_get(thread(0), "name")));
	cr_expect_null(strchr(
		text_of(json_array_get(json_object_get(thread(0), "frames"), 0), "file"), '\x1b'));
}

Test(python_take, says_that_the_child_did_not_end_well)
{
	static const char whole[] = "{\"status\":\"ok\",\"reason\":\"\",\"threads\":[]}";
	static const char *const broken[] = { "", "{", "[]", "7", "\"ok\"", "{\"status\":" };

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		take(broken[i]);
		cr_expect_str_eq(text_of(part, "status"), "failed", "%s", broken[i]);
		cr_expect(*text_of(part, "reason"));
	}
	take("{}");
	cr_expect_str_eq(text_of(part, "status"), "failed");
	json_decref(part);
	part = cw_python_take_read(whole, sizeof(whole) - 1, false);
	cr_expect_str_eq(text_of(part, "status"), "failed", "it was killed");
}

Test(python_take, limits_threads_and_frames)
{
	static char text[1u << 20];
	size_t at = (size_t)sprintf(
		text, "{\"status\":\"ok\",\"reason\":\"\",\"threads\":[{\"frames\":[{}");
	for (unsigned i = 0; i < 1000; i++)
		at += (size_t)sprintf(text + at, ",{}");
	at += (size_t)sprintf(text + at, "]}");
	for (unsigned i = 0; i < 1000; i++)
		at += (size_t)sprintf(text + at, ",{}");
	(void)sprintf(text + at, "]}");
	take(text);
	cr_expect_eq(json_array_size(json_object_get(part, "threads")), 256);
	cr_expect_eq(json_array_size(json_object_get(thread(0), "frames")), 100);
}
