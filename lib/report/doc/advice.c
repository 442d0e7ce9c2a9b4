/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per step; docs/design/advice.md states each row's condition and its test. A step belongs
 * to a class, and either to one detail of it or to all.
 *
 * NCCL's variables are those of its user guide, "Environment Variables" (docs/env.html):
 * NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE; NCCL_LAUNCH_ORDER_IMPLICIT (since 2.26);
 * NCCL_SOCKET_IFNAME; NCCL_IB_DISABLE, NCCL_P2P_DISABLE and NCCL_NVLS_ENABLE, each of them
 * disabling one transport. The guide asks users not to leave the variables of its section
 * "Debugging" set, and so do our sentences. ncclras is the client of NCCL's RAS subsystem
 * (troubleshooting/ras.html, since 2.24). TORCH_DISTRIBUTED_DEBUG is PyTorch's (torch.distributed,
 * "Debugging"): DETAIL compares every collective before PyTorch issues it.
 */
#include "report/doc/advice.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/facts.h"
#include "model/verdict_types.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"

/*
 * The condition of a row:
 *
 *	NAMED, NOT_NAMED       the incident has a culprit, or has none
 *	NOT_FAILED             the culprit did not fail
 *	NOT_COME               it neither failed nor is held by a signal, debugger or freezer
 *	FREE                   no rank is held
 *	ALL_SEEN               all ranks entered the call, and we see all of the job
 *	NOT_ALL_SEEN           all ranks entered the call, and we see a part of the job
 *	SEEN                   we know the culprit's position
 *	NOT_SEEN               we do not know the position, in a live incident
 *	NOT_SEEN_RECORDED      we do not know the position, in recordings
 *	CRASHED                the fatal signal is one that a program's fault raises
 *	SENT, NOT_SENT         the fatal signal is another one, with or without known sender
 *	IN_LOCK, …             the object that the culprit sleeps on
 *	MAYBE_STORAGE          the culprit sleeps on storage, or on an object unknown to us
 *	LIKE_SERVER            the job looks like a server
 *	MANY_MISSING           more ranks are missing than wait
 *	CERTAIN, NOT_CERTAIN   the verdict is certain and has no blind spot, or not
 */
enum when {
	ALWAYS,
	NAMED,
	NOT_NAMED,
	NOT_FAILED,
	NOT_COME,
	FREE,
	ALL_SEEN,
	NOT_ALL_SEEN,
	SEEN,
	NOT_SEEN,
	NOT_SEEN_RECORDED,
	RECORDED,
	LIVE,
	CRASHED,
	SENT,
	NOT_SENT,
	IN_LOCK,
	IN_SOCKET,
	AT_PROMPT,
	MAYBE_STORAGE,
	LIKE_SERVER,
	MANY_MISSING,
	CERTAIN,
	NOT_CERTAIN,
};

/*
 * Commands may contain {host}, {pid} and {rank} of the first culprit, {job}, and {bundle}, the
 * incident's path. ANY_CLASS: the row fits every class, because the obstacle of a rank does not
 * depend on the call that the others wait in.
 */
#define ANY_CLASS CW_CLASS_HEALTHY /* a class that needs no advice of its own */
#define ANY_DETAIL CW_DETAIL_NONE
struct row {
	const char *id; /* the row in docs/design/advice.md, with its condition and test */
	enum cw_class verdict_class;
	enum cw_detail detail;
	const char *text, *command;
	uint8_t when; /* enum when */
};

#define DRAIN_TEXT                                                                                 \
	"Take the machine out of service before the job is restarted on it (Slurm shown; on "      \
	"Kubernetes: kubectl drain)."
#define DRAIN_COMMAND "scontrol update NodeName={host} State=DRAIN Reason=collwatch-{incident}"
#define KERNEL_LOG_COMMAND "ssh {host} 'journalctl -k --since -1h | tail -n 200'"
#define RESTART_TEXT "The job cannot recover by itself: restart it from its last checkpoint."
#define CALLS_TEXT                                                                                 \
	"A restart alone does not fix it. To catch it where it is made, run once with every "      \
	"call compared beforehand (PyTorch; slow) or logged by NCCL; do not leave it set."
