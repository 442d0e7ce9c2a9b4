/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about ops, ranks, communicators and their members. Each fact has one row. From these
 * rows we generate:
 *
 *  - the fields of the structs of messages (proto/messages.h) and of snapshots (model/snapshot.h),
 *    and the conversion from messages to snapshots (leader/snapshot_build.c);
 *  - the codec's tables (proto/codec_map.c);
 *  - the JSON of snapshots (report/doc/snapshot_doc.c) and the tables of docs/schemas.md.
 *
 * proto/collwatch.proto is not generated from the rows. tests/unit/proto/test_fact_list.c compares
 * it with the rows.
 *
 * X(kind, type, name, number, wire, json, limit, unit, since, meaning)
 *
 * kind: the structs that have the fact.
 *
 *   SAME  in messages and in snapshots, under the same name
 *   TEXT  a text in messages and in snapshots; unknown: "" in a message, NULL in a snapshot
 *   TIME  name_age_ns in a message, an age at its sampling; name_ns in a snapshot, on its timeline
 *   SPAN  an unsigned duration in a message, a signed one in a snapshot
 *   SENT  in messages only
 *   KEPT  in snapshots only
 *   PART  a message inside the message; the structs have pointers or arrays for it
 *
 * number, wire: the number and type of the field in the message. If no message has the field,
 * number is 0 and wire is none.
 *
 * json: the form of the fact in a snapshot's document (report/fields.h). The key in the document is
 * the fact's name. The keys have the order of the rows.
 *
 * limit: its meaning depends on the fact.
 *
 *  - For an enum, its largest number. A larger number is "of a later version", and we read it as 0.
 *  - For a PART that may occur several times, the maximum count.
 *  - For a TIME, a condition on a message `from`. The condition is true if the time is known.
 *  - For other facts, 0.
 *
 * since: the version of collwatch that introduced the fact.
 *
 * A communicator has no message of its own. Each member's message carries the facts about its
 * communicator.
 */
#pragma once

#include <stdint.h>

/* clang-format off */
#define CW_OP_FACTS(X) \
	X(SAME, uint8_t, kind, 1, uint32, U8, 0, "", "0.1.0", "enum cw_op_kind") \
	X(SAME, uint8_t, dtype, 2, uint32, U8, 0, "", "0.1.0", "enum cw_dtype") \
	X(SAME, uint8_t, redop, 3, uint32, U8, 0, "", "0.1.0", "enum cw_redop") \
	X(SAME, uint8_t, progress, 4, uint32, U8, CW_PROGRESS_COMPLETED, "", "0.1.0", "enum cw_progress") \
	X(SAME, uint16_t, flags, 5, uint32, U16, 0, "", "0.1.0", "CW_OPF_*") \
	X(SAME, int16_t, result, 6, sint32, I16, 0, "", "0.1.0", "ncclResult_t, valid with CW_OPF_RETURNED") \
	X(SAME, int32_t, root, 7, sint32, I32, 0, "comm rank", "0.1.0", "root of a rooted call; -1 for other kinds") \
	X(SAME, int32_t, peer, 8, sint32, I32, 0, "comm rank", "0.1.0", "peer of a send or receive; -1 for other kinds") \
	X(SAME, uint64_t, count, 9, uint64, U64, 0, "elements", "0.1.0", "number of elements as passed to NCCL") \
	X(SAME, uint64_t, bytes, 10, uint64, U64, 0, "bytes", "0.1.0", "size of one rank's contribution; 0 if that has no meaning") \
	X(SAME, uint64_t, coll_seq, 11, uint64, U64, 0, "", "0.1.0", "number of the collective on the comm, from 1; 0 = not counted") \
	X(SAME, uint64_t, p2p_seq, 12, uint64, U64, 0, "", "0.1.0", "number of the send or receive, from 1, per peer and direction; 0 = neither of them") \
	X(SAME, uint64_t, op_index, 13, uint64, U64, 0, "", "0.1.0", "number of the op per rank and comm, from 1; for the local order only") \
	X(SAME, uint64_t, group_id, 14, uint64, U64, 0, "", "0.1.0", "number of the group, local to the rank; 0 = not grouped") \
	X(SAME, uint64_t, stream, 15, uint64, ID, 0, "", "0.1.0", "handle of the stream as a number, local to the process") \
	X(SAME, uint32_t, tid, 16, uint32, U32, 0, "", "0.1.0", "host thread of the call, as gettid() returns it") \
	X(TIME, int64_t, enter, 17, sint64, I64, true, "ns", "0.1.0", "time when the call was entered") \
	X(TIME, int64_t, return, 18, sint64, I64, from->flags & CW_OPF_RETURNED, "ns", "0.1.0", "time when the call returned; 0 without CW_OPF_RETURNED") \
	X(SAME, uint32_t, stack, 19, uint32, U32, 0, "", "0.1.0", "call stack of the call: index + 1 into the call stacks of the same message or snapshot; 0 = not known")

