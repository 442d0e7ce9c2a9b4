/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/advice.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "model/verdict_types.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"

static struct advice advice;

/* Asks for the advice of a document. */
static void advise(const json_t *incident)
{
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };

	cr_assert_eq(cw_incident_facts_read(incident, &arena, &facts, NULL, NULL), 0);
	cw_advice(&facts, &advice);
	cw_arena_fini(&arena);
}

static void ask(const char *verdict_class, const char *detail, const char *host)
{
	json_t *incident =
		json_pack("{s:s,s:s,s:s,s:s,s:s,s:[{s:i,s:s,s:i}]}", "id", "0123456789abcdef",
			  "job", "name:4711", "class", verdict_class, "detail", detail, "bundle",
			  "/var/lib/b", "culprits", "rank", 3, "host", host, "pid", 812);

	cr_assert_not_null(incident);
	advise(incident);
	json_decref(incident);
}

static bool has_command(const char *part)
{
	for (unsigned i = 0; i < advice.n; i++)
		if (strstr(advice.steps[i].command, part))
			return true;
	return false;
}

Test(advice, there_is_some_for_every_class_but_healthy)
{
	for (unsigned verdict_class = CW_CLASS_HEALTHY + 1; verdict_class < CW_CLASS__MAX;
	     verdict_class++) {
		ask(cw_class_name(verdict_class), "", "node-a");
		cr_assert_gt(advice.n, 0, "%s", cw_class_name(verdict_class));
		for (unsigned i = 0; i < advice.n; i++)
			cr_assert_gt(strlen(advice.steps[i].text), 0);
	}
	ask("healthy", "", "node-a");
	cr_assert_eq(advice.n, 0);
}

Test(advice, commands_name_the_culprit)
{
	ask("never_entered", "stopped", "node-a");
	cr_assert(has_command("ssh node-a kill -CONT 812"));
	ask("node_unreachable", "", "node-b.example.org");
	cr_assert(has_command("NodeName=node-b.example.org State=DRAIN"));
	ask("never_entered", "outside_nccl", "node-a");
	cr_assert(has_command("collwatch stacks 4711 3 "));
	cr_assert(!has_command("kill -CONT"), "of another detail");
}

