/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confined child parses files that may be hostile. If such a file takes over the child, its
 * output is hostile, too. So we never copy its output as it is. We read the fields that we know,
 * check them, and write them anew.
 */
#include <math.h>
#include <string.h>

#include "common/json/json_whole.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/stack.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/evidence/unwinder.h"

#define MAX_TEXT_BYTES 256u

static json_t *clean_integer(const json_t *value)
{
	return json_is_integer(value) ? json_integer(json_integer_value(value)) : json_null();
}

static json_t *clean_frame(const json_t *frame)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "pc",
			 cw_evidence_clean(json_object_get(frame, "pc"), 24), "symbol",
			 cw_evidence_clean(json_object_get(frame, "symbol"), MAX_TEXT_BYTES),
			 "offset", clean_integer(json_object_get(frame, "offset")), "module",
			 cw_evidence_clean(json_object_get(frame, "module"), MAX_TEXT_BYTES),
			 "file", cw_evidence_clean(json_object_get(frame, "file"), MAX_TEXT_BYTES),
			 "line", clean_integer(json_object_get(frame, "line")));
}

static int add_thread(json_t *threads, const json_t *line)
{
	json_t *from = json_object_get(line, "frames"), *frames = json_array(), *thread, *frame;
	size_t i;

	json_array_foreach (from, i, frame) {
		if (i < CW_STACK_MAX_FRAMES && json_is_object(frame) &&
		    json_array_append_new(frames, clean_frame(frame)) < 0)
			break;
	}
	thread = json_pack("{s:o, s:o, s:o, s:o}", "tid",
			   clean_integer(json_object_get(line, "tid")), "name",
			   cw_evidence_clean(json_object_get(line, "name"), 64), "run_ns",
			   clean_integer(json_object_get(line, "run_ns")), "frames", frames);
	if (thread && json_object_get(line, "note"))
		(void)json_object_set_new(
			thread, "note",
			cw_evidence_clean(json_object_get(line, "note"), MAX_TEXT_BYTES));
	return json_array_append_new(threads, thread);
}

static const char *known_status(const json_t *end)
{
	static const char *const known[] = { "ok", "partial", "absent", "refused", "failed" };
	const char *status = json_string_value(json_object_get(end, "status"));

	for (size_t i = 0; status && i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(status, known[i]) == 0)
			return known[i];
	}
	return "failed";
}

static json_t *part(const char *status, json_t *reason, double held_ms, json_t *threads)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "status", status, "reason", reason, "held_ms",
			 isfinite(held_ms) && held_ms >= 0 ? json_real(held_ms) : json_null(),
			 "threads", threads);
}

json_t *cw_stack_output_read(const char *output, size_t len, bool is_whole)
{
	json_t *threads = json_array(), *end = NULL, *result;
	const char *newline;

	while (!end && threads && (newline = memchr(output, '\n', len))) {
		size_t n = (size_t)(newline - output);
		json_t *line = cw_json_parse(output, n, JSON_REJECT_DUPLICATES, NULL);

		if (line && json_is_true(json_object_get(line, "end")))
			end = json_incref(line);
		else if (json_is_object(line) && json_array_size(threads) < CW_STACK_MAX_THREADS)
			/* If memory runs out, the list lacks this thread. */
			(void)add_thread(threads, line);
		json_decref(line);
		output += n + 1;
		len -= n + 1;
	}
	if (end && is_whole)
		result = part(known_status(end),
			      cw_evidence_clean(json_object_get(end, "reason"), MAX_TEXT_BYTES),
			      json_number_value(json_object_get(end, "held_ms")), threads);
	else
		result = part(json_array_size(threads) ? "partial" : "failed",
			      json_string("unwinding was cut short"), -1, threads);
	json_decref(end);
	return result;
}