#define CW_CHECKPOINT_FACTS(X) \
	X(SAME, uint64_t, coll_seq, 1, uint64, U64, 0, "", "0.1.0", "number of the collective; 0 = unused") \
	X(SAME, uint64_t, hash, 2, fixed64, ID, 0, "", "0.1.0", "rolling hash after this collective")

#define CW_P2P_FACTS(X) \
	X(SAME, uint32_t, peer, 1, uint32, U32, 0, "comm rank", "0.1.0", "the other member") \
	X(SAME, uint64_t, sends, 2, uint64, U64, 0, "ops", "0.1.0", "number of sends to the peer") \
	X(SAME, uint64_t, recvs, 3, uint64, U64, 0, "ops", "0.1.0", "number of receives from the peer") \
	X(SAME, uint64_t, send_hash, 4, fixed64, ID, 0, "", "0.1.0", "rolling hash over the sizes of the sends; 0 = they changed during the read") \
	X(SAME, uint64_t, recv_hash, 5, fixed64, ID, 0, "", "0.1.0", "rolling hash over the sizes of the receives; 0 = they changed during the read")

/*
 * A network connection of a member, with the op at its head. NCCL cuts the op's part on the
 * connection into steps. Each step passes the states posted, ready, handed and done in this order,
 * and increases their counts.
 */
#define CW_CONNECTION_FACTS(X) \
	X(SAME, uint32_t, peer, 1, uint32, U32, 0, "comm rank", "0.2.0", "rank at the other end") \
	X(SAME, uint32_t, channel, 2, uint32, U32, 0, "", "0.2.0", "number of NCCL's channel") \
	X(SAME, uint32_t, flags, 3, uint32, U32, 0, "", "0.2.0", "flags CW_CONNECTION_*") \
	X(SAME, uint64_t, seq, 4, uint64, U64, 0, "", "0.2.0", "coll_seq of the op, or p2p_seq of a send or receive; 0 = unknown") \
	X(SAME, uint32_t, replay, 5, uint32, U32, 0, "", "0.2.0", "number of the graph's replay, from 1; 0 = none") \
	X(SAME, uint32_t, open_ops, 6, uint32, U32, 0, "ops", "0.2.0", "number of ops that have not ended on the connection; 255 = 255 or more") \
	X(SAME, uint32_t, steps, 7, uint32, U32, 0, "steps", "0.2.0", "number of steps of the op on this connection") \
	X(SAME, uint32_t, posted, 8, uint32, U32, 0, "steps", "0.2.0", "number of steps given to the GPU to fill, or to the network to receive") \
	X(SAME, uint32_t, ready, 9, uint32, U32, 0, "steps", "0.2.0", "number of steps that the GPU filled, or that came from the network") \
	X(SAME, uint32_t, handed, 10, uint32, U32, 0, "steps", "0.2.0", "number of steps handed to the network, or given to the GPU") \
	X(SAME, uint32_t, done, 11, uint32, U32, 0, "steps", "0.2.0", "number of steps that the network confirmed, or that the GPU consumed") \
	X(TIME, int64_t, moved, 12, sint64, I64, true, "ns", "0.2.0", "time when a count last changed") \
	X(TIME, int64_t, same_since, 13, sint64, I64, true, "ns", "0.2.0", "time when the daemon first read the present counts") \
	X(SPAN, int64_t, held_ns, 14, uint64, I64, 0, "ns", "0.2.0", "mean time that a step of the op waited between ready and done; 0 = unknown") \
	X(SAME, uint64_t, bytes, 15, uint64, U64, 0, "bytes", "0.2.0", "size of the steps handed or received so far; 0 = unknown") \
	X(SAME, uint64_t, bytes_per_s, 16, uint64, U64, 0, "bytes/s", "0.2.0", "rate while the daemon was reading the op; 0 = unknown")

