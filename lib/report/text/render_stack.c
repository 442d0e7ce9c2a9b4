/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users look for *their* line, so Python frames come first, the innermost at the top. Native stacks
 * contain dozens of frames that only show an interpreter or the start of a thread. We fold these
 * into one line. We never fold the innermost frame, because the thread waits in it.
 */
#include "report/text/render_stack.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "common/text.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/stacks/stack_merge.h"

/*
 * Limits on the printed frames. This many usually reach the code below a framework's internals.
 * --all-frames shows the rest.
 */
#define MAX_PYTHON_FRAMES 10
#define MAX_NATIVE_FRAMES 12
/* A merged stack has Python frames as well. */
#define MAX_MERGED_FRAMES 24u
#define INDENT 6
#define NAME_COLUMNS 36
#define MAX_SYMBOL 200
#define MAX_PATH_COLUMNS 40

/* The last two components of a long path identify the file. */
static const char *short_path(const char *path)
{
	const char *from = cw_text_base_name(path);

	if (strlen(path) <= MAX_PATH_COLUMNS || from - path < 2)
		return path;
	for (from--; from > path && from[-1] != '/'; from--)
		;
	return from;
}

static void put_location(const struct cw_text *t, const json_t *frame, bool all)
{
	const char *path = cw_json_str(frame, "file", "?");
	const char *shown = all ? path : short_path(path);
	json_int_t line = cw_json_int(frame, "line", 0);

	fputs(shown == path ? "" : "…/", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, shown);
	if (line > 0)
		fprintf(t->out, ":%" JSON_INTEGER_FORMAT, line);
}

static void pad_after(const struct cw_text *t, const char *name)
{
	size_t len = strlen(name);

	fprintf(t->out, "%*s", len < NAME_COLUMNS ? (int)(NAME_COLUMNS - len) : 1, "");
}

static void put_python_frame(const struct cw_text *t, const json_t *frame, bool is_marked, bool all)
{
	const char *function = cw_json_str(frame, "function", "?");

	fprintf(t->out, "%*s%s ", INDENT - 2, "", is_marked ? ">" : " ");
	cw_text_put(t, is_marked ? CW_TEXT_BOLD : CW_TEXT_PLAIN, function);
	pad_after(t, function);
	put_location(t, frame, all);
	fputc('\n', t->out);
}

/*
 * Prints the Python frames up to a limit. We mark the user's innermost line. We print it even if
 * many library frames push it beyond the limit.
 */
static void put_python_frames(const struct cw_text *t, const json_t *frames, bool all)
{
	size_t own = frame_innermost_python(frames), n = json_array_size(frames);
	size_t shown = all || n < MAX_PYTHON_FRAMES ? n : MAX_PYTHON_FRAMES;

	for (size_t i = 0; i < shown; i++)
		put_python_frame(t, json_array_get(frames, i), i == own, all);
	if (own < n && own >= shown) {
		if (own > shown)
			fprintf(t->out, "%*s… %zu frame%s of libraries\n", INDENT, "", own - shown,
				own - shown == 1 ? "" : "s");
		put_python_frame(t, json_array_get(frames, own), true, all);
		shown = own + 1;
	}
	if (shown < n)
		fprintf(t->out, "%*s… %zu outer frame%s\n", INDENT, "", n - shown,
			n - shown == 1 ? "" : "s");
}

static void put_native_frame(const struct cw_text *t, const json_t *frame, bool all)
{
	const char *symbol = cw_json_str(frame, "symbol", "");
	json_int_t offset = cw_json_int(frame, "offset", 0);
	int len = (int)strcspn(symbol, "@"); /* without the symbol's version, "@@GLIBC_2.3.2" */
	char name[256];

	if (len > MAX_SYMBOL)
		len = MAX_SYMBOL;
	if (!len)
		snprintf(name, sizeof(name), "%s", cw_json_str(frame, "pc", "?"));
	else if (offset > 0)
		snprintf(name, sizeof(name), "%.*s+%" JSON_INTEGER_FORMAT, len, symbol, offset);
	else
		snprintf(name, sizeof(name), "%.*s", len, symbol);
	fprintf(t->out, "%*s", INDENT, "");
	cw_text_put(t, CW_TEXT_PLAIN, name);
	pad_after(t, name);
	cw_text_put(t, CW_TEXT_PLAIN, cw_text_base_name(cw_json_str(frame, "module", "")));
	if (json_is_string(json_object_get(frame, "file"))) {
		fputs("  ", t->out);
		put_location(t, frame, all);
	}
	fputc('\n', t->out);
}

