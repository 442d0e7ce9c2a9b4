/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of each instruction on the stack of values, the stack of marks and the memo. A mark is
 * the height of the value stack at the time when it was set.
 *
 * We refuse to fill a container after it has become part of another one. Picklers fill containers
 * first, so this refuses no real pickle. It makes cycles impossible, so code that walks the result
 * need not check for them.
 */
#include <errno.h>
#include <string.h>

#include "import/pickle/pickle_machine.h"

/* ---- scalars ---- */

static void run_nothing(struct machine *m, const struct argument_value *arg)
{
}

static void run_proto(struct machine *m, const struct argument_value *arg)
{
	if (arg->number > 5)
		pickle_fail(m, EBADMSG, "a protocol later than 5");
}

static void run_frame(struct machine *m, const struct argument_value *arg)
{
	if (arg->number > m->size - m->at)
		pickle_fail(m, ENODATA, "the frame is cut short");
}

static void run_none(struct machine *m, const struct argument_value *arg)
{
	(void)pickle_push_new(m, CW_VALUE_NONE);
}

static void run_true(struct machine *m, const struct argument_value *arg)
{
	pickle_push_new(m, CW_VALUE_BOOL)->integer = 1;
}

static void run_false(struct machine *m, const struct argument_value *arg)
{
	pickle_push_new(m, CW_VALUE_BOOL)->integer = 0;
}

static void run_unsigned(struct machine *m, const struct argument_value *arg)
{
	pickle_push_new(m, CW_VALUE_INT)->integer = (int64_t)arg->number;
}

static void run_signed_4(struct machine *m, const struct argument_value *arg)
{
	pickle_push_new(m, CW_VALUE_INT)->integer = (int32_t)(uint32_t)arg->number;
}

static void run_double(struct machine *m, const struct argument_value *arg)
{
	struct cw_value *v = pickle_push_new(m, CW_VALUE_FLOAT);

	memcpy(&v->real, &arg->number, sizeof(v->real));
}

/*
 * Pushes a number in two's complement, little-endian, of any length. Beyond 64 bits we keep only
 * the magnitude.
 */
static void run_long(struct machine *m, const struct argument_value *arg)
{
	const uint8_t *bytes = (const uint8_t *)arg->text;
	bool negative = arg->len && (bytes[arg->len - 1] & 0x80);
	uint64_t v = negative ? UINT64_MAX : 0;
	double real = 0;

	if (arg->len <= 8) {
		for (size_t i = arg->len; i-- > 0;)
			v = v << 8 | bytes[i];
		pickle_push_new(m, CW_VALUE_INT)->integer = (int64_t)v;
		return;
	}
	if (arg->len > 64) {
		pickle_fail(m, E2BIG, "an integer of more than 512 bits");
		return;
	}
	for (size_t i = arg->len; i-- > 0;)
		real = real * 256 + (negative ? (uint8_t)~bytes[i] : bytes[i]);
	pickle_push_new(m, CW_VALUE_FLOAT)->real = negative ? -real - 1 : real;
}

static void push_text(struct machine *m, enum cw_value_type type, const struct argument_value *arg)
{
	struct cw_value *v = pickle_push_new(m, type);

	if (arg->len > UINT32_MAX)
		pickle_fail(m, E2BIG, "more than 4 GiB of text");
	v->text = arg->text;
	v->len = (uint32_t)arg->len;
}

static void run_text(struct machine *m, const struct argument_value *arg)
{
	push_text(m, CW_VALUE_STR, arg);
}

static void run_bytes(struct machine *m, const struct argument_value *arg)
{
	push_text(m, CW_VALUE_BYTES, arg);
}

/* ---- stack ---- */

static void run_mark(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks == CW_PICKLE_MAX_MARKS)
		pickle_fail(m, E2BIG, "nested too deeply");
	else
		m->marks[m->n_marks++] = m->n_stack;
}

/* Removes the newest mark. Returns the number of values below it; 0 after an error. */
static size_t pop_mark(struct machine *m)
{
	if (m->n_marks)
		return m->marks[--m->n_marks];
	pickle_fail(m, EBADMSG, "there is no mark");
	return 0;
}

static void run_pop(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks && pickle_height(m) == 0)
		m->n_marks--;
	else if (pickle_need(m, 1))
		m->n_stack--;
}

static void run_pop_mark(struct machine *m, const struct argument_value *arg)
{
	m->n_stack = pop_mark(m);
}

static void run_dup(struct machine *m, const struct argument_value *arg)
{
	if (pickle_need(m, 1))
		pickle_push(m, m->stack[m->n_stack - 1]);
}

static void run_stop(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks)
		pickle_fail(m, EBADMSG, "a container is still open");
	m->is_done = pickle_need(m, 1);
}

/* ---- memo ---- */

