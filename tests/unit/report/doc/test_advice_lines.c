/* SPDX-License-Identifier: Apache-2.0 */
/* Each line of advice where it is true, and not where it is no longer true by a little. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "report/doc/advice.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"

static struct advice advice;

/* An incident is: its class and detail, and more fields of it; more may be NULL. */
struct line {
	const char *id, *verdict_class, *detail, *more;
	const char *not_class, *not_detail, *not_more;
};

#define CULPRIT "\"culprits\":[{\"rank\":3}]"
#define SITS "\"culprits\":[{\"rank\":3,\"sits_in\":\"f (a.py:1)\"}]"
#define KILLED(signal, by)                                                                         \
	"\"culprits\":[{\"rank\":3,\"term_signal\":" #signal ",\"end_by\":\"" by "\"}]"
#define WAITS(wait) "\"culprits\":[{\"rank\":3,\"host_wait\":\"" wait "\"}]"
#define RECORDED "\"leader\":\"" CW_LEADER_ANALYZE "\""
#define SURE "\"confidence\":\"certain\",\"blind_spots\":[]"
#define UNSURE "\"confidence\":\"likely\",\"blind_spots\":[\"wait\"]"
#define OF_CLASS(id, of)                                                                           \
	{                                                                                          \
		id, of, "", NULL, "slow", "", NULL                                                 \
	}
#define OF_DETAIL(id, of, detail)                                                                  \
	{                                                                                          \
		id, of, detail, NULL, of, "", NULL                                                 \
	}

