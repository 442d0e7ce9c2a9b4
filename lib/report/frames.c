/* SPDX-License-Identifier: Apache-2.0 */
#include "report/frames.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "model/death.h"
#include "report/frame_origin.h"
#include "report/json_util.h"

/* Number of kernel frames in a sentence: the wait itself, and its nearest callers. */
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

static enum frame_origin origin_of(const json_t *frame)
{
	return frame_origin(cw_json_str(frame, "file", ""));
}

bool frame_is_library_python(const json_t *frame)
{
	return origin_of(frame) != FRAME_OWN;
}

size_t frame_innermost_python(const json_t *frames)
{
	size_t found = json_array_size(frames), i;
	enum frame_origin best = FRAME_RUNTIME;
	const json_t *frame;

	json_array_foreach (frames, i, frame) {
		if (origin_of(frame) < best) {
			best = origin_of(frame);
			found = i;
		}
	}
	return found;
}

bool frame_is_folded_native(const json_t *frame)
{
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));
	/* If a thread waits in the C library, the caller says more than the frame. */
	bool is_c_library = starts_with(module, "libc.so") || starts_with(module, "libc-") ||
			    starts_with(module, "libpthread") || starts_with(module, "ld-linux") ||
			    starts_with(module, "[vdso]");

	return !*cw_json_str(frame, "symbol", "") || is_c_library || frame_is_startup(frame) ||
	       frame_is_interpreter(frame);
}

/* True for a frame in NCCL, in the driver or its runtime, or in our wrappers of them. */
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

json_int_t cw_frame_shown_tid(const json_t *evidence)
{
	json_int_t tid = cw_json_int(json_object_get(evidence, "core"), "tid", 0);

	return tid > 0 ? tid : cw_json_int(evidence, "pid", 0);
}

const char *cw_frame_crash(const json_t *evidence, char *buf, size_t len)
{
	const json_t *core = json_object_get(evidence, "core");
	json_int_t number = cw_json_int(core, "signal", 0);
	const char *name = number > 0 && number < 65 ? cw_signal_name((int)number) : NULL;

	if (!core)
		return NULL;
	if (cw_json_int(core, "tid", 0) <= 0)
		*buf = '\0';
	else if (name)
		(void)snprintf(buf, len, "SIG%s", name);
	else
		(void)snprintf(buf, len, "signal %" JSON_INTEGER_FORMAT, number);
	return buf;
}

const json_t *cw_frame_python_thread(const json_t *evidence)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "python"), "threads");
	bool is_crash = cw_json_int(json_object_get(evidence, "core"), "tid", 0) > 0;
	size_t i, n = json_array_size(threads);
	const json_t *thread;

	json_array_foreach (threads, i, thread)
		if (is_crash && cw_json_int(thread, "tid", -1) == cw_frame_shown_tid(evidence))
			return thread;
	if (is_crash)
		return NULL;
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

/* ---- the one-line position ---- */

/*
 * True for functions that the language calls itself, such as "__next__" and "<module>". Their names
 * say little about the program.
 */
static bool is_implicit(const char *name)
{
	size_t len = strlen(name);

	return *name == '<' ||
	       (len > 4 && strncmp(name, "__", 2) == 0 && strcmp(name + len - 2, "__") == 0);
}

/* Returns the most informative caller of frame i; NULL = none. */
static const json_t *python_caller(const json_t *frames, size_t i)
{
	enum frame_origin origin = origin_of(json_array_get(frames, i));
	const json_t *frame, *implicit = NULL;

	while ((frame = json_array_get(frames, ++i))) {
		const char *name = cw_json_str(frame, "function", "?");

		if (origin_of(frame) > origin)
			continue;
		if (!is_implicit(name))
			return frame;
		if (!implicit && *name != '<')
			implicit = frame;
	}
	return implicit;
}

/* True for a library of PyTorch or C10. */
static bool is_torch(const json_t *frame)
{
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));

	return starts_with(module, "libtorch") || starts_with(module, "libc10");
}

bool frame_is_library_native(const json_t *frame)
{
	return frame_is_folded_native(frame) || is_below_calls(frame) || is_torch(frame);
}

static bool is_hidden_native(const json_t *frames, size_t i)
{
	/*
	 * We show only the outermost frame of a call into NCCL or the driver, because the frames
	 * below it are not the program's.
	 */
	return frame_is_folded_native(json_array_get(frames, i)) ||
	       (is_below_calls(json_array_get(frames, i)) &&
		is_below_calls(json_array_get(frames, i + 1)));
}

