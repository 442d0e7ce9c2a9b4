# SPDX-License-Identifier: Apache-2.0
"""The promises of docs/schemas.md on all other documents, written as incident_contract.py is:
CONTRACTS has them by the name that their schema has there, and in docs/schemas."""

from incident_contract import (CLASSES, ID, INCIDENT, SET, TIME, Named, count, differences, matches,
                               number, share, text)

SECONDS = (int, float)
CONFIDENCE = ("certain", "likely", "possible")
LABEL = {"pod?": text, "pod_namespace?": text, "container?": text, "own_pid?": number}

FOLDED = {
    "schema": ("collwatch.folded/1",), "id": text, "uid": number, "count": number, "since": (None, TIME),
    "summary": text, "jobs": [{"job": (None, str), "count": number}],
    "incidents": [{"id": text, "job": str, "class": CLASSES, "confidence": CONFIDENCE, "summary": text,
                   "command": (None, text), "leader": str}],
    "leader": str, "command": text,
}

HEALTHY = {
    "schema": ("collwatch.healthy/1",), "job": str, "ranks": number, "nodes": number,
    # The daemon drops these when a job ends.
    "comms?": number, "collectives?": count,
    "watched_s": SECONDS, "summary": text, "namespaces?": bool, "notes?": [text],
    "slow?": [{"rank": number, "host": str, "pid": number, **LABEL, "comm": ID, "comm_name": str,
               "collectives": number, "waited_for": number, "late_s": SECONDS, "share": share,
               "confidence": CONFIDENCE}],
}

# Of a snapshot: fields of value 0 are absent.
SNAPSHOT_OP = {name + "?": kind for names, kind in (
    ("kind dtype redop progress flags result root peer tid enter_ns return_ns stack", number),
    ("count bytes coll_seq p2p_seq op_index group_id", count), ("stream", ID)) for name in names.split()}
MEMBER = {
    "rank": number, "comm_rank": number, "checkpoints": [{"coll_seq?": count, "hash?": ID}],
    **{name + "?": kind for names, kind in (
        ("state known pending_count nranks window_ns progress_ns interval_ns async_error last_result "
         "by_profiler", number),
        ("coll_entered coll_returned coll_reached coll_completed op_index hash_seq window_lost sends recvs making_ns",
         count),
        ("hash", ID), ("last_error", str)) for name in names.split()},
    "last_hashes?": [{"coll_seq?": count, "hash?": ID}],
    "pending?": SNAPSHOT_OP, "last?": SNAPSHOT_OP, "window?": [SNAPSHOT_OP],
    "connections?": [{name + "?": kind for names, kind in (
        ("peer channel flags replay open_ops steps posted ready handed done moved_ns same_since_ns held_ns", number),
        ("seq bytes bytes_per_s", count)) for name in names.split()}],
    "p2p?": [{"peer?": number, "sends?": count, "recvs?": count, "send_hash?": ID, "recv_hash?": ID}],
}
SNAPSHOT = {
    "schema": ("collwatch.snapshot/1",), "now_ns?": number, "wall_ns?": number, "job?": str, "group?": str,
    "policy?": number, "ranks_expected?": number, "untracked?": number,
    "thresholds": {name + "?": number for name in (
        "stall_min_ns stall_max_ns stall_factor first_op_ns first_op_per_rank_ns proof_ns confirm_ns "
        "window_after_ns no_progress_after_ns host_activity_alert_ns "
        "in_collective_ns node_silent_ns bytes_per_s").split()},
    "nodes": [{"name?": str, "state?": number, "last_digest_ns?": number}],
    "ranks": [{**{name + "?": kind for names, kind in (
        ("rank node pid device liveness flags exit_code term_signal ended_ns sampled_ns host_activity_ns nccl_version "
         "end_by end_sender nonfinite_input_ns host_wait job_timeout_ns net_retry_ns own_pid "
         "cause_kind cause_by cause_signal cause_pid cause_uid cause_op_kind cause_is_output nccl_variables_omitted machine", number),
        ("start_ticks dropped connections_lost cause_resident cause_group_bytes cause_group_limit cause_op_seq", count), ("env_hash host_call_comm_id", ID),
        ("host_activity_by command cause cause_command cause_group nonfinite_input pod pod_namespace container "
         "job_timeout_source nccl_variables", str))
        for name in names.split()},
        "host_call?": SNAPSHOT_OP}],
    "comms": [{**{name + "?": kind for names, kind in (
        ("instance split_ordinal split_color nranks uneven_member lists_open_only", number),
        ("agreed_seq differ_seq uneven_seq", count),
        ("id parent_id nccl_hash", ID), ("name", str)) for name in names.split()}, "members": [MEMBER]}],
    "notes": [str], "stacks?": [str],
}

