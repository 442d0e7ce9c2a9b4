/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Python functions that call each other lie side by side, and the innermost frame comes
 * last. One read of some kilobytes therefore covers many frames, and one system call reads their
 * code objects.
 */
#include "agent/python/call_stack_python.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "common/parse.h"

/*
 * Size of one read. Frames of Python functions that call each other lie side by side, so one read
 * fetches several frames.
 */
#define VIEW_BYTES 4096u
/*
 * Generators, and C code that calls Python, break the row of adjacent frames. We follow at most
 * this many breaks.
 */
#define READS_MAX 16
/* Limit of the frames that we visit, including frames without Python code. */
#define STEPS_MAX (4 * CW_PYTHON_PLACES)

/* The layout of the running Python. NULL until the interpreter has confirmed the layout. */
static _Atomic(const struct cw_python_layout *) armed;
static atomic_bool is_asked;

static struct {
	int (*is_initialized)(void);
	const char *(*version)(void);
	int (*add_pending)(int (*fn)(void *), void *arg);
	void *(*thread_state)(void);
	/*
	 * frame() returns a borrowed reference. The other functions that return an object return a
	 * new reference. Callers hold the GIL.
	 */
	void *(*frame)(void);
	void *(*frame_code)(void *frame);
	void *(*frame_back)(void *frame);
	int (*frame_line)(void *frame);
	void *(*get_attribute)(void *obj, const char *name);
	const char *(*as_utf8)(void *text);
	void (*clear_error)(void);
	void (*dec_ref)(void *obj);
} py;

/* ---- walking ---- */

struct view {
	uint64_t end;
	size_t have;
	unsigned reads;
	/* The last `have` bytes are valid; they end just before address `end`. */
	unsigned char bytes[VIEW_BYTES];
};

/*
 * Returns the frame's bytes. Returns NULL if they are unreadable, or if we have used up READS_MAX.
 */
static const unsigned char *view_frame(struct view *v, uint64_t frame, size_t len)
{
	uint64_t end = frame + len;

	if (frame & 7 || end < frame)
		return NULL;
	if (!v->have || end > v->end || frame < v->end - v->have) {
		if (v->reads++ == READS_MAX)
			return NULL;
		v->end = end;
		v->have = cw_own_read_before(end, v->bytes, VIEW_BYTES, len);
		if (!v->have)
			return NULL;
	}
	return v->bytes + (VIEW_BYTES - (v->end - frame));
}

static uint64_t word(const unsigned char *bytes, unsigned offset)
{
	uint64_t v;

	memcpy(&v, bytes + offset, sizeof(v));
	return v;
}

static uint64_t innermost(const struct cw_python_layout *l, uint64_t thread_state)
{
	uint64_t at = 0;

	if (!cw_own_read(thread_state + l->thread_frame, &at, sizeof(at)))
		return 0;
	if (l->is_via_cframe && (!at || !cw_own_read(at + l->cframe_frame, &at, sizeof(at))))
		return 0;
	return at;
}

/*
 * Walks the chain of frames. This function is not inline, so that its large buffer is off the stack
 * before we read other objects.
 */
static __attribute__((noinline)) unsigned follow(const struct cw_python_layout *l, uint64_t frame,
						 struct cw_python_place places[CW_PYTHON_PLACES],
						 bool *ret_is_cut)
{
	struct view v = { .have = 0, .reads = 0 };
	unsigned n = 0;

	for (unsigned step = 0; frame; step++) {
		const unsigned char *f;

		*ret_is_cut = true;
		if (n == CW_PYTHON_PLACES || step == STEPS_MAX)
			return n;
		f = view_frame(&v, frame, l->frame_bytes);
		if (!f)
			return n;
		if (f[l->owner] < CW_PYTHON_OWNER_C)
			places[n++] = (struct cw_python_place){
				.code = word(f, l->code) & ~CW_PYTHON_POINTER_TAGS,
				.instr = word(f, l->instr),
			};
		frame = word(f, l->previous);
	}
	*ret_is_cut = false;
	return n;
}

