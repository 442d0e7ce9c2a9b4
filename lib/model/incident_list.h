/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of an incident; the facts of a snapshot are in fact_list.h. Each fact has one row. From
 * these rows we generate:
 *
 *  - the structs below;
 *  - the writer and the reader of collwatch.incident/1 (report/doc/incident_facts.c);
 *  - the names that reports and alerts hide with --anonymise (report/anonymise/anonymise.c);
 *  - the contract of the tests (tests/lib/incident_contract.py), and thus
 *    docs/schemas/incident.json;
 *  - the tables of docs/schemas.md.
 *
 * X(form, type, name, key, presence, secrecy, shown, meaning)
 *
 * form: the form of the fact in the document. The struct's field depends on it.
 *
 *   TEXT   text. type: FULL is never empty, ANY may be empty, and other types name a set of words
 *   SET    ranks as text: "0-2,5". type: RANKS
 *   I32, U32, U64, REAL, BOOL  a number, or true and false. type: NUMBER, or TRUE if never false
 *   ID     an id, text "0x…" in the document
 *   RANK   a number; -1 = none
 *   SEQ    the number of a call; CW_INCIDENT_NO_SEQ = none
 *   UID    a user; -1 = none
 *   TIME   wall time in ns; 0 = unknown. The field is called name_wall_ns
 *   NAME   the name of an enum's value (struct cw_named). type: the enum
 *   NAMES  a set of bits. The document lists their names. type: the enum of the bits
 *   TEXTS  a list of texts. type as for TEXT
 *   SAID   a sentence: its text, and its sayings under key_said. type as for TEXT
 *   SAIDS  a list of sentences, with a list of sayings for each. type as for TEXT
 *   GROUP  further facts. type: their group. The field is a pointer
 *   LIST   a list of groups. type: their group. The field n_name has the number of elements
 *
 * key: the key in the document. The keys have the order of the rows.
 *
 * presence: the form of an unset fact in the document. NULLABLE writes null, OPTIONAL omits the
 * key, and ALWAYS writes the value. A fact is unset if it is NULL, 0 or false. Some forms above
 * have the unset value -1 or CW_INCIDENT_NO_SEQ instead.
 *
 * secrecy: how --anonymise treats a text.
 *
 *   NONE       the fact is no text
 *   WORDS      our own words, numbers and public names stay; placeholders replace all other words
 *   SCHEMA, ID  the text stays
 *   LINE       a command line; our own command lines stay
 *   PATH       the path of a file
 *   COMM, COMM_GROUP  a label; usual labels such as "tp" stay
 *   others     the whole text is a name of this kind, and a placeholder replaces it
 *
 * shown: the words with which reports and Slack show the fact beside the process; "%s" stands for
 * the value. "" = they do not show the fact beside the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/saying.h"

/* clang-format off */
#define CW_INCIDENT_CALL_FACTS(X) \
	X(NAME, OP_KIND, kind, "kind", ALWAYS, WORDS, "", "kind of the op") \
	X(NAME, DTYPE, dtype, "dtype", ALWAYS, WORDS, "", "type of the elements") \
	X(U64, NUMBER, count, "count", ALWAYS, NONE, "", "number of elements, as the program passed it to NCCL") \
	X(NAME, REDOP, redop, "redop", NULLABLE, WORDS, "", "operator of the reduction; null if this kind of op has none") \
	X(RANK, NUMBER, root, "root", NULLABLE, NONE, "", "rank of the root in the communicator; null if this kind of op has none") \
	X(RANK, NUMBER, peer, "peer", NULLABLE, NONE, "", "rank of the other side of a send or receive, in the communicator; null if this kind of op has none") \
	X(TEXTS, FULL, stack, "stack", OPTIONAL, WORDS, "", "frames from which the program issued the op, innermost first")

/* The facts of PLACE and POD come from the facts about a rank (fact_list.h), by name. */
#define CW_INCIDENT_PLACE_FACTS(X) \
	X(I32, NUMBER, pid, "pid", ALWAYS, NONE, "", "pid of the process, as the daemon of its node sees it; 0 = unknown")

#define CW_INCIDENT_POD_FACTS(X) \
	X(TEXT, FULL, pod, "pod", OPTIONAL, POD, "", "[Kubernetes pod](design/daemon.md#containers) of the process; its uid if only the control group names the pod") \
	X(TEXT, FULL, pod_namespace, "pod_namespace", OPTIONAL, NAMESPACE, "", "namespace of that pod") \
	X(TEXT, FULL, container, "container", OPTIONAL, CONTAINER, ", container %s", "container of the process in the pod; the first 12 digits of its id if only the control group names it") \
	X(I32, NUMBER, own_pid, "own_pid", OPTIONAL, NONE, ", pid %s there", "pid of the process in its own pid namespace, as the kernel states it; absent if equal to `pid`")