#define IF_NOT_RESTART_TEXT "If it does not continue, restart the job from its last checkpoint"
#define FABRIC_COMMAND                                                                             \
	"journalctl -k | grep -iE 'xid|mlx5|link is down|nvlink'; nvidia-smi nvlink -e"
#define LINK_COMMAND "ssh {host} 'ip -s link; rdma statistic show link'   # and on the other end"
#define GPU_TEXT                                                                                   \
	"The network is sound, and this GPU does not go on. Look for Xid errors, and for earlier " \
	"work on its streams that does not end."
#define XID_COMMAND "ssh {host} 'journalctl -k | grep -i xid; nvidia-smi'"
#define ALL_FRAMES_COMMAND "collwatch report --all-frames {bundle}"
#define STACKS_TEXT                                                                                \
	"If this report has no stacks of it, take them while it still hangs: they show "           \
	"the line it waits at."
#define STACKS_COMMAND                                                                             \
	"collwatch stacks {job} {rank}   # without collwatch: py-spy dump --pid {pid}"
#define RECORDED_TEXT                                                                              \
	"The recordings hold no stack of it. Run the job again with collwatch, which takes the "   \
	"stacks while it hangs, or take them then with py-spy: the line that it is in blocks the " \
	"job, not the collective."
#define RECORDED_COMMAND                                                                           \
	"collwatch run --standalone -- PROGRAM   # or, while it hangs: py-spy dump --pid PID"
#define CALLS_COMMAND                                                                              \
	"TORCH_DISTRIBUTED_DEBUG=DETAIL   # or: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "           \
	"NCCL_DEBUG_FILE=/tmp/nccl.%h.%p"