/*
 * Reads the fields of each code object, which lie side by side. We read them now, because at the
 * next call the same address could belong to another function.
 */
static __attribute__((noinline)) bool read_codes(const struct cw_python_layout *l,
						 struct cw_python_place places[], unsigned n)
{
	unsigned char fields[CW_PYTHON_PLACES * CW_PYTHON_CODE_BYTES];
	uint64_t from[CW_PYTHON_PLACES];
	size_t len = l->line_table + sizeof(uint64_t) - l->first_line;

	if (n == 0 || len > CW_PYTHON_CODE_BYTES)
		return false;
	for (unsigned i = 0; i < n; i++)
		from[i] = places[i].code + l->first_line;
	if (!cw_own_read_many(from, n, fields, len))
		return false;
	for (unsigned i = 0; i < n; i++) {
		const unsigned char *f = fields + i * len;

		memcpy(&places[i].first_line, f, sizeof(places[i].first_line));
		places[i].file = word(f, l->file - l->first_line);
		places[i].name = word(f, l->qualified_name - l->first_line);
		places[i].line_table = word(f, l->line_table - l->first_line);
	}
	return true;
}

static unsigned walk(const struct cw_python_layout *l,
		     struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut)
{
	uint64_t thread_state = (uintptr_t)py.thread_state();
	unsigned n;

	*ret_is_cut = false;
	if (!thread_state)
		return 0;
	n = follow(l, innermost(l, thread_state), places, ret_is_cut);
	return read_codes(l, places, n) ? n : 0;
}

unsigned cw_python_frames(struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut)
{
	const struct cw_python_layout *l = atomic_load_explicit(&armed, memory_order_acquire);

	*ret_is_cut = false;
	return l ? walk(l, places, ret_is_cut) : 0;
}

void cw_python_frame_describe(const struct cw_python_place *at, struct cw_rec_frame *ret)
{
	const struct cw_python_layout *l = atomic_load_explicit(&armed, memory_order_acquire);

	if (l)
		cw_python_describe(l, at, ret);
}

/* ---- comparison with the interpreter's own stack ---- */

/*
 * Returns whether `text` ends with the string `read`, which has '?' for each character that is not
 * ASCII.
 */
static bool is_end_of(const char *text, const char *read)
{
	size_t n = strlen(read), i = strlen(text);

	while (n > 0 && i > 0) {
		bool is_ascii = !(text[--i] & 0x80);

		while (!is_ascii && i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80)
			i--;
		if (read[--n] != (is_ascii ? text[i] : '?'))
			return false;
	}
	return n == 0;
}

static bool is_text(void *code, const char *attribute, const char *read)
{
	void *object = py.get_attribute(code, attribute);
	const char *text = object ? py.as_utf8(object) : NULL;
	bool is_same = text && (*read || !*text) && is_end_of(text, read);

	if (!text)
		py.clear_error(); /* we cannot compare a text that is not UTF-8 */
	if (object)
		py.dec_ref(object);
	return is_same;
}

static bool is_place(const struct cw_python_layout *l, const struct cw_python_place *at,
		     void *frame)
{
	struct cw_rec_frame read = { 0 };
	void *code = py.frame_code(frame);
	int line = py.frame_line(frame);
	bool is_same;

	cw_python_describe(l, at, &read);
	is_same = (uintptr_t)code == at->code && (int)read.line == (line > 0 ? line : 0) &&
		  is_text(code, "co_filename", read.file) &&
		  is_text(code, "co_qualname", read.function);
	py.dec_ref(code);
	return is_same;
}

/*
 * Returns whether walk() finds the interpreter's own frames. Compares all frames, or as many as we
 * ever read. The caller holds the GIL, in a thread that runs Python.
 */