STATUS_OF_PART = ("ok", "partial", "absent", "refused", "failed")
EVIDENCE = {
    "schema": ("collwatch.evidence/1",), "host": str, "pid": number, "start_ticks": matches("[0-9]+"),
    "rank": number, "taken?": TIME, "age_s?": SECONDS,
    "core?": {"status": STATUS_OF_PART, "reason": str, "signal": number, "tid": number},
    "proc": (None, {
        "status": STATUS_OF_PART, "reason": str, "state?": (None, str), "command?": (None, str),
        "cpu_s?": (None, int, float), "cpus?": (None, text), "thread_count?": (None, number), "rss_kib?": (None, number),
        "tracer?": (None, number), "read_bytes?": (None, number), "write_bytes?": (None, number),
        "cgroup?": (None, str), "torch_settings?": (None, [str]),
        "threads?": [{"tid": number, "name": (None, str), "state": (None, str), "wchan": (None, str),
                      "syscall": (None, str), "cpu_s": (None, int, float), "off_cpu_s": (None, int, float),
                      "kernel_stack": (None, [str]),
                      "waits_for": (None, {"fd": number, "path": str, "device": (None, str), "fs": (None, str),
                                           "source": (None, str)})}]}),
    "native": (None, {
        "status": STATUS_OF_PART, "reason": str, "held_ms?": SECONDS,
        "threads?": [{"tid": number, "name": (None, str), "run_ns?": (None, number), "note?": str,
                      "frames": [{"pc": (None, ID), "symbol": (None, str), "offset": (None, number),
                                  "module": (None, str), "file": (None, str), "line": (None, number)}]}]}),
    "python": (None, {
        "status": STATUS_OF_PART, "reason": str,
        "threads?": [{"id": str, "tid?": (None, number), "current": bool, "name": (None, str),
                      "run_ns?": (None, number), "gil?": (None, "holds", "wants"), "note?": (None, str),
                      "frames": [{"file": str, "line": (None, number), "function": str, "entry?": bool}]}]}),
}

# A tree: its nodes hold such nodes.
FRAME = Named("frame", {"name": (None, str), "file": (None, str), "line": (None, number), "module": (None, str),
                        "fold": bool, "n": number, "ranks": SET, "ends": number})
FRAME.contract["calls"] = [FRAME]
STACKS = {
    "schema": ("collwatch.stacks/1",), "processes": number, "seen": number, "awaited": number, "ranks": SET,
    "not_collected": [{"ranks": SET, "n": number, "why": str}], "cut": number,
    "trees": [{"kind": ("python", "native"), "thread": str, "n": number, "ranks": SET, "roots": [FRAME]}],
    "different?": [{"ranks": SET, "n": number, "thread": str, "where": str, "usual": str, "peers": number,
                    "usual_n": number, "confidence": ("possible", "likely")}],
    # The answer of the verb `stacks`.
    "job?": str, "note?": str, "ages?": [{"ranks": SET, "n": number, "age_s": SECONDS}], "evidence?": [EVIDENCE],
}

MUTED = (None, {"until": (None, TIME), "node": str})
NOTE = ("alone", "found_nobody", "peers_from", "shadow", "reload", "accept", "no_kernel_events", "log_lost",
        "agent_version", "no_record", "state_not_writable", "bundles_waiting")