static void put(struct machine *m, uint64_t place)
{
	/*
	 * Each write to the memo costs at least one byte of input, and picklers use places in
	 * order. So no pickle needs more places than it has bytes.
	 */
	if (pickle_need(m, 1) && place >= m->size)
		pickle_fail(m, E2BIG, "a memo place beyond the size of the input");
	if (m->r == 0 && place >= m->memo_room)
		pickle_grow(m, &m->memo, &m->memo_room, place + 1);
	if (m->r < 0)
		return;
	/*
	 * MEMOIZE writes to the place whose index is the number of used places, so we count the
	 * used places.
	 */
	m->n_memoized += !m->memo[place];
	m->memo[place] = m->stack[m->n_stack - 1];
}

static void run_put(struct machine *m, const struct argument_value *arg)
{
	put(m, arg->number);
}

static void run_memoize(struct machine *m, const struct argument_value *arg)
{
	put(m, m->n_memoized);
}

static void run_get(struct machine *m, const struct argument_value *arg)
{
	if (arg->number >= m->memo_room || !m->memo[arg->number])
		pickle_fail(m, EBADMSG, "nothing was put there");
	else
		pickle_push(m, m->memo[arg->number]);
}

/* ---- containers ---- */

static void run_empty_list(struct machine *m, const struct argument_value *arg)
{
	(void)pickle_push_new(m, CW_VALUE_LIST);
}

static void run_empty_tuple(struct machine *m, const struct argument_value *arg)
{
	(void)pickle_push_new(m, CW_VALUE_TUPLE);
}

static void run_empty_dict(struct machine *m, const struct argument_value *arg)
{
	(void)pickle_push_new(m, CW_VALUE_DICT);
}

/* Makes a new container from the values at stack index `from` and above. */
static void collect(struct machine *m, enum cw_value_type type, size_t from)
{
	struct cw_value *v = pickle_new(m, type);

	if (type == CW_VALUE_DICT && (m->n_stack - from) % 2)
		pickle_fail(m, EBADMSG, "a key without a value");
	pickle_take_above(m, from, v);
	pickle_push(m, v);
}

static void collect_top(struct machine *m, size_t n)
{
	if (pickle_need(m, n))
		collect(m, CW_VALUE_TUPLE, m->n_stack - n);
}

static void run_list(struct machine *m, const struct argument_value *arg)
{
	collect(m, CW_VALUE_LIST, pop_mark(m));
}

static void run_tuple(struct machine *m, const struct argument_value *arg)
{
	collect(m, CW_VALUE_TUPLE, pop_mark(m));
}

static void run_dict(struct machine *m, const struct argument_value *arg)
{
	collect(m, CW_VALUE_DICT, pop_mark(m));
}

static void run_tuple1(struct machine *m, const struct argument_value *arg)
{
	collect_top(m, 1);
}

static void run_tuple2(struct machine *m, const struct argument_value *arg)
{
	collect_top(m, 2);
}

static void run_tuple3(struct machine *m, const struct argument_value *arg)
{
	collect_top(m, 3);
}

/* Adds the values at stack index `from` and above to the container below them. */
static void fill_below(struct machine *m, size_t from, enum cw_value_type type)
{
	size_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;

	if (m->r < 0)
		return;
	if (from <= floor || from > m->n_stack || m->stack[from - 1]->type != type)
		pickle_fail(m, EBADMSG, "no container of that kind below");
	else if (type == CW_VALUE_DICT && (m->n_stack - from) % 2)
		pickle_fail(m, EBADMSG, "a key without a value");
	else
		pickle_take_above(m, from, m->stack[from - 1]);
}

static void run_append(struct machine *m, const struct argument_value *arg)
{
	if (pickle_need(m, 2))
		fill_below(m, m->n_stack - 1, CW_VALUE_LIST);
}

static void run_setitem(struct machine *m, const struct argument_value *arg)
{
	if (pickle_need(m, 3))
		fill_below(m, m->n_stack - 2, CW_VALUE_DICT);
}

static void run_appends(struct machine *m, const struct argument_value *arg)
{
	fill_below(m, pop_mark(m), CW_VALUE_LIST);
}

static void run_setitems(struct machine *m, const struct argument_value *arg)
{
	fill_below(m, pop_mark(m), CW_VALUE_DICT);
}

/* ---- refused instructions ---- */

static void run_call(struct machine *m, const struct argument_value *arg)
{
	pickle_fail(m, EPERM, "would import or call something: refused");
}

static void run_not_plain(struct machine *m, const struct argument_value *arg)
{
	pickle_fail(m, EPERM, "is not plain data of protocols 2 to 5: refused");
}

/* ---- the table of instructions ---- */