#define CW_COMM_FACTS(X) \
	X(KEPT, uint64_t, id, 0, none, ID, 0, "", "0.1.0", "comm_id of its members") \
	X(SAME, uint64_t, parent_id, 3, fixed64, ID, 0, "", "0.1.0", "comm from which this comm was split; 0 = none") \
	X(SAME, uint64_t, nccl_hash, 31, fixed64, ID, 0, "", "0.1.0", "NCCL's own hash, if known; a label, not an identity") \
	X(SAME, uint32_t, instance, 2, uint32, U32, 0, "", "0.1.0", "distinguishes comms of the same id") \
	X(SAME, uint32_t, split_ordinal, 4, uint32, U32, 0, "", "0.1.0", "number of the parent's call that created this comm, from 1; 0 = none") \
	X(SAME, int32_t, split_color, 5, sint32, I32, 0, "", "0.1.0", "as passed to that call") \
	X(KEPT, uint32_t, nranks, 0, none, U32, 0, "ranks", "0.1.0", "largest size that a member passed; the comm has this many members") \
	X(KEPT, uint64_t, agreed_seq, 0, none, U64, 0, "coll_seq", "0.1.0", "the members' calls were equal up to this one, by hashes compared earlier; 0 = not known") \
	X(KEPT, uint64_t, differ_seq, 0, none, U64, 0, "coll_seq", "0.1.0", "the members' calls differ at this one; 0 = no difference was seen") \
	X(KEPT, uint64_t, uneven_seq, 0, none, U64, 0, "coll_seq", "0.2.0", "number of an exchange whose members together expect more or less data than they send; 0 = none is known") \
	X(KEPT, int32_t, uneven_member, 0, none, I32, 0, "comm rank", "0.2.0", "with uneven_seq: the member whose size does not match those of the others; -1 = not known") \
	X(KEPT, uint32_t, lists_open_only, 0, none, U32, 0, "", "0.2.0", "not 0: recordings list only open calls, so a send or receive that a member does not list may have completed") \
	X(TEXT, const char *, name, 6, string, TEXT, 0, "", "0.1.0", "ncclConfig_t.commName")

