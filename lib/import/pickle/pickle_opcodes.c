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

static int run_nothing(struct machine *m, const struct argument_value *arg)
{
	return 0;
}

static int run_proto(struct machine *m, const struct argument_value *arg)
{
	return arg->number > 5 ? pickle_fail(m, EBADMSG, "a protocol later than 5") : 0;
}

static int run_frame(struct machine *m, const struct argument_value *arg)
{
	return arg->number > m->size - m->at ? pickle_fail(m, ENODATA, "the frame is cut short")
					     : 0;
}

static int run_none(struct machine *m, const struct argument_value *arg)
{
	return pickle_push_new(m, CW_VALUE_NONE, NULL);
}

static int push_integer(struct machine *m, enum cw_value_type type, int64_t integer)
{
	struct cw_value *v;
	int r = pickle_push_new(m, type, &v);

	if (r == 0)
		v->integer = integer;
	return r;
}

static int run_true(struct machine *m, const struct argument_value *arg)
{
	return push_integer(m, CW_VALUE_BOOL, 1);
}

static int run_false(struct machine *m, const struct argument_value *arg)
{
	return push_integer(m, CW_VALUE_BOOL, 0);
}

static int run_unsigned(struct machine *m, const struct argument_value *arg)
{
	return push_integer(m, CW_VALUE_INT, (int64_t)arg->number);
}

static int run_signed_4(struct machine *m, const struct argument_value *arg)
{
	return push_integer(m, CW_VALUE_INT, (int32_t)(uint32_t)arg->number);
}

static int run_double(struct machine *m, const struct argument_value *arg)
{
	struct cw_value *v;
	int r = pickle_push_new(m, CW_VALUE_FLOAT, &v);

	if (r == 0)
		memcpy(&v->real, &arg->number, sizeof(v->real));
	return r;
}

/*
 * Pushes a number in two's complement, little-endian, of any length. Beyond 64 bits we keep only
 * the magnitude.
 */
static int run_long(struct machine *m, const struct argument_value *arg)
{
	const uint8_t *bytes = (const uint8_t *)arg->text;
	bool negative = arg->len && (bytes[arg->len - 1] & 0x80);
	uint64_t v = negative ? UINT64_MAX : 0;
	struct cw_value *value;
	double real = 0;
	int r;

	if (arg->len <= 8) {
		for (size_t i = arg->len; i-- > 0;)
			v = v << 8 | bytes[i];
		return push_integer(m, CW_VALUE_INT, (int64_t)v);
	}
	if (arg->len > 64)
		return pickle_fail(m, E2BIG, "an integer of more than 512 bits");
	for (size_t i = arg->len; i-- > 0;)
		real = real * 256 + (negative ? (uint8_t)~bytes[i] : bytes[i]);
	r = pickle_push_new(m, CW_VALUE_FLOAT, &value);
	if (r == 0)
		value->real = negative ? -real - 1 : real;
	return r;
}

static int push_text(struct machine *m, enum cw_value_type type, const struct argument_value *arg)
{
	struct cw_value *v;
	int r;

	if (arg->len > UINT32_MAX)
		return pickle_fail(m, E2BIG, "more than 4 GiB of text");
	r = pickle_push_new(m, type, &v);
	if (r < 0)
		return r;
	v->text = arg->text;
	v->len = (uint32_t)arg->len;
	return 0;
}

static int run_text(struct machine *m, const struct argument_value *arg)
{
	return push_text(m, CW_VALUE_STR, arg);
}

static int run_bytes(struct machine *m, const struct argument_value *arg)
{
	return push_text(m, CW_VALUE_BYTES, arg);
}

/* ---- stack ---- */

static int run_mark(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks == CW_PICKLE_MAX_MARKS)
		return pickle_fail(m, E2BIG, "nested too deeply");
	m->marks[m->n_marks++] = m->n_stack;
	return 0;
}

static int pop_mark(struct machine *m, size_t *ret)
{
	if (!m->n_marks)
		return pickle_fail(m, EBADMSG, "there is no mark");
	*ret = m->marks[--m->n_marks];
	return 0;
}

static int run_pop(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks && pickle_height(m) == 0) {
		m->n_marks--;
		return 0;
	}
	if (pickle_need(m, 1) < 0)
		return -EBADMSG;
	m->n_stack--;
	return 0;
}

static int run_pop_mark(struct machine *m, const struct argument_value *arg)
{
	size_t from = 0;
	int r = pop_mark(m, &from);

	if (r == 0)
		m->n_stack = from;
	return r;
}

static int run_dup(struct machine *m, const struct argument_value *arg)
{
	int r = pickle_need(m, 1);

	return r < 0 ? r : pickle_push(m, m->stack[m->n_stack - 1]);
}

static int run_stop(struct machine *m, const struct argument_value *arg)
{
	if (m->n_marks)
		return pickle_fail(m, EBADMSG, "a container is still open");
	m->is_done = true;
	return pickle_need(m, 1);
}

/* ---- memo ---- */