static void put_folded(const struct cw_text *t, size_t interpreter, size_t startup)
{
	if (interpreter)
		fprintf(t->out, "%*s… %zu interpreter frame%s\n", INDENT, "", interpreter,
			interpreter == 1 ? "" : "s");
	if (startup)
		fprintf(t->out, "%*s… %zu frame%s of the start of the thread\n", INDENT, "",
			startup, startup == 1 ? "" : "s");
}

static void put_native_frames(const struct cw_text *t, const json_t *frames, bool all)
{
	size_t interpreter = 0, startup = 0, shown = 0, i;
	const json_t *frame;

	json_array_foreach (frames, i, frame) {
		if (!all && i > 0 && frame_is_startup(frame)) {
			startup++;
			continue;
		}
		if (!all && i > 0 && frame_is_interpreter(frame)) {
			interpreter++;
			continue;
		}
		put_folded(t, interpreter, startup);
		interpreter = startup = 0;
		if (!all && shown == MAX_NATIVE_FRAMES) {
			fprintf(t->out, "%*s… %zu more frame%s\n", INDENT, "",
				json_array_size(frames) - i,
				json_array_size(frames) - i == 1 ? "" : "s");
			return;
		}
		put_native_frame(t, frame, all);
		shown++;
	}
	put_folded(t, interpreter, startup);
}

static void put_kernel_side(const struct cw_text *t, const json_t *thread)
{
	const char *state = cw_json_str(thread, "state", "");
	const char *syscall = cw_json_str(thread, "syscall", "");
	const char *wchan = cw_json_str(thread, "wchan", "");

	if (*state) {
		fputs(", state ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, state);
	}
	if (*syscall) {
		fputs(", in ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, syscall);
		fputs("()", t->out);
	}
	if (*wchan && strcmp(wchan, "0") != 0) {
		fputs(", waits in ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, wchan);
	}
}

/* Returns the Python thread with this number; NULL = none. */
static const json_t *python_thread_of(const json_t *evidence, json_int_t tid)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "python"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == tid)
			return thread;
	return NULL;
}

/* Prints a native stack with the Python frames at their places. */
static void put_merged_frames(const struct cw_text *t, const json_t *frames, bool all)
{
	const json_t *frame;
	size_t i, n = json_array_size(frames);

	json_array_foreach (frames, i, frame) {
		bool is_python = json_is_string(json_object_get(frame, "function"));

		if (!all && i == MAX_MERGED_FRAMES) {
			fprintf(t->out, "%*s… %zu more frame%s\n", INDENT, "", n - i,
				n - i == 1 ? "" : "s");
			return;
		}
		if (is_python)
			put_python_frame(t, frame, true, all);
		else if (all || i == 0 || !frame_is_startup(frame))
			put_native_frame(t, frame, all);
	}
}

static void put_native_thread(const struct cw_text *t, const json_t *evidence, const json_t *thread,
			      bool all)
{
	json_int_t tid = cw_json_int(thread, "tid", 0);
	json_t *merged = cw_stack_merge(python_thread_of(evidence, tid), thread);

	fprintf(t->out, "    native, thread %" JSON_INTEGER_FORMAT " ", tid);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(thread, "name", ""));
	put_kernel_side(t, frame_proc_thread(evidence, tid));
	if (merged)
		fputs(", Python frames marked", t->out);
	fputs(":\n", t->out);
	if (merged)
		put_merged_frames(t, merged, all);
	else
		put_native_frames(t, json_object_get(thread, "frames"), all);
	json_decref(merged);
}

/* True if the evidence contains the part. Otherwise prints the reason why the part is missing. */
static bool part_is_there(const struct cw_text *t, const json_t *part, const char *what)
{
	const char *status = cw_json_str(part, "status", "");
	const char *reason = cw_json_str(part, "reason", "");

	if (!json_is_object(part))
		return false;
	if (strcmp(status, "ok") == 0)
		return true;
	fprintf(t->out, "    %s: ", what);
	cw_text_put(t, CW_TEXT_YELLOW, status);
	fputs(*reason ? ": " : "", t->out);
	cw_text_wrap(t, 12, INDENT, reason);
	return strcmp(status, "partial") == 0;
}

/*
 * Prints a Python thread below its title: "Python, main thread 812 python3, holds the GIL,
 * innermost first:".
 */