/* The facts of SEEN come from the process's evidence ("proc" of collwatch.evidence/1), by key. */
#define CW_INCIDENT_SEEN_FACTS(X) \
	X(TEXT, FULL, cpus, "cpus", OPTIONAL, WORDS, ", CPUs %s", "CPUs that the main thread may run on, such as `0-3,8`; absent if not known in time")

#define CW_INCIDENT_PROCESS_FACTS(X) \
	X(RANK, NUMBER, rank, "rank", ALWAYS, NONE, "", "number that the user gave the rank; -1 if unknown (then see `host` and `pid`)") \
	X(TEXT, ANY, host, "host", ALWAYS, NODE, "", "node of the process") \
	CW_INCIDENT_PLACE_FACTS(X) \
	CW_INCIDENT_POD_FACTS(X) \
	CW_INCIDENT_SEEN_FACTS(X)

#define CW_INCIDENT_CULPRIT_FACTS(X) \
	CW_INCIDENT_PROCESS_FACTS(X) \
	X(NAME, HOST_WAIT, host_wait, "host_wait", OPTIONAL, WORDS, "", "object that the first thread waits for: `lock` (held by another thread), `gil` (Python's), `queue` (or a time), `socket`, `tty`, `storage`; absent if not known") \
	X(NAME, END_BY, end_by, "end_by", OPTIONAL, WORDS, "", "cause of the process's end: `nobody` (it exited, and no signal requested that), `itself`, `process`, `outside` (of the daemon's container), `kernel`, `parent`, `init` (pid 1 of its container); absent if not known") \
	X(I32, NUMBER, term_signal, "term_signal", OPTIONAL, NONE, "", "number of the signal that killed the process") \
	X(NAME, CAUSE_KIND, cause_kind, "cause_kind", OPTIONAL, WORDS, "", "kind of the process's death or stop: `exited`, `asked` (it exited after a request), `killed`, `oom_killed`, `stopped`, `traced`, `frozen`, `stopped_nonfinite` and `stopped_headroom` (by `COLLWATCH_STOP_AT`); absent if not known") \
	X(NAME, END_BY, cause_by, "cause_by", OPTIONAL, WORDS, "", "sender of the signal, or holder of the process, as in `end_by`") \
	X(SAID, FULL, reason, "reason", ALWAYS, WORDS, "", "sentence about the culprit's position and activity") \
	X(TEXT, FULL, kernel, "kernel", OPTIONAL, WORDS, "", "facts of the kernel about the main thread; absent if not known in time") \
	X(BOOL, TRUE, is_stopped, "stopped", OPTIONAL, NONE, "", "the incident has one culprit, which a signal stopped (state T); the summary says so") \
	X(TEXTS, FULL, crash_stack, "crash_stack", OPTIONAL, WORDS, "", "frames of the thread that got the fatal signal, innermost first, from the [core file](design/evidence.md#crashes)") \
	X(TEXT, FULL, sits_in, "sits_in", OPTIONAL, WORDS, "", "innermost frame of the user's code, and its caller; absent if not known in time. The summary repeats it for a single culprit")

#define CW_INCIDENT_VICTIMS_FACTS(X) \
	X(U32, NUMBER, count, "count", ALWAYS, NONE, "", "number of ranks that wait") \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that wait")

#define CW_INCIDENT_SIDE_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that made the same call") \
	X(GROUP, call, op, "op", NULLABLE, NONE, "", "the call of these ranks; null if they have not entered it")

#define CW_INCIDENT_LINK_FACTS(X) \
	X(RANK, NUMBER, sender, "sender", ALWAYS, NONE, "", "rank that sends") \
	X(TEXT, ANY, sender_host, "sender_host", ALWAYS, NODE, "", "node of the sender") \
	X(RANK, NUMBER, receiver, "receiver", ALWAYS, NONE, "", "rank that receives") \
	X(TEXT, ANY, receiver_host, "receiver_host", ALWAYS, NODE, "", "node of the receiver") \
	X(U32, NUMBER, channel, "channel", ALWAYS, NONE, "", "number of NCCL's channel, from 0") \
	X(TEXT, FULL, first, "first", OPTIONAL, WORDS, "", "end to inspect first: `sender` or `receiver`; absent if not known") \
	X(U32, NUMBER, steps, "steps", ALWAYS, NONE, "", "number of steps of the op on this connection") \
	X(U32, NUMBER, handed, "handed", ALWAYS, NONE, "", "number of steps that the sender has handed to the network") \
	X(U32, NUMBER, confirmed, "confirmed", ALWAYS, NONE, "", "number of steps that the network has confirmed to the sender") \
	X(U32, NUMBER, received, "received", ALWAYS, NONE, "", "number of steps that the receiver has got") \
	X(REAL, NUMBER, step_s, "step_s", OPTIONAL, NONE, "", "duration of a step, if the connection is slow") \
	X(U64, NUMBER, bytes_per_s, "bytes_per_s", OPTIONAL, NONE, "", "rate of the connection; absent if not known")

