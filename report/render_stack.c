/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People look for *their* line: Python frames come first, innermost first, and in native stacks the
 * dozens of frames that only say "here runs an interpreter" or "here a thread began" are folded
 * into one line. The innermost native frame is never folded: it is what the thread waits in.
 */
#include "report/render_stack.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "report/json_util.h"

/* Enough to leave a framework's innards; --all-frames shows the rest. */
#define MAX_PYTHON_FRAMES 10
#define MAX_NATIVE_FRAMES 12
#define INDENT 6
#define NAME_COLUMNS 36
#define MAX_SYMBOL 200
#define MAX_PATH_COLUMNS 40
/* Callers named in the one-line summary of a stack. */
#define MAX_CALLERS 3

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_interpreter_frame(const json_t *frame)
{
	const char *module = base_name(cw_json_str(frame, "module", ""));

	return starts_with(module, "python3") || starts_with(module, "libpython");
}

static bool is_startup_frame(const json_t *frame)
{
	static const char *const names[] = {
		"_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone",
		"clone3"
	};
	const char *symbol = cw_json_str(frame, "symbol", "");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(symbol, names[i]) == 0 || starts_with(symbol, "__libc_start_"))
			return true;
	return false;
}

static bool is_library_python(const json_t *frame)
{
	const char *file = cw_json_str(frame, "file", "");

	return strstr(file, "/lib/python3") || starts_with(file, "<frozen ");
}

/* A long path's last two components: enough to know the file by. */
static const char *short_path(const char *path)
{
	const char *from = base_name(path);

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

static void put_python_frames(const struct cw_text *t, const json_t *frames, bool all)
{
	bool own_seen = false;
	const json_t *frame;
	size_t i;

	json_array_foreach (frames, i, frame) {
		const char *function = cw_json_str(frame, "function", "?");
		bool own = !own_seen && !is_library_python(frame);

		if (i >= MAX_PYTHON_FRAMES && !all) {
			fprintf(t->out, "%*s… %zu outer frames\n", INDENT, "",
				json_array_size(frames) - i);
			return;
		}
		fprintf(t->out, "%*s%s ", INDENT - 2, "", own ? ">" : " ");
		cw_text_put(t, own ? CW_TEXT_BOLD : CW_TEXT_PLAIN, function);
		pad_after(t, function);
		put_location(t, frame, all);
		fputc('\n', t->out);
		own_seen |= own;
	}
}

static void put_native_frame(const struct cw_text *t, const json_t *frame, bool all)
{
	const char *symbol = cw_json_str(frame, "symbol", "");
	json_int_t offset = cw_json_int(frame, "offset", 0);
	int len = (int)strcspn(symbol, "@"); /* without its version, "@@GLIBC_2.3.2" */
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
	cw_text_put(t, CW_TEXT_PLAIN, base_name(cw_json_str(frame, "module", "")));
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
		if (!all && i > 0 && is_startup_frame(frame)) {
			startup++;
			continue;
		}
		if (!all && i > 0 && is_interpreter_frame(frame)) {
			interpreter++;
			continue;
		}
		put_folded(t, interpreter, startup);
		interpreter = startup = 0;
		if (!all && shown == MAX_NATIVE_FRAMES) {
			fprintf(t->out, "%*s… %zu more frames\n", INDENT, "",
				json_array_size(frames) - i);
			return;
		}
		put_native_frame(t, frame, all);
		shown++;
	}
	put_folded(t, interpreter, startup);
}

/* The "proc" part's facts about the thread, or NULL. */
static const json_t *proc_thread(const json_t *evidence, json_int_t tid)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "proc"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == tid)
			return thread;
	return NULL;
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