const struct opcode pickle_opcodes[256] = {
	['('] = { "MARK", ARG_NONE, run_mark },
	['.'] = { "STOP", ARG_NONE, run_stop },
	['0'] = { "POP", ARG_NONE, run_pop },
	['1'] = { "POP_MARK", ARG_NONE, run_pop_mark },
	['2'] = { "DUP", ARG_NONE, run_dup },
	['G'] = { "BINFLOAT", ARG_DOUBLE, run_double },
	['J'] = { "BININT", ARG_4, run_signed_4 },
	['K'] = { "BININT1", ARG_1, run_unsigned },
	['M'] = { "BININT2", ARG_2, run_unsigned },
	['N'] = { "NONE", ARG_NONE, run_none },
	['T'] = { "BINSTRING", ARG_TEXT_4, run_text },
	['U'] = { "SHORT_BINSTRING", ARG_TEXT_1, run_text },
	['X'] = { "BINUNICODE", ARG_TEXT_4, run_text },
	['B'] = { "BINBYTES", ARG_TEXT_4, run_bytes },
	['C'] = { "SHORT_BINBYTES", ARG_TEXT_1, run_bytes },
	['a'] = { "APPEND", ARG_NONE, run_append },
	['e'] = { "APPENDS", ARG_NONE, run_appends },
	['s'] = { "SETITEM", ARG_NONE, run_setitem },
	['u'] = { "SETITEMS", ARG_NONE, run_setitems },
	['d'] = { "DICT", ARG_NONE, run_dict },
	['l'] = { "LIST", ARG_NONE, run_list },
	['t'] = { "TUPLE", ARG_NONE, run_tuple },
	['}'] = { "EMPTY_DICT", ARG_NONE, run_empty_dict },
	[']'] = { "EMPTY_LIST", ARG_NONE, run_empty_list },
	[')'] = { "EMPTY_TUPLE", ARG_NONE, run_empty_tuple },
	['h'] = { "BINGET", ARG_1, run_get },
	['j'] = { "LONG_BINGET", ARG_4, run_get },
	['q'] = { "BINPUT", ARG_1, run_put },
	['r'] = { "LONG_BINPUT", ARG_4, run_put },
	[0x80] = { "PROTO", ARG_1, run_proto },
	[0x85] = { "TUPLE1", ARG_NONE, run_tuple1 },
	[0x86] = { "TUPLE2", ARG_NONE, run_tuple2 },
	[0x87] = { "TUPLE3", ARG_NONE, run_tuple3 },
	[0x88] = { "NEWTRUE", ARG_NONE, run_true },
	[0x89] = { "NEWFALSE", ARG_NONE, run_false },
	[0x8a] = { "LONG1", ARG_TEXT_1, run_long },
	[0x8b] = { "LONG4", ARG_TEXT_4, run_long },
	[0x8c] = { "SHORT_BINUNICODE", ARG_TEXT_1, run_text },
	[0x8d] = { "BINUNICODE8", ARG_TEXT_8, run_text },
	[0x8e] = { "BINBYTES8", ARG_TEXT_8, run_bytes },
	[0x94] = { "MEMOIZE", ARG_NONE, run_memoize },
	[0x95] = { "FRAME", ARG_8, run_frame },
	[0x96] = { "BYTEARRAY8", ARG_TEXT_8, run_bytes },
	[0x98] = { "READONLY_BUFFER", ARG_NONE, run_nothing },

	['c'] = { "GLOBAL", ARG_NONE, run_call },
	['R'] = { "REDUCE", ARG_NONE, run_call },
	['b'] = { "BUILD", ARG_NONE, run_call },
	['i'] = { "INST", ARG_NONE, run_call },
	['o'] = { "OBJ", ARG_NONE, run_call },
	['P'] = { "PERSID", ARG_NONE, run_call },
	['Q'] = { "BINPERSID", ARG_NONE, run_call },
	[0x81] = { "NEWOBJ", ARG_NONE, run_call },
	[0x82] = { "EXT1", ARG_NONE, run_call },
	[0x83] = { "EXT2", ARG_NONE, run_call },
	[0x84] = { "EXT4", ARG_NONE, run_call },
	[0x92] = { "NEWOBJ_EX", ARG_NONE, run_call },
	[0x93] = { "STACK_GLOBAL", ARG_NONE, run_call },

	['F'] = { "FLOAT", ARG_NONE, run_not_plain },
	['I'] = { "INT", ARG_NONE, run_not_plain },
	['L'] = { "LONG", ARG_NONE, run_not_plain },
	['S'] = { "STRING", ARG_NONE, run_not_plain },
	['V'] = { "UNICODE", ARG_NONE, run_not_plain },
	['g'] = { "GET", ARG_NONE, run_not_plain },
	['p'] = { "PUT", ARG_NONE, run_not_plain },
	[0x8f] = { "EMPTY_SET", ARG_NONE, run_not_plain },
	[0x90] = { "ADDITEMS", ARG_NONE, run_not_plain },
	[0x91] = { "FROZENSET", ARG_NONE, run_not_plain },
	[0x97] = { "NEXT_BUFFER", ARG_NONE, run_not_plain },
};
