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
	"A restart alone does not fix this. To find the wrong call in the program, run it once "   \
	"with a check of every call by PyTorch (slow), or with NCCL's log of all calls. Unset "    \
	"the variables afterwards."
#define IF_NOT_RESTART_TEXT "If the job does not continue, restart it from its last checkpoint"
#define FABRIC_COMMAND                                                                             \
	"journalctl -k | grep -iE 'xid|mlx5|link is down|nvlink'; nvidia-smi nvlink -e"
#define LINK_COMMAND "ssh {host} 'ip -s link; rdma statistic show link'   # and on the other end"
#define GPU_TEXT                                                                                   \
	"The network is sound, and this GPU does not go on. Look for Xid errors, and for earlier " \
	"work on its streams that does not end."
#define XID_COMMAND "ssh {host} 'journalctl -k | grep -i xid; nvidia-smi'"
#define ALL_FRAMES_COMMAND "collwatch report --all-frames {bundle}"
#define STACKS_TEXT                                                                                \
	"If this report has no stacks of this rank, take them while it still hangs: they show "    \
	"the line at which it waits."
#define STACKS_COMMAND                                                                             \
	"collwatch stacks {job} {rank}   # without collwatch: py-spy dump --pid {pid}"
#define RECORDED_TEXT                                                                              \
	"The recordings have no stack of this rank. Run the job again with collwatch, which "      \
	"takes the stacks while the rank hangs, or take them with py-spy: not the collective "     \
	"blocks the job, but the line that this rank is in."
#define RECORDED_COMMAND                                                                           \
	"collwatch run --standalone -- PROGRAM   # or, while it hangs: py-spy dump --pid PID"
#define CALLS_COMMAND                                                                              \
	"TORCH_DISTRIBUTED_DEBUG=DETAIL   # or: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "           \
	"NCCL_DEBUG_FILE=/tmp/nccl.%h.%p"