static void put_native_thread(const struct cw_text *t, const json_t *evidence, const json_t *thread,
			      bool all)
{
	json_int_t tid = cw_json_int(thread, "tid", 0);

	fprintf(t->out, "    native, thread %" JSON_INTEGER_FORMAT " ", tid);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(thread, "name", ""));
	put_kernel_side(t, proc_thread(evidence, tid));
	fputs(":\n", t->out);
	put_native_frames(t, json_object_get(thread, "frames"), all);
}

/* Says why a part is not there; true when it is. */
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

static void put_python(const struct cw_text *t, const json_t *evidence, bool all)
{
	const json_t *python = json_object_get(evidence, "python");
	const json_t *threads = json_object_get(python, "threads"), *thread;
	size_t i, n = json_array_size(threads);

	/* A program without an interpreter is nothing to report. */
	if (strcmp(cw_json_str(python, "status", ""), "absent") == 0)
		return;
	if (!part_is_there(t, python, "Python"))
		return;
	json_array_foreach (threads, i, thread) {
		if (!all && n > 1 && !json_is_true(json_object_get(thread, "current")))
			continue;
		fprintf(t->out, "    Python%s, innermost first:\n",
			n > 1 && json_is_true(json_object_get(thread, "current"))
				? ", current thread"
				: "");
		put_python_frames(t, json_object_get(thread, "frames"), all);
	}
}

static void put_native(const struct cw_text *t, const json_t *evidence, bool all)
{
	const json_t *native = json_object_get(evidence, "native");
	const json_t *threads = json_object_get(native, "threads"), *thread;
	json_int_t pid = cw_json_int(evidence, "pid", 0);
	size_t i, hidden = 0;

	if (!part_is_there(t, native, "native stacks"))
		return;
	json_array_foreach (threads, i, thread) {
		if (all || cw_json_int(thread, "tid", -1) == pid)
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

	if (!part_is_there(t, proc, "process facts") || !*command)
		return;
	fputs("    command: ", t->out);
	cw_text_wrap(t, 13, 13, command);
}

void cw_render_evidence(const struct cw_text *t, const json_t *evidence, bool all_frames)
{
	put_proc(t, evidence);
	put_python(t, evidence, all_frames);
	put_native(t, evidence, all_frames);
}

/* The current thread's frames, else those of the first thread. */
static const json_t *main_python_frames(const json_t *evidence)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "python"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (json_is_true(json_object_get(thread, "current")))
			return json_object_get(thread, "frames");
	return json_object_get(json_array_get(threads, 0), "frames");
}

/* "function ← caller ← caller (file:line)"; false when there are no Python frames. */
static bool describe_python(const json_t *evidence, char *buf, size_t len)
{
	const json_t *frames = main_python_frames(evidence), *own = NULL, *frame;
	size_t i, used = 0, named = 0;

	json_array_foreach (frames, i, frame) {
		int n;

		if (is_library_python(frame) || named == MAX_CALLERS || used >= len)
			continue;
		if (!own)
			own = frame;
		n = snprintf(buf + used, len - used, "%s%s", named++ ? " ← " : "",
			     cw_json_str(frame, "function", "?"));
		used += n > 0 ? (size_t)n : 0;
	}
	if (own && used < len)
		snprintf(buf + used, len - used, " (%s:%" JSON_INTEGER_FORMAT ")",
			 base_name(cw_json_str(own, "file", "?")), cw_json_int(own, "line", 0));
	return own != NULL;
}

static const json_t *top_native_frame(const json_t *evidence)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "native"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == cw_json_int(evidence, "pid", 0))
			return json_array_get(json_object_get(thread, "frames"), 0);
	return NULL;
}

char *cw_render_where(const json_t *evidence, char *buf, size_t len)
{
	const json_t *native = top_native_frame(evidence);
	const char *symbol = cw_json_str(native, "symbol", "");

	buf[0] = '\0';
	if (!describe_python(evidence, buf, len) && *symbol)
		snprintf(buf, len, "%.*s (%s)", (int)strcspn(symbol, "@"), symbol,
			 base_name(cw_json_str(native, "module", "")));
	return buf;
}