#define CW_MEMBER_FACTS(X) \
	X(KEPT, uint32_t, rank, 0, none, U32, 0, "", "0.1.0", "index into ranks; CW_SNAP_NONE = no rank has reported as this member") \
	X(SENT, uint64_t, comm_id, 1, fixed64, none, 0, "", "0.1.0", "id of the communicator") \
	X(SENT, int32_t, comm_rank, 8, sint32, none, 0, "comm rank", "0.1.0", "rank in the communicator; -1 = it has none yet") \
	X(SENT, int32_t, device, 9, sint32, none, 0, "", "0.1.0", "CUDA ordinal; -1 = unknown") \
	X(SAME, uint32_t, state, 10, uint32, U32, CW_COMM__MAX - 1, "", "0.1.0", "enum cw_comm_state (record/record_layout.h)") \
	X(SAME, uint32_t, known, 15, uint32, U32, 0, "", "0.1.0", "CW_KNOWN_*: the counters that are known") \
	X(SAME, uint32_t, pending_count, 20, uint32, U32, 0, "ops", "0.1.0", "number of ops that have not completed") \
	X(SAME, uint32_t, nranks, 7, uint32, U32, 0, "ranks", "0.1.0", "size of the comm, as this rank passed it; 0 = unknown") \
	X(SAME, uint64_t, coll_entered, 11, uint64, U64, 0, "coll_seq", "0.1.0", "highest collective whose call was entered") \
	X(SAME, uint64_t, coll_returned, 12, uint64, U64, 0, "coll_seq", "0.1.0", "highest collective whose call returned to the host") \
	X(SAME, uint64_t, coll_reached, 13, uint64, U64, 0, "coll_seq", "0.1.0", "highest collective that the stream has reached") \
	X(SAME, uint64_t, coll_completed, 14, uint64, U64, 0, "coll_seq", "0.1.0", "highest collective that completed on the device") \
	X(SAME, uint64_t, op_index, 29, uint64, U64, 0, "ops", "0.1.0", "number of ops entered") \
	X(SAME, uint64_t, hash_seq, 16, uint64, U64, 0, "coll_seq", "0.1.0", "collective to which the hash belongs") \
	X(SAME, uint64_t, hash, 17, fixed64, ID, 0, "", "0.1.0", "rolling hash after hash_seq") \
	X(KEPT, uint64_t, window_lost, 0, none, U64, 0, "ops", "0.1.0", "number of ops before window[0] that the record has lost") \
	X(KEPT, int64_t, window_ns, 0, none, I64, 0, "ns", "0.1.0", "time when the window was read; 0 = not fetched") \
	X(TIME, int64_t, progress, 21, sint64, I64, true, "ns", "0.1.0", "time when a counter of this member last changed") \
	X(SPAN, int64_t, interval_ns, 22, uint64, I64, 0, "ns", "0.1.0", "median time between completions; 0 = unknown") \
	X(SAME, uint64_t, sends, 26, uint64, U64, 0, "ops", "0.1.0", "number of sends entered") \
	X(SAME, uint64_t, recvs, 27, uint64, U64, 0, "ops", "0.1.0", "number of receives entered") \
	X(SAME, int32_t, async_error, 23, sint32, I32, 0, "ncclResult_t", "0.1.0", "last error from ncclCommGetAsyncError; 0 = none") \
	X(SAME, int32_t, last_result, 24, sint32, I32, 0, "ncclResult_t", "0.1.0", "result of the last call that failed; 0 = none") \
	X(TEXT, const char *, last_error, 25, string, TEXT, 0, "", "0.1.0", "NCCL's text for the last failure") \
	X(SAME, uint32_t, by_profiler, 32, uint32, U32, 0, "", "0.2.0", "not 0: the calls are known from NCCL's profiler interface, which has neither operators nor progress") \
	X(SAME, uint64_t, making_ns, 34, uint64, U64, 0, "ns", "0.2.0", "time that this rank took to create the communicator; 0 = it still does, or not known") \
	X(PART, , checkpoints, 18, Checkpoint, none, CW_MSG_MAX_CHECKPOINTS, "", "0.1.0", "checkpoints of the rolling hash, newest first") \
	X(PART, , last_hashes, 33, Checkpoint, none, CW_MSG_MAX_LAST_HASHES, "", "0.2.0", "the rolling hash after each of the last calls, oldest first, if eight calls take longer than a second") \
	X(PART, , pending, 19, Op, none, 0, "", "0.1.0", "oldest op that has not completed or, if that is unknown, has not returned") \
	X(PART, , p2p, 28, P2pPeer, none, CW_MSG_MAX_P2P, "", "0.1.0", "sends and receives per peer") \
	X(PART, , last, 30, Op, none, 0, "", "0.1.0", "newest op entered") \
	X(PART, , connections, 35, Connection, none, CW_MSG_MAX_CONNECTIONS, "", "0.2.0", "the member's network connections that have an open op; only while its ops do not move")