static const struct line lines[] = {
	{ "server", "never_entered", "outside_nccl", "\"proposed_policy\":\"serving\"",
	  "never_entered", "outside_nccl", NULL },
	OF_DETAIL("oom", "process_dead", "oom_killed"),
	{ "crashed", "process_dead", "killed", KILLED(11, "kernel"), "process_dead", "killed",
	  KILLED(9, "kernel") },
	{ "signal-sent", "process_dead", "killed", KILLED(9, "process"), "process_dead", "killed",
	  KILLED(9, "unknown") },
	{ "signal-unknown", "process_dead", "killed", KILLED(9, "unknown"), "process_dead",
	  "killed", KILLED(9, "process") },
	OF_DETAIL("exited", "process_dead", "exited"),
	OF_CLASS("dead-restart", "process_dead"),
	OF_CLASS("node-check", "node_unreachable"),
	OF_CLASS("node-drain", "node_unreachable"),
	OF_CLASS("node-restart", "node_unreachable"),
	OF_DETAIL("continue", "in_collective", "stopped"),
	OF_DETAIL("detach", "in_collective", "traced"),
	OF_DETAIL("thaw", "in_collective", "frozen"),
	{ "line", "never_entered", "outside_nccl", SITS, "never_entered", "outside_nccl", CULPRIT },
	{ "line-stacks", "never_entered", "outside_nccl", CULPRIT, "never_entered", "outside_nccl",
	  SITS },
	{ "line-recorded", "never_entered", "outside_nccl", RECORDED, "never_entered",
	  "outside_nccl", NULL },
	{ "lock", "never_entered", "outside_nccl", WAITS("lock"), "never_entered", "outside_nccl",
	  WAITS("socket") },
	{ "prompt", "never_entered", "outside_nccl", WAITS("tty"), "never_entered", "outside_nccl",
	  WAITS("socket") },
	{ "socket", "never_entered", "outside_nccl", WAITS("socket"), "never_entered",
	  "outside_nccl", WAITS("queue") },
	{ "storage", "never_entered", "outside_nccl", WAITS("storage"), "never_entered",
	  "outside_nccl", WAITS("socket") },
	{ "other-call", "never_entered", "inside_other_call", SITS, "never_entered",
	  "inside_other_call", CULPRIT },
	{ "other-call-stacks", "never_entered", "inside_other_call", CULPRIT, "never_entered",
	  "inside_other_call", SITS },
	{ "other-call-recorded", "never_entered", "inside_other_call", RECORDED, "never_entered",
	  "inside_other_call", RECORDED "," SITS },
	OF_DETAIL("aborted", "never_entered", "aborted"),
	OF_DETAIL("destroyed", "never_entered", "destroyed"),
	{ "many-missing", "never_entered", "outside_nccl", CULPRIT ",\"victims\":{\"count\":0}",
	  "never_entered", "outside_nccl", CULPRIT ",\"victims\":{\"count\":1}" },
	{ "restart", "never_entered", "outside_nccl", UNSURE, "never_entered", "stopped", SURE },
	{ "restart-waiters-well", "never_entered", "stopped", SURE, "never_entered", "outside_nccl",
	  UNSURE },
	OF_DETAIL("count", "mismatch", "count"),
	OF_DETAIL("dtype", "mismatch", "dtype"),
	OF_DETAIL("redop", "mismatch", "redop"),
	OF_DETAIL("root", "mismatch", "root"),
	OF_DETAIL("kind", "mismatch", "kind"),
	OF_DETAIL("missing", "mismatch", "missing"),
	OF_DETAIL("extra", "mismatch", "extra"),
	OF_DETAIL("order", "mismatch", "order"),
	OF_DETAIL("version", "mismatch", "version"),
	OF_DETAIL("environment", "mismatch", "environment"),
	OF_DETAIL("membership", "mismatch", "membership"),
	OF_DETAIL("unknown-call", "mismatch", "unknown_call"),
	OF_CLASS("compare-calls", "mismatch"),
	OF_CLASS("cycle", "deadlock"),
	OF_CLASS("cycle-workaround", "deadlock"),
	OF_CLASS("cycle-restart", "deadlock"),
	OF_DETAIL("size", "p2p_unmatched", "size"),
	OF_DETAIL("not-posted", "p2p_unmatched", "not_posted"),
	OF_DETAIL("both-send", "p2p_unmatched", "not_posted"),
	OF_CLASS("p2p-restart", "p2p_unmatched"),
	OF_DETAIL("init-failed", "init_stuck", "failed"),
	OF_DETAIL("init-failed-end", "init_stuck", "failed"),
	OF_DETAIL("init-failed-restart", "init_stuck", "failed"),
	{ "init-late", "init_stuck", "init", CULPRIT, "init_stuck", "traced", CULPRIT },
	{ "init-restart", "init_stuck", "init", CULPRIT, "init_stuck", "init", NULL },
	{ "init-absent", "init_stuck", "init", NULL, "init_stuck", "init", CULPRIT },
	{ "init-network", "init_stuck", "init", NULL, "init_stuck", "init", CULPRIT },
	OF_CLASS("device", "device_stalled"),
	OF_CLASS("device-drain", "device_stalled"),
	OF_CLASS("device-kernel", "device_stalled"),
	OF_DETAIL("link", "in_collective", "connection"),
	OF_DETAIL("slow-link", "in_collective", "slow_connection"),
	OF_DETAIL("gpu-keeps", "in_collective", "gpu_not_consuming"),
	OF_DETAIL("gpu-silent", "in_collective", "gpu_not_producing"),
	OF_DETAIL("proxy", "in_collective", "not_in_proxy"),
	{ "fabric", "in_collective", "", SURE, "in_collective", "", "\"blind_spots\":[\"rank\"]" },
	{ "fabric-unsure", "in_collective", "", "\"blind_spots\":[\"calls\"]", "in_collective", "",
	  SURE },
	{ "ras", "in_collective", "unfinished", NULL, "in_collective", "frozen", NULL },
	{ "transports", "in_collective", "unfinished", NULL, "in_collective", "traced", NULL },
	{ "drain", "in_collective", "unfinished", NULL, "in_collective", "stopped", NULL },
	{ "slow", "slow", "", NULL, "unknown", "", NULL },
	OF_CLASS("unknown", "unknown"),
	{ "unknown-recorded", "unknown", "", RECORDED, "unknown", "", NULL },
	OF_CLASS("unknown-stacks", "unknown"),
};

static bool is_advised(const char *id, const char *verdict_class, const char *detail,
		       const char *more)
{
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	char text[1024];
	json_t *incident;
	bool is = false;

	(void)snprintf(text, sizeof(text), "{\"class\":\"%s\",\"detail\":\"%s\"%s%s}",
		       verdict_class, detail, more ? "," : "", more ? more : "");
	incident = json_loads(text, 0, NULL);
	cr_assert_not_null(incident, "%s", text);
	cr_assert_eq(cw_incident_facts_read(incident, &arena, &facts, NULL, NULL), 0, "%s", text);
	cw_advice(&facts, &advice);
	cw_arena_fini(&arena);
	json_decref(incident);
	for (unsigned i = 0; i < advice.n; i++)
		is = is || strcmp(advice.steps[i].id, id) == 0;
	return is;
}

Test(advice_lines, has_each_line_where_it_is_true_and_nowhere_else)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const struct line *l = &lines[i];

		cr_expect(is_advised(l->id, l->verdict_class, l->detail, l->more), "%s", l->id);
		cr_expect(!is_advised(l->id, l->not_class, l->not_detail, l->not_more), "not %s",
			  l->id);
	}
}