STATUS = {
    "schema": ("collwatch.status/1",), "node": str, "version": text, "commit": text, "uptime_s": SECONDS,
    "peers": [{"node": str, "state": matches("never_seen|connected|silent|lost|said_goodbye|refused: .+"),
               "refusal?": ("key_differs", "no_key", "certificate", "tls"), "dropped": number}],
    "notes": [text], "note_names": [NOTE], "loop_max_s": SECONDS,
    "agents": {name: number for name in (
        "processes connected dead refused deferred waiting bad_messages record_errors").split()},
    "jobs": [{"job": str, "uid": number, "leader": str, "led_here": bool, "ranks": number,
              "ranks_expected": (None, number), "nodes": [str], "comms": (None, number),
              "state": ("healthy", "suspect", "stalled", "hang", "led_elsewhere", "untracked"),
              "since_s": SECONDS, "summary": str, "incident": (None, str), "collectives": (None, number),
              "watched_s": SECONDS, "muted": MUTED, "suppressed": (None, "shadow", "muted"),
              "severity": (None, "page", "notice"),
              "slow?": (None, {"lasted_s": SECONDS, "ago_s": SECONDS, "summary": str}),
              "late?": [{"summary": str, "rank": number, "host": str, "pid": number, "comm": ID, "comm_name": str,
                         "collectives": number, "waited_for": number, "late_s": SECONDS, "share": (int, float),
                         "confidence": ("possible", "likely"), "since_s": SECONDS}],
              "job_timeout?": (None, {"seconds": SECONDS, "assumed": bool, "set_by?": text}),
              "proposed_policy?": ("serving",), "pods": (None, [text]),
              "leader_answer?": ("taken", "silent", "not_asked", "not_led", "no_room")}],
    "tensors": [{"job": str, "uid": number, "pid": number, "rank": number, "kind": str, "dtype": str, "comm": ID,
                 "summary": str, "seq": number, "op_index": number, "nans": number, "infs": number,
                 "elements": number, "ago_s": SECONDS}],
    "tensor_stats?": [{"job": str, "uid": number, "what": ("nonfinite", "headroom"), "summary": str, "ago_s": SECONDS}],
    "untracked": [{"what": ("rank_processes", "jobs"), "uid": number, "count": number, "summary": str}],
    "shared_communicators?": [{
        "comm": ID, "nranks": number, "jobs": [{"job": text, "uid": number}],
        "cause": ("users", "namespaces", "namespace_missing", "job_missing", "job_differs"),
        "missing": (None, "COLLWATCH_JOB", "COLLWATCH_POD_NAMESPACE"), "missing_in": [text]}],
    "reload?": (None, {"result": ("done", "needs_restart", "refused"), "ago_s": SECONDS, "why": (None, text)}),
}

OPS = {
    "schema": ("collwatch.ops/1",), "node": str, "omitted": number, "lost": number,
    "rows": [{"job": str, "uid": number, "kind": str, "comm": matches("(0x[0-9a-f]+)?"), "comm_name": str,
              "nranks": number, "size": str, "processes": number, "ops": number, "bytes": number,
              "call_us": (None, int, float),
              "calls_us": (None, {"p50": SECONDS, "p90": SECONDS, "p99": SECONDS, "max": SECONDS, "jitter": SECONDS}),
              "timed": number, "device_us": (None, int, float),
              "device_max_us": (None, int, float), "algbw_gbs": (None, int, float),
              "busbw_gbs": (None, int, float), "ops_per_s?": (int, float), "bytes_per_s?": (int, float)}],
}

SUMMARIES = {
    "schema": ("collwatch.summaries/1",), "node": str, "taken": TIME, "ranks_omitted": number,
    "ranks": [{"rank": (-1, number), "pid": number, "world_size": (-1, number), "calls": count, "tensors": count,
               "kept": count, "not_collected": count, "whole": bool, "lives": bool, "created_ns": number,
               "ended_ns": number, "device_model": str, "cuda_driver_version": number, "nccl_version": number}],
    "comms": [{"id": ID, "instance": number, "name": str, "nranks": number, "counted": bool}],
    # Of each sample its rank, …, its site: as columns say.
    "columns": [text], "samples": [[(None, int, float, str)]],
    # Of a bundle: the nodes that have sent nothing.
    "silent?": [str], "silent_count?": number, "why?": ("asking", "too much"),
}

