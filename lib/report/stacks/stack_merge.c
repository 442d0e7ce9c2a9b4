/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_merge.h"

#include <stdbool.h>
#include <string.h>

#include "report/frames.h"
#include "report/json_util.h"

/* The interpreter's loop. The compiler may append a suffix, such as ".cold". */
#define LOOP "_PyEval_EvalFrameDefault"

static bool is_loop(const json_t *frame)
{
	return strncmp(cw_json_str(frame, "symbol", ""), LOOP, sizeof(LOOP) - 1) == 0;
}

static bool is_entry(const json_t *frame)
{
	return json_is_true(json_object_get(frame, "entry"));
}

static bool is_same_moment(const json_t *python, const json_t *native)
{
	json_int_t run_ns = cw_json_int(python, "run_ns", 0);

	return run_ns > 0 && run_ns == cw_json_int(native, "run_ns", 0);
}

/* True if there is one frame of the loop for each entry, and the outermost frame is an entry. */
static bool is_fit(const json_t *python, const json_t *native)
{
	size_t n = json_array_size(python), n_entries = 0, n_loops = 0, i;
	const json_t *frame;

	json_array_foreach (python, i, frame)
		n_entries += is_entry(frame);
	json_array_foreach (native, i, frame)
		n_loops += is_loop(frame);
	return n > 0 && n_loops == n_entries && is_entry(json_array_get(python, n - 1));
}

json_t *cw_stack_merge(const json_t *python, const json_t *native)
{
	const json_t *inner = json_object_get(python, "frames");
	const json_t *frames = json_object_get(native, "frames");
	bool is_inside = true; /* no Python frame has been merged yet */
	json_t *merged, *frame;
	size_t next = 0, i;
	int bad = 0;

	if (!is_same_moment(python, native) || !is_fit(inner, frames))
		return NULL;
	merged = json_array();
	json_array_foreach (frames, i, frame) {
		if (is_loop(frame)) {
			is_inside = false;
			do {
				bad |= json_array_append(merged, json_array_get(inner, next));
			} while (!is_entry(json_array_get(inner, next++)));
		} else if (is_inside || !frame_is_interpreter(frame)) {
			bad |= json_array_append(merged, frame);
		}
	}
	return cw_json_finish(merged, bad);
}
