/* SPDX-License-Identifier: Apache-2.0 */
#include "python/reader/python_runtime.h"

#include <stdbool.h>
#include <string.h>

#include "python/reader/loaded_symbols.h"

/* _Py_DebugOffsets begins with these bytes. The version and a flag follow. */
static const char cookie[8] = { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' };
/*
 * Limit of an offset in a frame, a thread or a code object, which are small. The state of an
 * interpreter is larger and has no such limit.
 */
#define MAX_OBJECT_OFFSET 256u

const char *cw_python_result_text(enum cw_python_result result)
{
	switch (result) {
	case CW_PYTHON_READ:
		return "";
	case CW_PYTHON_NONE:
		return "no interpreter in the process";
	case CW_PYTHON_UNKNOWN:
		return "the interpreter is not CPython 3.8 to 3.14";
	case CW_PYTHON_NO_LOCK:
		return "an interpreter without an interpreter lock (free-threaded) is not read";
	case CW_PYTHON_IDLE:
		return "the interpreter has not started, or has ended";
	case CW_PYTHON_ODD:
		return "the interpreter's memory is not as its version says";
	case CW_PYTHON_UNSTEADY:
		return "the list of threads changed while read";
	case CW_PYTHON_EXHAUSTED:
		return "the interpreter's memory leads nowhere: gave up reading";
	}
	return "unknown";
}

/* ---- version ---- */

static unsigned minor_of_functions(const struct cw_python_memory *memory,
				   const struct cw_loaded_symbols *symbols)
{
	static const struct {
		const char *function; /* a function that this version introduced */
		unsigned minor;
	} since[] = {
		{ "PyIter_Send", 10 },
		{ "PyObject_CallNoArgs", 9 },
		{ "PyCode_NewWithPosOnlyArgs", 8 },
	};

	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++)
		if (cw_loaded_symbols_find(memory, symbols, since[i].function))
			return since[i].minor;
	return 0;
}

/* Returns the minor version; 0 if it is not known or not one of Python 3. */
static unsigned minor_of(const struct cw_python_memory *memory,
			 const struct cw_loaded_symbols *symbols)
{
	uint64_t at = cw_loaded_symbols_find(memory, symbols, "Py_Version"), version;

	if (!at)
		return minor_of_functions(memory, symbols);
	if (!cw_python_read(memory, at, &version, sizeof(version)) || version >> 24 != 3)
		return 0;
	return version >> 16 & 0xff;
}

/* ---- offsets from the interpreter itself ---- */

/*
 * A row: index of the offset in _Py_DebugOffsets, in words; member of our layout; whether
 * MAX_OBJECT_OFFSET limits it.
 */
static const struct offset_row {
	uint8_t of_13, of_14;
	uint16_t member;
	bool is_of_object;
} offset_rows[] = {
#define ROW(of_13, of_14, member, is_of_object)                                                    \
	{                                                                                          \
		of_13, of_14, offsetof(struct cw_python_layout, member), is_of_object              \
	}
	ROW(5, 5, runtime_interpreters, false),
	ROW(8, 8, interpreter_next, false),
	ROW(9, 9, interpreter_threads, false),
	ROW(14, 15, interpreter_lock, false),
	ROW(20, 23, thread_previous, true),
	ROW(21, 24, thread_next, true),
	ROW(22, 25, thread_interpreter, true),
	ROW(23, 26, thread_frame, true),
	ROW(24, 27, thread_id, true),
	ROW(25, 28, thread_native_id, true),
	ROW(29, 32, previous, true),
	ROW(30, 33, code, true),
	ROW(31, 34, instr, true),
	ROW(33, 36, owner, true),
	ROW(35, 40, file, true),
	ROW(36, 41, name, true),
	ROW(37, 42, qualified_name, true),
	ROW(38, 43, line_table, true),
	ROW(39, 44, first_line, true),
	ROW(43, 48, instructions, true),
#undef ROW
};
#define OFFSET_WORDS 50u

static uint16_t larger(uint16_t a, uint16_t b)
{
	return a > b ? a : b;
}

/*
 * Replaces the layout's offsets by the interpreter's own. Returns false if an offset is impossible.
 */
static bool take_offsets(const uint64_t words[OFFSET_WORDS], unsigned minor,
			 struct cw_python_layout *l)
{
	for (size_t i = 0; i < sizeof(offset_rows) / sizeof(offset_rows[0]); i++) {
		const struct offset_row *row = &offset_rows[i];
		uint64_t value = words[minor == 13 ? row->of_13 : row->of_14];

		if (value > (row->is_of_object ? MAX_OBJECT_OFFSET : UINT16_MAX))
			return false;
		memcpy((char *)l + row->member, &(uint16_t){ (uint16_t)value }, sizeof(uint16_t));
	}
	l->frame_bytes = larger(larger(l->code, l->previous), larger(l->instr, l->owner)) +
			 (uint16_t)sizeof(uint64_t);
	return true;
}

static enum cw_python_result read_offsets(const struct cw_python_memory *memory,
					  struct cw_python_runtime *r)
{
	uint64_t words[OFFSET_WORDS];

	if (!cw_python_read(memory, r->address, words, sizeof(words)) ||
	    memcmp(words, cookie, sizeof(cookie)) != 0 || words[1] >> 24 != 3 ||
	    (words[1] >> 16 & 0xff) != r->minor)
		return CW_PYTHON_ODD;
	if (words[2])
		return CW_PYTHON_NO_LOCK;
	return take_offsets(words, r->minor, &r->layout) ? CW_PYTHON_READ : CW_PYTHON_ODD;
}

/* ---- search ---- */

static enum cw_python_result look_at(const struct cw_python_memory *memory,
				     const struct cw_loaded_symbols *symbols,
				     struct cw_python_runtime *r)
{
	const struct cw_python_layout *layout;

	r->minor = minor_of(memory, symbols);
	r->code_type = cw_loaded_symbols_find(memory, symbols, "PyCode_Type");
	layout = cw_python_layout_of(r->minor);
	if (!layout)
		return CW_PYTHON_UNKNOWN;
	if (!r->code_type)
		return CW_PYTHON_ODD;
	r->layout = *layout;
	return r->minor >= 13 ? read_offsets(memory, r) : CW_PYTHON_READ;
}

enum cw_python_result cw_python_runtime_find(const struct cw_python_memory *memory,
					     const uint64_t *bases, size_t n,
					     struct cw_python_runtime *ret)
{
	enum cw_python_result result;

	for (size_t i = 0; i < n; i++) {
		struct cw_python_runtime r = { 0 };
		struct cw_loaded_symbols symbols;

		if (!cw_loaded_symbols_open(memory, bases[i], &symbols))
			continue;
		r.address = cw_loaded_symbols_find(memory, &symbols, "_PyRuntime");
		if (!r.address)
			continue;
		result = look_at(memory, &symbols, &r);
		if (result == CW_PYTHON_READ)
			*ret = r;
		return result;
	}
	return CW_PYTHON_NONE;
}
