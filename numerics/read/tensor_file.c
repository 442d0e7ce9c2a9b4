/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/read/tensor_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"

#define SCHEMA "collwatch.tensors/1"
/*
 * Bytes of a line. A frame of a module with a hundred tensors takes 30 KiB, as do 256 operator
 * calls.
 */
#define LINE_MAX_BYTES (1u << 20)

const char *cw_tensor_line_text(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

int64_t cw_tensor_line_number(const json_t *line, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(line, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

uint64_t cw_tensor_line_count(const json_t *line, const char *key)
{
	int64_t v = cw_tensor_line_number(line, key, 0);

	return v > 0 ? (uint64_t)v : 0;
}

static int take_line(const char *text, size_t n, bool *has_head, cw_tensor_line_fn on_line,
		     void *user)
{
	json_t *line = cw_json_parse(text, n, JSON_REJECT_DUPLICATES, NULL);
	const char *kind = cw_tensor_line_text(line, "line");
	int r = 0;

	/*
	 * The first byte must be '{', which distinguishes such a file from a record. A parser of
	 * JSON alone would accept a space before it.
	 */
	if (!json_is_object(line) || (!*has_head && (text[0] != '{' || strcmp(kind, "head") != 0)))
		r = -EBADMSG;
	else if (!*has_head && strcmp(cw_tensor_line_text(line, "schema"), SCHEMA) != 0)
		r = -ENOTSUP;
	else if (!*has_head || strcmp(kind, "head") != 0)
		r = on_line(kind, line, user);
	*has_head = true;
	json_decref(line);
	return r;
}

static int read_lines(FILE *f, cw_tensor_line_fn on_line, void *user, uint64_t *ret_line)
{
	_cleanup_(freep) char *text = malloc(LINE_MAX_BYTES);
	bool has_head = false;
	int r = text ? 0 : -ENOMEM;

	for (*ret_line = 1; r == 0; (*ret_line)++) {
		size_t n;

		if (!fgets(text, LINE_MAX_BYTES, f))
			return ferror(f) ? -EIO : has_head ? 0 : -EBADMSG;
		n = strlen(text);
		/* The line is still being written, contains a NUL, or is too long. */
		if (n == 0 || text[n - 1] != '\n')
			return feof(f) && has_head ? 0 : -EBADMSG;
		r = take_line(text, n, &has_head, on_line, user);
		if (r < 0)
			return r;
	}
	return r;
}

static void file_close(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

int cw_tensor_file_each(const char *path, cw_tensor_line_fn on_line, void *user, struct cw_err *err)
{
	_cleanup_(file_close) FILE *f = fopen(path, "re");
	uint64_t line = 0;
	int r;

	if (!f)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	r = read_lines(f, on_line, user, &line);
	if (r == -EBADMSG)
		return cw_err_set(err, EBADMSG, "%s:%llu: no line of %s", path,
				  (unsigned long long)line, SCHEMA);
	return r < 0 ? cw_err_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}