#define CW_INCIDENT_WHERE_FACTS(X) \
	X(ID, NUMBER, comm, "comm", ALWAYS, WORDS, "", "id of the communicator") \
	X(TEXT, ANY, comm_name, "comm_name", ALWAYS, COMM, "", "name of the communicator, or empty") \
	X(U64, NUMBER, coll_seq, "coll_seq", ALWAYS, NONE, "", "number of the collective on the communicator, from 1; 0 = none") \
	X(SEQ, NUMBER, after_seq, "after_seq", OPTIONAL, NONE, "", "only in a `mismatch` without `sides`: the unrecorded call (`unknown_call`) lies after this number, not after `coll_seq`; 0 = unknown") \
	X(LIST, side, sides, "sides", ALWAYS, NONE, "", "groups of ranks whose calls differ") \
	X(TEXTS, FULL, nodes, "nodes", OPTIONAL, NODE, "", "only for `in_collective`: nodes of the communicator's visible members") \
	X(GROUP, link, link, "link", OPTIONAL, NONE, "", "the [network connection](design/verdict.md#connections) at fault")

#define CW_INCIDENT_WAIT_FACTS(X) \
	X(RANK, NUMBER, rank, "rank", ALWAYS, NONE, "", "the rank that waits") \
	X(ID, NUMBER, comm, "comm", ALWAYS, WORDS, "", "id of the communicator of the rank's call") \
	X(TEXT, ANY, comm_name, "comm_name", ALWAYS, COMM, "", "name of the communicator, or empty") \
	X(U64, NUMBER, coll_seq, "coll_seq", ALWAYS, NONE, "", "number of the collective; 0 = none") \
	X(GROUP, call, op, "op", ALWAYS, NONE, "", "the call in which the rank waits") \
	X(RANK, NUMBER, waits_for, "waits_for", ALWAYS, NONE, "", "rank that this rank waits for; -1 at the end of a chain if calls or sizes differ, if no rank is missing, or if the missing rank is not visible")

#define CW_INCIDENT_ALTERNATIVE_FACTS(X) \
	X(NAME, CLASS, verdict_class, "class", ALWAYS, WORDS, "", "class of another verdict that fits the evidence") \
	X(LIST, culprit, culprits, "culprits", ALWAYS, NONE, "", "culprits of that verdict, with an empty `reason`") \
	X(REAL, SHARE, probability, "probability", ALWAYS, NONE, "", "probability of that verdict, from 0 to 1") \
	X(SAID, FULL, reason, "reason", ALWAYS, WORDS, "", "sentence that explains why that verdict fits")

#define CW_INCIDENT_KNOWN_HANG_FACTS(X) \
	X(TEXT, FULL, name, "name", ALWAYS, WORDS, "", "public source of the report, such as `NVIDIA/nccl#2353`") \
	X(TEXT, FULL, fixed_in, "fixed_in", ALWAYS, WORDS, "", "version of NCCL that fixes the fault")

#define CW_INCIDENT_NCCL_ERROR_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that got the error") \
	X(ID, NUMBER, comm, "comm", ALWAYS, WORDS, "", "id of the communicator") \
	X(TEXT, ANY, comm_name, "comm_name", ALWAYS, COMM, "", "name of the communicator, or empty") \
	X(I32, NUMBER, result, "result", ALWAYS, NONE, "", "number of the error (ncclResult_t)") \
	X(TEXT, FULL, name, "name", ALWAYS, WORDS, "", "name of the error") \
	X(BOOL, ANY, is_async, "is_async", ALWAYS, NONE, "", "true: `ncclCommGetAsyncError` returned it to the program; false: it is the result of the last failed call") \
	X(TEXT, ANY, text, "text", ALWAYS, WORDS, "", "text of NCCL's last error on the communicator")

#define CW_INCIDENT_NONFINITE_INPUT_FACTS(X) \
	X(RANK, NUMBER, rank, "rank", ALWAYS, NONE, "", "rank that passed the input") \
	X(TEXT, ANY, host, "host", ALWAYS, NODE, "", "node of the rank") \
	X(I32, NUMBER, pid, "pid", ALWAYS, NONE, "", "pid of the rank") \
	X(TEXT, FULL, text, "text", ALWAYS, WORDS, "", "the input and the op, in words") \
	X(TIME, WALL, noticed, "noticed", NULLABLE, NONE, "", "time when the daemon noticed the input")