#define CW_RANK_FACTS(X) \
	X(SAME, int32_t, rank, 1, sint32, I32, 0, "", "0.1.0", "rank number in the job; -1 = unknown") \
	X(SENT, int32_t, world_size, 2, sint32, none, 0, "ranks", "0.1.0", "number of ranks of the job, from the environment; -1 = none") \
	X(SENT, int32_t, local_rank, 3, sint32, none, 0, "", "0.1.0", "rank number on the node, from the environment; -1 = none") \
	X(SENT, const char *, rank_source, 4, string, none, 0, "", "0.1.0", "the variable that rank comes from") \
	X(KEPT, uint32_t, node, 0, none, U32, 0, "", "0.1.0", "index into nodes") \
	X(SAME, int32_t, pid, 5, sint32, I32, 0, "", "0.1.0", "pid of the process, as its daemon sees it") \
	X(SAME, int32_t, device, 7, sint32, I32, 0, "", "0.1.0", "CUDA ordinal; -1 = unknown") \
	X(SAME, uint64_t, start_ticks, 6, fixed64, U64, 0, "ticks", "0.1.0", "field 22 of /proc/PID/stat; identifies the process together with pid") \
	X(SENT, uint32_t, uid, 8, uint32, none, 0, "", "0.1.0", "user of the process") \
	X(SAME, uint32_t, liveness, 9, uint32, U32, CW_LIVE__MAX - 1, "", "0.1.0", "enum cw_liveness") \
	X(SAME, uint32_t, flags, 12, uint32, U32, 0, "", "0.1.0", "CW_RANKF_*") \
	X(SAME, int32_t, exit_code, 10, sint32, I32, 0, "", "0.1.0", "exit status of an exited process") \
	X(SAME, int32_t, term_signal, 11, sint32, I32, 0, "", "0.1.0", "signal that killed the process") \
	X(TIME, int64_t, ended, 13, sint64, I64, cw_liveness_is_dead(from->liveness), "ns", "0.1.0", "time when the process ended; 0 = alive or unknown") \
	X(TIME, int64_t, sampled, 15, sint64, I64, true, "ns", "0.1.0", "time when these facts were read") \
	X(TIME, int64_t, host_activity, 14, sint64, I64, from->host_activity_age_ns >= 0, "ns", "0.1.0", "time when the process last showed host activity; 0 (an age of -1) = unknown") \
	X(SAME, uint32_t, nccl_version, 16, uint32, U32, 0, "", "0.1.0", "version of NCCL as ncclGetVersion returns it; 0 = unknown") \
	X(SAME, uint64_t, env_hash, 17, fixed64, ID, 0, "", "0.1.0", "hash of the NCCL_* variables that must be equal on all ranks; 0 = none is set") \
	X(SAME, uint64_t, dropped, 18, uint64, U64, 0, "", "0.1.0", "number of objects that did not fit the record; more than 0 lowers confidence") \
	X(TEXT, const char *, host_activity_by, 23, string, TEXT, 0, "", "0.1.0", "the last kind of host activity: cpu, io, child, …") \
	X(TEXT, const char *, command, 19, string, TEXT, 0, "", "0.1.0", "command line of the process") \
	X(KEPT, const char *, cause, 0, none, TEXT, 0, "", "0.1.0", "the facts about the process's death or stop as a text, to follow \"was\"") \
	X(SAME, uint32_t, end_by, 27, uint32, U32, CW_END_BY__MAX - 1, "", "0.1.0", "sender of the signal that ended the process: enum cw_end_by") \
	X(SAME, int32_t, end_sender, 28, sint32, I32, 0, "", "0.1.0", "pid of the process that sent this signal, as its daemon sees it; 0 = not known") \
	X(TEXT, const char *, nonfinite_input, 25, string, TEXT, 0, "", "0.1.0", "the first NaN or infinity that the rank passed to an op, as a text") \
	X(TIME, int64_t, nonfinite_input, 26, sint64, I64, from->nonfinite_input && *from->nonfinite_input, "ns", "0.1.0", "time when the daemon noticed that value") \
	X(SAME, uint32_t, host_wait, 29, uint32, U32, CW_HOST_WAIT__MAX - 1, "", "0.1.0", "kind of wait of the first thread: enum cw_host_wait") \
	X(SPAN, int64_t, job_timeout_ns, 30, uint64, I64, 0, "ns", "0.1.0", "time in one call after which the job's own watchdog ends the job; 0 = none is known") \
	X(SPAN, int64_t, net_retry_ns, 31, uint64, I64, 0, "ns", "0.1.0", "time that the network retries before it reports an error; 0 = unknown") \
	X(TEXT, const char *, pod, 32, string, TEXT, 0, "", "0.2.0", "Kubernetes pod of the process; its uid if only the control group names the pod") \
	X(TEXT, const char *, pod_namespace, 33, string, TEXT, 0, "", "0.2.0", "namespace of that pod") \
	X(TEXT, const char *, container, 34, string, TEXT, 0, "", "0.2.0", "container of the process in the pod; the first digits of its id if only the control group names it") \
	X(SAME, int32_t, own_pid, 35, sint32, I32, 0, "", "0.2.0", "pid of the process in its own pid namespace; 0 = the same as pid, or not known") \
	X(SENT, uint64_t, started_age_ns, 36, uint64, none, 0, "ns", "0.2.0", "age of the process; 0 = unknown") \
	X(TEXT, const char *, job_timeout_source, 37, string, TEXT, 0, "", "0.2.0", "source of job_timeout_ns, as a text: an argument or a variable") \
	X(SAME, uint64_t, connections_lost, 50, uint64, U64, 0, "", "0.2.0", "number of parts of ops on connections that are missing: record or digest had no place, or the part was unreadable") \
	X(TEXT, const char *, nccl_variables, 51, string, TEXT, 0, "", "0.2.0", "the NCCL_* variables of the process, such as `NCCL_ALGO=Ring NCCL_PROTO=LL`; `none` = it has none; only while the rank stands still") \
	X(SAME, uint32_t, nccl_variables_omitted, 52, uint32, U32, 0, "", "0.2.0", "number of further NCCL_* variables that had no room in the record") \
	X(SAME, uint32_t, machine, 53, uint32, U32, CW_MACHINE__MAX - 1, "", "0.2.0", "architecture of the node: enum cw_machine") \
	X(SAME, uint64_t, host_call_comm_id, 22, fixed64, ID, 0, "", "0.1.0", "comm of host_call") \
	X(PART, , host_call, 20, Op, none, 0, "", "0.1.0", "host-blocking call in progress outside any known comm; kind 0 = none") \
	X(PART, , members, 21, Member, none, CW_MSG_MAX_MEMBERS, "", "0.1.0", "the rank's view of each communicator")

