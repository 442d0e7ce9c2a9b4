/* SPDX-License-Identifier: Apache-2.0 */
#include "import/pickle/pickle.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cw_arena arena;
static const struct cw_value *value;
static struct cw_err err;

static int read_bytes(const void *data, size_t size)
{
	cw_arena_fini(&arena);
	value = NULL;
	err.text[0] = '\0';
	return cw_pickle_read(data, size, &arena, &value, &err);
}

#define READ(literal) read_bytes(literal, sizeof(literal) - 1)

static void fini(void)
{
	cw_arena_fini(&arena);
}

TestSuite(pickle, .fini = fini);

static int64_t int_of(const struct cw_value *v)
{
	int64_t i = -12345;

	cr_assert(cw_value_int(v, &i));
	return i;
}

/* pickle.dumps({"a": [1, -2, 300, 70000, True, None, 2.5], "b": ("x", b"yz")}, p) */
static void check_sample(void)
{
	const struct cw_value *a = cw_value_get(value, "a"), *b = cw_value_get(value, "b");

	cr_assert_eq(cw_value_count(a), 7);
	cr_assert_eq(int_of(a->items[0]), 1);
	cr_assert_eq(int_of(a->items[1]), -2);
	cr_assert_eq(int_of(a->items[2]), 300);
	cr_assert_eq(int_of(a->items[3]), 70000);
	cr_assert_eq(a->items[4]->type, CW_VALUE_BOOL);
	cr_assert_eq(int_of(a->items[4]), 1);
	cr_assert_eq(a->items[5]->type, CW_VALUE_NONE);
	cr_assert_eq(a->items[6]->type, CW_VALUE_FLOAT);
	cr_assert_eq(a->items[6]->real, 2.5);
	cr_assert_eq(b->type, CW_VALUE_TUPLE);
	cr_assert(cw_value_is_text(b->items[0], "x"));
	cr_assert_eq(b->items[1]->type, CW_VALUE_BYTES);
}

static const char protocol3[] =
	"\x80\x03}q\0(X\1\0\0\0aq\1]q\2(K\1J\xfe\xff\xff\xffM,\1Jp\x11\1\0\x88NG@\4\0\0\0\0\0\0e"
	"X\1\0\0\0bq\3X\1\0\0\0xq\4C\2yzq\5\x86q\6u.";

static const char protocol5[] =
	"\200\005\225\066\000\000\000\000\000\000\000\175\224\050\214\001\141\224\135\224"
	"\050\113\001\112\376\377\377\377\115\054\001\112\160\021\001\000\210\116\107\100"
	"\004\000\000\000\000\000\000\145\214\001\142\224\214\001\170\224\103\002\171\172"
	"\224\206\224\165\056";

Test(pickle, reads_protocol_3)
{
	cr_assert_eq(READ(protocol3), 0, "%s", err.text);
	check_sample();
}

Test(pickle, reads_protocol_5)
{
	cr_assert_eq(READ(protocol5), 0, "%s", err.text);
	check_sample();
}

Test(pickle, reads_integers_of_any_length)
{
	cr_assert_eq(READ("\x8a\x08\0\0\0\0\0\0\0\x80."), 0);
	cr_assert_eq(int_of(value), INT64_MIN);
	cr_assert_eq(READ("\x8a\x00."), 0);
	cr_assert_eq(int_of(value), 0);
	cr_assert_eq(READ("\x8a\x01\xff."), 0);
	cr_assert_eq(int_of(value), -1);
	cr_assert_eq(READ("\x8a\x09\0\0\0\0\0\0\0\0\1."), 0);
	cr_assert_eq(value->type, CW_VALUE_FLOAT);
	cr_assert_eq(value->real, 18446744073709551616.0);
	cr_assert_eq(READ("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xfe."), 0);
	cr_assert_eq(value->real, -18446744073709551617.0);
}

Test(pickle, shares_what_is_memoized)
{
	cr_assert_eq(READ("\x80\2]q\0X\1\0\0\0xq\1a]h\1a\x86."), 0, "%s", err.text);
	cr_assert_eq(value->items[0]->items[0], value->items[1]->items[0]);
}

Test(pickle, the_last_of_equal_keys_counts)
{
	cr_assert_eq(READ("\x80\2}(U\1aK\1U\1aK\2u."), 0, "%s", err.text);
	cr_assert_eq(int_of(cw_value_get(value, "a")), 2);
}

struct refusal {
	const char *data;
	size_t size;
	const char *text; /* in the error */
};

#define REFUSAL(literal, text)                                                                     \
	{                                                                                          \
		literal, sizeof(literal) - 1, text                                                 \
	}

Test(pickle, refuses_whatever_imports_or_calls)
{
	static const struct refusal cases[] = {
		REFUSAL("cos\nsystem\n(S'true'\ntR.", "offset 0: GLOBAL"),
		REFUSAL("\x80\2N\x81.", "offset 3: NEWOBJ"),
		REFUSAL("\x80\4\x8c\2os\x8c\6system\x93.", "offset 14: STACK_GLOBAL"),
		REFUSAL("\x80\2K\1R.", "offset 4: REDUCE"),
		REFUSAL("\x80\2}}b.", "offset 4: BUILD"),
		REFUSAL("(ios\nsystem\n.", "offset 1: INST"),
		REFUSAL("(K\1o.", "offset 3: OBJ"),
		REFUSAL("\x82\1.", "offset 0: EXT1"),
		REFUSAL("\x83\1\0.", "offset 0: EXT2"),
		REFUSAL("\x84\1\0\0\0.", "offset 0: EXT4"),
		REFUSAL("P1\n.", "offset 0: PERSID"),
		REFUSAL("K\1Q.", "offset 2: BINPERSID"),
		REFUSAL("NNN\x92.", "offset 3: NEWOBJ_EX"),
		REFUSAL("\x97.", "offset 0: NEXT_BUFFER"),
		REFUSAL("I1\n.", "offset 0: INT"),
		REFUSAL("\x8f.", "offset 0: EMPTY_SET"),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert_eq(read_bytes(cases[i].data, cases[i].size), -EPERM, "case %zu", i);
		cr_assert_not_null(strstr(err.text, cases[i].text), "case %zu: %s", i, err.text);
		cr_assert_not_null(strstr(err.text, "refused"), "%s", err.text);
		cr_assert_null(value);
	}
}