static const struct row rows[] = {
	{ "server", ANY_CLASS, ANY_DETAIL,
	  "Several times it had nothing to give the others until there was some, as it is with a "
	  "server between requests. If it is one, say so where its ranks are started: nobody is "
	  "called then for a server that is idle, only for what is broken.",
	  "export COLLWATCH_POLICY=serving   # before the job is started again", LIKE_SERVER },
	{ "oom", CW_CLASS_PROCESS_DEAD, CW_DETAIL_OOM_KILLED,
	  "The kernel killed it for lack of memory. Look at what else ran there, and at the limit "
	  "of "
	  "its control group; it may happen again with the same batch and limit.",
	  "ssh {host} \"journalctl -k | grep -i -A20 'out of memory'\"" },
	{ "crashed", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "The program crashed by itself. Its own log has the last words; a core file shows where.",
	  "ssh {host} coredumpctl info {pid}", CRASHED },
	{ "signal-sent", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "Who sent the signal is named above: find out why. Job managers and schedulers do so at "
	  "a limit of time or memory.",
	  NULL, SENT },
	{ "signal-unknown", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "A signal ended it, and who sent it is not known: look for a job manager, a limit of time, "
	  "or a lack of memory.",
	  KERNEL_LOG_COMMAND, NOT_SENT },
	{ "exited", CW_CLASS_PROCESS_DEAD, CW_DETAIL_EXITED,
	  "It ended by itself: read the last lines of its own log. An exception on one rank that "
	  "the others do not see looks like this; with status 0 it left its loop before the "
	  "others did (uneven data, an early stop).",
	  NULL },
	{ "dead-restart", CW_CLASS_PROCESS_DEAD, ANY_DETAIL, RESTART_TEXT, NULL },

	{ "node-check", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL,
	  "Check whether the machine is up: power, network, kernel log on its console.",
	  "ping -c 3 {host}" },
	{ "node-drain", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL, DRAIN_TEXT, DRAIN_COMMAND },
	{ "node-restart", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL },

	{ "continue", ANY_CLASS, CW_DETAIL_STOPPED,
	  "The rank is stopped by a signal and does nothing until it is continued. If nobody "
	  "stopped it on purpose, continue it: the job goes on.",
	  "ssh {host} kill -CONT {pid}" },
	{ "detach", ANY_CLASS, CW_DETAIL_TRACED,
	  "A debugger holds it. Detach the debugger, or let it continue: the job goes on.",
	  "ssh {host} grep TracerPid /proc/{pid}/status" },
	{ "thaw", ANY_CLASS, CW_DETAIL_FROZEN,
	  "Its control group is frozen: by a paused container, a suspended job or a checkpoint. The "
	  "job goes on once the group is thawed.",
	  "ssh {host} cat /proc/{pid}/cgroup" },
	{ "line", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "It waits at the line named here. If that can be unblocked (storage, data, a lock, a "
	  "service it asks), the job goes on; if it waits there for another rank, look at that one.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ "line-stacks", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL, STACKS_TEXT, STACKS_COMMAND, NOT_SEEN },
	{ "line-recorded", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL, RECORDED_TEXT, RECORDED_COMMAND,
	  NOT_SEEN_RECORDED },
	{ "lock", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "Another thread of the same process holds what it waits for: look at all of its threads.",
	  ALL_FRAMES_COMMAND, IN_LOCK },
	{ "prompt", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "Somebody is asked for something on its terminal, or has it at a breakpoint: find out who.",
	  "ssh {host} ls -l /proc/{pid}/fd/0", AT_PROMPT },
	{ "socket", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "Find out who it is connected to, and whether that one answers: a store, a server of data, "
	  "an object store.",
	  "ssh {host} 'ss -tnp | grep pid={pid},'", IN_SOCKET },
	{ "storage", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "If it waits for storage, check the file system and the kernel log of its machine.",
	  KERNEL_LOG_COMMAND, MAYBE_STORAGE },
	{ "other-call", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL,
	  "It is inside another call, which waits for no rank. A host call that does not return "
	  "points at the machine or at NCCL.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ "other-call-stacks", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL, STACKS_TEXT, STACKS_COMMAND,
	  NOT_SEEN },
	{ "other-call-recorded", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL, RECORDED_TEXT,
	  RECORDED_COMMAND, NOT_SEEN_RECORDED },
	{ "aborted", ANY_CLASS, CW_DETAIL_ABORTED,
	  "It has aborted the communicator without the others: its own log says why. "
	  "All ranks have to abort, or none.",
	  NULL },
	{ "destroyed", ANY_CLASS, CW_DETAIL_DESTROYED,
	  "It has destroyed a communicator the others still use: look for what makes one rank "
	  "leave its "
	  "loop earlier (uneven data, an early stop).",
	  NULL },
	{ "many-missing", CW_CLASS_NEVER_ENTERED, ANY_DETAIL,
	  "More ranks are missing than wait: those that wait may have left out what the others are "
	  "in (a barrier of gloo or MPI, a key of a store), which is not seen here. Compare the "
	  "lines of both.",
	  "collwatch stacks {job}", MANY_MISSING },
	{ "restart", CW_CLASS_NEVER_ENTERED, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL,
	  NOT_CERTAIN },
	{ "restart-waiters-well", CW_CLASS_NEVER_ENTERED, ANY_DETAIL,
	  IF_NOT_RESTART_TEXT "; nothing is wrong with the ranks that wait.", NULL, CERTAIN },

	{ "count", CW_CLASS_MISMATCH, CW_DETAIL_COUNT,
	  "Ranks disagree on how much to send: look for what sizes depend on (the last batch, "
	  "padding, uneven shards, a parameter only one rank has).",
	  NULL },
	{ "dtype", CW_CLASS_MISMATCH, CW_DETAIL_DTYPE,
	  "Ranks disagree on the data type: look for mixed precision that is on for one of "
	  "them, or "
	  "a checkpoint loaded in another type. Where nobody hangs for it, results since then are "
	  "wrong.",
	  NULL },
	{ "redop", CW_CLASS_MISMATCH, CW_DETAIL_REDOP,
	  "Ranks reduce with different operators. Nobody has to hang for that: results since "
	  "then "
	  "are wrong, so go back to a checkpoint from before it.",
	  NULL },
	{ "root", CW_CLASS_MISMATCH, CW_DETAIL_ROOT,
	  "Ranks disagree on the root: look for a root computed from a rank inside the group "
	  "instead "
	  "of one all agree on.",
	  NULL },
	{ "kind", CW_CLASS_MISMATCH, CW_DETAIL_KIND,
	  "Ranks make different calls at the same place: look for a branch that depends on the "
	  "rank "
	  "or on data only one rank has.",
	  NULL },
	{ "missing", CW_CLASS_MISMATCH, CW_DETAIL_MISSING,
	  "One rank left a call out: look for a branch, an early return or an exception that was "
	  "caught "
	  "on that rank only.",
	  NULL },
	{ "extra", CW_CLASS_MISMATCH, CW_DETAIL_EXTRA,
	  "One rank made a call more: look for a retry, or logging and evaluation code that runs "
	  "on that "
	  "rank only.",
	  NULL },
	{ "order", CW_CLASS_MISMATCH, CW_DETAIL_ORDER,
	  "The same calls in another order: look for iteration over a set or dictionary, or for "
	  "calls "
	  "made from several threads.",
	  NULL },
	{ "version", CW_CLASS_MISMATCH, CW_DETAIL_VERSION,
	  "The ranks do not run the same NCCL: look at images and library paths of the machines "
	  "named "
	  "above.",
	  "ssh {host} \"grep -o '[^ ]*libnccl[^ ]*' /proc/{pid}/maps | sort -u\"" },
	{ "environment", CW_CLASS_MISMATCH, CW_DETAIL_ENVIRONMENT,
	  "The ranks do not run with the same NCCL variables: compare them, and /etc/nccl.conf.",
	  "ssh {host} \"tr '\\\\0' '\\\\n' < /proc/{pid}/environ | grep ^NCCL_\"" },
	{ "membership", CW_CLASS_MISMATCH, CW_DETAIL_MEMBERSHIP,
	  "The ranks do not agree on who is a member: look at how the groups are made (colours and "
	  "ranks "
	  "of the split).",
	  NULL },
	{ "unknown-call", CW_CLASS_MISMATCH, CW_DETAIL_UNKNOWN_CALL,
	  "Only where their histories parted is known, above. While nobody hangs for it, results "
	  "since then may be wrong: go back to a checkpoint from before it.",
	  NULL },
	{ "compare-calls", CW_CLASS_MISMATCH, ANY_DETAIL, CALLS_TEXT, CALLS_COMMAND },

	{ "cycle", CW_CLASS_DEADLOCK, ANY_DETAIL,
	  "Compare the calls of the cycle: a rank makes two of them in another order than the rest, "
	  "or two ranks both send first. Make the calls in one order on all ranks; put sends and "
	  "receives that cross into one ncclGroupStart/End; do not use communicators that share a "
	  "device at the same time.",
	  NULL },
	{ "cycle-workaround", CW_CLASS_DEADLOCK, ANY_DETAIL,
	  "Workaround: NCCL 2.26 and newer can launch in the order of the host's calls, which helps "
	  "where all hosts agree on the order.",
	  "NCCL_LAUNCH_ORDER_IMPLICIT=1" },
	{ "cycle-restart", CW_CLASS_DEADLOCK, ANY_DETAIL, RESTART_TEXT, NULL },

	{ "size", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_SIZE,
	  "Send and receive do not agree on the size: look for shapes that one side learns earlier "
	  "than "
	  "the other.",
	  NULL },
	{ "not-posted", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_NOT_POSTED,
	  "One side never posted its half: look at its schedule (an uneven number of "
	  "micro-batches, a "
	  "stage that stops early).",
	  NULL },
	{ "both-send", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_NOT_POSTED,
	  "Where two ranks both send first, put the calls into one ncclGroupStart/End "
	  "(batch_isend_irecv).",
	  NULL },
	{ "p2p-restart", CW_CLASS_P2P_UNMATCHED, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL },

	{ "init-failed", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED,
	  "NCCL returned the error to that rank alone. Check on its machine what NCCL's words name: a "
	  "network interface, shared memory, a GPU, an argument. NCCL's own log says more:",
	  "NCCL_DEBUG=WARN   # for one run" },
	{ "init-failed-end", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED,
	  "The program caught the error, or waits behind it: end it where it cannot go on, so that "
	  "the other ranks do not wait.",
	  STACKS_COMMAND },
	{ "init-failed-restart", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED, IF_NOT_RESTART_TEXT ".",
	  NULL },
	{ "init-late", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "Find what holds it up before it calls NCCL: imports, data, a file or a service on "
	  "its machine. Its stacks, if they are not in this report:",
	  STACKS_COMMAND, NOT_COME },
	{ "init-restart", CW_CLASS_INIT_STUCK, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL,
	  NOT_FAILED },
	{ "init-absent", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "Look at the missing ranks: not started, ended before, or stuck on the way.",
	  "collwatch stacks {job}", NOT_NAMED },
	{ "init-network", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "If all ranks called it, they do not reach each other: check the interface NCCL chose, "
	  "firewalls and name resolution.",
	  "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET   # then "
	  "NCCL_SOCKET_IFNAME=…",
	  NOT_NAMED },

	{ "device", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "Earlier work on its device does not end. Look for Xid errors, and whether its GPU "
	  "answers.",
	  XID_COMMAND },
	{ "device-drain", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "If there is an Xid, or nvidia-smi hangs, it is the machine.", DRAIN_COMMAND },
	{ "device-kernel", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "If the GPU is healthy, a kernel of the program does not end: the stack of the rank shows "
	  "what was launched last.",
	  "CUDA_LAUNCH_BLOCKING=1   # for one run: the call that hangs is the one to look at" },

	{ "link", CW_CLASS_IN_COLLECTIVE, CW_DETAIL_CONNECTION,
	  "This connection moves no data: check port, cable and switch between its two machines, "
	  "and the errors that both NICs count.",
	  LINK_COMMAND },
	{ "slow-link", CW_CLASS_IN_COLLECTIVE, CW_DETAIL_SLOW_CONNECTION,
	  "All others wait for this connection: check the rate of its port, and the errors and "
	  "pauses that both NICs count.",
	  LINK_COMMAND },
	{ "gpu-keeps", CW_CLASS_IN_COLLECTIVE, CW_DETAIL_GPU_NOT_CONSUMING, GPU_TEXT, XID_COMMAND },
	{ "gpu-silent", CW_CLASS_IN_COLLECTIVE, CW_DETAIL_GPU_NOT_PRODUCING, GPU_TEXT,
	  XID_COMMAND },
	{ "proxy", CW_CLASS_IN_COLLECTIVE, CW_DETAIL_NOT_IN_PROXY,
	  "Its call waits for NCCL's proxy. If its native stack is in ncclLocalOpAppend, the pool "
	  "of proxy operations is exhausted (NVIDIA/nccl#2353).",
	  NULL },
	{ "fabric", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "All ranks entered the call, so it is the network, a GPU or NCCL, not the program. Check "
	  "link errors and Xid on the machines of the communicator.",
	  FABRIC_COMMAND, ALL_SEEN },
	{ "fabric-unsure", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "Check link errors and Xid on the machines of the communicator. A part of the job is not "
	  "visible, so that the program may be the cause, too.",
	  FABRIC_COMMAND, NOT_ALL_SEEN },
	{ "ras", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "NCCL 2.24 and newer knows which ranks it cannot hear; ask it on any machine of the job.",
	  "ncclras -v", FREE },
	{ "transports", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "If it comes back after a restart, take one transport away at a time to find the one to "
	  "blame; "
	  "do not leave these set.",
	  "NCCL_NVLS_ENABLE=0   # then NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1", FREE },
	{ "drain", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL, "If one machine keeps turning up, drain it.",
	  NULL, FREE },

	{ "slow", CW_CLASS_SLOW, ANY_DETAIL,
	  "It moves, but late: check the storage, clocks and neighbours of the outlier.",
	  "ssh {host} nvidia-smi -q -d PERFORMANCE,CLOCK" },
	{ "unknown", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "The evidence does not name a culprit. This report lists what was not visible: "
	  "start with those ranks and nodes.",
	  "collwatch status", LIVE },
	{ "unknown-recorded", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "The recordings do not prove a culprit. This report lists what they do not show: dump "
	  "all ranks again, within the same minute.",
	  NULL, RECORDED },
	{ "unknown-stacks", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "Look at the stacks of the ranks that wait, and of those that are missing.",
	  "collwatch stacks {job}", LIVE },
};

/* True if users can paste the text into a shell without quotes. */
static bool is_harmless(const char *text)
{
	return *text && *text != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "._-/:") == strlen(text);
}

