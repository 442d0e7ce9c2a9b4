/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of the sayings is well formed, and arguments read as people expect. */
#include <criterion/criterion.h>
#include <string.h>

#include "model/verdict_types.h"
#include "say/english.h"

static const char *const templates[CW_SAYING__MAX] = {
#define ENGLISH(name, arguments, english) [CW_SAYING_##name] = (english),
	CW_SAYINGS(ENGLISH)
#undef ENGLISH
};

static struct cw_arena arena;

static void setup(void)
{
	arena = (struct cw_arena){ 0 };
}

static void teardown(void)
{
	cw_arena_fini(&arena);
}

TestSuite(english, .init = setup, .fini = teardown);

Test(english, each_template_names_its_arguments_and_no_others)
{
	for (int i = 0; i < CW_SAYING__MAX; i++) {
		size_t n = strlen(cw_saying_args((enum cw_saying)i));
		bool is_named[10] = { false };

		cr_expect_leq(n, 9, "%s", cw_saying_name((enum cw_saying)i));
		for (const char *at = strchr(templates[i], '%'); at; at = strchr(at + 1, '%')) {
			unsigned arg = (unsigned)(at[1] - '0');
			const char *bar = strchr(at, '|'), *close = strchr(at, ')');

			cr_expect(arg >= 1 && arg <= n, "%s", templates[i]);
			is_named[arg < 10 ? arg : 0] = true;
			if (at[2] == '(')
				cr_expect(bar && close && bar < close, "%s", templates[i]);
		}
		for (unsigned arg = 1; arg <= n; arg++)
			cr_expect(is_named[arg], "%s lacks %%%u", templates[i], arg);
		cr_expect_eq(strspn(cw_saying_args((enum cw_saying)i), "RPWHSCOFEDNIGVJYZTL"), n,
			     "%s", cw_saying_name((enum cw_saying)i));
	}
}

Test(english, each_name_is_found_and_stands_once)
{
	for (int i = 0; i < CW_SAYING__MAX; i++)
		cr_expect_eq(cw_saying_from_name(cw_saying_name((enum cw_saying)i)), i, "%s",
			     cw_saying_name((enum cw_saying)i));
	cr_expect_eq(cw_saying_from_name("of_a_later_version"), -1);
	cr_expect_eq(cw_saying_from_name(NULL), -1);
}

static struct cw_arg ranks(const int32_t *labels, uint32_t n, bool is_rest)
{
	return (struct cw_arg){ .kind = CW_ARG_RANKS,
				.ranks = { .labels = labels, .n = n, .is_rest = is_rest } };
}

static struct cw_arg count(uint64_t n)
{
	return (struct cw_arg){ .kind = CW_ARG_COUNT, .count = n };
}

static struct cw_arg after(int64_t ns)
{
	return (struct cw_arg){ .kind = CW_ARG_DURATION, .duration = { .ns = ns } };
}

#define EXPECT(arg, wanted)                                                                        \
	do {                                                                                       \
		struct cw_arg one = arg;                                                           \
		char text[384];                                                                    \
		cr_expect_str_eq(cw_say_arg(&one, text, sizeof(text)), wanted);                    \
	} while (0)

Test(english, names_arguments_as_people_do)
{
	static const int32_t labels[] = { 0, 1, 2, 7 }, none[] = { -1, -1 };
	const struct cw_arg pod = { .kind = CW_ARG_PROCESS,
				    .process = { .label = 3,
						 .pid = 812,
						 .own_pid = 17,
						 .host = "node-a",
						 .pod = "train-3",
						 .pod_namespace = "ml" } };
	const struct cw_arg dump = {
		.kind = CW_ARG_PROCESS,
		.process = { .label = 3, .host = "", .pod = "", .pod_namespace = "" }
	};
	const struct cw_arg group = { .kind = CW_ARG_COMM, .comm = { .name = "4", .id = 31 } };
	const struct cw_arg nameless = { .kind = CW_ARG_COMM, .comm = { .name = "", .id = 31 } };
	const struct cw_arg send = { .kind = CW_ARG_CALL,
				     .call = { .kind = CW_OP_SEND, .seq = 31, .peer = 3 } };
	const struct cw_arg recv = {
		.kind = CW_ARG_CALL,
		.call = { .kind = CW_OP_RECV, .seq = 31, .peer = 3, .is_comm_rank = true }
	};
	const struct cw_arg lost = { .kind = CW_ARG_CALL,
				     .call = { .kind = CW_OP_NONE, .seq = 8, .peer = -1 } };
	const struct cw_arg unknown = { .kind = CW_ARG_CALL,
					.call = { .is_unknown = true, .peer = -1 } };

	EXPECT(ranks(labels, 4, false), "ranks 0-2,7");
	EXPECT(ranks(labels, 1, false), "rank 0");
	EXPECT(ranks(labels, 1, true), "the other rank");
	EXPECT(ranks(labels, 4, true), "the other 4 ranks");
	EXPECT(ranks(NULL, 5, false), "5 ranks");
	EXPECT(ranks(none, 1, false), "a rank without a number");
	EXPECT(ranks(none, 2, false), "2 ranks without numbers");
	EXPECT(pod, "rank 3 (pod ml/train-3, pid 17 there; node-a, pid 812)");
	EXPECT(dump, "rank 3");
	EXPECT(group, "comm 4");
	EXPECT(nameless, "comm 0x000000000000001f");
	EXPECT(send, "send #31 to rank 3");
	EXPECT(recv, "recv #31 from comm rank 3");
	EXPECT(lost, "collective #8");
	EXPECT(unknown, "a call");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_SIGNAL, .number = 9 }), "SIGKILL");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_SIGNAL, .number = 50 }), "signal 50");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_VERSION, .version = 22809 }), "2.28.9");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_VERSION, .version = 2804 }), "2.8.4");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_ERROR, .error = { 2, "no\nsocket" } }),
	       "ncclSystemError (\"no?socket\")");
}