Test(pickle, says_where_it_is_inconsistent)
{
	static const struct refusal cases[] = {
		REFUSAL("\x80\6N.", "PROTO"),
		REFUSAL(".", "STOP"),
		REFUSAL("(.", "still open"),
		REFUSAL("e.", "no mark"),
		REFUSAL("(K\1e.", "no container"),
		REFUSAL("K\1(K\1e.", "no container"),
		REFUSAL("}(K\1u.", "a key without a value"),
		REFUSAL("(K\1d.", "a key without a value"),
		REFUSAL("(]K\1a(a.", "finds too little"),
		REFUSAL("K\1\x86.", "finds too little"),
		REFUSAL("h\1.", "nothing was put there"),
		REFUSAL("j\xff\xff\xff\xff.", "nothing was put there"),
		REFUSAL("0.", "finds too little"),
		REFUSAL("q\0.", "finds too little"),
		REFUSAL("\xff.", "no opcode 0xff"),
		REFUSAL("]q\0h\0a.", "changed after it was put"),
		/* a in b, then b in a */
		REFUSAL("]q\0]q\1h\0ah\1a0h\0h\1a.", "changed after it was put"),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert_eq(read_bytes(cases[i].data, cases[i].size), -EBADMSG, "case %zu: %s", i,
			     err.text);
		cr_assert_not_null(strstr(err.text, cases[i].text), "case %zu: %s", i, err.text);
	}
}

Test(pickle, cut_short_anywhere_is_said_to_be_cut_short)
{
	static const struct refusal cases[] = {
		{ protocol3, sizeof(protocol3) - 1, "" },
		{ protocol5, sizeof(protocol5) - 1, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t size = 0; size < cases[i].size; size++) {
			/* of its own, so that a sanitizer sees a byte too many */
			char *copy = malloc(size + !size);

			memcpy(copy, cases[i].data, size);
			cr_assert_eq(read_bytes(copy, size), -ENODATA, "%zu bytes: %s", size,
				     err.text);
			free(copy);
		}
	}
}

Test(pickle, believes_no_length)
{
	cr_assert_eq(READ("X\xff\xff\xff\xffx."), -ENODATA);
	cr_assert_eq(READ("\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."), -ENODATA);
	cr_assert_eq(READ("\x8e\xff\xff\xff\xff\xff\xff\xff\x7fx."), -ENODATA);
	cr_assert_eq(READ("\x96\x00\x00\x00\x00\x01\x00\x00\x00x."), -ENODATA);
	cr_assert_eq(READ("\x95\xff\xff\xff\xff\xff\xff\xff\xffN."), -ENODATA);
	cr_assert_eq(READ("\x8b\xff\xff\xff\x7fx."), -ENODATA);
	cr_assert_eq(READ("Nr\xff\xff\xff\xff."), -E2BIG);
}

static char *repeat(const char *unit, size_t unit_len, size_t n, const char *tail, size_t *ret_size)
{
	char *data = malloc(unit_len * n + strlen(tail) + 1);

	cr_assert_not_null(data);
	for (size_t i = 0; i < n; i++)
		memcpy(data + i * unit_len, unit, unit_len);
	memcpy(data + unit_len * n, tail, strlen(tail) + 1);
	*ret_size = unit_len * n + strlen(tail);
	return data;
}

static int read_repeated(const char *unit, size_t n, const char *tail)
{
	size_t size;
	char *data = repeat(unit, strlen(unit), n, tail, &size);
	int r = read_bytes(data, size);

	/* nothing of the value may be looked at any more */
	free(data);
	return r;
}

Test(pickle, bounds_nesting)
{
	/* lists in lists, tuples in tuples, open containers */
	cr_assert_eq(read_repeated("]", 1000000, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."),
		     -E2BIG);
	cr_assert_eq(read_repeated("\x85", 0, "N."), 0);
	cr_assert_eq(read_repeated("(", 1000000, "."), -E2BIG);
	cr_assert_eq(READ("N\x85\x85\x85\x85\x85\x85\x85\x85."), 0);
}

/* Each level holds the one below twice: sharing keeps it small, and no reader may walk it. */
Test(pickle, a_memo_bomb_stays_small)
{
	char data[1024];
	size_t n = 0;

	memcpy(data, "]q\0", 3);
	n = 3;
	for (int level = 1; level < CW_VALUE_MAX_HEIGHT; level++) {
		n += (size_t)sprintf(data + n, "0]q%c", level) + (level == 0);
		n += (size_t)sprintf(data + n, "(");
		for (int i = 0; i < 2; i++) {
			data[n++] = 'h';
			data[n++] = (char)(level - 1);
		}
		data[n++] = 'e';
	}
	data[n++] = '.';
	cr_assert_eq(read_bytes(data, n), 0, "%s", err.text);
	cr_assert_eq(value->height, CW_VALUE_MAX_HEIGHT - 1);
	cr_assert_eq(value->n, 2);
}

Test(pickle, memory_grows_with_the_input_only)
{
	cr_assert_eq(read_repeated("Nq\1", 200000, "."), 0, "%s", err.text);
	cr_assert_eq(read_repeated("]", 2000000, "."), 0, "%s", err.text);
}
