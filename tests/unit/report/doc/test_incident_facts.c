/* SPDX-License-Identifier: Apache-2.0 */
/* The list of an incident's facts: writer, reader, and the tables of docs/schemas.md. */
#include "report/doc/incident_facts.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/verdict_types.h"

/* Has every key that a row has. */
static const char whole[] =
	"{'schema':'collwatch.incident/1','id':'0123','job':'name:train','group':'g',"
	"'class':'mismatch','detail':'unknown_call','confidence':'likely',"
	"'blind_spots':['rank','progress'],'hang':'proven','severity':'page',"
	"'culprits':[{'rank':3,'host':'node-a','pid':812,'pod':'p','pod_namespace':'n',"
	"'container':'c','own_pid':17,'cpus':'0-3','host_wait':'socket','end_by':'outside','term_signal':9,"
	"'cause_kind':'killed','cause_by':'process',"
	"'reason_said':[{'saying':'text','args':[{'text':'it waits'}]}],'reason':'it waits',"
	"'kernel':'sleeps','stopped':true,'crash_stack':['f (a.py:1)'],'sits_in':'f (a.py:1)'}],"
	"'victims':{'count':7,'ranks':'0-2,4-7'},"
	"'where':{'comm':'0x00000000000000ff','comm_name':'tp','coll_seq':42,'after_seq':0,"
	"'sides':[{'ranks':'0','op':{'kind':'broadcast','dtype':'bf16','count':8,'redop':null,"
	"'root':0,'peer':null,'stack':['a.py:1 in f']}},{'ranks':'1','op':null}],"
	"'nodes':['node-a','node-b'],'link':{'sender':1,'sender_host':'node-a','receiver':2,"
	"'receiver_host':'node-b','channel':0,'first':'sender','steps':48,'handed':16,'confirmed':8,"
	"'received':8,'step_s':1.5,'bytes_per_s':524288}},"
	"'chain':[{'rank':0,'comm':'0x00000000000000ff','comm_name':'tp','coll_seq':42,"
	"'op':{'kind':'all_reduce','dtype':'fp32','count':'0xffffffffffffffff','redop':'sum',"
	"'root':null,'peer':null},'waits_for':-1}],'cycle':[],"
	"'alternatives':[{'class':'slow','culprits':[],'probability':0.25,"
	"'reason_said':[],'reason':''}],"
	"'ruled_out':['it waits'],"
	"'ruled_out_said':[[{'saying':'text','args':[{'text':'it waits'}]}]],"
	"'known_hangs':[{'name':'NVIDIA/nccl#2353','fixed_in':'2.29.3'}],"
	"'also':['it waits'],"
	"'also_said':[[{'saying':'text','args':[{'text':'it waits'}]}]],"
	"'nccl_errors':[{'ranks':'0','comm':'0x00000000000000ff','comm_name':'tp','result':6,"
	"'name':'ncclRemoteError','is_async':true,'text':'t'}],"
	"'nonfinite_inputs':[{'rank':5,'host':'node-a','pid':7,'text':'fed',"
	"'noticed':'2026-11-21T07:53:33.123Z'}],"
	"'earlier_stacks':[{'rank':3,'host':'node-a','pid':812,'changed':true,'readings':["
	"{'waited_s':2.5,'place':'f (a.py:1)'},{'waited_s':5.0,'place':'g (a.py:2)','cpu_s':1.5}],"
	"'text_said':[{'saying':'text','args':[{'text':'it moved'}]}],'text':'it moved'}],"
	"'coverage':{'ranks_expected':8,'ranks_seen':8,'last_known':{'ranks':'1','count':1,"
	"'age_s':2.5},'missing':'','untracked':0,'notes':['n']},"
	"'times':{'last_progress':'2026-11-21T07:53:33.123Z','stall':'2026-11-21T07:53:34.000Z',"
	"'confirmed':'2026-11-21T07:53:35.000Z','resolved':null},"
	"'job_timeout':{'seconds':1800.0,'assumed':false,'set_by':'a variable'},"
	"'summary_said':[{'saying':'text','args':[{'text':'it waits'}]}],'summary':'it waits',"
	"'proposed_policy':'serving','leader':'node-a','bundle':'/b','command':'collwatch report 0',"
	"'uid':0,'user':'root','objections':[{'node':'node-b','reason':'r'}],'suppressed':'muted',"
	"'closed_as':'job_ended','lasted_s':3.5,"
	"'ending':'rank 3 failed',"
	"'first':{'ranks':'3','count':1,'by':'cause','together':2,'margin_s':1.5},"
	"'ends':[{'rank':3,'host':'node-a','pid':812,'how':'exited with status 1','kind':'own',"
	"'cause':null,'cause_kind':'exited','cause_by':'nobody','first':true,"
	"'ended':'2026-11-21T07:53:36.000Z','ended_ns':1795247616000000000,'after_s':0.0,"
	"'unsure_s':0.25}],'ends_omitted':1,"
	"'ended':[{'ranks':'3','count':1,'how':'exited with status 1'}],'ended_otherwise':1,"
	"'ranks_ended':2,'first_end':'2026-11-21T07:53:36.000Z',"
	"'last_end':'2026-11-21T07:53:37.000Z',"
	"'waited_for':{'class':'never_entered','detail':'','confidence':'likely','ranks':'3',"
	"'count':1,'for_s':8.5,'summary':'s'},"
	"'open':[{'ranks':'0-2','members':3,'op':{"
	"'comm':'0x00000000000000ff','comm_name':'tp','kind':'all_reduce','coll_seq':42,"
	"'dtype':'fp32','count':8,'done':false,'entered':null}}],"
	"'last_calls':[{'rank':3,'comm_name':'tp','entered':41,'calls':[{"
	"'comm':'0x00000000000000ff','comm_name':'tp','kind':'all_reduce','coll_seq':41,"
	"'dtype':'fp32','count':8,'done':true,'entered':'2026-11-21T07:53:33.123Z'}]}],"
	"'wrong_data':['it waits'],"
	"'wrong_data_said':[[{'saying':'text','args':[{'text':'it waits'}]}]],'end_notes':['n']}";