static const json_t *native_caller(const json_t *frames, size_t i)
{
	const json_t *frame, *torch = NULL;

	while ((frame = json_array_get(frames, ++i))) {
		if (is_hidden_native(frames, i))
			continue;
		if (!is_torch(frame))
			return frame;
		if (!torch)
			torch = frame;
	}
	return torch;
}

/*
 * Appends "read_sample (train_loop.py:88)". If the sentence has already named the file
 * (file_before), appends only the line number.
 */
static void append_frame(char *buf, size_t len, const json_t *frame, const char *name_key,
			 const char *file_before)
{
	const char *name = cw_json_str(frame, name_key, "?"),
		   *file = cw_json_str(frame, "file", "");

	/* A symbol's name may include its version: "write@@GLIBC_2.2.5". */
	cw_text_append(buf, len, "%.*s", (int)strcspn(name, "@"), name);
	if (*file)
		cw_text_append(buf, len, " (%s:%" JSON_INTEGER_FORMAT ")",
			       strcmp(file, file_before) == 0 ? "" : cw_text_base_name(file),
			       cw_json_int(frame, "line", 0));
}

static void describe(char *buf, size_t len, const json_t *frame, const json_t *caller,
		     const char *name_key)
{
	append_frame(buf, len, frame, name_key, "");
	if (!caller)
		return;
	cw_text_append(buf, len, ", called by ");
	append_frame(buf, len, caller, name_key, cw_json_str(frame, "file", ""));
}

static char *position(const json_t *evidence, bool has_caller, char *buf, size_t len)
{
	const json_t *frames = json_object_get(cw_frame_python_thread(evidence), "frames");
	const json_t *native = json_object_get(evidence, "native"), *thread;
	size_t i = frame_innermost_python(frames);

	buf[0] = '\0';
	if (i < json_array_size(frames)) {
		describe(buf, len, json_array_get(frames, i),
			 has_caller ? python_caller(frames, i) : NULL, "function");
		return buf;
	}
	frames = NULL; /* becomes the frames of the main thread */
	json_array_foreach (json_object_get(native, "threads"), i, thread)
		if (!frames && cw_json_int(thread, "tid", -1) == cw_frame_shown_tid(evidence))
			frames = json_object_get(thread, "frames");
	for (i = 0; i < json_array_size(frames) && is_hidden_native(frames, i);)
		i++;
	if (i < json_array_size(frames))
		describe(buf, len, json_array_get(frames, i),
			 has_caller ? native_caller(frames, i) : NULL, "symbol");
	return buf;
}

const json_t *cw_frame_crash_frames(const json_t *evidence, bool *ret_is_python)
{
	const json_t *frames = json_object_get(cw_frame_python_thread(evidence), "frames");
	const json_t *threads = json_object_get(json_object_get(evidence, "native"), "threads");
	const json_t *thread;
	size_t i;

	if (cw_json_int(json_object_get(evidence, "core"), "tid", 0) <= 0)
		return NULL;
	*ret_is_python = json_array_size(frames) > 0;
	if (*ret_is_python)
		return frames;
	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == cw_frame_shown_tid(evidence))
			return json_object_get(thread, "frames");
	return NULL;
}

char *cw_frame_text(const json_t *frame, bool is_python, char *buf, size_t len)
{
	const char *module = cw_text_base_name(cw_json_str(frame, "module", ""));

	*buf = '\0';
	append_frame(buf, len, frame, is_python ? "function" : "symbol", "");
	if (!is_python && *module && !*cw_json_str(frame, "file", ""))
		cw_text_append(buf, len, " (%s)", module);
	return buf;
}

char *cw_evidence_position(const json_t *evidence, char *buf, size_t len)
{
	return position(evidence, true, buf, len);
}

char *frame_place(const json_t *evidence, char *buf, size_t len)
{
	return position(evidence, false, buf, len);
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

/*
 * Appends the kernel stack, "folio_wait_bit ← ext4_sync_file". Without a stack, appends the
 * function that the thread waits in.
 */
static void append_place(char *buf, size_t len, const json_t *thread)
{
	const json_t *stack = json_object_get(thread, "kernel_stack"), *name;
	const char *wchan = cw_json_str(thread, "wchan", "");
	bool is_stuck = strcmp(cw_json_str(thread, "state", ""), "D") == 0;
	size_t i;

	/*
	 * The function in wchan is usually part of the thread's own stack. We print it only for a
	 * stuck thread that has no stack.
	 */
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