#define CW_INCIDENT_STACK_READING_FACTS(X) \
	X(REAL, NUMBER, waited_s, "waited_s", ALWAYS, NONE, "", "age of the wait when we read the stack") \
	X(TEXT, FULL, place, "place", ALWAYS, WORDS, "", "position of the main thread") \
	X(REAL, NUMBER, cpu_s, "cpu_s", OPTIONAL, NONE, "", "CPU time that the thread used since the reading before; absent if 0 or not known")

#define CW_INCIDENT_EARLIER_STACK_FACTS(X) \
	X(RANK, NUMBER, rank, "rank", ALWAYS, NONE, "", "rank of the process; -1 if unknown") \
	X(TEXT, ANY, host, "host", ALWAYS, NODE, "", "node of the process") \
	X(I32, NUMBER, pid, "pid", ALWAYS, NONE, "", "pid of the process") \
	X(BOOL, ANY, is_changed, "changed", ALWAYS, NONE, "", "true: the functions or lines of the program changed from one reading to the next") \
	X(LIST, stack_reading, readings, "readings", ALWAYS, NONE, "", "the readings in order of time, at least two") \
	X(SAID, FULL, text, "text", ALWAYS, WORDS, "", "sentence about the changes")

#define CW_INCIDENT_LAST_KNOWN_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks whose node has stopped reporting") \
	X(U32, NUMBER, count, "count", ALWAYS, NONE, "", "number of these ranks") \
	X(REAL, NUMBER, age_s, "age_s", ALWAYS, NONE, "", "age of the oldest last report of their nodes")

#define CW_INCIDENT_COVERAGE_FACTS(X) \
	X(U32, NUMBER, ranks_expected, "ranks_expected", ALWAYS, NONE, "", "number of ranks of the job; 0 = unknown") \
	X(U32, NUMBER, ranks_seen, "ranks_seen", ALWAYS, NONE, "", "number of ranks whose state this verdict knows") \
	X(GROUP, last_known, last_known, "last_known", NULLABLE, NONE, "", "known ranks whose node no longer reports; null if there are none") \
	X(SET, RANKS, missing, "missing", ALWAYS, WORDS, "", "ranks that no process claims") \
	X(U32, NUMBER, untracked, "untracked", ALWAYS, NONE, "", "number of rank processes that are invisible, because they exceed the quota of their node; `notes` names the nodes") \
	X(TEXTS, FULL, notes, "notes", ALWAYS, WORDS, "", "parts of the job that were not visible, with reasons")

#define CW_INCIDENT_TIMES_FACTS(X) \
	X(TIME, WALL, last_progress, "last_progress", NULLABLE, NONE, "", "time of the newest progress") \
	X(TIME, WALL, stall, "stall", NULLABLE, NONE, "", "time when the wait became a stall") \
	X(TIME, WALL, confirmed, "confirmed", NULLABLE, NONE, "", "time when the wait became an incident; null for a notice. A notice that becomes a page keeps its id and its other times") \
	X(TIME, WALL, resolved, "resolved", NULLABLE, NONE, "", "time when the incident ended; null while it lasts, and for `unseen`")

#define CW_INCIDENT_TIMEOUT_FACTS(X) \
	X(REAL, NUMBER, seconds, "seconds", ALWAYS, NONE, "", "duration of a call after which the job's own watchdog ends the job") \
	X(BOOL, ANY, is_assumed, "assumed", ALWAYS, NONE, "", "true: PyTorch makes the calls, no user set a time-out, and we assume PyTorch's default") \
	X(TEXT, FULL, set_by, "set_by", OPTIONAL, WORDS, "", "argument or variable that set the time-out")

#define CW_INCIDENT_OBJECTION_FACTS(X) \
	X(TEXT, FULL, node, "node", ALWAYS, NODE, "", "node that objected") \
	X(TEXT, FULL, reason, "reason", ALWAYS, WORDS, "", "reason of the objection")

