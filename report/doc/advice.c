/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per step. A step is for a class, and either for one detail of it or for all.
 *
 * NCCL's variables are those of its user guide, "Environment Variables" (docs/env.html):
 * NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE; NCCL_LAUNCH_ORDER_IMPLICIT (since 2.26);
 * NCCL_SOCKET_IFNAME; NCCL_IB_DISABLE, NCCL_P2P_DISABLE and NCCL_NVLS_ENABLE, which take one
 * transport away each. The guide asks not to leave those of its section "Debugging" set; so do the
 * sentences. ncclras is the client of NCCL's RAS subsystem (troubleshooting/ras.html, since 2.24).
 * TORCH_DISTRIBUTED_DEBUG is PyTorch's (torch.distributed, "Debugging"): DETAIL compares every
 * collective before it is made.
 */
#include "report/doc/advice.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/doc/incident_doc.h"
#include "report/json_util.h"

/* A culprit is named; it is known where one sits. */
enum when { ALWAYS, NAMED, NOT_NAMED, SEEN, NOT_SEEN };

/*
 * In commands: {host}, {pid} and {rank} of the first culprit, {job}, {bundle} where the incident
 * is. No class: what holds a rank up is the same whatever the others wait in.
 */
struct row {
	const char *klass, *detail, *text, *command;
	uint8_t when; /* enum when */
};

#define DRAIN_TEXT                                                                                 \
	"Take the machine out of service before the job is restarted on it (Slurm shown; on "      \
	"Kubernetes: kubectl drain)."
#define DRAIN_COMMAND "scontrol update NodeName={host} State=DRAIN Reason=collwatch-{incident}"
#define KERNEL_LOG_COMMAND "ssh {host} 'journalctl -k --since -1h | tail -n 200'"
#define RESTART_TEXT "The job cannot recover by itself: restart it from its last checkpoint."
#define CALLS_TEXT                                                                                 \
	"A restart alone does not mend it. To catch it where it is made, run once with every "     \
	"call compared beforehand (PyTorch; slow) or logged by NCCL; do not leave it set."
#define WAIT_OR_RESTART_TEXT                                                                       \
	"If it does not get on, restart the job from its last checkpoint; nothing is wrong with "  \
	"the ranks that wait."
#define ALL_FRAMES_COMMAND "collwatch report --all-frames {bundle}"
#define STACKS_TEXT                                                                                \
	"If its stacks are not above, take them while it still hangs: the line it sits in blocks " \
	"the job, not the collective."
#define STACKS_COMMAND                                                                             \
	"collwatch stacks {job} {rank}   # without collwatch: py-spy dump --pid {pid}"
#define CALLS_COMMAND                                                                              \
	"TORCH_DISTRIBUTED_DEBUG=DETAIL   # or: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "           \
	"NCCL_DEBUG_FILE=/tmp/nccl.%h.%p"

