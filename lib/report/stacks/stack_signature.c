/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_signature.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "model/signature.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"
#include "report/stacks/stack_tree.h"

static uint64_t add_text(uint64_t h, const char *text, size_t len)
{
	uint64_t word;

	while (len > 0) {
		size_t n = len < sizeof(word) ? len : sizeof(word);

		word = 0;
		memcpy(&word, text, n);
		h = cw_hash_step(h, word);
		text += n;
		len -= n;
	}
	return cw_hash_step(h, UINT64_MAX); /* ends the text */
}

/* ---- frames ---- */

static bool is_own(const json_t *frame, bool is_python)
{
	return !(is_python ? frame_is_library_python(frame) : frame_is_library_native(frame));
}

/* A symbol's name may include its version: "write@@GLIBC_2.2.5". */
static uint64_t add_function(uint64_t h, const json_t *frame, bool is_python)
{
	const char *name = cw_json_str(frame, is_python ? "function" : "symbol", "");
	const char *file = cw_text_base_name(cw_json_str(frame, is_python ? "file" : "module", ""));

	h = add_text(h, name, strcspn(name, "@"));
	return add_text(h, file, strlen(file));
}

/*
 * Returns the index of the first library frame that own code calls; n = none. last_own: index of
 * the innermost own frame; n = none.
 */
static size_t find_entry(const json_t *frames, size_t n, size_t last_own, bool is_python)
{
	size_t i = last_own;

	if (last_own < n)
		return last_own > 0 ? last_own - 1 : n;
	while (i-- > 0) {
		const json_t *frame = json_array_get(frames, i);

		if (is_python || !(frame_is_startup(frame) || frame_is_interpreter(frame)))
			return i;
	}
	return n;
}

static void read_frames(const json_t *frames, bool is_python, struct cw_stack_signature *ret)
{
	size_t n = json_array_size(frames), last_own, entry;

	if (n > CW_STACK_TREE_MAX_FRAMES)
		n = CW_STACK_TREE_MAX_FRAMES;
	last_own = n;
	ret->functions = ret->lines = CW_HASH_INIT;
	for (size_t i = n; i-- > 0;) {
		const json_t *frame = json_array_get(frames, i);

		if (!is_own(frame, is_python))
			continue;
		last_own = i;
		ret->functions = add_function(ret->functions, frame, is_python);
		ret->lines = cw_hash_step(add_function(ret->lines, frame, is_python),
					  (uint64_t)cw_json_int(frame, "line", 0));
	}
	entry = find_entry(frames, n, last_own, is_python);
	if (entry < n) {
		const json_t *frame = json_array_get(frames, entry);

		ret->functions = add_function(ret->functions, frame, is_python);
		ret->lines = add_function(ret->lines, frame, is_python);
	}
}

/* ---- threads ---- */

static uint64_t role_of(const char *name, bool is_python)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, is_python);

	while (*name) {
		size_t n = strcspn(name, "0123456789");

		h = add_text(h, name, n);
		name += n;
		name += strspn(name, "0123456789");
	}
	return h;
}

/* Writes the place of a thread other than the main one: "flush (log.py:12)". */
static void write_place(const json_t *frames, bool is_python, char *ret, size_t size)
{
	size_t n = json_array_size(frames), i = is_python ? frame_innermost_python(frames) : 0;
	const json_t *frame;
	const char *file;

	while (!is_python && i + 1 < n && frame_is_library_native(json_array_get(frames, i)))
		i++;
	frame = json_array_get(frames, i < n ? i : 0);
	file = cw_json_str(frame, is_python ? "file" : "module", "");
	(void)snprintf(ret, size, "%s (%s)",
		       cw_json_str(frame, is_python ? "function" : "symbol", "?"),
		       cw_text_base_name(file));
}

static bool has_frames(const json_t *thread)
{
	return json_array_size(json_object_get(thread, "frames")) > 0;
}

static const json_t *find_thread(const json_t *threads, json_int_t tid)
{
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == tid)
			return thread;
	return NULL;
}

/* Returns the main thread of the Python part. If its number is not known, takes the last thread. */
static const json_t *python_main(const json_t *evidence, const json_t *threads)
{
	const json_t *thread = find_thread(threads, cw_json_int(evidence, "pid", 0));
	size_t n = json_array_size(threads);

	return thread || n == 0 ? thread : json_array_get(threads, n - 1);
}

static bool read_main(const json_t *evidence, const json_t *python, const json_t *native,
		      struct cw_stack_signature *ret)
{
	const json_t *thread = python_main(evidence, python);
	bool is_python = has_frames(thread);

	if (!is_python)
		thread = find_thread(native, cw_json_int(evidence, "pid", 0));
	if (!has_frames(thread))
		return false;
	*ret = (struct cw_stack_signature){ .is_main = true };
	ret->role = cw_hash_step(CW_HASH_INIT, is_python);
	(void)snprintf(ret->thread, sizeof(ret->thread), CW_STACK_MAIN);
	(void)cw_evidence_position(evidence, ret->place, sizeof(ret->place));
	read_frames(json_object_get(thread, "frames"), is_python, ret);
	return true;
}

static size_t read_others(const json_t *evidence, const json_t *threads, bool is_python,
			  const json_t *python, struct cw_stack_signature *ret, size_t n)
{
	json_int_t pid = cw_json_int(evidence, "pid", 0);
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread) {
		const json_t *frames = json_object_get(thread, "frames");
		const char *name = cw_json_str(thread, "name", "");
		json_int_t tid = cw_json_int(thread, "tid", -1);
		struct cw_stack_signature *s = &ret[n];

		if (n == CW_STACK_SIGNATURES_MAX)
			break;
		if (!has_frames(thread) || tid < 0 || tid == pid ||
		    (!is_python && has_frames(find_thread(python, tid))))
			continue;
		*s = (struct cw_stack_signature){ .role = role_of(name, is_python) };
		(void)snprintf(s->thread, sizeof(s->thread), "%s", name);
		write_place(frames, is_python, s->place, sizeof(s->place));
		read_frames(frames, is_python, s);
		n++;
	}
	return n;
}

size_t cw_stack_signatures_read(const json_t *evidence, struct cw_stack_signature *ret)
{
	const json_t *python = json_object_get(json_object_get(evidence, "python"), "threads");
	const json_t *native = json_object_get(json_object_get(evidence, "native"), "threads");
	size_t n = 1;

	if (!read_main(evidence, python, native, ret))
		return 0;
	n = read_others(evidence, python, true, python, ret, n);
	return read_others(evidence, native, false, python, ret, n);
}