/* The end of a process. */
#define CW_INCIDENT_END_FACTS(X) \
	CW_INCIDENT_PROCESS_FACTS(X) \
	X(TEXT, FULL, how, "how", ALWAYS, WORDS, "", "how the process ended, without the sender of a signal") \
	X(TEXT, END_KIND, kind, "kind", ALWAYS, WORDS, "", "`own`: its own fault; `killed`: SIGKILL or a signal of another process, or an exit inside a call; `reaction`: abort inside a call, or after NCCL reported a lost peer, or SIGHUP or SIGPIPE; `asked`: SIGTERM, SIGINT, an exit after these, or the end of its parent; `none`: exit 0, or unknown; `alive`: it has not ended") \
	X(TEXT, FULL, cause, "cause", NULLABLE, WORDS, "", "cause of the end, as a text to follow the word was; null if not known") \
	X(NAME, CAUSE_KIND, cause_kind, "cause_kind", OPTIONAL, WORDS, "", "kind of the cause, as of a culprit; absent if not known") \
	X(NAME, END_BY, cause_by, "cause_by", OPTIONAL, WORDS, "", "sender of the signal, as of a culprit") \
	X(BOOL, ANY, is_first, "first", ALWAYS, NONE, "", "true for the ranks of `first`") \
	X(TIME, WALL, ended, "ended", NULLABLE, NONE, "", "time of the end; null if not known") \
	X(U64, NUMBER, ended_ns, "ended_ns", NULLABLE, NONE, "", "the same time as Unix time in nanoseconds") \
	X(REAL, NUMBER, after_s, "after_s", ALWAYS, NONE, "", "seconds after the first failure; 0 if one of the times is not known") \
	X(REAL, NUMBER, unsure_s, "unsure_s", ALWAYS, NONE, "", "uncertainty of the time: 0.05 between ranks of one node, more between nodes, because we estimate the clocks from digests")

#define CW_INCIDENT_FIRST_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that failed first") \
	X(U32, NUMBER, count, "count", ALWAYS, NONE, "", "number of these ranks") \
	X(NAME, FIRST_REASON, by, "by", ALWAYS, WORDS, "", "reason for the choice. `only`: no other visible rank failed; `time`: it failed first; `cause`: others are too close in time, but their ends [can follow](design/leader.md#post-mortems) from its end; `tie`: neither, and `ranks` has all candidates") \
	X(U32, NUMBER, together, "together", ALWAYS, NONE, "", "number of ranks that time does not separate, with the first") \
	X(REAL, NUMBER, margin_s, "margin_s", NULLABLE, NONE, "", "time until the end of the next rank that time separates; null if there is none")

#define CW_INCIDENT_ENDED_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that ended in this way") \
	X(U32, NUMBER, count, "count", ALWAYS, NONE, "", "number of these ranks") \
	X(TEXT, FULL, how, "how", ALWAYS, WORDS, "", "how they ended, as in `ends`")

#define CW_INCIDENT_LAST_WAIT_FACTS(X) \
	X(NAME, CLASS, verdict_class, "class", ALWAYS, WORDS, "", "class of the wait's verdict") \
	X(NAME, DETAIL, detail, "detail", ALWAYS, WORDS, "", "detail of the class, or empty") \
	X(NAME, CONFIDENCE, confidence, "confidence", ALWAYS, WORDS, "", "certainty of that verdict's culprits") \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks that the job waited for, 32 at most") \
	X(U32, NUMBER, count, "count", ALWAYS, NONE, "", "number of these ranks") \
	X(REAL, NUMBER, for_s, "for_s", ALWAYS, NONE, "", "duration of the wait until the first failure") \
	X(TEXT, FULL, summary, "summary", ALWAYS, WORDS, "", "summary of that verdict")

#define CW_INCIDENT_LAST_CALL_FACTS(X) \
	X(ID, NUMBER, comm, "comm", ALWAYS, WORDS, "", "id of the communicator") \
	X(TEXT, ANY, comm_name, "comm_name", ALWAYS, COMM, "", "name of the communicator, or empty") \
	X(NAME, OP_KIND, kind, "kind", ALWAYS, WORDS, "", "kind of the op") \
	X(U64, NUMBER, coll_seq, "coll_seq", ALWAYS, NONE, "", "number of the collective; 0 = none") \
	X(NAME, DTYPE, dtype, "dtype", ALWAYS, WORDS, "", "type of the elements") \
	X(U64, NUMBER, count, "count", ALWAYS, NONE, "", "number of elements") \
	X(BOOL, ANY, is_done, "done", ALWAYS, NONE, "", "true: the device had completed the op") \
	X(TIME, WALL, entered, "entered", NULLABLE, NONE, "", "time when the rank entered the call; null if not known")

#define CW_INCIDENT_OPEN_CALL_FACTS(X) \
	X(SET, RANKS, ranks, "ranks", ALWAYS, WORDS, "", "ranks inside the call") \
	X(U32, NUMBER, members, "members", ALWAYS, NONE, "", "number of these ranks") \
	X(GROUP, last_call, op, "op", ALWAYS, NONE, "", "the call")