MUTE = {
    "schema": ("collwatch.mute/1",), "job": str, "uid": number, "muted": MUTED, "nodes?": [str], "silent?": [str],
    "silent_count?": number, "not_asked?": number,
}

INCIDENTS = {
    "schema": ("collwatch.incidents/1",),
    "incidents": [{"id": text, "uid?": (None, number), "job?": (None, str), "class?": (None, str),
                   "time?": (None, TIME), "summary?": (None, str), "closed_as?": (None, str),
                   "severity?": str, "suppressed?": str, "host": str,
                   "path?": (None, str), "hosts?": [(None, str)]}],
    "silent?": [str], "silent_count?": number, "not_asked?": number, "omitted?": number,
}

DOCTOR = {
    "schema": ("collwatch.doctor/1",), "checked": [text],
    "findings": [{"name": text, "what": text, "fix": (None, text)}], "notes?": [text],
}

RECORD = {
    "schema": ("collwatch.record/1",), "job": str, "rank": number, "world_size": number, "pid": number,
    "nccl_version": number, "nccl_variables": str, "nccl_variables_omitted": number, "recording": bool, "calls": count, "progress_untracked": count, "beat": (None, TIME),
    "comms": [{"id": ID, "name": str, "state": text, "comm_rank": number, "nranks": number, "entered": count,
               "returned": count, "completed": (None, count), "sends": count, "recvs": count,
               "source": ("wrappers", "profiler"), "async_error": number, "async_error_name": (None, text),
               "last_error": str,
               "ops": [{"kind": text, "dtype": str, "redop": str, "count": count, "root": number, "peer": number,
                        "coll_seq": count, "p2p_seq": count, "op_index": count, "state": text, "result": number,
                        "entered": (None, TIME), "stack?": [text]}]}],
    "connections": [{"comm": (None, ID), "pid": (None, number), "rank": number, "peer": number, "channel": number,
                     "direction": ("send", "receive"), "p2p": bool, "op_index": count, "replay": number,
                     "open_ops": number, "steps": number, "posted": number, "ready?": (None, number),
                     "handed?": number, "received?": number, "given?": number, "done": number,
                     "bytes": (None, count), "newest": (None, TIME)}],
    "connections_lost": count, "connections_torn": number, "connections_impossible": number,
}

REAL = (None, int, float)
TENSOR = {
    "rank": (None, number), "comm": ID, "comm_name": str, "kind": text, "seq": count, "step": (None, number),
    "entered": (None, TIME), "side": ("input", "output"), "dtype": str, "redop": str, "elements": count,
    "looked_at": count, "nans": count, "infs": count, "zeros": count, "absmax": REAL, "absmin": REAL, "mean": REAL,
    "l2": REAL, "at_limit": REAL, "denormal": REAL, "checksum": ID, "site": (None, str),
    "carried": (None, str),
}
MEMBERS = [{"value": (None, text), "ranks": [(None, number)]}]
DIVERGENCE = {
    **TENSOR, "groups": [{"checksum": ID, "ranks": [(None, number)]}], "has_majority": bool,
    "unlike": {"device_model?": MEMBERS, "cuda_driver?": MEMBERS, "nccl?": MEMBERS}, "text": text,
}
NUMERICS = {
    "schema": ("collwatch.numerics/1",), "alarm": bool, "coverage": text, "ranks_omitted": number,
    "ranks_set_aside": number, "silent": (None, text), "nonfinite": count,
    "loss_scaling_explains_all": bool, "first_by_clock": bool,
    "firsts": [{**TENSOR, "origin": ("rank", "operation", "received"), "text": text}],
    "rows": [{"comm": ID, "comm_name": str, "step": count, "steps": count, "tensors": number, "ratio": REAL,
              "loss_scaling": bool, "text": text}],
    "headroom": [{**TENSOR, "value": REAL, "limit": REAL, "summed": bool, "growth": REAL, "steps_left": REAL,
                  "since_step": count, "text": text}],
    "ranges": [{**TENSOR, "end": ("at_limit", "denormal"), "share": REAL, "room": REAL, "steps": number, "text": text}],
    "divergences": [DIVERGENCE], "roundings": [DIVERGENCE],
    "suspects": [{"rank": (None, number), "divergences": number, "communicators": number, "text": text}],
    "imbalances": [{**TENSOR, "sum_in": REAL, "sum_out": REAL, "bound": REAL, "text": text}],
    "ranks": [{"rank": (None, number), "record": (None, str), "calls": count, "tensors": count, "kept": count,
               "not_collected": count, "nonfinite": number, "first?": TENSOR, "before": [TENSOR]}],
    "checked": {"replicas": count, "sums": count},
    "over_limit": {"rows": number, "headroom": number, "ranges": number, "divergences": number, "roundings": number,
                 "imbalances": number},
}

