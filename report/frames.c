/* SPDX-License-Identifier: Apache-2.0 */
#include "report/frames.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "report/json_util.h"

/* Callers named in the one-line summary of a stack. */
#define MAX_CALLERS 3
/* Of a kernel stack: the wait itself, and on whose behalf. */
#define MAX_KERNEL_CALLERS 5

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool frame_is_interpreter(const json_t *frame)
{
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));

	return starts_with(module, "python3") || starts_with(module, "libpython");
}

bool frame_is_startup(const json_t *frame)
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

bool frame_is_library_file(const char *file)
{
	return strstr(file, "/lib/python3") || strstr(file, "/site-packages/") ||
	       strstr(file, "/dist-packages/") || starts_with(file, "<frozen ") ||
	       strstr(file, "/torch/distributed/"); /* of a tree that was built in place */
}

bool frame_is_library_python(const json_t *frame)
{
	return frame_is_library_file(cw_json_str(frame, "file", ""));
}

/* Where a thread waits when it waits in the C library says less than who called it. */
static bool is_c_library(const json_t *frame)
{
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));

	return starts_with(module, "libc.so") || starts_with(module, "libc-") ||
	       starts_with(module, "libpthread") || starts_with(module, "ld-linux") ||
	       starts_with(module, "[vdso]");
}

bool frame_is_folded_native(const json_t *frame)
{
	return !*cw_json_str(frame, "symbol", "") || is_c_library(frame) ||
	       frame_is_startup(frame) || frame_is_interpreter(frame);
}

/* NCCL, the driver or its runtime, or our wrappers of them. */
static bool is_below_calls(const json_t *frame)
{
	static const char *const modules[] = { "libcollwatch", "libcuda.so", "libcudart",
					       "libnccl.so" };
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));

	for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
		if (starts_with(module, modules[i]))
			return true;
	return false;
}

/* What they do in a call of the program's is theirs: of all their frames the call itself is told.
 */
static bool is_inside_call(const json_t *frames, size_t i)
{
	return is_below_calls(json_array_get(frames, i)) &&
	       is_below_calls(json_array_get(frames, i + 1));
}

const json_t *cw_frame_python_thread(const json_t *evidence)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "python"), "threads");
	size_t i, n = json_array_size(threads);
	const json_t *thread;

	json_array_foreach (threads, i, thread)
		if (json_is_true(json_object_get(thread, "current")))
			return thread;
	return n ? json_array_get(threads, n - 1) : NULL;
}

const json_t *frame_proc_thread(const json_t *evidence, json_int_t tid)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "proc"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == tid)
			return thread;
	return NULL;
}

const json_t *frame_proc_main(const json_t *evidence)
{
	return frame_proc_thread(evidence, cw_json_int(evidence, "pid", 0));
}

/* The main thread's. */
static const json_t *native_frames(const json_t *evidence)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "native"), "threads");
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == cw_json_int(evidence, "pid", 0))
			return json_object_get(thread, "frames");
	return NULL;
}

/* "callee ← caller ← caller (file:line)"; false when no frame is the program's own. */
static bool describe(const json_t *frames, const char *name_key, bool (*is_folded)(const json_t *),
		     char *buf, size_t len)
{
	const char *file = "";
	const json_t *frame;
	size_t i, used = 0, named = 0;
	json_int_t line = 0;

	json_array_foreach (frames, i, frame) {
		const char *name = cw_json_str(frame, name_key, "?");
		int n;

		if (is_folded(frame) || is_inside_call(frames, i) || named == MAX_CALLERS ||
		    used >= len)
			continue;
		if (!*file && *cw_json_str(frame, "file", "")) {
			file = cw_json_str(frame, "file", "");
			line = cw_json_int(frame, "line", 0);
		}
		/* A symbol comes with its version, "write@@GLIBC_2.2.5". */
		n = snprintf(buf + used, len - used, "%s%.*s", named++ ? " ← " : "",
			     (int)strcspn(name, "@"), name);
		used += n > 0 ? (size_t)n : 0;
	}
	if (*file && used < len)
		snprintf(buf + used, len - used, " (%s:%" JSON_INTEGER_FORMAT ")",
			 cw_text_base_name(file), line);
	return named > 0;
}

char *cw_evidence_position(const json_t *evidence, char *buf, size_t len)
{
	buf[0] = '\0';
	if (!describe(json_object_get(cw_frame_python_thread(evidence), "frames"), "function",
		      frame_is_library_python, buf, len))
		(void)describe(native_frames(evidence), "symbol", frame_is_folded_native, buf, len);
	return buf;
}

static void append_waits_for(char *buf, size_t len, const json_t *waits_for)
{
	const char *device = cw_json_str(waits_for, "device", "");
	const char *source = cw_json_str(waits_for, "source", "");
	const char *path = cw_json_str(waits_for, "path", "");

	cw_text_append(buf, len, "%swaits for ", *buf ? "; " : "");
	if (*device)
		cw_text_append(buf, len, "%s on device %s", cw_json_str(waits_for, "fs", "I/O"),
			       device);
	if (*device && *source)
		cw_text_append(buf, len, " (%s)", source);
	cw_text_append(buf, len, "%s%s", *device ? ": " : "", path);
}

/* "folio_wait_bit ← ext4_sync_file": the stack, else where it waits. */
static void append_place(char *buf, size_t len, const json_t *thread)
{
	const json_t *stack = json_object_get(thread, "kernel_stack"), *name;
	const char *wchan = cw_json_str(thread, "wchan", "");
	bool is_stuck = strcmp(cw_json_str(thread, "state", ""), "D") == 0;
	size_t i;

	/* Elsewhere wchan stands with the thread's own stack, which a stuck one does not have. */
	if (json_array_size(stack) == 0 && is_stuck && *wchan)
		cw_text_append(buf, len, "%sin the kernel in %s", *buf ? "; " : "", wchan);
	json_array_foreach (stack, i, name) {
		if (i == MAX_KERNEL_CALLERS || !json_is_string(name))
			break;
		cw_text_append(buf, len, "%s%s%s", i || !*buf ? "" : "; ",
			       i ? " ← " : "in the kernel in ", json_string_value(name));
	}
}

char *cw_evidence_kernel(const json_t *evidence, char *buf, size_t len)
{
	const json_t *thread = frame_proc_main(evidence);
	const char *syscall = cw_json_str(thread, "syscall", "");
	double off_cpu_s = json_number_value(json_object_get(thread, "off_cpu_s"));

	buf[0] = '\0';
	if (strcmp(cw_json_str(thread, "state", ""), "D") == 0)
		cw_text_append(buf, len, "sleeps uninterruptibly (state D)%s%s%s",
			       *syscall ? " in " : "", syscall, *syscall ? "()" : "");
	if (off_cpu_s >= 1)
		cw_text_append(buf, len, "%shas not run for %.0f s", *buf ? "; " : "", off_cpu_s);
	append_place(buf, len, thread);
	if (json_is_object(json_object_get(thread, "waits_for")))
		append_waits_for(buf, len, json_object_get(thread, "waits_for"));
	return buf;
}