static json_t *parse(const char *with_single_quotes)
{
	_cleanup_(freep) char *text = strdup(with_single_quotes);
	json_t *doc;

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	doc = json_loads(text, 0, NULL);
	cr_assert_not_null(doc, "%s", text);
	return doc;
}

static int read_it(const json_t *doc, struct cw_arena *arena, struct cw_incident_facts *facts,
		   struct cw_incident_newer *newer, char text[static sizeof(struct cw_err)])
{
	struct cw_err err = { "" };
	int r = cw_incident_facts_read(doc, arena, facts, newer, &err);

	(void)snprintf(text, sizeof(err), "%s", err.text);
	return r;
}

Test(incident_facts, what_was_written_is_read_and_written_the_same)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	struct cw_incident_newer newer;
	json_t *doc = parse(whole), *again;
	_cleanup_(freep) char *before = json_dumps(doc, JSON_COMPACT), *after = NULL;
	char err[sizeof(struct cw_err)];

	cr_assert_eq(read_it(doc, &arena, &facts, &newer, err), 0, "%s", err);
	cr_expect_eq(newer.n, 0, "%s", newer.first);
	again = cw_incident_facts_write(&facts);
	after = json_dumps(again, JSON_COMPACT);
	cr_expect_str_eq(after, before);
	cr_expect_eq(facts.verdict_class.number, CW_CLASS_MISMATCH);
	cr_expect_eq(facts.closed_as.number, CW_CLOSED_AS_JOB_ENDED);
	cr_expect_eq(facts.blind_spots, 1u << CW_BLIND_RANK | 1u << CW_BLIND_PROGRESS);
	cr_expect_eq(facts.where->after_seq, 0);
	cr_expect_eq(facts.uid, 0);
	json_decref(doc);
	json_decref(again);
}

