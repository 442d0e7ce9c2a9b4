#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Flight Recorder dumps of small invented jobs, the way PyTorch does, into this directory.

The outputs are committed: tests need no Python. Run it again after changing a job.
"""
import json
import os
import pickle
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


class Rank:
    """What one rank's recorder holds."""

    def __init__(self, rank, version, timed=False):
        self.rank = rank
        self.timed = timed
        self.now_ns = START_NS + rank * 1000
        self.groups = {}
        self.dump = {
            "version": version,
            "pg_config": {},
            "nccl_version": "2.27.3",
            "pg_status": {},
            "entries": [],
        }

    def group(self, name, desc, ranks):
        self.groups[name] = {"id": len(self.groups), "desc": desc, "coll": 0, "p2p": 0, "op": 0}
        self.dump["pg_config"][name] = {"name": name, "desc": desc, "ranks": str(ranks)}
        self.dump["pg_status"][str(self.groups[name]["id"])] = {
            "last_enqueued_collective": -1,
            "last_started_collective": -1,
            "last_completed_collective": -1,
        }

    def entry(self, name, op, state, sizes, dtype="Float", out=None, is_p2p=False):
        g = self.groups[name]
        self.now_ns += SECOND_NS // 10
        started = self.now_ns + 1000 if self.timed and state != "scheduled" else None
        self.dump["entries"].append({
            "record_id": len(self.dump["entries"]),
            "pg_id": g["id"],
            "process_group": (name, g["desc"]),
            "collective_seq_id": g["coll"],
            "p2p_seq_id": g["p2p"],
            "op_id": g["op"],
            "profiling_name": op,
            "time_created_ns": self.now_ns,
            "input_sizes": sizes,
            "input_dtypes": [dtype] * len(sizes),
            "output_sizes": out or sizes,
            "output_dtypes": [dtype] * len(out or sizes),
            "state": state,
            "time_discovered_started_ns": started,
            "time_discovered_completed_ns":
                self.now_ns + 5000 if state == "completed" else None,
            "retired": state == "completed",
            "timeout_ms": 60000,
            "is_p2p": is_p2p,
        })

    def status(self, name, number, state):
        s = self.dump["pg_status"][str(self.groups[name]["id"])]
        s["last_enqueued_collective"] = number
        if state == "completed":
            s["last_completed_collective"] = number

    def coll(self, name, op, state="completed", sizes=((1024,),), **more):
        g = self.groups[name]
        g["coll"] += 1
        g["op"] += 1
        self.entry(name, "nccl:" + op, state, [list(s) for s in sizes], **more)
        self.status(name, g["coll"], state)

    def p2p(self, name, op, state="completed", shape=(64, 8)):
        g = self.groups[name]
        g["p2p"] += 1
        g["op"] += 1
        self.entry(name, "nccl:" + op, state, [list(shape)], is_p2p=True)
        self.status(name, g["p2p"], state)

    def batch(self, name, ops, state="completed", with_end=True):
        """batch_isend_irecv: one number, and only the last entry knows the state."""
        g = self.groups[name]
        g["p2p"] += 1
        for op in ops:
            g["op"] += 1
            self.entry(name, "nccl:" + op, "scheduled", [[64, 8]], is_p2p=True)
        if with_end:
            self.entry(name, "nccl:coalesced", state, [])  # torch does not call it p2p
        self.status(name, g["p2p"], state)

    def coalesced(self, name, op, sizes, state="completed"):
        """A group of collectives made as one."""
        g = self.groups[name]
        g["coll"] += 1
        for size in sizes:
            g["op"] += 1
            self.entry(name, "nccl:" + op, "scheduled", [list(size)])
        self.entry(name, "nccl:coalesced", state, [])
        self.status(name, g["coll"], state)

    def only_active(self):
        self.dump["entries"] = [e for e in self.dump["entries"] if e["state"] != "completed"]