BASELINE_SIDE = (None, {"absmax": REAL, "mean": REAL, "l2": REAL, "nonfinite": number})
BASELINE_OP = {
    "comm": ID, "comm_name": str, "kind": text, "seq": number, "step": (None, number), "dtype": text,
    "redop": text, "root": (None, number), "call": (None, number), "elements_in": (None, number), "count": count,
    "site": (None, str), "input": BASELINE_SIDE,
    "output": BASELINE_SIDE,
}
BASELINE_FIRST = (None, {
    "rank": (None, number),
    "what": ("missing", "extra", "unlike", "dtype", "count", "redop", "root", "site", "nonfinite", "tensor_stats"),
    "side": (None, "input", "output"), "value": (None, "absmax", "mean", "l2"), "allowed": REAL,
    "baseline": (None, BASELINE_OP), "check": (None, BASELINE_OP), "text": text,
})
BASELINE_PART = (None, {
    "finished": bool, "lost_ops": count, "lost_tensors": count, "partial": count, "unseen": count,
    "refused": count, "not_collected": count, "tensors": count,
})
BASELINE_COUNTS = {
    "ops_baseline": count, "ops_check": count, "paired": count, "checked": count, "omitted": count,
    "skipped_baseline": count, "skipped_check": count, "unrecorded_baseline": count, "unrecorded_check": count,
    "missing": count, "extra": count, "unlike": count, "called_otherwise": count, "tensor_stats": count,
    "paired_by": ("step", "call", "site", "kind"),
}
BASELINE_CHECK = {
    "schema": ("collwatch.baseline_check/1",), "outcome": ("equal", "differs", "incomparable"), "why": (None, text),
    "coverage": text, **BASELINE_COUNTS, "first": BASELINE_FIRST, "ranks_compared": number,
    "ranks_that_differ": number,
    "together": (None, {"ranks_baseline": number, "ranks_check": number, "own": count, "omitted_baseline": count,
                        "omitted_check": count}), "tolerances": [{"dtype": text, "rtol": REAL, "atol": REAL}],
    "denied_baseline": str, "denied_check": str,
    "ranks": [{"rank": (None, number), "part": ("collectives", "operators"), **BASELINE_COUNTS, "first": BASELINE_FIRST, "baseline": BASELINE_PART,
               "check": BASELINE_PART}],
}

# Lines of collwatch.torch, and the output of `numerics` for them.
REAL_OR_NOT = (int, float, "NaN", "Inf", "-Inf")
FRAME = {
    "at": TIME, "frame": number, "step": number, "phase": ("forward", "backward", "recomputed"), "module": str,
    "class": str, "op": str, "call": number, "site": [text],
    "tensors": [{"side": ("weight", "input", "output"), "what": text, "dtype": text, "shape": [number],
                 "absmax": REAL_OR_NOT, "absmin": REAL_OR_NOT, "mean": REAL_OR_NOT}],
}
BAD = {"tensor": number, "number": ("NaN", "Inf", "-Inf"), "inputs_finite": bool}
COMM = ("all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
        "all_to_all_single", "send", "recv", "isend", "irecv", "batch_isend_irecv", "all_gather_into_tensor",
        "reduce_scatter_tensor", "all_gather_single", "reduce_scatter_single")