/* True if the incident comes from recordings; its job may be gone. */
static bool is_recorded(const struct cw_incident_facts *incident)
{
	return strcmp(cw_fact_text(incident->leader), CW_LEADER_ANALYZE) == 0;
}

static const struct cw_incident_culprit *first_culprit(const struct cw_incident_facts *incident)
{
	static const struct cw_incident_culprit none = { .rank = -1, .host_wait.number = -1 };

	return incident->n_culprits ? &incident->culprits[0] : &none;
}

/* Writes the value of {name} into buf. It consists of harmless characters only. */
static void value_of(const struct cw_incident_facts *incident, const char *name, char *buf,
		     size_t len)
{
	const struct cw_incident_culprit *who = first_culprit(incident);
	const char *text = "";

	/* Recordings do not name the machine that made them. */
	if (strcmp(name, "host") == 0 && !is_recorded(incident))
		text = cw_fact_text(who->host);
	else if (strcmp(name, "job") == 0)
		text = cw_phrase_job(incident->job, "");
	else if (strcmp(name, "bundle") == 0)
		text = incident->bundle ? incident->bundle : cw_fact_text(incident->id);
	else if (strcmp(name, "incident") == 0)
		text = cw_fact_text(incident->id);
	(void)snprintf(buf, len, "%s", text);
	if (strcmp(name, "pid") == 0 && who->pid > 0)
		(void)snprintf(buf, len, "%" PRId32, who->pid);
	if (strcmp(name, "rank") == 0 && who->rank >= 0)
		(void)snprintf(buf, len, "%" PRId32, who->rank);
	if (is_harmless(buf) && strlen(buf) + 1 < len)
		return;
	(void)snprintf(buf, len, "<%s>", name);
}