static const struct row rows[] = {
	{ "process_dead", "oom_killed",
	  "The kernel killed it for lack of memory. Look at what else ran there, and at the limit "
	  "of "
	  "its control group; it will happen again with the same batch and limit.",
	  "ssh {host} \"journalctl -k | grep -i -A20 'out of memory'\"" },
	{ "process_dead", "killed",
	  "A signal ended it: who sent it is said above where the kernel told. SIGSEGV, SIGBUS and "
	  "SIGABRT are its own; for SIGKILL nobody admits to, look for a job manager or a memory "
	  "limit.",
	  KERNEL_LOG_COMMAND },
	{ "process_dead", "killed", "Of a signal of its own a core may tell where it crashed.",
	  "ssh {host} coredumpctl info {pid}" },
	{ "process_dead", "exited",
	  "It ended by itself: its own log, last lines, says why. An exception on one rank that "
	  "the others do not see looks like this; with status 0 it left its loop before the "
	  "others did (uneven data, an early stop).",
	  NULL },
	{ "process_dead", NULL, RESTART_TEXT, NULL },

	{ "node_unreachable", NULL,
	  "See whether the machine is up: power, network, kernel log on its console. Its ranks "
	  "cannot "
	  "be waited for.",
	  "ping -c 3 {host}" },
	{ "node_unreachable", NULL, DRAIN_TEXT, DRAIN_COMMAND },
	{ "node_unreachable", NULL, RESTART_TEXT, NULL },

	{ NULL, "stopped",
	  "It is stopped by a signal (state T) and does nothing until it is continued. If nobody "
	  "stopped "
	  "it on purpose, continue it: the job goes on.",
	  "ssh {host} kill -CONT {pid}" },
	{ NULL, "traced",
	  "A debugger holds it. Detach the debugger, or let it continue: the job goes on.",
	  "ssh {host} grep TracerPid /proc/{pid}/status" },
	{ NULL, "outside_nccl",
	  "Look where it sits, above: that line blocks the job, not the collective. If it can be "
	  "unblocked (storage, data, a lock, a service it asks), the job goes on.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ NULL, "outside_nccl", STACKS_TEXT, STACKS_COMMAND, NOT_SEEN },
	{ NULL, "outside_nccl",
	  "If it sits in storage, look at the file system and the kernel log of its machine.",
	  KERNEL_LOG_COMMAND },
	{ NULL, "inside_other_call",
	  "It is inside another call, which waits for nobody: look at the line above. A host call "
	  "that "
	  "does not return points at the machine or at NCCL.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ NULL, "inside_other_call", STACKS_TEXT, STACKS_COMMAND, NOT_SEEN },
	{ NULL, "aborted",
	  "It has given the communicator up, and the others have not been told: its own log says "
	  "why. "
	  "All ranks have to abort, or none.",
	  NULL },
	{ NULL, "destroyed",
	  "It has destroyed a communicator the others still use: look for what makes one rank "
	  "leave its "
	  "loop earlier (uneven data, an early stop).",
	  NULL },
	{ "never_entered", NULL, WAIT_OR_RESTART_TEXT, NULL },

	{ "mismatch", "count",
	  "Two ranks disagree on how much to send: look for what sizes depend on (the last batch, "
	  "padding, uneven shards, a parameter only one rank has).",
	  NULL },
	{ "mismatch", "dtype",
	  "Two ranks disagree on the data type: look for mixed precision that is on for one of "
	  "them, or "
	  "a checkpoint loaded in another type. Where nobody hangs for it, results since then are "
	  "wrong.",
	  NULL },
	{ "mismatch", "redop",
	  "Two ranks reduce with different operators. Nobody has to hang for that: results since "
	  "then "
	  "are wrong, so go back to a checkpoint from before it.",
	  NULL },
	{ "mismatch", "root",
	  "Two ranks disagree on the root: look for a root computed from a rank inside the group "
	  "instead "
	  "of one all agree on.",
	  NULL },
	{ "mismatch", "kind",
	  "Two ranks make different calls at the same place: look for a branch that depends on the "
	  "rank "
	  "or on data only one rank has.",
	  NULL },
	{ "mismatch", "missing",
	  "One rank left a call out: look for a branch, an early return or an exception that was "
	  "caught "
	  "on that rank only.",
	  NULL },
	{ "mismatch", "extra",
	  "One rank made a call more: look for a retry, or logging and evaluation code that runs "
	  "on that "
	  "rank only.",
	  NULL },
	{ "mismatch", "order",
	  "The same calls in another order: look for iteration over a set or dictionary, or for "
	  "calls "
	  "made from several threads.",
	  NULL },
	{ "mismatch", "version",
	  "The ranks do not run the same NCCL: look at images and library paths of the machines "
	  "named "
	  "above.",
	  "ssh {host} \"grep -o '[^ ]*libnccl[^ ]*' /proc/{pid}/maps | sort -u\"" },
	{ "mismatch", "environment",
	  "The ranks do not run with the same NCCL variables: compare them, and /etc/nccl.conf.",
	  "ssh {host} \"tr '\\\\0' '\\\\n' < /proc/{pid}/environ | grep ^NCCL_\"" },
	{ "mismatch", "membership",
	  "The ranks do not agree on who is a member: look at how the groups are made (colours and "
	  "ranks "
	  "of the split).",
	  NULL },
	{ "mismatch", "unknown_call",
	  "Only where their histories parted is known, above. While nobody hangs for it, results "
	  "since then may be wrong: go back to a checkpoint from before it.",
	  NULL },
	{ "mismatch", NULL, CALLS_TEXT, CALLS_COMMAND },

	{ "deadlock", NULL,
	  "Compare the calls of the circle: some rank makes two of them in the other order, or two "
	  "ranks both send first. Give all ranks one order; put sends and receives that cross into "
	  "one ncclGroupStart/End; do not let communicators that share a device be in use at once.",
	  NULL },
	{ "deadlock", NULL,
	  "As a work-around NCCL can order launches on a device as the host made them, which helps "
	  "where "
	  "all hosts agree on the order (2.26 and newer).",
	  "NCCL_LAUNCH_ORDER_IMPLICIT=1" },
	{ "deadlock", NULL, RESTART_TEXT, NULL },

	{ "p2p_unmatched", "size",
	  "Send and receive do not agree on the size: look for shapes that one side learns earlier "
	  "than "
	  "the other.",
	  NULL },
	{ "p2p_unmatched", "not_posted",
	  "One side never posted its half: look at its schedule (an uneven number of "
	  "micro-batches, a "
	  "stage that stops early).",
	  NULL },
	{ "p2p_unmatched", "not_posted",
	  "Where two ranks both send first, put the calls into one ncclGroupStart/End "
	  "(batch_isend_irecv).",
	  NULL },
	{ "p2p_unmatched", NULL, WAIT_OR_RESTART_TEXT, NULL },

	{ "init_stuck", NULL,
	  "Look at what holds it up before it calls NCCL: imports, data, a file or a service on "
	  "its machine. Its stacks, if they are not above:",
	  STACKS_COMMAND, NAMED },
	{ "init_stuck", NULL, WAIT_OR_RESTART_TEXT, NULL, NAMED },
	{ "init_stuck", NULL,
	  "Look at the ranks that have not come: not started, ended before, or stuck ahead of it.",
	  "collwatch stacks {job}", NOT_NAMED },
	{ "init_stuck", NULL,
	  "If all have come, they do not reach each other: check the interface NCCL chose, "
	  "firewalls and name resolution.",
	  "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET   # then "
	  "NCCL_SOCKET_IFNAME=…",
	  NOT_NAMED },

	{ "device_stalled", NULL,
	  "Earlier work on its device does not end. Look for Xid errors, and whether its GPU "
	  "answers.",
	  "ssh {host} 'journalctl -k | grep -i xid; nvidia-smi'" },
	{ "device_stalled", NULL, "If there is an Xid, or nvidia-smi hangs, it is the machine.",
	  DRAIN_COMMAND },
	{ "device_stalled", NULL,
	  "If the GPU is well, a kernel of the program does not end: its stack above shows what "
	  "was "
	  "launched last.",
	  "CUDA_LAUNCH_BLOCKING=1   # for one run: the call that hangs is the one to look at" },

	{ "in_collective", NULL,
	  "All are inside the call, so it is the network, a GPU or NCCL, not the program. Look at "
	  "link "
	  "errors and Xid on the machines of the communicator.",
	  "journalctl -k | grep -iE 'xid|mlx5|link is down|nvlink'; nvidia-smi nvlink -e" },
	{ "in_collective", NULL,
	  "NCCL 2.24 and newer knows which ranks it cannot hear; ask it on any machine of the job.",
	  "ncclras -v" },
	{ "in_collective", NULL,
	  "If it comes back after a restart, take one transport away at a time to find the one to "
	  "blame; "
	  "do not leave these set.",
	  "NCCL_NVLS_ENABLE=0   # then NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1" },
	{ "in_collective", NULL, "If one machine keeps turning up, drain it.", NULL },

	{ "slow", NULL,
	  "It moves, but late: look at the storage, clocks and neighbours of the outlier.",
	  "ssh {host} nvidia-smi -q -d PERFORMANCE,CLOCK" },
	{ "unknown", NULL,
	  "What is seen does not say who it is. What could not be seen is listed in this report: "
	  "start with those ranks and nodes.",
	  "collwatch status" },
	{ "unknown", NULL,
	  "Look at the stacks of the ranks that wait, and of those that are missing.",
	  "collwatch stacks {job}" },
};

/* Fit to be pasted into a shell as they are. */
static bool is_harmless(const char *text)
{
	return *text && *text != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "._-/:") == strlen(text);
}

/* What stands for {name}; never more than harmless characters. */
static void value_of(const json_t *incident, const char *name, char *buf, size_t len)
{
	const json_t *who = json_array_get(json_object_get(incident, "culprits"), 0);
	const char *text = "";

	/* Recordings do not say on which machine they were made. */
	if (strcmp(name, "host") == 0 &&
	    strcmp(cw_json_str(incident, "leader", ""), CW_LEADER_ANALYZE) != 0)
		text = cw_json_str(who, "host", "");
	else if (strcmp(name, "job") == 0)
		text = cw_json_str(incident, "job", "");
	else if (strcmp(name, "bundle") == 0)
		text = cw_json_str(incident, "bundle", cw_json_str(incident, "id", ""));
	else if (strcmp(name, "incident") == 0)
		text = cw_json_str(incident, "id", "");
	(void)snprintf(buf, len, "%s", text);
	if (strcmp(name, "pid") == 0 && cw_json_int(who, "pid", 0) > 0)
		(void)snprintf(buf, len, "%" JSON_INTEGER_FORMAT, cw_json_int(who, "pid", 0));
	if (strcmp(name, "rank") == 0 && cw_json_int(who, "rank", -1) >= 0)
		(void)snprintf(buf, len, "%" JSON_INTEGER_FORMAT, cw_json_int(who, "rank", -1));
	if (is_harmless(buf) && strlen(buf) + 1 < len)
		return;
	(void)snprintf(buf, len, "<%s>", name);
}

static void fill_in(const json_t *incident, const char *from, char *to, size_t len)
{
	size_t used = 0;

	while (*from && used + 1 < len) {
		char name[16], value[160];
		const char *end = *from == '{' ? strchr(from, '}') : NULL;

		if (!end) {
			to[used++] = *from++;
			continue;
		}
		(void)snprintf(name, sizeof(name), "%.*s", (int)(end - from - 1), from + 1);
		value_of(incident, name, value, sizeof(value));
		used += (size_t)snprintf(to + used, len - used, "%s", value);
		from = end + 1;
	}
	to[used < len ? used : len - 1] = '\0';
}

static bool is_named(const json_t *incident)
{
	return json_array_size(json_object_get(incident, "culprits")) > 0;
}

static bool is_seen(const json_t *incident)
{
	const json_t *culprit;
	size_t i;

	json_array_foreach (json_object_get(incident, "culprits"), i, culprit)
		if (json_object_get(culprit, "sits_in"))
			return true;
	return false;
}

static bool applies(const struct row *row, const json_t *incident)
{
	if (row->klass && strcmp(row->klass, cw_json_str(incident, "class", "")) != 0)
		return false;
	if (row->detail && strcmp(row->detail, cw_json_str(incident, "detail", "")) != 0)
		return false;
	switch (row->when) {
	case NAMED:
	case NOT_NAMED:
		return is_named(incident) == (row->when == NAMED);
	case SEEN:
	case NOT_SEEN:
		return is_seen(incident) == (row->when == SEEN);
	default:
		return true;
	}
}

void cw_advice(const json_t *incident, struct advice *ret)
{
	*ret = (struct advice){ 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && ret->n < ADVICE_MAX; i++) {
		struct advice_step *step = &ret->steps[ret->n];

		if (!applies(&rows[i], incident))
			continue;
		step->text = rows[i].text;
		if (rows[i].command)
			fill_in(incident, rows[i].command, step->command, sizeof(step->command));
		ret->n++;
	}
}