DIFFERENT = {"tensor": text, "groups": [[number]]}
# Where a program stopped by itself, and the lines of code that it ran before.
WAY = [{"thread": text, "site": text, "text": str}]
STOP = {**{key: kind for key, kind in FRAME.items() if key not in ("frame", "tensors")}, "stop_at": text, "lines": WAY}
TENSORS = {
    "line": ("head", "frame", "bad", "step", "trace", "stop", "operator", "calls", "comms", "replicas", "note", "end",
             "buckets"),
    **{key if key == "at" else key + "?": kind for key, kind in {**FRAME, **BAD}.items()},
    "schema?": ("collwatch.tensors/1",), "rank?": (None, number), "world_size?": (None, number), "host?": text,
    "pid?": number, "torch?": text, "every?": number, "frames?": number, "ops?": bool, "denied?": [text],
    "denied_modules?": [text], "traced?": number, "stop_at?": text, "lines?": WAY,
    "nonfinite?": number, "nonfinite_gradients?": number, "loss_scale?": REAL,
    "members?": number, "different?": [DIFFERENT], "over_limit?": number, "text?": text,
    "dropped?": number, "unread?": number,
    "operator?": number, "dtype?": text, "inputs?": number, "outputs?": number, "calls?": [[REAL]], "lost?": number,
    "counts?": [{"op": COMM, "calls": number, "launched": number}],
    "comms?": [{"op": COMM, "phase": ("forward", "backward"), "module": str,
                "tensors": [{"side": ("input", "output"), "what": text, "dtype": text, "shape": [number],
                             "mean": REAL_OR_NOT}]}],
    "comm?": text, "buckets?": [{"elements": number, "parameters": [text]}],
}
# In a comparison of replicas it is how many there are.
TENSORS["tensors?"] = (number, FRAME["tensors"])
MODULES = {
    "schema": ("collwatch.modules/1",), "alarm": bool, "coverage": text,
    "first": (None, {**FRAME, **BAD, "rank": (None, number), "by_clock": bool, "text": text}), "before": [FRAME],
    "bad_steps": count, "scaling_steps": count,
    "rows": [{"rank": (None, number), "step": number, "steps": number, "scale_before": REAL, "scale_after": REAL,
              "text": text}],
    "rows_over_limit": number, "replicas": [{**DIFFERENT, "step": number, "text": text}],
    "stops": [{**STOP, "rank": (None, number), "text": text}],
    "trace": [{**FRAME, "rank": (None, number)}], "trace_over_limit": count,
    "ranks": [{"rank": (None, number), "file": text, "steps": count, "frames": count, "bad_steps": count,
               "bad_gradient_steps": count, "dropped": count, "unread": count, "ended": bool,
               "replicas_compared": count, "notes": [text], "denied_modules": [text],
               "traced": [{"step": number, "calls": count, "lost": count}]}],
}

NUMERICS["modules?"] = MODULES

CONTRACTS = {
    "incident": INCIDENT, "folded": FOLDED, "healthy": HEALTHY, "snapshot": SNAPSHOT,
    "evidence": EVIDENCE, "stacks": STACKS, "status": STATUS, "ops": OPS, "mute": MUTE, "incidents": INCIDENTS,
    "doctor": DOCTOR, "record": RECORD, "numerics": NUMERICS, "summaries": SUMMARIES,
    "baseline_check": BASELINE_CHECK, "tensors": TENSORS, "modules": MODULES,
}


def name_of(doc):
    """"status" of a collwatch.status/1"""
    schema = doc.get("schema", "")
    name = schema[len("collwatch."):-len("/1")]
    if schema != f"collwatch.{name}/1" or name not in CONTRACTS:
        raise ValueError(f"no such schema: {schema!r}")
    return name


def deviations(doc):
    """The deviations of a document of any of these schemas."""
    name = name_of(doc)
    return list(differences(doc, CONTRACTS[name], name))