static void fill_in(const struct cw_incident_facts *incident, const char *from, char *to,
		    size_t len)
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

static bool is_named(const struct cw_incident_facts *incident)
{
	return incident->n_culprits > 0;
}

/* True if a signal, a debugger or a freezer holds one of the ranks. */
static bool is_held(const struct cw_incident_facts *incident)
{
	return cw_detail_is_hold((unsigned)incident->detail.number);
}

static bool is_failed(const struct cw_incident_facts *incident)
{
	return incident->detail.number == CW_DETAIL_FAILED;
}

/* True if no rank and no call is in a blind spot. False if the incident has no list of them. */
static bool is_all_seen(const struct cw_incident_facts *incident)
{
	return !(incident->blind_spots & (CW_BLIND_OF_CALL | CW_INCIDENT_NAMES_ABSENT));
}

static bool is_certain(const struct cw_incident_facts *incident)
{
	return !incident->blind_spots && incident->confidence.number == CW_CONFIDENCE_CERTAIN;
}

static bool is_seen(const struct cw_incident_facts *incident)
{
	for (uint32_t i = 0; i < incident->n_culprits; i++)
		if (incident->culprits[i].sits_in)
			return true;
	return false;
}

static bool has_many_missing(const struct cw_incident_facts *incident)
{
	return incident->victims && incident->n_culprits > incident->victims->count;
}