#define CW_INCIDENT_LAST_CALLS_FACTS(X) \
	X(RANK, NUMBER, rank, "rank", ALWAYS, NONE, "", "the rank") \
	X(TEXT, ANY, comm_name, "comm_name", ALWAYS, COMM, "", "name of the communicator, or empty") \
	X(U64, NUMBER, entered, "entered", ALWAYS, NONE, "", "number of collectives that the rank has entered on it") \
	X(LIST, last_call, calls, "calls", ALWAYS, NONE, "", "its newest calls, the oldest first: 8 if a window of its record was fetched, else one")

/* The post-mortem: how a failed job ended. An incident has these facts only after that end. */
#define CW_INCIDENT_ENDING_FACTS(X) \
	X(TEXT, FULL, ending, "ending", OPTIONAL, WORDS, "", "how the job failed, in words; the `summary` of a post-mortem without an alert repeats it") \
	X(GROUP, first, first, "first", OPTIONAL, NONE, "", "the first failure; absent for wrong data of a job that was cancelled or ended well") \
	X(LIST, end, ends, "ends", OPTIONAL, NONE, "", "the ends of the ranks, by time: the first 64") \
	X(U32, NUMBER, ends_omitted, "ends_omitted", OPTIONAL, NONE, "", "number of further ends") \
	X(LIST, ended, ended, "ended", OPTIONAL, NONE, "", "all ends by their kind: the first 32 kinds") \
	X(U32, NUMBER, ended_otherwise, "ended_otherwise", OPTIONAL, NONE, "", "number of ranks of further kinds") \
	X(U32, NUMBER, ranks_ended, "ranks_ended", OPTIONAL, NONE, "", "number of ranks that ended") \
	X(TIME, WALL, first_end, "first_end", OPTIONAL, NONE, "", "time of the first failure; absent if no rank failed") \
	X(TIME, WALL, last_end, "last_end", OPTIONAL, NONE, "", "time of the last end") \
	X(GROUP, last_wait, waited_for, "waited_for", OPTIONAL, NONE, "", "the wait at the last evaluation before the first failure; absent if no rank waited, or if this leader did not watch then") \
	X(LIST, open_call, open, "open", OPTIONAL, NONE, "", "up to 32 calls that had not completed") \
	X(LIST, last_calls, last_calls, "last_calls", OPTIONAL, NONE, "", "newest calls of the first and of the awaited ranks, on up to 16 communicators of a rank") \
	X(SAIDS, FULL, wrong_data, "wrong_data", OPTIONAL, WORDS, "", "mismatches and unmatched messages without an alert") \
	X(TEXTS, FULL, end_notes, "end_notes", OPTIONAL, WORDS, "", "facts about the end that were not visible: ranks without kernel evidence, senders outside the daemon's pid namespace, and the like")

