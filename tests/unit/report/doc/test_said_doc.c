/* SPDX-License-Identifier: Apache-2.0 */
/* Sayings as JSON: whole there and back, and every malformed document is refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/verdict_types.h"
#include "report/doc/said_doc.h"
#include "say/english.h"

static struct cw_arena arena;

static void setup(void)
{
	arena = (struct cw_arena){ 0 };
}

static void teardown(void)
{
	cw_arena_fini(&arena);
}

TestSuite(said_doc, .init = setup, .fini = teardown);

/* An argument of each kind; a clause has one that says a count. */
static struct cw_arg sample(char row)
{
	static const int32_t labels[] = { 0, 1, 2, 7 };
	static const char *const hosts[] = { "node-a", "node-b" };
	static struct cw_arg seven = { .kind = CW_ARG_COUNT, .count = 7 };
	static struct cw_said said = { .saying = CW_SAYING_count, .n_args = 1, .args = &seven };
	static struct cw_clause nested = { .said = &said, .n = 1 };
	struct cw_arg arg = { .kind = (uint8_t)(row == 'W' ? 'P' : row) };

	switch (arg.kind) {
	case CW_ARG_RANKS:
		arg.ranks.labels = labels;
		arg.ranks.n = 4;
		break;
	case CW_ARG_PROCESS:
		arg.process.label = 3;
		arg.process.pid = 812;
		arg.process.own_pid = 17;
		arg.process.host = "node-a";
		arg.process.pod = "train-3";
		arg.process.pod_namespace = "ml";
		break;
	case CW_ARG_HOSTS:
		arg.hosts.names = hosts;
		arg.hosts.n = 2;
		break;
	case CW_ARG_COMM:
		arg.comm.name = "tp";
		arg.comm.id = 0xfedcba9876543210;
		break;
	case CW_ARG_CALL:
		arg.call.kind = CW_OP_SEND;
		arg.call.seq = UINT64_MAX;
		arg.call.peer = 4;
		arg.call.is_comm_rank = true;
		break;
	case CW_ARG_OP:
		arg.op = (struct cw_op){ .kind = CW_OP_BROADCAST,
					 .dtype = CW_DTYPE_BF16,
					 .redop = CW_REDOP_NONE,
					 .root = 2,
					 .peer = CW_PEER_NONE,
					 .count = 512,
					 .coll_seq = 31 };
		break;
	case CW_ARG_ERROR:
		arg.error.result = 2;
		arg.error.text = "no socket";
		break;
	case CW_ARG_DURATION:
		arg.duration.ns = 12500000000;
		break;
	case CW_ARG_COUNT:
		arg.count = 42;
		break;
	case CW_ARG_VERSION:
		arg.version = 22809;
		break;
	case CW_ARG_DETAIL:
		arg.number = CW_DETAIL_COUNT;
		break;
	case CW_ARG_HOST:
	case CW_ARG_TEXT:
		arg.text = "gpu17";
		break;
	case CW_ARG_CLAUSE:
		arg.clause = &nested;
		break;
	default:
		arg.number = 1;
		break;
	}
	return arg;
}

Test(said_doc, each_saying_is_read_as_it_was_written)
{
	for (int i = 0; i < CW_SAYING__MAX; i++) {
		const char *rows = cw_saying_args((enum cw_saying)i);
		struct cw_clause clause = { .arena = &arena }, read = { .arena = &arena };
		struct cw_arg args[9];
		char text[1024], again[1024];
		json_t *doc;

		for (size_t k = 0; rows[k]; k++)
			args[k] = sample(rows[k]);
		cw_clause_add(&clause, (enum cw_saying)i, args, (uint32_t)strlen(rows));
		doc = cw_said_doc(&clause);
		cr_assert_not_null(doc);
		cr_expect_eq(cw_said_read(doc, &read), 0, "%s", cw_saying_name((enum cw_saying)i));
		cr_expect_str_eq(cw_say_text(&read, again, sizeof(again)),
				 cw_say_text(&clause, text, sizeof(text)));
		json_decref(doc);
	}
}