static enum when what_it_sleeps_in(const struct cw_incident_facts *incident)
{
	switch (first_culprit(incident)->host_wait.number) {
	case CW_HOST_WAIT_LOCK:
	case CW_HOST_WAIT_GIL:
		return IN_LOCK;
	case CW_HOST_WAIT_SOCKET:
		return IN_SOCKET;
	case CW_HOST_WAIT_TTY:
		return AT_PROMPT;
	case CW_HOST_WAIT_QUEUE:
		return ALWAYS;
	default:
		return MAYBE_STORAGE;
	}
}

/*
 * True for the signals with a core file as their default action, except SIGQUIT, which users send.
 */
static bool is_crash(int32_t signal)
{
	switch (signal) {
	case SIGSEGV:
	case SIGBUS:
	case SIGABRT:
	case SIGFPE:
	case SIGILL:
	case SIGSYS:
	case SIGTRAP:
		return true;
	default:
		return false;
	}
}

static enum when how_killed(const struct cw_incident_facts *incident)
{
	const struct cw_incident_culprit *culprit = first_culprit(incident);
	bool has_crashed = is_crash(culprit->term_signal);

	switch (culprit->end_by.number) {
	case CW_END_BY_PROCESS:
	case CW_END_BY_OUTSIDE:
	case CW_END_BY_PARENT:
	case CW_END_BY_INIT:
		return SENT;
	case CW_END_BY_ITSELF: /* abort(), or a signal that the program chose */
		return has_crashed ? CRASHED : SENT;
	default:
		return has_crashed ? CRASHED : NOT_SENT;
	}
}