#define CW_INCIDENT_FACTS(X) \
	X(TEXT, SCHEMA, schema, "schema", ALWAYS, SCHEMA, "", "`collwatch.incident/1`") \
	X(TEXT, FULL, id, "id", ALWAYS, ID, "", "id of the incident, and name of its bundle") \
	X(TEXT, FULL, job, "job", ALWAYS, JOB, "", "source and name of the job, such as `slurm:4711`") \
	X(TEXT, ANY, group, "group", ALWAYS, COMM_GROUP, "", "group of the job's ranks, or empty") \
	X(NAME, CLASS, verdict_class, "class", ALWAYS, WORDS, "", "[class](design/verdict.md#classes) of the verdict") \
	X(NAME, DETAIL, detail, "detail", ALWAYS, WORDS, "", "detail of the class, or empty") \
	X(NAME, CONFIDENCE, confidence, "confidence", ALWAYS, WORDS, "", "certainty of the culprits: `certain`, `likely`, `possible`") \
	X(NAMES, BLIND_SPOT, blind_spots, "blind_spots", ALWAYS, WORDS, "", "[parts](design/advice.md#blind-spots) of the job that may hide the cause: `wait`, `rank`, `calls`, `progress`") \
	X(NAME, HANG, hang, "hang", ALWAYS, WORDS, "", "certainty of the hang: `proven` (a longer wait cannot change it), `likely`, `possible`, `none` (calls differ, but no rank is blocked)") \
	X(NAME, SEVERITY, severity, "severity", ALWAYS, WORDS, "", "`page`; [`notice`](design/patience.md#stall-notice-and-page), which only `notice_webhook_url` receives; or `failed`: a [post-mortem](#post-mortems) without an alert") \
	X(LIST, culprit, culprits, "culprits", ALWAYS, NONE, "", "processes at fault") \
	X(GROUP, victims, victims, "victims", ALWAYS, NONE, "", "ranks that wait") \
	X(GROUP, where, where, "where", NULLABLE, NONE, "", "the call in question; null if there is none") \
	X(LIST, wait, chain, "chain", ALWAYS, NONE, "", "waits from a victim to the culprit") \
	X(LIST, wait, cycle, "cycle", ALWAYS, NONE, "", "waits of a deadlock") \
	X(LIST, alternative, alternatives, "alternatives", ALWAYS, NONE, "", "other verdicts that fit") \
	X(SAIDS, FULL, ruled_out, "ruled_out", ALWAYS, WORDS, "", "sentences about causes that collwatch could have seen; advice clears ranks by the same rule") \
	X(LIST, known_hang, known_hangs, "known_hangs", OPTIONAL, NONE, "", "[known hangs](design/known-hangs.md) of NCCL whose version and signature fit") \
	X(SAIDS, FULL, also, "also", OPTIONAL, WORDS, "", "sentences that accuse no rank: known hangs, and the `NCCL_*` variables in which ranks differ, by name and value") \
	X(LIST, nccl_error, nccl_errors, "nccl_errors", ALWAYS, NONE, "", "up to 16 different errors that NCCL reported; may be empty") \
	X(LIST, nonfinite_input, nonfinite_inputs, "nonfinite_inputs", ALWAYS, NONE, "", "each rank's first input with NaN or infinity, the earliest first, for up to 16 ranks; empty without tensor summaries") \
	X(LIST, earlier_stack, earlier_stacks, "earlier_stacks", OPTIONAL, NONE, "", "[stacks in the seconds before](design/evidence.md#the-seconds-before) of culprits and one waiting rank") \
	X(GROUP, coverage, coverage, "coverage", ALWAYS, NONE, "", "the visible part of the job") \
	X(GROUP, times, times, "times", ALWAYS, NONE, "", "times of the incident") \
	X(GROUP, timeout, job_timeout, "job_timeout", OPTIONAL, NONE, "", "the shortest [job timeout](design/patience.md#job-timeout) of the ranks; absent if not known") \
	X(SAID, FULL, summary, "summary", ALWAYS, WORDS, "", "description of the incident in words") \
	X(TEXT, POLICY, proposed_policy, "proposed_policy", OPTIONAL, WORDS, "", "`serving`: the notice proposes this policy, because the job [looks like a server](design/patience.md#servers)") \
	X(TEXT, ANY, leader, "leader", ALWAYS, NODE, "", "node that made the verdict") \
	X(TEXT, FULL, bundle, "bundle", NULLABLE, PATH, "", "directory of the bundle on that node, or null") \
	X(TEXT, FULL, command, "command", OPTIONAL, LINE, "", "command that shows the report on that node") \
	X(UID, NUMBER, uid, "uid", OPTIONAL, NONE, "", "uid of the job's user") \
	X(TEXT, FULL, user, "user", OPTIONAL, USER, "", "name of that user; absent if the leader's machine does not know it in time") \
	X(LIST, objection, objections, "objections", OPTIONAL, NONE, "", "nodes that objected to the alert; the alert was delayed, but sent") \
	X(TEXT, SUPPRESSED, suppressed, "suppressed", OPTIONAL, WORDS, "", "reason why no alert was sent: `shadow` (`mode = shadow`) or `muted`; absent if the alert was not suppressed") \
	X(NAME, CLOSED_AS, closed_as, "closed_as", OPTIONAL, WORDS, "", "how the incident ended: `slow` (progress resumed), `job_ended`, or `unseen` (no node had it open for ten minutes); absent while it is open") \
	X(REAL, NUMBER, lasted_s, "lasted_s", OPTIONAL, NONE, "", "duration for which the incident blocked ranks; absent while it is open, or if unknown") \
	CW_INCIDENT_ENDING_FACTS(X)