static const struct row rows[] = {
	{ "server", ANY_CLASS, ANY_DETAIL,
	  "Several times, this rank had no work for the others until new work arrived, as a server "
	  "has between requests. If the job is a server, set this variable where its ranks are "
	  "started. collwatch then alerts only about faults, not about an idle server.",
	  "export COLLWATCH_POLICY=serving   # before the job is started again", LIKE_SERVER },
	{ "oom", CW_CLASS_PROCESS_DEAD, CW_DETAIL_OOM_KILLED,
	  "The kernel killed it for lack of memory. Check the other processes on this machine and "
	  "the limit of its control group. The same batch and the same limit may lead to the same "
	  "end.",
	  "ssh {host} \"journalctl -k | grep -i -A20 'out of memory'\"" },
	{ "crashed", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "The program crashed. Read the end of its log; a core file shows the place of the crash.",
	  "ssh {host} coredumpctl info {pid}", CRASHED },
	{ "signal-sent", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "The sender of the signal is named above: find out why it sent it. Job managers and "
	  "schedulers send signals at a limit of time or memory.",
	  NULL, SENT },
	{ "signal-unknown", CW_CLASS_PROCESS_DEAD, CW_DETAIL_KILLED,
	  "A signal of an unknown sender ended it: check for a job manager, a limit of time, or a "
	  "lack of memory.",
	  KERNEL_LOG_COMMAND, NOT_SENT },
	{ "exited", CW_CLASS_PROCESS_DEAD, CW_DETAIL_EXITED,
	  "It ended by itself: read the last lines of its log. With a status other than 0, an "
	  "exception on this rank alone is likely. With status 0, it left its loop before the "
	  "other ranks did (uneven data, an early stop).",
	  NULL },
	{ "dead-restart", CW_CLASS_PROCESS_DEAD, ANY_DETAIL, RESTART_TEXT, NULL },

	{ "node-check", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL,
	  "Check whether the machine is up: its power, its network, and the kernel log on its "
	  "console.",
	  "ping -c 3 {host}" },
	{ "node-drain", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL, DRAIN_TEXT, DRAIN_COMMAND },
	{ "node-restart", CW_CLASS_NODE_UNREACHABLE, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL },

	{ "continue", ANY_CLASS, CW_DETAIL_STOPPED,
	  "The rank is stopped by a signal until it is continued. If it was not stopped on "
	  "purpose, continue it: the job then goes on.",
	  "ssh {host} kill -CONT {pid}" },
	{ "detach", ANY_CLASS, CW_DETAIL_TRACED,
	  "A debugger holds it. Detach the debugger, or continue the rank in it: the job then goes "
	  "on.",
	  "ssh {host} grep TracerPid /proc/{pid}/status" },
	{ "thaw", ANY_CLASS, CW_DETAIL_FROZEN,
	  "Its control group is frozen, by a paused container, a suspended job or a checkpoint. "
	  "Thaw the group: the job then goes on.",
	  "ssh {host} cat /proc/{pid}/cgroup" },
	{ "line", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "The rank waits at the line named here. If you can unblock this line (storage, data, a "
	  "lock, a service), the job goes on. If the rank waits there for another rank, look at "
	  "that rank.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ "line-stacks", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL, STACKS_TEXT, STACKS_COMMAND, NOT_SEEN },
	{ "line-recorded", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL, RECORDED_TEXT, RECORDED_COMMAND,
	  NOT_SEEN_RECORDED },
	{ "lock", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "Another thread of the same process holds the lock that it waits for: look at all "
	  "threads of the process.",
	  ALL_FRAMES_COMMAND, IN_LOCK },
	{ "prompt", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "The program waits for input on its terminal, or stands at a breakpoint: find the user "
	  "of that terminal.",
	  "ssh {host} ls -l /proc/{pid}/fd/0", AT_PROMPT },
	{ "socket", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "Find the peer of its connection, and check that this peer answers: a key-value store, a "
	  "data server or an object store, for example.",
	  "ssh {host} 'ss -tnp | grep pid={pid},'", IN_SOCKET },
	{ "storage", ANY_CLASS, CW_DETAIL_OUTSIDE_NCCL,
	  "If it waits for storage, check the file system and the kernel log of its machine.",
	  KERNEL_LOG_COMMAND, MAYBE_STORAGE },
	{ "other-call", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL,
	  "The rank is inside another call, which waits for no rank. A host call that does not "
	  "return points at the machine or at NCCL.",
	  ALL_FRAMES_COMMAND, SEEN },
	{ "other-call-stacks", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL, STACKS_TEXT, STACKS_COMMAND,
	  NOT_SEEN },
	{ "other-call-recorded", ANY_CLASS, CW_DETAIL_INSIDE_OTHER_CALL, RECORDED_TEXT,
	  RECORDED_COMMAND, NOT_SEEN_RECORDED },
	{ "aborted", ANY_CLASS, CW_DETAIL_ABORTED,
	  "This rank alone has aborted the communicator: read its log for the reason. Either all "
	  "ranks must abort, or none.",
	  NULL },
	{ "destroyed", ANY_CLASS, CW_DETAIL_DESTROYED,
	  "This rank has destroyed a communicator that the others still use: find out why it "
	  "leaves its loop earlier (uneven data, an early stop).",
	  NULL },
	{ "many-missing", CW_CLASS_NEVER_ENTERED, ANY_DETAIL,
	  "More ranks are missing than wait. The waiting ranks may have skipped a call that "
	  "collwatch cannot see (a barrier of gloo or MPI, a key of a store), and the missing "
	  "ranks wait in it. Compare the lines of both groups.",
	  "collwatch stacks {job}", MANY_MISSING },
	{ "restart", CW_CLASS_NEVER_ENTERED, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL,
	  NOT_CERTAIN },
	{ "restart-waiters-well", CW_CLASS_NEVER_ENTERED, ANY_DETAIL,
	  IF_NOT_RESTART_TEXT "; nothing is wrong with the ranks that wait.", NULL, CERTAIN },

	{ "count", CW_CLASS_MISMATCH, CW_DETAIL_COUNT,
	  "Ranks disagree on the size: check the inputs of the size (the last batch, padding, "
	  "uneven shards, a parameter that only one rank has).",
	  NULL },
	{ "dtype", CW_CLASS_MISMATCH, CW_DETAIL_DTYPE,
	  "Ranks disagree on the data type: look for mixed precision on some ranks only, or a "
	  "checkpoint loaded with another type. If the job does not hang, its results since then "
	  "are wrong.",
	  NULL },
	{ "redop", CW_CLASS_MISMATCH, CW_DETAIL_REDOP,
	  "Ranks reduce with different operators. The job need not hang, but its results since "
	  "then are wrong: go back to a checkpoint from before this call.",
	  NULL },
	{ "root", CW_CLASS_MISMATCH, CW_DETAIL_ROOT,
	  "Ranks disagree on the root: look for a root that each rank computes from its own rank "
	  "in the group.",
	  NULL },
	{ "kind", CW_CLASS_MISMATCH, CW_DETAIL_KIND,
	  "Ranks make different calls at the same position: look for a branch that depends on the "
	  "rank, or on data that only one rank has.",
	  NULL },
	{ "missing", CW_CLASS_MISMATCH, CW_DETAIL_MISSING,
	  "One rank skipped a call: look for a branch, an early return, or an exception that was "
	  "caught on that rank only.",
	  NULL },
	{ "extra", CW_CLASS_MISMATCH, CW_DETAIL_EXTRA,
	  "One rank made an extra call: look for a retry, or for logging and evaluation code that "
	  "runs on that rank only.",
	  NULL },
	{ "order", CW_CLASS_MISMATCH, CW_DETAIL_ORDER,
	  "Ranks make the same calls in different orders: look for iteration over a set or "
	  "dictionary, or for calls from several threads.",
	  NULL },
	{ "version", CW_CLASS_MISMATCH, CW_DETAIL_VERSION,
	  "The ranks run different versions of NCCL: compare the images and library paths of the "
	  "machines named above.",
	  "ssh {host} \"grep -o '[^ ]*libnccl[^ ]*' /proc/{pid}/maps | sort -u\"" },
	{ "environment", CW_CLASS_MISMATCH, CW_DETAIL_ENVIRONMENT,
	  "The ranks run with different NCCL_* variables: compare these and /etc/nccl.conf.",
	  "ssh {host} \"tr '\\\\0' '\\\\n' < /proc/{pid}/environ | grep ^NCCL_\"" },
	{ "membership", CW_CLASS_MISMATCH, CW_DETAIL_MEMBERSHIP,
	  "The ranks disagree on the members of the communicator: check the code that creates the "
	  "groups (colours and ranks of the split).",
	  NULL },
	{ "unknown-call", CW_CLASS_MISMATCH, CW_DETAIL_UNKNOWN_CALL,
	  "Only the range of calls in which the ranks' histories diverged is known (above). If the "
	  "job does not hang, its results since then may be wrong: go back to a checkpoint from "
	  "before this range.",
	  NULL },
	{ "compare-calls", CW_CLASS_MISMATCH, ANY_DETAIL, CALLS_TEXT, CALLS_COMMAND },

	{ "cycle", CW_CLASS_DEADLOCK, ANY_DETAIL,
	  "Compare the calls of the cycle: one rank makes two of them in a different order from "
	  "the others, or two ranks both send first. Make the calls in the same order on all "
	  "ranks, put crossing sends and receives into one ncclGroupStart/End, and do not use "
	  "communicators of the same device at the same time.",
	  NULL },
	{ "cycle-workaround", CW_CLASS_DEADLOCK, ANY_DETAIL,
	  "Workaround: NCCL 2.26 and newer can launch calls in the order in which the host makes "
	  "them. This helps if all ranks make the calls in the same order.",
	  "NCCL_LAUNCH_ORDER_IMPLICIT=1" },
	{ "cycle-restart", CW_CLASS_DEADLOCK, ANY_DETAIL, RESTART_TEXT, NULL },

	{ "size", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_SIZE,
	  "Send and receive disagree on the size: look for a shape that one side knows earlier "
	  "than the other.",
	  NULL },
	{ "not-posted", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_NOT_POSTED,
	  "One side never posted its call: check its schedule (an uneven number of micro-batches, "
	  "a stage that stops early).",
	  NULL },
	{ "both-send", CW_CLASS_P2P_UNMATCHED, CW_DETAIL_NOT_POSTED,
	  "If two ranks both send first, put the calls into one ncclGroupStart/End "
	  "(batch_isend_irecv).",
	  NULL },
	{ "p2p-restart", CW_CLASS_P2P_UNMATCHED, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL },

	{ "init-failed", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED,
	  "NCCL returned the error to this rank only. Check the cause that NCCL's message names on "
	  "its machine: a network interface, shared memory, a GPU, an argument. NCCL's log has "
	  "more details:",
	  "NCCL_DEBUG=WARN   # for one run" },
	{ "init-failed-end", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED,
	  "The program has caught the error, or waits after it. Make it exit on this error, so "
	  "that the other ranks do not wait.",
	  STACKS_COMMAND },
	{ "init-failed-restart", CW_CLASS_INIT_STUCK, CW_DETAIL_FAILED, IF_NOT_RESTART_TEXT ".",
	  NULL },
	{ "init-late", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "Find what holds it up before it calls NCCL: imports, data, a file or a service on its "
	  "machine. To take its stacks, if this report has none:",
	  STACKS_COMMAND, NOT_COME },
	{ "init-restart", CW_CLASS_INIT_STUCK, ANY_DETAIL, IF_NOT_RESTART_TEXT ".", NULL,
	  NOT_FAILED },
	{ "init-absent", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "Check whether the missing ranks were not started, have ended, or are stuck before the "
	  "call.",
	  "collwatch stacks {job}", NOT_NAMED },
	{ "init-network", CW_CLASS_INIT_STUCK, ANY_DETAIL,
	  "If all ranks made the call, they cannot reach each other: check the interface that NCCL "
	  "chose, firewalls and name resolution.",
	  "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET   # then "
	  "NCCL_SOCKET_IFNAME=…",
	  NOT_NAMED },

	{ "device", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "Earlier work on its device does not end. Look for Xid errors, and check that its GPU "
	  "answers.",
	  XID_COMMAND },
	{ "device-drain", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "If there is an Xid error, or nvidia-smi hangs, the machine is at fault.",
	  DRAIN_COMMAND },
	{ "device-kernel", CW_CLASS_DEVICE_STALLED, ANY_DETAIL,
	  "If the GPU is healthy, a kernel of the program does not end: the stack of the rank "
	  "shows the last launch.",
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
	  "of proxy operations is exhausted.",
	  NULL },
	{ "fabric", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "All ranks entered the call, so the cause is the network, a GPU or NCCL, not the "
	  "program. Check the machines of the communicator for link errors and Xid errors.",
	  FABRIC_COMMAND, ALL_SEEN },
	{ "fabric-unsure", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "Check the machines of the communicator for link errors and Xid errors. A part of the "
	  "job is not visible, so the program may also be the cause.",
	  FABRIC_COMMAND, NOT_ALL_SEEN },
	{ "ras", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "NCCL 2.24 and newer knows the ranks that it cannot reach. Query it on any machine of "
	  "the job.",
	  "ncclras -v", FREE },
	{ "transports", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "If the hang returns after a restart, disable one transport at a time to find the faulty "
	  "one. Unset these variables afterwards.",
	  "NCCL_NVLS_ENABLE=0   # then NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1", FREE },
	{ "drain", CW_CLASS_IN_COLLECTIVE, ANY_DETAIL,
	  "If the same machine appears again and again, drain it.", NULL, FREE },

	{ "slow", CW_CLASS_SLOW, ANY_DETAIL,
	  "The job makes progress, but the rank is late: check its storage, its clocks and its "
	  "neighbours.",
	  "ssh {host} nvidia-smi -q -d PERFORMANCE,CLOCK" },
	{ "unknown", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "The evidence does not show a culprit. This report lists the ranks and nodes that were "
	  "not visible: start with those.",
	  "collwatch status", LIVE },
	{ "unknown-recorded", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "The recordings do not prove a culprit. This report lists the gaps in them: dump all "
	  "ranks again, within the same minute.",
	  NULL, RECORDED },
	{ "unknown-stacks", CW_CLASS_UNKNOWN, ANY_DETAIL,
	  "Look at the stacks of the waiting ranks and of the missing ranks.",
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