static bool applies(const struct row *row, const struct cw_incident_facts *incident)
{
	if (row->verdict_class != ANY_CLASS &&
	    incident->verdict_class.number != (int)row->verdict_class)
		return false;
	if (row->detail != ANY_DETAIL && incident->detail.number != (int)row->detail)
		return false;
	switch (row->when) {
	case NAMED:
	case NOT_NAMED:
		return is_named(incident) == (row->when == NAMED);
	case NOT_FAILED:
		return is_named(incident) && !is_failed(incident);
	case NOT_COME:
		return is_named(incident) && !is_failed(incident) && !is_held(incident);
	case FREE:
		return !is_held(incident);
	case ALL_SEEN:
	case NOT_ALL_SEEN:
		return !is_held(incident) && is_all_seen(incident) == (row->when == ALL_SEEN);
	case SEEN:
		return is_seen(incident);
	case NOT_SEEN:
	case NOT_SEEN_RECORDED:
		return !is_seen(incident) &&
		       is_recorded(incident) == (row->when == NOT_SEEN_RECORDED);
	case RECORDED:
	case LIVE:
		return is_recorded(incident) == (row->when == RECORDED);
	case CRASHED:
	case SENT:
	case NOT_SENT:
		return how_killed(incident) == row->when;
	case IN_LOCK:
	case IN_SOCKET:
	case AT_PROMPT:
	case MAYBE_STORAGE:
		return what_it_sleeps_in(incident) == row->when;
	case LIKE_SERVER:
		return strcmp(cw_fact_text(incident->proposed_policy),
			      CW_INCIDENT_POLICY_SERVING) == 0;
	case MANY_MISSING:
		return has_many_missing(incident);
	case CERTAIN:
	case NOT_CERTAIN:
		return is_certain(incident) == (row->when == CERTAIN);
	default:
		return true;
	}
}

void cw_advice(const struct cw_incident_facts *incident, struct advice *ret)
{
	*ret = (struct advice){ 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && ret->n < ADVICE_MAX; i++) {
		struct advice_step *step = &ret->steps[ret->n];

		if (!applies(&rows[i], incident))
			continue;
		step->id = rows[i].id;
		step->text = rows[i].text;
		if (rows[i].command)
			fill_in(incident, rows[i].command, step->command, sizeof(step->command));
		ret->n++;
	}
}