/* All groups: G(group, FACTS, title in docs/schemas.md) */
#define CW_INCIDENT_GROUPS(G) \
	G(facts, CW_INCIDENT_FACTS, "The incident") \
	G(process, CW_INCIDENT_PROCESS_FACTS, NULL) \
	G(culprit, CW_INCIDENT_CULPRIT_FACTS, "An element of `culprits`") \
	G(victims, CW_INCIDENT_VICTIMS_FACTS, "`victims`") \
	G(side, CW_INCIDENT_SIDE_FACTS, "An element of `where.sides`") \
	G(link, CW_INCIDENT_LINK_FACTS, "`where.link`") \
	G(where, CW_INCIDENT_WHERE_FACTS, "`where`") \
	G(wait, CW_INCIDENT_WAIT_FACTS, "An element of `chain` or `cycle`") \
	G(call, CW_INCIDENT_CALL_FACTS, "An `op`") \
	G(alternative, CW_INCIDENT_ALTERNATIVE_FACTS, "An element of `alternatives`") \
	G(known_hang, CW_INCIDENT_KNOWN_HANG_FACTS, "An element of `known_hangs`") \
	G(nccl_error, CW_INCIDENT_NCCL_ERROR_FACTS, "An element of `nccl_errors`") \
	G(nonfinite_input, CW_INCIDENT_NONFINITE_INPUT_FACTS, "An element of `nonfinite_inputs`") \
	G(stack_reading, CW_INCIDENT_STACK_READING_FACTS, "An element of `earlier_stacks[].readings`") \
	G(earlier_stack, CW_INCIDENT_EARLIER_STACK_FACTS, "An element of `earlier_stacks`") \
	G(last_known, CW_INCIDENT_LAST_KNOWN_FACTS, "`coverage.last_known`") \
	G(coverage, CW_INCIDENT_COVERAGE_FACTS, "`coverage`") \
	G(times, CW_INCIDENT_TIMES_FACTS, "`times`") \
	G(timeout, CW_INCIDENT_TIMEOUT_FACTS, "`job_timeout`") \
	G(objection, CW_INCIDENT_OBJECTION_FACTS, "An element of `objections`") \
	G(first, CW_INCIDENT_FIRST_FACTS, "`first`") \
	G(end, CW_INCIDENT_END_FACTS, "An element of `ends`") \
	G(ended, CW_INCIDENT_ENDED_FACTS, "An element of `ended`") \
	G(last_wait, CW_INCIDENT_LAST_WAIT_FACTS, "`waited_for`") \
	G(last_call, CW_INCIDENT_LAST_CALL_FACTS, "An element of `last_calls.calls`, and `open.op`") \
	G(open_call, CW_INCIDENT_OPEN_CALL_FACTS, "An element of `open`") \
	G(last_calls, CW_INCIDENT_LAST_CALLS_FACTS, "An element of `last_calls`")

/* The declaration of a struct's field. */
#define CW_INCIDENT_FIELD(form, type, name, ...) CW_INCIDENT_FIELD_##form(type, name)
#define CW_INCIDENT_FIELD_TEXT(type, name) const char *name;
#define CW_INCIDENT_FIELD_SET(type, name) const char *name;
#define CW_INCIDENT_FIELD_I32(type, name) int32_t name;
#define CW_INCIDENT_FIELD_U32(type, name) uint32_t name;
#define CW_INCIDENT_FIELD_U64(type, name) uint64_t name;
#define CW_INCIDENT_FIELD_REAL(type, name) double name;
#define CW_INCIDENT_FIELD_BOOL(type, name) bool name;
#define CW_INCIDENT_FIELD_ID(type, name) uint64_t name;
#define CW_INCIDENT_FIELD_RANK(type, name) int32_t name;
#define CW_INCIDENT_FIELD_SEQ(type, name) uint64_t name;
#define CW_INCIDENT_FIELD_UID(type, name) int64_t name;
#define CW_INCIDENT_FIELD_TIME(type, name) int64_t name##_wall_ns;
#define CW_INCIDENT_FIELD_NAME(type, name) struct cw_named name;
#define CW_INCIDENT_FIELD_NAMES(type, name) uint32_t name;
#define CW_INCIDENT_FIELD_TEXTS(type, name) const char **name; uint32_t n_##name;
#define CW_INCIDENT_FIELD_SAID(type, name) struct cw_incident_sentence name;
#define CW_INCIDENT_FIELD_SAIDS(type, name) struct cw_incident_sentence *name; uint32_t n_##name;
#define CW_INCIDENT_FIELD_GROUP(type, name) struct cw_incident_##type *name;
#define CW_INCIDENT_FIELD_LIST(type, name) struct cw_incident_##type *name; uint32_t n_##name;
/* clang-format on */

#define CW_INCIDENT_NO_SEQ UINT64_MAX
#define CW_INCIDENT_POLICY_SERVING "serving"

/*
 * Bits of NAMES beyond those of the enum. NEWER: the document has a name that this version does not
 * know. ABSENT: the document lacks the list.
 */
#define CW_INCIDENT_NAMES_NEWER (1u << 30)
#define CW_INCIDENT_NAMES_ABSENT (1u << 31)

/* A value of an enum, and its name in documents. The name of a newer version has the number -1. */
struct cw_named {
	int number;
	const char *text; /* NULL = unset; the number is then -1 */
};

/* A sentence. `said` is empty if the text has no sayings, or if this version does not know one. */
struct cw_incident_sentence {
	const char *text;
	struct cw_clause said;
};

#define CW_INCIDENT_STRUCT(group, FACTS, title)                                                    \
	struct cw_incident_##group {                                                               \
		FACTS(CW_INCIDENT_FIELD)                                                           \
	};
CW_INCIDENT_GROUPS(CW_INCIDENT_STRUCT)
