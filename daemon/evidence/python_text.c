/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of the text (CPython 3.8 to 3.15, Python/traceback.c):
 *
 * [Thread|Current thread] 0x<hex> [<name>] (most recent call first):
 *   File "<name>", line <n> in <function>
 *   ...                          <- more than 100 frames
 *   <no Python frame>
 *                                <- blank line between threads
 *
 * Names of threads in brackets exist from 3.14 on. faulthandler escapes names of files and
 * functions to ASCII, and cuts them after 500 characters ("..."). A missing name is ???, and so is
 * an unknown line number.
 */
#include "daemon/evidence/python_part.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "daemon/evidence/evidence_text.h"
#include "proto/messages.h"

#define MAX_FILE_BYTES 256u
#define MAX_FUNCTION_BYTES 128u
#define MAX_NAME_BYTES 64u
/* Bytes of the punctuation and field names of one thread in compact JSON. */
#define THREAD_OVERHEAD 60u

struct parser {
	/* frames: those of the last thread; NULL = there is no thread yet, or we dropped it */
	json_t *threads, *frames;
	size_t bytes;
	bool is_cut, is_out_of_memory;
};

struct line {
	const char *text;
	size_t len;
};

static bool starts_with(const struct line *l, const char *prefix)
{
	size_t n = strlen(prefix);

	return l->len >= n && memcmp(l->text, prefix, n) == 0;
}

static void skip(struct line *l, size_t n)
{
	l->text += n;
	l->len -= n;
}

static size_t hex_len(const struct line *l)
{
	size_t n = 0;

	while (n < l->len && strchr("0123456789abcdefABCDEF", l->text[n]) && l->text[n])
		n++;
	return n;
}

/*
 * Returns the thread's name, "[name]" before the parenthesis. JSON null = it has none, as before
 * 3.14.
 */
static json_t *thread_name(const struct line *rest)
{
	const char *open = memchr(rest->text, '[', rest->len);
	const char *close = memrchr(rest->text, ']', rest->len);

	if (!open || !close || close < open)
		return json_null();
	return cw_evidence_text(open + 1, (size_t)(close - open - 1), MAX_NAME_BYTES);
}

static void parse_thread(struct parser *p, struct line l)
{
	bool is_current = starts_with(&l, "Current thread 0x");
	const char *id;
	json_t *frames;
	size_t n;

	skip(&l, strlen(is_current ? "Current thread " : "Thread "));
	id = l.text;
	skip(&l, 2);
	n = hex_len(&l);
	if (n == 0 || n > 16)
		return;
	if (json_array_size(p->threads) >= CW_PYTHON_MAX_THREADS ||
	    p->bytes + THREAD_OVERHEAD > CW_PYTHON_MAX_BYTES) {
		p->frames = NULL; /* the frames that follow belong to a thread that we drop */
		p->is_cut = true;
		return;
	}
	skip(&l, n);
	frames = json_array();
	p->bytes += THREAD_OVERHEAD;
	if (json_array_append_new(p->threads, json_pack("{s:s%, s:b, s:o, s:O}", "id", id, n + 2,
							"current", (int)is_current, "name",
							thread_name(&l), "frames", frames)) < 0)
		p->is_out_of_memory = true;
	p->frames = p->is_out_of_memory ? NULL : frames;
	json_decref(frames); /* the array of the thread has its own reference */
}

/*
 * Finds the last `what` in the text. Names of files may contain " in " and "\", line ", but only
 * the last ones are from faulthandler.
 */
static const char *find_last(const char *text, size_t len, const char *what)
{
	const char *found = NULL, *from = text;
	size_t n = strlen(what);

	while ((from = memmem(from, len - (size_t)(from - text), what, n))) {
		found = from;
		from += n;
	}
	return found;
}