Test(said_doc, sets_the_text_and_the_sayings_beside_it)
{
	struct cw_clause clause = { .arena = &arena };
	json_t *object = json_object();

	cw_say(&clause, killed_by, (struct cw_arg){ .kind = CW_ARG_SIGNAL, .number = 9 });
	cr_assert_eq(cw_said_set(object, "reason", &clause, 256), 0);
	cr_expect_str_eq(json_string_value(json_object_get(object, "reason")), "killed by SIGKILL");
	cr_expect_eq(json_array_size(json_object_get(object, "reason_said")), 1);
	cr_assert_eq(cw_said_set(object, "reason", &clause, 7), 0);
	cr_expect_str_eq(json_string_value(json_object_get(object, "reason")), "killed");
	json_decref(object);
}

Test(said_doc, a_set_in_thousands_of_pieces_is_only_counted)
{
	struct cw_clause clause = { .arena = &arena }, read = { .arena = &arena };
	int32_t *labels = calloc(4000, sizeof(*labels));
	char text[64];
	json_t *doc;

	for (int32_t i = 0; i < 4000; i++)
		labels[i] = 2 * i;
	cw_say(&clause, nodes_silent,
	       (struct cw_arg){ .kind = CW_ARG_RANKS, .ranks = { .labels = labels, .n = 4000 } });
	doc = cw_said_doc(&clause);
	cr_assert_eq(cw_said_read(doc, &read), 0);
	cr_expect_str_eq(cw_say_text(&read, text, sizeof(text)),
			 "the nodes of 4000 ranks have stopped reporting");
	json_decref(doc);
	free(labels);
}

static int read_text(const char *text)
{
	struct cw_clause clause = { .arena = &arena };
	json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);
	int r = cw_said_read(doc, &clause);

	cr_expect(r == 0 || clause.n == 0, "%s", text);
	json_decref(doc);
	return r;
}

Test(said_doc, refuses_what_is_no_saying_of_ours)
{
	static const struct {
		const char *text;
		int wanted;
	} cases[] = {
		{ "[]", 0 },
		{ "null", -EINVAL },
		{ "[7]", -EINVAL },
		{ "[{\"saying\":\"end\"}]", -EINVAL },
		{ "[{\"saying\":\"end\",\"args\":[]},{\"saying\":\"newer\",\"args\":[]}]",
		  -ENOENT },
		{ "[{\"saying\":\"end\",\"args\":[{}]}]", -ENOENT },
		{ "[{\"saying\":\"count\",\"args\":[7]}]", -EINVAL },
		{ "[{\"saying\":\"nodes_silent\",\"args\":[{\"ranks\":\"0-2\"}]}]", -EINVAL },
		{ "[{\"saying\":\"nodes_silent\",\"args\":[{\"ranks\":\"0-9\",\"count\":3}]}]",
		  -EINVAL },
		{ "[{\"saying\":\"nodes_silent\",\"args\":[{\"ranks\":\"0\",\"count\":9e9}]}]",
		  -EINVAL },
		{ "[{\"saying\":\"nodes_silent\",\"args\":[{\"ranks\":null,\"count\":4294967296}]}]",
		  -EINVAL },
		{ "[{\"saying\":\"inside\",\"args\":[{\"call\":\"rm -rf\"}]}]", -EINVAL },
		{ "[{\"saying\":\"has_left\",\"args\":[{\"detail\":\"rm -rf\"}]}]", -EINVAL },
		{ "[{\"saying\":\"also\",\"args\":[{\"said\":7}]}]", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(read_text(cases[i].text), cases[i].wanted, "%s", cases[i].text);
}

Test(said_doc, bounds_depth_and_length)
{
	json_t *doc = json_array(), *many = json_array();
	struct cw_clause clause = { .arena = &arena };

	for (int i = 0; i < 1000; i++) {
		json_t *outer =
			json_pack("[{s:s, s:[{s:o}]}]", "saying", "also", "args", "said", doc);

		doc = outer;
	}
	cr_expect_eq(cw_said_read(doc, &clause), -EINVAL);
	json_decref(doc);
	for (int i = 0; i < 1000; i++)
		json_array_append_new(many, json_pack("{s:s, s:[]}", "saying", "end", "args"));
	cr_expect_eq(cw_said_read(many, &clause), -EINVAL);
	json_decref(many);
}