static int put(struct machine *m, uint64_t place)
{
	int r = pickle_need(m, 1);

	if (r < 0)
		return r;
	/*
	 * Each write to the memo costs at least one byte of input, and picklers use places in
	 * order. So no pickle needs more places than it has bytes.
	 */
	if (place >= m->size)
		return pickle_fail(m, E2BIG, "a memo place beyond the size of the input");
	if (place >= m->memo_room) {
		r = pickle_grow(m, &m->memo, &m->memo_room, place + 1);
		if (r < 0)
			return r;
	}
	/*
	 * MEMOIZE writes to the place whose index is the number of used places, so we count the
	 * used places.
	 */
	m->n_memoized += !m->memo[place];
	m->memo[place] = m->stack[m->n_stack - 1];
	return 0;
}

static int run_put(struct machine *m, const struct argument_value *arg)
{
	return put(m, arg->number);
}

static int run_memoize(struct machine *m, const struct argument_value *arg)
{
	return put(m, m->n_memoized);
}

static int run_get(struct machine *m, const struct argument_value *arg)
{
	if (arg->number >= m->memo_room || !m->memo[arg->number])
		return pickle_fail(m, EBADMSG, "nothing was put there");
	return pickle_push(m, m->memo[arg->number]);
}

/* ---- containers ---- */

static int run_empty_list(struct machine *m, const struct argument_value *arg)
{
	return pickle_push_new(m, CW_VALUE_LIST, NULL);
}

static int run_empty_tuple(struct machine *m, const struct argument_value *arg)
{
	return pickle_push_new(m, CW_VALUE_TUPLE, NULL);
}

static int run_empty_dict(struct machine *m, const struct argument_value *arg)
{
	return pickle_push_new(m, CW_VALUE_DICT, NULL);
}

/* Makes a new container from the values at stack index `from` and above. */
static int collect(struct machine *m, enum cw_value_type type, size_t from)
{
	struct cw_value *v;
	int r;

	if (type == CW_VALUE_DICT && (m->n_stack - from) % 2)
		return pickle_fail(m, EBADMSG, "a key without a value");
	r = pickle_push_new(m, type, &v);
	if (r < 0)
		return r;
	m->n_stack--;
	r = pickle_take_above(m, from, v);
	return r < 0 ? r : pickle_push(m, v);
}

static int collect_from_mark(struct machine *m, enum cw_value_type type)
{
	size_t from = 0;
	int r = pop_mark(m, &from);

	return r < 0 ? r : collect(m, type, from);
}

static int collect_top(struct machine *m, size_t n)
{
	int r = pickle_need(m, n);

	return r < 0 ? r : collect(m, CW_VALUE_TUPLE, m->n_stack - n);
}

static int run_list(struct machine *m, const struct argument_value *arg)
{
	return collect_from_mark(m, CW_VALUE_LIST);
}

static int run_tuple(struct machine *m, const struct argument_value *arg)
{
	return collect_from_mark(m, CW_VALUE_TUPLE);
}

static int run_dict(struct machine *m, const struct argument_value *arg)
{
	return collect_from_mark(m, CW_VALUE_DICT);
}

static int run_tuple1(struct machine *m, const struct argument_value *arg)
{
	return collect_top(m, 1);
}

static int run_tuple2(struct machine *m, const struct argument_value *arg)
{
	return collect_top(m, 2);
}

static int run_tuple3(struct machine *m, const struct argument_value *arg)
{
	return collect_top(m, 3);
}

/* Adds the values at stack index `from` and above to the container below them. */
static int fill_below(struct machine *m, size_t from, enum cw_value_type type)
{
	size_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;

	if (from <= floor || from > m->n_stack || m->stack[from - 1]->type != type)
		return pickle_fail(m, EBADMSG, "no container of that kind below");
	if (type == CW_VALUE_DICT && (m->n_stack - from) % 2)
		return pickle_fail(m, EBADMSG, "a key without a value");
	return pickle_take_above(m, from, m->stack[from - 1]);
}

static int run_append(struct machine *m, const struct argument_value *arg)
{
	int r = pickle_need(m, 2);

	return r < 0 ? r : fill_below(m, m->n_stack - 1, CW_VALUE_LIST);
}

static int run_setitem(struct machine *m, const struct argument_value *arg)
{
	int r = pickle_need(m, 3);

	return r < 0 ? r : fill_below(m, m->n_stack - 2, CW_VALUE_DICT);
}

static int run_appends(struct machine *m, const struct argument_value *arg)
{
	size_t from = 0;
	int r = pop_mark(m, &from);

	return r < 0 ? r : fill_below(m, from, CW_VALUE_LIST);
}

static int run_setitems(struct machine *m, const struct argument_value *arg)
{
	size_t from = 0;
	int r = pop_mark(m, &from);

	return r < 0 ? r : fill_below(m, from, CW_VALUE_DICT);
}

/* ---- refused instructions ---- */

static int run_call(struct machine *m, const struct argument_value *arg)
{
	return pickle_fail(m, EPERM, "would import or call something: refused");
}

static int run_not_plain(struct machine *m, const struct argument_value *arg)
{
	return pickle_fail(m, EPERM, "is not plain data of protocols 2 to 5: refused");
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
