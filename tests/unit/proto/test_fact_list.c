/* SPDX-License-Identifier: Apache-2.0 */
/* The list of facts against what stands by itself: the .proto, and docs/schemas.md. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/cause.h"
#include "model/facts.h"
#include "proto/codec_map.h"
#include "record/record_layout.h"

#define BEGIN "<!-- facts: from model/fact_list.h, by tests/unit/proto/test_fact_list.c -->\n"
#define END "<!-- facts: end -->\n"

struct fact {
	const char *kind, *name, *wire, *json, *unit, *since, *meaning;
	unsigned number, limit;
};

/* clang-format off */
#define FACT(kind, type, name, number, wire, json, limit, unit, since, meaning) \
	{ #kind, #name, #wire, #json, unit, since, meaning, number, LIMIT_##kind(limit) },
#define LIMIT_SAME(limit) limit
#define LIMIT_TEXT(limit) limit
#define LIMIT_TIME(limit) 0
#define LIMIT_SPAN(limit) limit
#define LIMIT_SENT(limit) limit
#define LIMIT_KEPT(limit) limit
#define LIMIT_PART(limit) limit
/* clang-format on */

static const struct fact op_facts[] = { CW_OP_FACTS(FACT){ NULL } };
static const struct fact checkpoint_facts[] = { CW_CHECKPOINT_FACTS(FACT){ NULL } };
static const struct fact p2p_facts[] = { CW_P2P_FACTS(FACT){ NULL } };
static const struct fact connection_facts[] = { CW_CONNECTION_FACTS(FACT){ NULL } };
static const struct fact comm_facts[] = { CW_COMM_FACTS(FACT){ NULL } };
static const struct fact member_facts[] = { CW_MEMBER_FACTS(FACT){ NULL } };
static const struct fact rank_facts[] = { CW_RANK_FACTS(FACT){ NULL } };
static const struct fact cause_facts[] = { CW_CAUSE_FACTS(FACT){ NULL } };

static const struct list {
	const char *of, *message;
	const struct fact *facts;
} lists[] = {
	{ "a rank", "Rank", rank_facts },
	{ "the death or stop of a rank", "Rank", cause_facts },
	{ "a communicator", "Member", comm_facts },
	{ "a member of a communicator", "Member", member_facts },
	{ "an op", "Op", op_facts },
	{ "a checkpoint of the rolling hash", "Checkpoint", checkpoint_facts },
	{ "the sends and receives with a peer", "P2pPeer", p2p_facts },
	{ "a network connection of a member", "Connection", connection_facts },
};

static bool is_kind(const struct fact *f, const char *kind)
{
	return strcmp(f->kind, kind) == 0;
}

static const char *name_in(const struct fact *f, const char *of_a_time, char buf[64])
{
	(void)snprintf(buf, 64, "%s%s", f->name, is_kind(f, "TIME") ? of_a_time : "");
	return buf;
}

/* ---- the .proto ---- */

static const char *type_name(const ProtobufCFieldDescriptor *pb)
{
	switch (pb->type) {
	case PROTOBUF_C_TYPE_UINT32:
		return "uint32";
	case PROTOBUF_C_TYPE_UINT64:
		return "uint64";
	case PROTOBUF_C_TYPE_FIXED64:
		return "fixed64";
	case PROTOBUF_C_TYPE_SINT32:
		return "sint32";
	case PROTOBUF_C_TYPE_SINT64:
		return "sint64";
	case PROTOBUF_C_TYPE_STRING:
		return "string";
	case PROTOBUF_C_TYPE_MESSAGE:
		return ((const ProtobufCMessageDescriptor *)pb->descriptor)->short_name;
	default:
		return "another";
	}
}

static const ProtobufCMessageDescriptor *find_message(const struct cw_map *map, const char *name)
{
	const ProtobufCMessageDescriptor *found = NULL;

	if (strcmp(map->pb->short_name, name) == 0)
		return map->pb;
	for (unsigned i = 0; i < map->n_fields && !found; i++)
		if (map->fields[i].sub)
			found = find_message(map->fields[i].sub, name);
	return found;
}

Test(fact_list, every_row_is_a_field_of_the_protocol)
{
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const struct list *l = &lists[i];
		const ProtobufCMessageDescriptor *pb =
			find_message(cw_bodies[CW_MSG_DIGEST].map, l->message);

		cr_assert(pb, "%s", l->message);
		for (const struct fact *f = l->facts; f->name; f++) {
			const ProtobufCFieldDescriptor *field =
				protobuf_c_message_descriptor_get_field(pb, f->number);
			char name[64];

			cr_expect_eq(is_kind(f, "KEPT"), f->number == 0, "%s", f->name);
			if (is_kind(f, "KEPT"))
				continue;
			cr_assert(field, "%s.%s: no field %u", l->message, f->name, f->number);
			cr_expect_str_eq(field->name, name_in(f, "_age_ns", name));
			cr_expect_str_eq(type_name(field), f->wire, "%s.%s", l->message, f->name);
			cr_expect_eq(field->label == PROTOBUF_C_LABEL_REPEATED,
				     is_kind(f, "PART") && f->limit, "%s.%s", l->message, f->name);
		}
	}
}

