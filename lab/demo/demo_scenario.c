/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo/demo_scenario.h"

#include <string.h>

#include "report/json_util.h"

#define HANG(class, detail, ranks, within_s)                                                       \
	.expected_class = CW_CLASS_##class, .expected_detail = CW_DETAIL_##detail,                 \
	.min_ranks = (ranks), .alert_within_s = (within_s)

#define WORKLOAD(name, summary)                                                                    \
	{                                                                                          \
		name, summary, .options = { "--workload", name }, .program = DEMO_PYTHON,          \
			       .min_ranks = 2                                                      \
	}

static const struct demo_scenario scenarios[] = {
	{ "never-entered",
	  "a rank blocks in its data loader, the others wait in the next collective",
	  "block-in-data-loader", "blocks in its data loader",
	  HANG(NEVER_ENTERED, OUTSIDE_NCCL, 2, 30), .program = DEMO_EITHER },
	{ "wrong-op", "a rank calls all_gather where the others call all_reduce", "wrong-op",
	  "calls another collective", HANG(MISMATCH, KIND, 3, 8), .program = DEMO_PYTHON },
	{ "wrong-count", "a rank calls a collective with another count than the others",
	  "wrong-count", "calls a collective with a wrong count", HANG(MISMATCH, COUNT, 3, 8),
	  .program = DEMO_C },
	{ "wrong-dtype", "a rank broadcasts with another data type than the others", "wrong-dtype",
	  "calls a collective with a wrong data type", HANG(MISMATCH, DTYPE, 3, 8),
	  .program = DEMO_PYTHON },
	{ "wrong-root", "a rank broadcasts from another root than the others", "wrong-root",
	  "calls broadcast with a wrong root", HANG(MISMATCH, ROOT, 3, 8), .program = DEMO_PYTHON },
	{ "wrong-redop", "a rank reduces with another operator; all finish, with wrong data",
	  "wrong-redop", "reduces with another operator", HANG(MISMATCH, REDOP, 3, 8),
	  .program = DEMO_PYTHON },
	{ "skipped-op", "a rank leaves out a collective", "skip-op", "leaves out a collective",
	  HANG(MISMATCH, MISSING, 3, 25), .program = DEMO_PYTHON },
	{ "extra-op", "a rank calls a collective once more than the others", "extra-op",
	  "calls a collective twice", HANG(MISMATCH, EXTRA, 3, 25), .program = DEMO_PYTHON },
	{ "p2p-unmatched", "a rank does not post the receive for what another sends it",
	  "skip-recv", "leaves out a receive", HANG(P2P_UNMATCHED, NOT_POSTED, 3, 35),
	  .options = { "--ring" }, .program = DEMO_PYTHON },
	{ "two-comm-deadlock", "a rank uses two communicators in the opposite order", "swap-comms",
	  "uses two communicators in the opposite order", HANG(DEADLOCK, ORDER, 2, 25),
	  .blame = DEMO_BLAME_CYCLE, .program = DEMO_PYTHON },
	{ "chain", "a rank is missing in one communicator, the others wait behind it in three",
	  "block-in-data-loader", "blocks in its data loader",
	  HANG(NEVER_ENTERED, OUTSIDE_NCCL, 8, 35), .min_nodes = 2, .is_in_pairs = true,
	  .options = { "--ring" }, .program = DEMO_PYTHON },
	{ "killed-rank", "a rank is killed (SIGKILL), the others wait for it", "kill-self",
	  "is killed by SIGKILL", HANG(PROCESS_DEAD, KILLED, 2, 8), .program = DEMO_C },
	{ "oom-killed", "a rank uses more memory than its control group may (root only)",
	  "eat-memory", "uses up the memory of its control group",
	  HANG(PROCESS_DEAD, OOM_KILLED, 2, 8), .memory_mb = 256, .program = DEMO_PYTHON },
	{ "stopped-rank", "a rank is stopped (SIGSTOP) before its next call", "stop-self",
	  "is stopped by SIGSTOP", HANG(NEVER_ENTERED, STOPPED, 2, 25), .program = DEMO_PYTHON },
	{ "gil-held", "an extension of a rank's Python holds the interpreter lock for ever",
	  "hold-gil", "blocks in an extension that holds the interpreter lock",
	  HANG(NEVER_ENTERED, OUTSIDE_NCCL, 2, 35), .program = DEMO_PYTHON },
	{ "stuck-init", "a rank never calls NCCL, the others wait for it in its initialisation",
	  "never-init", "does not get as far as NCCL", HANG(INIT_STUCK, NONE, 3, 70),
	  .program = DEMO_PYTHON },
	{ "busy-device", "a rank's stream is blocked by earlier work", "block-stream",
	  "blocks its stream", HANG(DEVICE_STALLED, NONE, 2, 40), .program = DEMO_PYTHON },
	{ "dead-node", "a whole node is lost, with its daemon and its ranks", NULL,
	  "and all of its node are gone", HANG(NODE_UNREACHABLE, NONE, 4, 25), .min_nodes = 2,
	  .event = DEMO_EVENT_NODE_LOSS, .blame = DEMO_BLAME_NODE, .program = DEMO_EITHER },
	{ "network-stall", "the network between two ranks carries nothing any more", NULL,
	  "cannot reach the next rank any more", HANG(IN_COLLECTIVE, CONNECTION, 3, 30),
	  .min_nodes = 2, .event = DEMO_EVENT_NETWORK_STALL, .blame = DEMO_BLAME_LINK,
	  .program = DEMO_EITHER },
	{ "gpu-dies", "a rank's GPU dies inside a collective that the others complete", "gpu-dies",
	  "has a GPU that dies inside a collective", HANG(IN_COLLECTIVE, UNFINISHED, 2, 40),
	  .program = DEMO_PYTHON },
	/* The jobs of these scenarios end before or during an alert. A post-mortem explains why. */
	{ "cascade", "a rank fails; its launcher ends its node, and the other nodes' ranks abort",
	  "raise", "fails with an exception", HANG(PROCESS_DEAD, EXITED, 2, 40),
	  .has_postmortem = true, .event = DEMO_EVENT_LAUNCHER, .options = { "--watchdog", "600" },
	  .program = DEMO_PYTHON },
	{ "watchdog-abort",
	  "a rank blocks, and the job's own watchdog ends the others before an alert",
	  "block-in-data-loader", "blocks in its data loader, and the job's watchdog is quick",
	  HANG(NEVER_ENTERED, OUTSIDE_NCCL, 2, 40), .has_postmortem = true,
	  .event = DEMO_EVENT_LAUNCHER, .options = { "--watchdog", "14" }, .program = DEMO_PYTHON },
	{ "healthy", "nothing goes wrong; nothing must be reported", .program = DEMO_EITHER,
	  .min_ranks = 2 },
	/*
	 * The following scenarios only look like a hang. The daemons must not report them, either.
	 */
	{ "evaluation", "a rank evaluates the model, the others wait for it", "evaluate",
	  "evaluates the model", .lasts_s = 14, .watch_s = 20, .no_progress_after_s = 2,
	  .why = "it uses its CPU, and so it gets somewhere", .program = DEMO_PYTHON,
	  .min_ranks = 2 },
	{ "idle-root", "a rank waits for a request that it is to hand out, the others for the rank",
	  "await-request", "waits for a request", .lasts_s = 14, .watch_s = 20,
	  .no_progress_after_s = 2,
	  .why = "it is the one that gives the others work, and it has none to give",
	  .needs_host_wait = true, .program = DEMO_PYTHON, .min_ranks = 2 },
	{ "compile", "a rank waits for a busy child, the others for the rank", "wait-for-child",
	  "waits for a child that is busy", .lasts_s = 20, .watch_s = 30, .program = DEMO_PYTHON,
	  .min_ranks = 2 },
	{ "debugger", "a rank is held by a debugger for a while", "debug", "is held by a tracer",
	  .lasts_s = 20, .watch_s = 30, .program = DEMO_PYTHON, .min_ranks = 2 },
	{ "slow-checkpoint", "a rank writes to a file system that is frozen for 40 s (root only)",
	  "write-checkpoint", "writes a checkpoint to a frozen file system", .lasts_s = 40,
	  .watch_s = 50, .event = DEMO_EVENT_THAW, .program = DEMO_PYTHON, .min_ranks = 2 },
	{ "daemon-restart", "all daemons restart while a rank writes a checkpoint for 40 s",
	  "write-checkpoint", "writes a checkpoint for 40 s", .lasts_s = 40, .watch_s = 50,
	  .event = DEMO_EVENT_DAEMON_RESTART, .program = DEMO_PYTHON, .min_ranks = 2 },
	{ "elastic-restart", "the launcher ends all ranks and starts them once more",
	  .event = DEMO_EVENT_JOB_RESTART, .program = DEMO_EITHER, .min_ranks = 2 },
	{ "long-kernel", "a minute of work on every device, between two collectives", "long-kernel",
	  "has a device that works for a minute, as all have", .lasts_s = 60, .watch_s = 70,
	  .program = DEMO_PYTHON, .min_ranks = 2 },
	{ "pipeline-bubbles", "stages wait for each other most of the time",
	  .options = { "--workload", "pipeline-bubbles" }, .program = DEMO_PYTHON, .min_ranks = 2 },
	WORKLOAD("idle-experts", "communicators that are used rarely, or not at all"),
	WORKLOAD("premulsum", "operators of the program's own, another handle on every rank"),
	WORKLOAD("alltoallv", "sends and receives of other sizes for each pair of ranks"),
	WORKLOAD("big-broadcast", "a large broadcast among small calls"),
	{ "staggered-destroy", "ranks that clean up one after the other", .steps = 40,
	  .options = { "--workload", "staggered-destroy" }, .program = DEMO_PYTHON,
	  .min_ranks = 2 },
	{ "clean-exit", "all ranks have done their work and end", .steps = 40,
	  .program = DEMO_EITHER, .min_ranks = 2 },
	{ "cancelled", "a job manager ends the ranks one by one (SIGTERM)",
	  .event = DEMO_EVENT_CANCEL, .program = DEMO_EITHER, .min_ranks = 2 },
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

const struct demo_scenario *demo_scenario_find(const char *name)
{
	for (size_t i = 0; i < N_SCENARIOS; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

const struct demo_scenario *demo_scenario_default(void)
{
	return &scenarios[0];
}

const char *demo_scenario_name(unsigned i)
{
	return i < N_SCENARIOS ? scenarios[i].name : NULL;
}

void demo_scenario_list(FILE *out)
{
	for (size_t i = 0; i < N_SCENARIOS; i++)
		fprintf(out, "%-18s %s\n", scenarios[i].name, scenarios[i].summary);
}

static bool is_to_blame(const struct demo_scenario *s, const struct demo_case *c, int rank)
{
	switch (s->blame) {
	case DEMO_BLAME_CYCLE:
		/* Of four ranks, 0 and 2 form a data-parallel pair, and 1 and 3 another. */
		return rank == c->culprit || c->ranks == 2 ||
		       (c->ranks == 4 && rank % 2 == c->culprit % 2);
	case DEMO_BLAME_NODE:
		return demo_case_node(c, rank) == demo_case_node(c, c->culprit);
	default:
		return rank == c->culprit;
	}
}

/*
 * Returns the rank of a culprit. A post-mortem lists plain ranks; an incident has an object per
 * rank.
 */
static json_int_t rank_of(const json_t *culprit)
{
	return cw_json_int(culprit, "rank", -1);
}

/* True if the culprits are the two ends of a connection, and the faulty rank is one of them. */
static bool is_link(const json_t *culprits, const struct demo_case *c)
{
	json_int_t a = rank_of(json_array_get(culprits, 0));
	json_int_t b = rank_of(json_array_get(culprits, 1));

	return json_array_size(culprits) == 2 && a != b && (a == c->culprit || b == c->culprit);
}

/* True if the culprits are the guilty ranks, each once, and no other rank. */
static bool culprits_are_right(const struct demo_scenario *s, const json_t *culprits,
			       const struct demo_case *c)
{
	size_t named = 0;
	json_t *each;
	size_t i;

	if (s->blame == DEMO_BLAME_LINK)
		return is_link(culprits, c);
	for (int rank = 0; rank < c->ranks; rank++) {
		int times = 0;

		json_array_foreach (culprits, i, each)
			times += rank_of(each) == rank;
		if (times != is_to_blame(s, c, rank))
			return false;
		named += (size_t)times;
	}
	return named == json_array_size(culprits);
}

bool demo_scenario_is_right(const struct demo_scenario *s, const json_t *doc,
			    const struct demo_case *c)
{
	if (!s->expected_class)
		return strcmp(cw_json_str(doc, "schema", ""), "collwatch.healthy/1") == 0;
	if (s->has_postmortem && !json_object_get(doc, "ends"))
		return false;
	return cw_class_from_name(cw_json_str(doc, "class", "")) == (int)s->expected_class &&
	       (!s->expected_detail ||
		cw_detail_from_name(cw_json_str(doc, "detail", "")) == (int)s->expected_detail) &&
	       culprits_are_right(s, json_object_get(doc, "culprits"), c);
}