static bool has_key(const json_t *node, const char *key)
{
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach ((json_t *)node, name, value)
		if (strcmp(name, key) == 0 || has_key(value, key))
			return true;
	json_array_foreach (node, i, value)
		if (has_key(value, key))
			return true;
	return false;
}

#define KEY(form, type, name, key, ...) key,
#define KEYS(group, FACTS, title) FACTS(KEY)

Test(incident_facts, the_whole_document_has_every_row)
{
	static const char *const keys[] = { CW_INCIDENT_GROUPS(KEYS) };
	json_t *doc = parse(whole);

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		cr_expect(has_key(doc, keys[i]), "%s", keys[i]);
	json_decref(doc);
}

Test(incident_facts, what_a_document_lacks_is_unset)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	json_t *doc = parse("{'culprits':[{}],'where':{},'job':null,'severity':'alarm',"
			    "'blind_spots':['wait','moon']}");
	char err[sizeof(struct cw_err)];

	cr_assert_eq(read_it(doc, &arena, &facts, NULL, err), 0, "%s", err);
	cr_expect_eq(facts.n_culprits, 1);
	cr_expect_eq(facts.culprits[0].rank, -1);
	cr_expect_eq(facts.where->after_seq, CW_INCIDENT_NO_SEQ);
	cr_expect_eq(facts.uid, -1);
	cr_expect_null(facts.job);
	cr_expect_null(facts.times);
	cr_expect_null(facts.verdict_class.text);
	cr_expect_eq(facts.verdict_class.number, -1);
	cr_expect_str_eq(facts.severity.text, "alarm");
	cr_expect_eq(facts.severity.number, -1, "a name of a newer version");
	cr_expect_eq(facts.blind_spots, 1u << CW_BLIND_WAIT | CW_INCIDENT_NAMES_NEWER);
	json_decref(doc);
}

Test(incident_facts, keys_of_a_newer_version_are_counted)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_newer newer = { 0 };
	struct cw_incident_facts facts;
	json_t *doc = parse("{'culprits':[{'rank':1},{'rank':2,'colour':'red'}],'mood':{'a':[1]},"
			    "'summary':'s','summary_said':[{'saying':'of_later','args':[]}]}");
	char err[sizeof(struct cw_err)];

	cr_assert_eq(read_it(doc, &arena, &facts, &newer, err), 0, "%s", err);
	cr_expect_eq(newer.n, 2);
	cr_expect_str_eq(newer.first, "culprits[1].colour");
	cr_expect_eq(facts.culprits[1].rank, 2);
	cr_expect_str_eq(facts.summary.text, "s");
	cr_expect_eq(facts.summary.said.n, 0, "this version does not know the saying");
	json_decref(doc);
}

static void expect_refused(const json_t *doc, const char *key)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	char err[sizeof(struct cw_err)];

	cr_expect_eq(read_it(doc, &arena, &facts, NULL, err), -EBADMSG, "%s", key);
	cr_expect(strstr(err, key) && strstr(err, "\" is not "), "%s: %s", key, err);
}

/* Puts a value of a wrong kind in the place of every value, one after the other. */
static void spoil_each(const json_t *doc, json_t *node)
{
	const char *key;
	json_t *value;
	void *next;
	size_t i;

	json_object_foreach_safe(node, next, key, value)
	{
		/* The text beside sayings says the same, and null is right for each kind. */
		if (strstr(key, "_said") || json_is_null(value))
			continue;
		json_incref(value);
		json_object_set_new(node, key,
				    json_is_object(value) ? json_string("x") : json_object());
		expect_refused(doc, key);
		json_object_set_new(node, key, value);
		spoil_each(doc, value);
	}
	json_array_foreach (node, i, value)
		spoil_each(doc, value);
}