static unsigned count_rows(const char *message, unsigned number)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const struct fact *f = lists[i].facts; f->name; f++)
			n += strcmp(lists[i].message, message) == 0 && f->number == number;
	return n;
}

Test(fact_list, every_field_of_the_protocol_has_a_row)
{
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const ProtobufCMessageDescriptor *pb =
			find_message(cw_bodies[CW_MSG_DIGEST].map, lists[i].message);

		for (unsigned k = 0; k < pb->n_fields; k++)
			cr_expect_eq(count_rows(lists[i].message, pb->fields[k].id), 1u, "%s.%s",
				     lists[i].message, pb->fields[k].name);
	}
}

/* ---- docs/schemas.md ---- */

static void print_fact(FILE *out, const struct fact *f)
{
	bool is_in_document = !is_kind(f, "SENT") && !is_kind(f, "PART");
	char name[64];

	(void)fprintf(out, "|%s%s |", is_in_document ? " " : "",
		      is_in_document ? name_in(f, "_ns", name) : "");
	if (f->number)
		(void)fprintf(out, " %u %s%s %s |", f->number,
			      is_kind(f, "PART") && f->limit ? "repeated " : "", f->wire,
			      name_in(f, "_age_ns", name));
	else
		(void)fprintf(out, " |");
	(void)fprintf(out, "%s%s |", *f->unit ? " " : "", f->unit);
	if (f->limit)
		(void)fprintf(out, " %u", f->limit);
	(void)fprintf(out, " | %s | %s |\n", f->since, f->meaning);
}

/* free() */
static char *print_tables(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert(out);
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		(void)fprintf(out,
			      "\nOf %s, in message `%s`:\n\n"
			      "| in a snapshot | in a message | unit | limit | since | meaning |\n"
			      "|---|---|---|---|---|---|\n",
			      lists[i].of, lists[i].message);
		for (const struct fact *f = lists[i].facts; f->name; f++)
			print_fact(out, f);
	}
	(void)fprintf(out, "\n");
	(void)fclose(out);
	return text;
}

#define DOCUMENT CW_TEST_DATA "/../../docs/schemas.md"

/* Made anew with COLLWATCH_UPDATE_GOLDEN=1 when the list has changed. */
Test(fact_list, the_tables_of_the_schemas_are_those_of_the_list)
{
	_cleanup_(freep) char *tables = print_tables();
	static char document[256 << 10];
	char *begin, *end;
	FILE *f = fopen(DOCUMENT, "re");

	cr_assert(f);
	cr_assert_lt(fread(document, 1, sizeof(document) - 1, f), sizeof(document) - 1);
	(void)fclose(f);
	begin = strstr(document, BEGIN);
	cr_assert(begin);
	begin += strlen(BEGIN);
	end = strstr(begin, END);
	cr_assert(end);
	if (getenv("COLLWATCH_UPDATE_GOLDEN")) {
		f = fopen(DOCUMENT, "we");
		cr_assert(f);
		(void)fprintf(f, "%.*s%s%s", (int)(begin - document), document, tables, end);
		(void)fclose(f);
		return;
	}
	cr_expect(strncmp(begin, tables, strlen(tables)) == 0 && begin + strlen(tables) == end,
		  "docs/schemas.md is stale: run this with COLLWATCH_UPDATE_GOLDEN=1");
}