/*
 * The cause of a rank's death or stop (model/cause.h). In messages these facts follow the other
 * facts about the rank.
 */
#define CW_CAUSE_FACTS(X) \
	X(SAME, uint32_t, cause_kind, 38, uint32, U32, CW_CAUSE__MAX - 1, "", "0.2.0", "enum cw_cause_kind") \
	X(SAME, uint32_t, cause_by, 39, uint32, U32, CW_END_BY__MAX - 1, "", "0.2.0", "the sender of the signal, or the holder: enum cw_end_by") \
	X(SAME, int32_t, cause_signal, 40, sint32, I32, 0, "", "0.2.0", "the signal; 0 = none") \
	X(SAME, int32_t, cause_pid, 41, sint32, I32, 0, "", "0.2.0", "pid of the process that sent the signal or holds the rank, as the daemon sees it; 0 = not known") \
	X(SAME, uint32_t, cause_uid, 42, uint32, U32, 0, "", "0.2.0", "user of that process") \
	X(TEXT, const char *, cause_command, 24, string, TEXT, 0, "", "0.2.0", "name of that process, which it chooses itself") \
	X(TEXT, const char *, cause_group, 43, string, TEXT, 0, "", "0.2.0", "the frozen control group") \
	X(SAME, uint64_t, cause_resident, 44, uint64, U64, 0, "bytes", "0.2.0", "resident memory of the process when memory ran out; 0 = not known") \
	X(SAME, uint64_t, cause_group_bytes, 45, uint64, U64, 0, "bytes", "0.2.0", "memory of the control group that was nearest to its limit at that time") \
	X(SAME, uint64_t, cause_group_limit, 46, uint64, U64, 0, "bytes", "0.2.0", "limit of that group; 0 = no group has one") \
	X(SAME, uint32_t, cause_op_kind, 47, uint32, U32, 0, "", "0.2.0", "kind of the op whose tensor made the agent stop the rank: enum cw_op_kind") \
	X(SAME, uint32_t, cause_is_output, 48, uint32, U32, 0, "", "0.2.0", "not 0: that tensor is a result of the op") \
	X(SAME, uint64_t, cause_op_seq, 49, uint64, U64, 0, "", "0.2.0", "coll_seq or p2p_seq of that op")
