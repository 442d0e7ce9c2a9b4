/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/evidence_brief.h"

#include <string.h>

#include "report/frames.h"
#include "report/json_util.h"

/*
 * The maximum number of threads inside an NCCL call that we keep. Examples are a backward pass on
 * its own thread, and the thread of a second communicator.
 */
#define MAX_INSIDE 3u

/* True if the thread is inside an NCCL call. Such a thread has our wrapper on its stack. */
static bool is_inside_nccl(const json_t *thread)
{
	const json_t *frames = json_object_get(thread, "frames"), *frame;
	size_t i;

	json_array_foreach (frames, i, frame)
		if (strncmp(cw_json_str(frame, "module", ""), "libcollwatch", 12) == 0)
			return true;
	return false;
}

static bool has_tid(const json_t *threads, json_int_t tid)
{
	const json_t *thread;
	size_t i;

	json_array_foreach (threads, i, thread)
		if (cw_json_int(thread, "tid", -1) == tid)
			return true;
	return false;
}

static void shorten_native(json_t *native, json_int_t pid)
{
	json_t *threads = json_object_get(native, "threads");
	unsigned inside = 0;

	for (size_t i = 0; i < json_array_size(threads);) {
		const json_t *thread = json_array_get(threads, i);

		if (cw_json_int(thread, "tid", -1) == pid ||
		    (is_inside_nccl(thread) && inside++ < MAX_INSIDE))
			i++;
		else
			(void)json_array_remove(threads, i); /* i is in range */
	}
}

static void shorten_proc(json_t *proc, const json_t *native, json_int_t pid)
{
	json_t *threads = json_object_get(proc, "threads");

	for (size_t i = 0; i < json_array_size(threads);) {
		json_int_t tid = cw_json_int(json_array_get(threads, i), "tid", -1);

		if (tid == pid || has_tid(json_object_get(native, "threads"), tid))
			i++;
		else
			(void)json_array_remove(threads, i); /* i is in range */
	}
}

static void shorten_python(json_t *python, const json_t *kept)
{
	json_t *threads = json_object_get(python, "threads");

	for (size_t i = 0; i < json_array_size(threads);) {
		if (json_array_get(threads, i) == kept)
			i++;
		else
			(void)json_array_remove(threads, i); /* i is in range */
	}
}

void cw_evidence_brief(json_t *doc, bool all_python)
{
	json_int_t pid = cw_json_int(doc, "pid", 0);

	if (!all_python)
		shorten_python(json_object_get(doc, "python"), cw_frame_python_thread(doc));
	shorten_native(json_object_get(doc, "native"), pid);
	shorten_proc(json_object_get(doc, "proc"), json_object_get(doc, "native"), pid);
}