def job(n, version, timed=False):
    ranks = [Rank(r, version, timed) for r in range(n)]
    for r in ranks:
        r.group("0", "default_pg", list(range(n)))
    return ranks


def never_entered():
    """Rank 2 does not come to the fifth all_reduce."""
    ranks = job(4, "2.10", timed=True)
    for r in ranks:
        for _ in range(4):
            r.coll("0", "all_reduce")
        if r.rank != 2:
            r.coll("0", "all_reduce", "started")
    return ranks


def wrong_count():
    """Rank 1 reduces twice as much."""
    ranks = job(4, "2.4")
    for r in ranks:
        r.coll("0", "broadcast")
        r.coll("0", "all_reduce", "scheduled", [(2048,)] if r.rank == 1 else [(1024,)])
    return ranks


def no_send():
    """Two pipelines of two stages that share a group's name; rank 1 never sends the second time.
    Stage 1 is in a collective of its own, which waits for rank 3."""
    ranks = job(4, "2.5")
    for r in ranks:
        stage, line = r.rank % 2, r.rank // 2
        r.group("7", "pp", [2 * line, 2 * line + 1])
        r.group("8" if stage == 0 else "9", "tp", [0, 2] if stage == 0 else [1, 3])
        tp = "8" if stage == 0 else "9"
        r.coll(tp, "_all_gather_base", sizes=[(16,)], out=[[32]])
        r.p2p("7", "send 0->1" if stage == 0 else "recv 1<-0")
        r.p2p("7", "recv 0<-1" if stage == 0 else "send 1->0")
        r.p2p("7", "send 0->1" if stage == 0 else "recv 1<-0")
        if stage == 0:
            r.p2p("7", "recv 0<-1", "scheduled")
        elif r.rank == 1:
            r.coll(tp, "_all_gather_base", "scheduled", sizes=[(16,)], out=[[32]])
    return ranks


def all_well():
    """Everything has completed, and looks odd: sizes that may differ, members of coalesced groups
    that stay "scheduled", a name and a backend of tomorrow."""
    ranks = job(4, "2.9")
    for r in ranks:
        r.group("3", "ep", list(range(4)))
        r.coll("3", "all_to_all", sizes=[(100 + r.rank, 8)], out=[[103 - r.rank, 8]])
        r.coalesced("0", "_broadcast_oop", [(5,), (7,)])
        r.batch("0", ["send %d->%d" % (r.rank, (r.rank + 1) % 4),
                      "recv %d<-%d" % (r.rank, (r.rank + 3) % 4)])
        r.coll("0", "all_shuffle")
        r.coll("0", "all_reduce_barrier", sizes=[(1,)])
        r.dump["entries"][-1]["profiling_name"] = "moon:all_reduce_barrier"
    return ranks


def quiet_rank():
    """Active entries only, JSON: rank 3 lists nothing."""
    ranks = job(4, "2.8")
    for r in ranks:
        r.group("5", "fsdp", list(range(4)))
        for _ in range(9):
            r.coll("5", "_reduce_scatter_base", sizes=[(4096,)], out=[[1024]])
        if r.rank != 3:
            r.coll("5", "_reduce_scatter_base", "scheduled", sizes=[(4096,)], out=[[1024]])
        r.only_active()
    return ranks


def write(name, ranks, protocol):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    for r in ranks:
        if protocol is None:
            status = r.dump["pg_status"]
            for s in status.values():  # PyTorch's JSON spells these numbers
                s.update({k: str(v) for k, v in s.items()})
            with open(os.path.join(path, "rank_%d.json" % r.rank), "w") as f:
                json.dump(r.dump, f)
        else:
            with open(os.path.join(path, "nccl_trace_rank_%d" % r.rank), "wb") as f:
                pickle.dump(r.dump, f, protocol=protocol)


write("never_entered", never_entered(), 4)
write("wrong_count", wrong_count(), 2)
write("no_send", no_send(), 5)
write("all_well", all_well(), 3)
write("quiet_rank", quiet_rank(), None)