static json_t *line_number(const char *text, size_t len)
{
	char digits[16];
	uint64_t number;

	if (len == 0 || len >= sizeof(digits))
		return json_null();
	memcpy(digits, text, len);
	digits[len] = '\0';
	return cw_parse_u64(digits, 0, INT32_MAX, &number) == 0 ? json_integer((int64_t)number)
								: json_null();
}

static json_t *parse_frame(struct line l)
{
	struct line file, function = l;
	const char *in, *line;

	if (starts_with(&l, "  File ???, line ")) { /* the name of the file is unknown */
		file = (struct line){ "???", 3 };
		line = l.text + strlen("  File ???, line ");
	} else {
		const char *end = find_last(l.text, l.len, "\", line ");

		if (!starts_with(&l, "  File \"") || !end || end < l.text + 8)
			return NULL;
		file = (struct line){ l.text + 8, (size_t)(end - l.text - 8) };
		line = end + strlen("\", line ");
	}
	skip(&function, (size_t)(line - l.text));
	in = memmem(function.text, function.len, " in ", 4);
	if (!in)
		return NULL;
	skip(&function, (size_t)(in + 4 - function.text));
	return json_pack("{s:o, s:o, s:o}", "file",
			 cw_evidence_text(file.text, file.len, MAX_FILE_BYTES), "line",
			 line_number(line, (size_t)(in - line)), "function",
			 cw_evidence_text(function.text, function.len, MAX_FUNCTION_BYTES));
}

static void add_frame(struct parser *p, struct line l)
{
	json_t *frame = parse_frame(l);
	size_t bytes;

	if (!frame)
		return;
	/* Count the bytes of the JSON, in which a single byte of a name may become "\u001f". */
	bytes = json_dumpb(frame, NULL, 0, JSON_COMPACT) + 1;
	if (json_array_size(p->frames) >= CW_PYTHON_MAX_FRAMES ||
	    p->bytes + bytes > CW_PYTHON_MAX_BYTES) {
		p->is_cut = true;
		json_decref(frame);
		return;
	}
	p->bytes += bytes;
	if (json_array_append_new(p->frames, frame) < 0)
		p->is_out_of_memory = true;
}

static void parse_line(struct parser *p, struct line l)
{
	if (starts_with(&l, "Thread 0x") || starts_with(&l, "Current thread 0x"))
		parse_thread(p, l);
	else if (starts_with(&l, "  File ") && p->frames)
		add_frame(p, l);
	else if (starts_with(&l, "  ...") || starts_with(&l, "..."))
		p->is_cut = true;
}

json_t *cw_python_text_parse(const char *text, size_t len, bool *ret_cut)
{
	struct parser p = { .threads = json_array() };

	while (len > 0 && p.threads && !p.is_out_of_memory) {
		const char *end = memchr(text, '\n', len);
		struct line l = { text, end ? (size_t)(end - text) : len };

		parse_line(&p, l);
		len -= l.len + (end ? 1 : 0);
		text += l.len + (end ? 1 : 0);
	}
	if (p.is_out_of_memory) {
		json_decref(p.threads);
		return NULL;
	}
	*ret_cut = p.is_cut;
	return p.threads;
}

json_t *cw_python_text_part(uint32_t status, const char *text)
{
	bool is_cut = false;
	json_t *threads;

	if (status == CW_PYTHON_ABSENT)
		return cw_evidence_part("absent", "no interpreter in the process");
	if (status == CW_PYTHON_NOT_ARMED)
		return cw_evidence_part(
			"absent", *text ? text : "Python stacks are switched off in the process");
	if (status != CW_PYTHON_OK)
		return cw_evidence_part("failed",
					*text ? text : "the agent did not answer in time");
	threads = cw_python_text_parse(text, strlen(text), &is_cut);
	if (!threads || json_array_size(threads) == 0) {
		json_decref(threads);
		return cw_evidence_part("failed", "the answer has no traceback");
	}
	return json_pack("{s:s, s:s, s:o}", "status", is_cut ? "partial" : "ok", "reason",
			 is_cut ? "too large to send" : "", "threads", threads);
}