/* clang-format on */

/*
 * These macros declare the fields of structs. CW_SAME_FACTS() declares the fields that messages and
 * snapshots share. Code can use each of them as an ordinary field. All of them together are also
 * one struct, which we copy at once. CW_SENT_FIELD declares the fields that only messages have, and
 * CW_KEPT_FIELD the fields that only snapshots have.
 */
/* clang-format off */
#define CW_SAME_FACTS(together, FACTS) \
	union { \
		struct { \
			FACTS(CW_SAME_FIELD) \
		}; \
		struct cw_##together together; \
	}
#define CW_SAME_FIELD(kind, type, name, ...) CW_SAME_FIELD_##kind(type, name)
#define CW_SAME_FIELD_SAME(type, name) type name;
#define CW_SAME_FIELD_TEXT(type, name)
#define CW_SAME_FIELD_TIME(type, name)
#define CW_SAME_FIELD_SPAN(type, name)
#define CW_SAME_FIELD_SENT(type, name)
#define CW_SAME_FIELD_KEPT(type, name)
#define CW_SAME_FIELD_PART(type, name)

#define CW_SENT_FIELD(kind, type, name, ...) CW_SENT_FIELD_##kind(type, name)
#define CW_SENT_FIELD_SAME(type, name)
#define CW_SENT_FIELD_TEXT(type, name) type name;
#define CW_SENT_FIELD_TIME(type, name) type name##_age_ns;
#define CW_SENT_FIELD_SPAN(type, name) u##type name;
#define CW_SENT_FIELD_SENT(type, name) type name;
#define CW_SENT_FIELD_KEPT(type, name)
#define CW_SENT_FIELD_PART(type, name)

#define CW_KEPT_FIELD(kind, type, name, ...) CW_KEPT_FIELD_##kind(type, name)
#define CW_KEPT_FIELD_SAME(type, name)
#define CW_KEPT_FIELD_TEXT(type, name) type name;
#define CW_KEPT_FIELD_TIME(type, name) type name##_ns;
#define CW_KEPT_FIELD_SPAN(type, name) type name;
#define CW_KEPT_FIELD_SENT(type, name)
#define CW_KEPT_FIELD_KEPT(type, name) type name;
#define CW_KEPT_FIELD_PART(type, name)
/* clang-format on */

struct cw_op_facts {
	CW_OP_FACTS(CW_SAME_FIELD)
};

struct cw_comm_facts {
	CW_COMM_FACTS(CW_SAME_FIELD)
};

struct cw_member_facts {
	CW_MEMBER_FACTS(CW_SAME_FIELD)
};

struct cw_rank_facts {
	CW_RANK_FACTS(CW_SAME_FIELD)
};

struct cw_cause_facts {
	CW_CAUSE_FACTS(CW_SAME_FIELD)
};

struct cw_connection_facts {
	CW_CONNECTION_FACTS(CW_SAME_FIELD)
};

/*
 * All code uses cw_checkpoint and cw_p2p_peer, except that a flight record has structs of its own.
 */
struct cw_checkpoint {
	CW_CHECKPOINT_FACTS(CW_SAME_FIELD)
};

struct cw_p2p_peer {
	CW_P2P_FACTS(CW_SAME_FIELD)
};
