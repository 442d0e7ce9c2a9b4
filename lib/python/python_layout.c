/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_layout.h"

#include <stddef.h>

/*
 * The offsets are those of the public headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0
 * and 3.14.10. CPython does not change the offsets of threads, frames and code objects after the
 * first release of a minor version. tests/e2e/agent/test_agent_stacks.py and
 * tests/e2e/test_python_read.py compare the offsets with interpreters (CW_PYTHONS).
 */

/* Before 3.12 a text object has more fields than later. */
#define OLD_TEXT .text_data = 48, .wide_text_data = 72
#define NEW_TEXT .text_data = 40, .wide_text_data = 56
/* Offsets in the list of interpreters and in the list of threads. */
#define THREAD_LIST .thread_previous = 0, .thread_next = 8, .thread_interpreter = 16
/*
 * A lock holds its switch interval, the holder, the flag, a counter and the condition, in this
 * order.
 */
#define LOCK .lock_holder = 8, .lock_is_taken = 16, .lock_switches = 24, .lock_condition = 32
/* 3.8 to 3.10: a frame is an object. */
#define FRAME_OBJECTS                                                                              \
	.has_frame_objects = true, .thread_frame = 24, .previous = 24, .code = 32,                 \
	.first_line = 40, .file = 104, .name = 112, .line_table = 120, .runtime_interpreters = 32, \
	.interpreter_next = 0, .interpreter_threads = 8, .thread_id = 176, THREAD_LIST, LOCK,      \
	OLD_TEXT

static const struct cw_python_layout layouts[] = {
	[8] = { FRAME_OBJECTS, .index_bytes = 1, .instr = 104, .frame_bytes = 108,
		.lines = CW_PYTHON_LINES_LNOTAB, .runtime_lock = 1152 },
	[9] = { FRAME_OBJECTS, .index_bytes = 1, .instr = 104, .frame_bytes = 108,
		.lines = CW_PYTHON_LINES_LNOTAB, .runtime_lock = 352 },
	[10] = { FRAME_OBJECTS, .index_bytes = 2, .instr = 96, .frame_bytes = 100,
		 .lines = CW_PYTHON_LINES_DELTAS, .runtime_lock = 352 },
	[11] = { .thread_frame = 56,
		 .is_via_cframe = true,
		 .cframe_frame = 8,
		 .frame_bytes = 72,
		 .code = 32,
		 .previous = 48,
		 .instr = 56,
		 .owner = 69,
		 .is_entry = 68,
		 .lines = CW_PYTHON_LINES_LOCATIONS,
		 .first_line = 72,
		 .file = 112,
		 .name = 120,
		 .qualified_name = 128,
		 .line_table = 136,
		 .instructions = 184,
		 OLD_TEXT,
		 .runtime_interpreters = 40,
		 .interpreter_next = 0,
		 .interpreter_threads = 16,
		 .runtime_lock = 360,
		 LOCK,
		 THREAD_LIST,
		 .thread_id = 152,
		 .thread_native_id = 160 },
	[12] = { .thread_frame = 56,
		 .is_via_cframe = true,
		 .cframe_frame = 0,
		 .frame_bytes = 72,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 70,
		 .lines = CW_PYTHON_LINES_LOCATIONS,
		 .first_line = 68,
		 .file = 112,
		 .name = 120,
		 .qualified_name = 128,
		 .line_table = 136,
		 .instructions = 192,
		 NEW_TEXT,
		 .runtime_interpreters = 40,
		 .interpreter_next = 0,
		 .interpreter_threads = 72,
		 .interpreter_lock = 384,
		 LOCK,
		 THREAD_LIST,
		 .thread_id = 136,
		 .thread_native_id = 144 },
	[13] = { .thread_frame = 72,
		 .frame_bytes = 72,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 70,
		 .lines = CW_PYTHON_LINES_LOCATIONS,
		 .first_line = 68,
		 .file = 112,
		 .name = 120,
		 .qualified_name = 128,
		 .line_table = 136,
		 .instructions = 200,
		 NEW_TEXT,
		 .runtime_interpreters = 632,
		 .interpreter_next = 7264,
		 .interpreter_threads = 7344,
		 .interpreter_lock = 16,
		 LOCK,
		 THREAD_LIST,
		 .thread_id = 152,
		 .thread_native_id = 160 },
	[14] = { .thread_frame = 72,
		 .frame_bytes = 80,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 74,
		 .lines = CW_PYTHON_LINES_LOCATIONS,
		 .first_line = 68,
		 .file = 112,
		 .name = 120,
		 .qualified_name = 128,
		 .line_table = 136,
		 .instructions = 208,
		 NEW_TEXT,
		 .runtime_interpreters = 808,
		 .interpreter_next = 7272,
		 .interpreter_threads = 7344,
		 .interpreter_lock = 16,
		 LOCK,
		 THREAD_LIST,
		 .thread_id = 152,
		 .thread_native_id = 160 },
};

const struct cw_python_layout *cw_python_layout_of(unsigned minor)
{
	if (minor >= sizeof(layouts) / sizeof(layouts[0]) || !layouts[minor].frame_bytes)
		return NULL;
	return &layouts[minor];
}