Test(english, rounds_durations_to_what_matters)
{
	EXPECT(after(-5), "0 ms");
	EXPECT(after(999999999), "999 ms");
	EXPECT(after(2500 * INT64_C(1000000)), "2.5 s");
	EXPECT(after(12 * INT64_C(1000000000)), "12 s");
	EXPECT(after(300 * INT64_C(1000000000)), "5 min");
	EXPECT(after(3 * 3600 * INT64_C(1000000000)), "3 h");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_DURATION, .duration = { .is_unknown = true } }),
	       "an unknown time");
	EXPECT(((struct cw_arg){ .kind = CW_ARG_DURATION,
				 .duration = { .ns = 1000000000, .is_less = true } }),
	       "less than 1 s");
}

Test(english, agrees_with_the_number_and_begins_with_a_capital)
{
	static const int32_t labels[] = { 1, 2 };
	struct cw_clause one = { .arena = &arena }, many = { .arena = &arena };
	struct cw_clause nested = { .arena = &arena }, where = { .arena = &arena };
	struct cw_arg clause = { .kind = CW_ARG_CLAUSE, .clause = &nested };
	char text[256];

	cw_say(&one, not_visible, count(1));
	cr_expect_str_eq(cw_say_text(&one, text, sizeof(text)),
			 "; 1 of its ranks is not visible and may be missing.");
	cw_say(&many, not_visible, count(2));
	cr_expect_str_eq(cw_say_text(&many, text, sizeof(text)),
			 "; 2 of its ranks are not visible and may be missing.");
	cw_say(&where, in_it);
	cw_say(&nested, has_waited, ranks(labels, 2, false),
	       (struct cw_arg){ .kind = CW_ARG_CLAUSE, .clause = &where }, after(12000000000));
	one = (struct cw_clause){ .arena = &arena };
	cw_say(&one, that_waits, clause);
	cr_expect_str_eq(cw_say_text(&one, text, sizeof(text)),
			 ". Ranks 1-2 have been waiting in it for 12 s.");
	cr_expect(cw_say_ends_sentence(&one));
	cr_expect(!cw_say_ends_sentence(&nested));
}

Test(english, cuts_a_text_that_does_not_fit)
{
	struct cw_clause clause = { .arena = &arena };
	char text[8];

	for (int i = 0; i < 20; i++)
		cw_say(&clause, enter);
	cr_expect_eq(clause.n, 20);
	cr_expect_str_eq(cw_say_text(&clause, text, sizeof(text)), "enteren");
}

Test(english, compares_what_is_said_and_of_whom)
{
	static const int32_t labels[] = { 1, 2 };
	struct cw_clause a = { .arena = &arena }, b = { .arena = &arena };

	cw_say(&a, missing_elsewhere, ranks(labels, 2, false));
	cr_expect(!cw_clause_is_same(&a, &b));
	cw_say(&b, missing_elsewhere, ranks(labels, 1, false));
	cr_expect(!cw_clause_is_same(&a, &b));
	b.n = 0;
	cw_say(&b, missing_elsewhere, ranks(labels, 2, false));
	cr_expect(cw_clause_is_same(&a, &b));
	b.n = 0;
	cw_say(&b, nodes_silent, ranks(labels, 2, false));
	cr_expect(!cw_clause_is_same(&a, &b));
}