Test(incident_facts, every_value_of_a_wrong_kind_is_refused_by_its_name)
{
	json_t *doc = parse(whole);

	spoil_each(doc, doc);
	json_decref(doc);
}

static void expect_error(const char *text, const char *error)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	json_t *doc = parse(text);
	char err[sizeof(struct cw_err)];

	cr_expect_eq(read_it(doc, &arena, &facts, NULL, err), -EBADMSG, "%s", text);
	cr_expect_str_eq(err, error);
	json_decref(doc);
}

Test(incident_facts, an_error_names_path_and_kind)
{
	expect_error("[]", "\"\" is not an object");
	expect_error("{'culprits':[{},{'pid':'x'}]}",
		     "\"culprits[1].pid\" is not a whole number of 32 bits");
	expect_error("{'culprits':[{'pid':2147483648}]}",
		     "\"culprits[0].pid\" is not a whole number of 32 bits");
	expect_error("{'culprits':[1]}", "\"culprits\" is not a list of objects");
	expect_error("{'victims':{'count':-1}}", "\"victims.count\" is not a count of 32 bits");
	expect_error("{'where':{'sides':[{'op':{'stack':['f',1]}}]}}",
		     "\"where.sides[0].op.stack[1]\" is not a text");
	expect_error("{'times':{'stall':'yesterday'}}", "\"times.stall\" is not a time");
	expect_error("{'where':{'comm':'tp'}}", "\"where.comm\" is not a count or an id");
	expect_error("{'blind_spots':[1]}", "\"blind_spots\" is not a list of texts");
}

Test(incident_facts, a_process_is_read_as_far_as_it_is_known)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_process process;
	json_t *doc = parse("{'rank':3,'host':'node-a','pid':'x','frames':[],'pod':'p'}");

	cr_assert_eq(cw_incident_facts_read_process(doc, &arena, &process), 0);
	cr_expect_eq(process.rank, 3);
	cr_expect_eq(process.pid, 0);
	cr_expect_str_eq(process.host, "node-a");
	cr_expect_str_eq(process.pod, "p");
	cr_expect_null(process.container);
	cr_assert_eq(cw_incident_facts_read_process(NULL, &arena, &process), 0);
	cr_expect_eq(process.rank, -1);
	json_decref(doc);
}

/* ---- docs/schemas.md ---- */

#define BEGIN                                                                                      \
	"<!-- incident: from model/incident_list.h, by "                                           \
	"tests/unit/report/doc/test_incident_facts.c -->\n"
#define END "<!-- incident: end -->\n"

#define PRINT(form, type, name, key, presence, secrecy, shown, meaning)                            \
	print_row(out, #form, key, #presence, meaning);
#define PRINT_GROUP(group, FACTS, title)                                                           \
	if (title) {                                                                               \
		(void)fprintf(out, "\n%s:\n\n| key | meaning |\n|---|---|\n",                      \
			      (const char *)title);                                                \
		FACTS(PRINT)                                                                       \
	}

static void print_row(FILE *out, const char *form, const char *key, const char *presence,
		      const char *meaning)
{
	bool is_said = strncmp(form, "SAID", 4) == 0;

	(void)fprintf(out, "| `%s`", key);
	if (is_said)
		(void)fprintf(out, ", `%s_said`", key);
	(void)fprintf(out, "%s | %s |\n", strcmp(presence, "OPTIONAL") == 0 ? "?" : "", meaning);
}

/* free() */
static char *print_tables(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert(out);
	CW_INCIDENT_GROUPS(PRINT_GROUP)
	(void)fprintf(out, "\n");
	(void)fclose(out);
	return text;
}

#define DOCUMENT CW_TEST_DATA "/../../docs/schemas.md"

/* Made anew with COLLWATCH_UPDATE_GOLDEN=1 when the list has changed. */
Test(incident_facts, the_tables_of_the_schemas_are_those_of_the_list)
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