Test(advice, follows_what_a_rank_sleeps_in)
{
	static const struct {
		const char *host_wait, *has, *has_not;
	} cases[] = {
		{ "lock", "--all-frames", "journalctl" },
		{ "gil", "--all-frames", "journalctl" },
		{ "socket", "ss -tnp | grep pid=812,", "journalctl" },
		{ "tty", "/proc/812/fd/0", "journalctl" },
		{ "queue", "stacks", "journalctl" },
		{ "storage", "journalctl", "ss -tnp" },
		{ "of_a_newer_version", "journalctl", "ss -tnp" },
		{ NULL, "journalctl", "ss -tnp" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *incident = json_pack(
			"{s:s,s:s,s:s,s:s,s:[{s:i,s:s,s:i,s:s,s:s*}]}", "class", "never_entered",
			"detail", "outside_nccl", "bundle", "/var/lib/b", "job", "name:4711",
			"culprits", "rank", 3, "host", "node-a", "pid", 812, "reason",
			"alive, outside NCCL; it waits for a socket, says this text", "host_wait",
			cases[i].host_wait);

		cr_assert_not_null(incident);
		advise(incident);
		json_decref(incident);
		cr_expect(has_command(cases[i].has), "%s", cases[i].host_wait);
		cr_expect_not(has_command(cases[i].has_not), "%s", cases[i].host_wait);
	}
}

Test(advice, what_holds_a_rank_up_is_told_whatever_the_others_wait_in)
{
	ask("p2p_unmatched", "stopped", "node-a");
	cr_assert(has_command("ssh node-a kill -CONT 812"));
	ask("p2p_unmatched", "outside_nccl", "node-a");
	cr_assert(has_command("collwatch stacks"));
	cr_assert_null(strstr(advice.steps[0].text, "both send first"), "the calls are right");
}

Test(advice, stacks_are_looked_at_where_there_are_some_and_else_taken)
{
	json_t *incident = json_pack("{s:s,s:s,s:s,s:[{s:i,s:s}]}", "class", "never_entered",
				     "detail", "outside_nccl", "bundle", "/var/lib/b", "culprits",
				     "rank", 3, "sits_in", "read_sample (train.py:88)");

	advise(incident);
	cr_assert(has_command("collwatch report --all-frames /var/lib/b"));
	cr_assert(!has_command("collwatch stacks"));
	cr_assert_eq(json_object_del(json_array_get(json_object_get(incident, "culprits"), 0),
				     "sits_in"),
		     0);
	advise(incident);
	cr_assert(!has_command("collwatch report"), "there is nothing to be seen");
	cr_assert(has_command("collwatch stacks"));
	json_decref(incident);
}

Test(advice, nobody_looks_for_what_holds_up_a_rank_whose_call_failed)
{
	ask("init_stuck", "failed", "node-a");
	cr_expect(has_command("NCCL_DEBUG=WARN"));
	for (unsigned i = 0; i < advice.n; i++)
		cr_expect_null(strstr(advice.steps[i].text, "before it calls NCCL"), "%s",
			       advice.steps[i].text);
}

Test(advice, the_network_is_looked_at_where_nobody_is_missing_in_the_making_of_a_comm)
{
	json_t *incident =
		json_pack("{s:s,s:s,s:[]}", "class", "init_stuck", "job", "j", "culprits");

	advise(incident);
	cr_assert(has_command("NCCL_SOCKET_IFNAME") && has_command("collwatch stacks j"));
	json_decref(incident);
	ask("init_stuck", "init", "node-a");
	cr_assert(has_command("collwatch stacks 4711 3 "));
	cr_assert(!has_command("NCCL_SOCKET_IFNAME"), "a rank is missing");
}

static bool says(const char *part)
{
	for (unsigned i = 0; i < advice.n; i++)
		if (strstr(advice.steps[i].text, part))
			return true;
	return false;
}

/* Two of three ranks are in a barrier of gloo that the third left out. */
Test(advice, where_most_are_missing_the_few_that_wait_are_not_called_right)
{
	json_t *incident = json_pack("{s:s,s:s,s:s,s:[{s:i},{s:i}],s:{s:i}}", "class",
				     "never_entered", "detail", "outside_nccl", "job", "name:4711",
				     "culprits", "rank", 0, "rank", 2, "victims", "count", 1);

	cr_assert_not_null(incident);
	advise(incident);
	cr_assert(says("a barrier of gloo"));
	cr_assert(!says("nothing is wrong with the ranks that wait"));

	json_object_set_new(json_object_get(incident, "victims"), "count", json_integer(2));
	advise(incident);
	cr_assert(!says("a barrier of gloo"));
	json_decref(incident);
}

/* It waits in a socket: maybe for one of the waiting ranks here. */
Test(advice, calls_the_ranks_that_wait_right_only_where_the_cause_is_seen)
{
	json_t *incident =
		json_pack("{s:s,s:s,s:s,s:[s],s:[{s:i}],s:{s:i}}", "class", "never_entered",
			  "detail", "outside_nccl", "confidence", "likely", "blind_spots", "wait",
			  "culprits", "rank", 3, "victims", "count", 7);

	cr_assert_not_null(incident);
	advise(incident);
	cr_expect(!says("nothing is wrong with the ranks that wait"));
	cr_expect(says("restart it from its last checkpoint"));
	json_object_set_new(incident, "confidence", json_string("certain"));
	advise(incident);
	cr_expect(!says("nothing is wrong with the ranks that wait"));
	json_array_clear(json_object_get(incident, "blind_spots"));
	advise(incident);
	cr_expect(says("nothing is wrong with the ranks that wait"));
	json_decref(incident);
}

Test(advice, does_not_blame_the_network_for_a_rank_that_is_held)
{
	static const char *const holds[] = { "stopped", "traced", "frozen" };

	for (size_t i = 0; i < sizeof(holds) / sizeof(*holds); i++) {
		ask("in_collective", holds[i], "node-a");
		cr_expect_gt(advice.n, 0u);
		cr_expect(!says("it is the network") && !says("link errors") && !says("NCCL 2.24"));
		ask("init_stuck", holds[i], "node-a");
		cr_expect(!says("before it calls NCCL"));
	}
}

Test(advice, calls_the_program_right_only_where_all_of_the_job_is_seen)
{
	json_t *incident = json_pack("{s:s,s:s,s:[s],s:[]}", "class", "in_collective", "detail", "",
				     "blind_spots", "rank", "culprits");

	cr_assert_not_null(incident);
	advise(incident);
	cr_expect(says("link errors") && !says("not the program"));
	json_array_clear(json_object_get(incident, "blind_spots"));
	advise(incident);
	cr_expect(says("not the program"));
	json_decref(incident);
}

Test(advice, a_recording_names_no_machine)
{
	json_t *incident = json_pack("{s:s,s:s,s:s,s:[{s:i,s:s,s:i}]}", "class", "never_entered",
				     "detail", "stopped", "leader", CW_LEADER_ANALYZE, "culprits",
				     "rank", 3, "host", "records", "pid", 812);

	advise(incident);
	cr_assert(has_command("ssh <host> kill -CONT 812"));
	json_decref(incident);
}

Test(advice, nothing_a_shell_would_obey_gets_into_a_command)
{
	static const char *const evils[] = {
		"a; rm -rf /", "$(reboot)", "`id`", "a b", "-oProxyCommand=x",
		"a\nb",        "x|y",       "",     "<x>", "a'b"
	};

	for (size_t i = 0; i < sizeof(evils) / sizeof(*evils); i++) {
		ask("never_entered", "stopped", evils[i]);
		cr_assert(has_command("ssh <host> kill -CONT 812"), "%s", evils[i]);
	}
}

static void ask_of_a_death(int signal, const char *by)
{
	json_t *incident =
		json_pack("{s:s,s:s,s:[{s:s,s:i,s:s,s:i,s:s*}]}", "class", "process_dead", "detail",
			  "killed", "culprits", "host", "node-a", "pid", 812, "reason",
			  "killed by SIGSEGV sent by bash, says this text", "term_signal", signal,
			  "end_by", by);

	cr_assert_not_null(incident);
	advise(incident);
	json_decref(incident);
}

Test(advice, of_a_signal_follows_what_is_known_of_it)
{
	ask_of_a_death(SIGSEGV, "kernel");
	cr_expect(has_command("coredumpctl info 812"));
	cr_expect(!has_command("journalctl"), "no process sent it");
	ask_of_a_death(SIGABRT, "itself");
	cr_expect(has_command("coredumpctl info 812"), "it called abort()");
	ask_of_a_death(SIGKILL, "process");
	cr_expect(!has_command("coredumpctl") && !has_command("journalctl"),
		  "it is known who did it");
	cr_expect(strstr(advice.steps[0].text, "named above"), "%s", advice.steps[0].text);
	ask_of_a_death(SIGKILL, "parent");
	cr_expect(strstr(advice.steps[0].text, "named above"), "%s", advice.steps[0].text);
	/* It was made to crash. */
	ask_of_a_death(SIGABRT, "process");
	cr_expect(!has_command("coredumpctl"));
	ask_of_a_death(SIGKILL, NULL);
	cr_expect(has_command("journalctl") && !has_command("coredumpctl"),
		  "it leaves no core file");
}

Test(advice, a_document_without_anything_is_survived)
{
	json_t *incident = json_pack("{s:s}", "class", "device_stalled");

	advise(incident);
	cr_assert_gt(advice.n, 0);
	cr_assert(has_command("ssh <host>"));
	json_decref(incident);
}

Test(advice, names_the_setting_to_a_job_that_looks_like_a_server)
{
	json_t *incident = json_pack("{s:s,s:s,s:s}", "class", "never_entered", "detail",
				     "outside_nccl", "proposed_policy", "serving");

	cr_assert_not_null(incident);
	advise(incident);
	cr_expect_str_eq(advice.steps[0].command,
			 "export COLLWATCH_POLICY=serving   # before the job is started again");
	cr_assert_eq(json_object_del(incident, "proposed_policy"), 0);
	advise(incident);
	cr_expect(!has_command("COLLWATCH_POLICY"));
	json_decref(incident);
}