static void put_python_thread(const struct cw_text *t, const json_t *thread, const char *which,
			      bool all)
{
	const char *name = cw_json_str(thread, "name", ""), *gil = cw_json_str(thread, "gil", "");
	const char *note = cw_json_str(thread, "note", "");
	json_int_t tid = cw_json_int(thread, "tid", 0);

	fprintf(t->out, "    Python%s", which);
	if (tid > 0)
		fprintf(t->out, " %" JSON_INTEGER_FORMAT, tid);
	if (*name) {
		fputc(' ', t->out);
		cw_text_put(t, CW_TEXT_PLAIN, name);
	}
	if (strcmp(gil, "holds") == 0 || strcmp(gil, "wants") == 0)
		fprintf(t->out, ", %s the GIL", gil);
	fputs(", innermost first", t->out);
	if (*note) {
		fputs("; ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, note);
	}
	fputs(":\n", t->out);
	put_python_frames(t, json_object_get(thread, "frames"), all);
}

static void put_python(const struct cw_text *t, const json_t *evidence, bool all)
{
	const json_t *python = json_object_get(evidence, "python");
	const json_t *threads = json_object_get(python, "threads"), *thread;
	const json_t *shown = cw_frame_python_thread(evidence);
	size_t i, n = json_array_size(threads);

	/* A program without an interpreter needs no line. */
	if (strcmp(cw_json_str(python, "status", ""), "absent") == 0)
		return;
	if (!part_is_there(t, python, "Python"))
		return;
	json_array_foreach (threads, i, thread) {
		bool has_tid = cw_json_int(thread, "tid", 0) > 0;

		if (!all && thread != shown)
			continue;
		put_python_thread(t, thread,
				  n == 1 ? (has_tid ? ", thread" : "")
				  : json_is_true(json_object_get(thread, "current"))
					  ? ", current thread"
				  : thread == shown ? ", main thread"
						    : ", thread",
				  all);
	}
	if (!all && n > 1)
		fprintf(t->out, "    %zu more Python thread%s (--all-frames)\n", n - 1,
			n == 2 ? "" : "s");
}

static void put_native(const struct cw_text *t, const json_t *evidence, bool all)
{
	const json_t *native = json_object_get(evidence, "native");
	const json_t *threads = json_object_get(native, "threads"), *thread;
	json_int_t shown = cw_frame_shown_tid(evidence);
	size_t i, hidden = 0;

	if (!part_is_there(t, native, "native stacks"))
		return;
	json_array_foreach (threads, i, thread) {
		if (all || cw_json_int(thread, "tid", -1) == shown)
			put_native_thread(t, evidence, thread, all);
		else
			hidden++;
	}
	if (hidden)
		fprintf(t->out, "    %zu more thread%s (--all-frames)\n", hidden,
			hidden == 1 ? "" : "s");
}

static void put_proc(const struct cw_text *t, const json_t *evidence)
{
	const json_t *proc = json_object_get(evidence, "proc");
	const char *command = cw_json_str(proc, "command", "");
	char kernel[512];

	if (!part_is_there(t, proc, "process facts") || !*command)
		return;
	fputs("    command: ", t->out);
	cw_text_wrap(t, 13, 13, command);
	if (*cw_evidence_kernel(evidence, kernel, sizeof(kernel))) {
		fputs("    main thread: ", t->out);
		cw_text_wrap(t, 17, 13, kernel);
	}
}

/* Prints the source of a crash's stacks. Returns false if there are none. */
static bool put_crash(const struct cw_text *t, const json_t *evidence, const char *signal)
{
	if (*signal) {
		fputs("    from its core file: ", t->out);
		cw_text_put(t, CW_TEXT_RED, signal);
		fprintf(t->out, " in thread %" JSON_INTEGER_FORMAT "\n",
			cw_frame_shown_tid(evidence));
		return true;
	}
	fputs("    no stacks: it had ended; ", t->out);
	cw_text_wrap(t, 29, 4, cw_json_str(json_object_get(evidence, "core"), "reason", "?"));
	return false;
}

void cw_render_evidence(const struct cw_text *t, const json_t *evidence, bool all_frames)
{
	char buf[32];
	const char *signal = cw_frame_crash(evidence, buf, sizeof(buf));

	if (signal && !put_crash(t, evidence, signal))
		return;
	if (!signal)
		put_proc(t, evidence);
	put_python(t, evidence, all_frames);
	put_native(t, evidence, all_frames);
}