static bool is_right(const struct cw_python_layout *l)
{
	struct cw_python_place places[CW_PYTHON_PLACES];
	void *frame = py.frame(), *back;
	bool is_cut, is_same = true;
	unsigned n = walk(l, places, &is_cut), i;

	for (i = 0; i < n && frame && is_same; i++) {
		is_same = is_place(l, &places[i], frame);
		back = py.frame_back(frame);
		if (i)
			py.dec_ref(frame);
		frame = back;
	}
	if (i && frame)
		py.dec_ref(frame);
	return n && is_same && i == n && (is_cut || !frame);
}

/*
 * Checks the layout. The interpreter calls this function, with the GIL, between two instructions of
 * its main thread.
 */
static int on_pending(void *arg)
{
	const struct cw_python_layout *l = arg;
	int saved_errno = errno;

	if (cw_agent_is_armed() && is_right(l)) {
		cw_log("call stacks: Python frames too");
		atomic_store_explicit(&armed, l, memory_order_release);
	} else {
		cw_log("call stacks: this Python is not as its version says: native frames only");
	}
	errno = saved_errno;
	return 0;
}

static bool find_python(cw_dlsym_fn next)
{
	static const struct {
		const char *name;
		size_t member;
	} functions[] = {
		{ "Py_IsInitialized", offsetof(__typeof__(py), is_initialized) },
		{ "Py_GetVersion", offsetof(__typeof__(py), version) },
		{ "Py_AddPendingCall", offsetof(__typeof__(py), add_pending) },
		{ "PyGILState_GetThisThreadState", offsetof(__typeof__(py), thread_state) },
		{ "PyEval_GetFrame", offsetof(__typeof__(py), frame) },
		{ "PyFrame_GetCode", offsetof(__typeof__(py), frame_code) },
		{ "PyFrame_GetBack", offsetof(__typeof__(py), frame_back) },
		{ "PyFrame_GetLineNumber", offsetof(__typeof__(py), frame_line) },
		{ "PyObject_GetAttrString", offsetof(__typeof__(py), get_attribute) },
		{ "PyUnicode_AsUTF8", offsetof(__typeof__(py), as_utf8) },
		{ "PyErr_Clear", offsetof(__typeof__(py), clear_error) },
		{ "Py_DecRef", offsetof(__typeof__(py), dec_ref) },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *p = next(RTLD_DEFAULT, functions[i].name);

		if (!p)
			return false;
		memcpy((char *)&py + functions[i].member, &p, sizeof(p));
	}
	return true;
}

static const struct cw_python_layout *layout_of_running(cw_dlsym_fn next)
{
	const struct cw_python_layout *l = NULL;
	const char *version, *minor_at;
	uint64_t minor;

	if (!find_python(next)) {
		if (next(RTLD_DEFAULT, "Py_IsInitialized"))
			cw_log("call stacks: this Python is not known: native frames only");
		return NULL;
	}
	if (!py.is_initialized())
		return NULL;
	version = py.version();
	/*
	 * An interpreter without a GIL numbers its instructions differently, and per thread. We
	 * have no layout for it.
	 */
	if (strncmp(version, "3.", 2) == 0 && !next(RTLD_DEFAULT, "_Py_DecRefShared")) {
		minor_at = version + 2;
		if (cw_parse_digits(&minor_at, 10, &minor) == 0 && minor <= UINT_MAX)
			l = cw_python_layout_of((unsigned)minor);
	}
	if (l && l->has_frame_objects)
		/* Frame objects would need one read per frame, too many in the path of a call. */
		l = NULL;
	if (!l)
		cw_log("call stacks: Python %.8s is not known: native frames only", version);
	return l;
}

void cw_python_frames_arm(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	const struct cw_python_layout *l;
	int saved_errno = errno;

	if (!next || atomic_exchange(&is_asked, true))
		return;
	l = layout_of_running(next);
	if (l && py.add_pending(on_pending, (void *)(uintptr_t)l) != 0)
		cw_log("call stacks: the interpreter has no place for a question");
	(void)dlerror();
	errno = saved_errno;
}
