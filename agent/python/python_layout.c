/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/python_layout.h"

#include <stddef.h>

/*
 * We tested these layouts with 3.11.7 and 3.12.3, 3.13.5, 3.14.8 of Debian and Ubuntu: CW_PYTHONS
 * of tests/e2e/agent/test_agent_stacks.py. A minor version does not change them after its first
 * release.
 */
static const struct cw_python_layout layouts[] = {
	[11] = { .thread_frame = 56,
		 .is_via_cframe = true,
		 .cframe_frame = 8,
		 .frame_bytes = 72,
		 .code = 32,
		 .previous = 48,
		 .instr = 56,
		 .owner = 69,
		 .first_line = 72,
		 .file = 112,
		 .name = 128,
		 .line_table = 136,
		 .instructions = 184,
		 .text_data = 48,
		 .wide_text_data = 72 },
	[12] = { .thread_frame = 56,
		 .is_via_cframe = true,
		 .cframe_frame = 0,
		 .frame_bytes = 72,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 70,
		 .first_line = 68,
		 .file = 112,
		 .name = 128,
		 .line_table = 136,
		 .instructions = 192,
		 .text_data = 40,
		 .wide_text_data = 56 },
	[13] = { .thread_frame = 72,
		 .frame_bytes = 72,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 70,
		 .first_line = 68,
		 .file = 112,
		 .name = 128,
		 .line_table = 136,
		 .instructions = 200,
		 .text_data = 40,
		 .wide_text_data = 56 },
	[14] = { .thread_frame = 72,
		 .frame_bytes = 80,
		 .code = 0,
		 .previous = 8,
		 .instr = 56,
		 .owner = 74,
		 .first_line = 68,
		 .file = 112,
		 .name = 128,
		 .line_table = 136,
		 .instructions = 208,
		 .text_data = 40,
		 .wide_text_data = 56 },
};

const struct cw_python_layout *cw_python_layout_of(unsigned minor)
{
	if (minor >= sizeof(layouts) / sizeof(layouts[0]) || !layouts[minor].frame_bytes)
		return NULL;
	return &layouts[minor];
}
