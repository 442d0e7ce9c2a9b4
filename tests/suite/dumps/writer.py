# SPDX-License-Identifier: Apache-2.0
"""Jobs of a few ranks, run by the rules of NCCL's completion, and what PyTorch's Flight Recorder
writes of them.

A job is one program per rank: collectives, sends and receives on process groups, waits of the host,
and faults. run() lets hosts issue and devices complete calls until nothing moves any more; dump()
writes each rank's recorder the way PyTorch does. Nothing here knows what is made of the dumps.

Format: torch/csrc/distributed/c10d/FlightRecorder{.hpp,Detail.hpp} (dump versions 2.2 to 2.10),
numbering: ProcessGroupNCCL.cpp of PyTorch 2.4 to 2.11. Completion: NCCL 2.2x, src/device/*.h: a
broadcast or reduce passes along a ring, and a member is done once its own part is; leaves of a
gather and the root of a scatter are done once their sends are in the peers' buffers; everything
else needs all members.
"""
import json
import os
import pickle

START_NS = 1_760_000_000_000_000_000
STEP_NS = 10_000_000
SECOND_NS = 1_000_000_000

ROOTED = ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter")


class Group:
    def __init__(self, name, ranks, desc):
        self.name, self.ranks, self.desc = name, list(ranks), desc
        self.partial = {}  # number of a collective -> members that do not finish it

    def place(self, rank):
        return self.ranks.index(rank)

    def unfinished(self, number, ranks):
        """All members come to the collective of that number (from 1), these do not get out."""
        self.partial[number] = set(ranks)


    def dies_in_ring(self, number, rank, sent, messages=1, ring=None):
        """
        The device of `rank` dies in that call once it has sent as many of the messages each member
        passes on, `messages` times the size of the group less one (two of an all-reduce). The n-th
        behind it in the ring gets n - 1 more than that.
        """
        ring = list(ring or self.ranks)
        total, at = messages * (len(ring) - 1), ring.index(rank)
        behind = [ring[(at + n) % len(ring)] for n in range(1, len(ring))]
        self.unfinished(number, [rank] + [r for n, r in enumerate(behind) if sent + n < total])
        return self.partial[number]


class Op:
    """One entry of the recorder, or more: a launch."""

    def __init__(self, rank, group, kind, **more):
        self.rank, self.group, self.kind = rank, group, kind
        self.shape, self.out, self.dtype = more.get("shape"), more.get("out"), more.get("dtype")
        self.root, self.peer = more.get("root"), more.get("peer")
        self.name = more.get("name") or kind
        self.parts = more.get("parts", ())  # of a coalesced launch
        self.eager = more.get("eager", False)
        self.is_p2p = more.get("is_p2p", False)
        self.is_async = more.get("is_async", False)
        self.seq = self.created = self.reached = self.completed = None
        self.is_stuck = False  # its device does not get out of it

    def key(self):
        if self.kind == "coalesced":
            return tuple(p.key() for p in self.parts)
        differs = self.kind.startswith("all_to_all") or self.kind.endswith("_v")
        size = None if differs else self.shape
        return (self.kind, size, self.dtype, self.root)


class Rank:
    def __init__(self, job, rank):
        self.job, self.rank = job, rank
        self.program, self.issued = [], []
        self.at = 0
        self.counts = {}   # group -> [collectives, p2p, ops]
        self.groups = []   # in the order of their first use
        self.is_dead = self.is_blocked = False
        self.has_dump = True
        self.kept = None  # calls in its dump, which was written before others went on
        self.unnoted = 0  # completed calls whose end it did not note

    # ---- the program ----

    def coll(self, group, kind, shape=(1024,), dtype="Float", root=None, **more):
        base = kind.lstrip("_").replace("_oop", "")
        if root is None and base in ("broadcast", "reduce", "gather", "scatter"):
            root = 0
        self.program.append(Op(self.rank, group, kind, shape=shape, dtype=dtype, root=root, **more))

    def send(self, group, to, shape=(256,), dtype="Float", **more):
        self.program.append(self.half(group, "send", to, shape, dtype, **more))

    def recv(self, group, source, shape=(256,), dtype="Float", **more):
        self.program.append(self.half(group, "recv", source, shape, dtype, **more))

    def half(self, group, kind, peer, shape=(256,), dtype="Float", **more):
        name = kind
        if peer is not None:
            arrow = "->" if kind == "send" else "<-"
            name = "%s %d%s%d" % (kind, group.place(self.rank), arrow, group.place(peer))
        name = more.pop("name", name)
        return Op(self.rank, group, kind, shape=shape, dtype=dtype, peer=peer, name=name,
                  is_p2p=True, **more)

    def batch(self, group, halves):
        """batch_isend_irecv: [("send", peer, shape), …]."""
        parts = [self.half(group, *h) for h in halves]
        self.program.append(Op(self.rank, group, "coalesced", parts=parts, is_p2p=True))

    def coalesced(self, group, kind, shapes, root=None, **more):
        """A group of collectives that are made as one."""
        base = kind.lstrip("_").replace("_oop", "")
        if root is None and base in ("broadcast", "reduce"):
            root = 0
        end = more.pop("name", "coalesced")
        parts = [Op(self.rank, group, kind, shape=s, dtype=more.get("dtype", "Float"), root=root)
                 for s in shapes]
        self.program.append(Op(self.rank, group, "coalesced", parts=parts, name=end))

    def wait(self):
        """The host waits until its device has done all it was given."""
        self.program.append("wait")

    def stop(self):
        """The host goes no further: a lock, a loop, an exception."""
        self.program.append("stop")

    def gpu_dies(self):
        """The device comes to the next call and gets no further; the host works on."""
        self.program.append("dies")

    def kernel_hangs(self):
        """The device does not come to the next call: a kernel of the program before it."""
        self.program.append("hangs")

    def dumps_in(self, n):
        """Its dump is written while it is in its n-th call; the job goes on."""
        self.kept = n

    def notes_no_end_of(self, n):
        """Its watchdog, which notes the ends of calls, did not come to the last n of them."""
        self.unnoted = n

    def no_dump(self):
        self.has_dump = False


class Job:
    def __init__(self, n, version="2.9", timed=False, form="pickle", timeout_s=600, backend="nccl",
                 prefix="nccl_trace_rank_", desc="default_pg"):
        self.version, self.timed, self.form, self.timeout_s = version, timed, form, timeout_s
        self.backend, self.prefix = backend, prefix
        self.ranks = [Rank(self, r) for r in range(n)]
        self.world = Group("0", range(n), desc)
        self.groups = [self.world]
        self.now = START_NS
        self.in_order = True  # a device takes the calls of all groups one after the other
        self.buffer = None    # entries kept
        self.asked_after_s = None  # the dumps were asked for, then; else the watchdog timed out

    def __iter__(self):
        return iter(self.ranks)

    def __getitem__(self, rank):
        return self.ranks[rank]

    def group(self, name, ranks, desc="undefined"):
        g = Group(name, ranks, desc)
        self.groups.append(g)
        return g

    # ---- running it ----

    def ops_of(self, group, seq):
        found = {}
        for r in self.ranks:
            for op in r.issued:
                if op.group is group and op.seq == seq and not op.is_p2p:
                    found[r.rank] = op
        return found

    def is_reached(self, op):
        """The device has come to it."""
        if op.reached is not None or op.is_barred:
            return not op.is_barred
        for before in self.ranks[op.rank].issued:
            if before is op:
                break
            same = self.in_order or before.group is op.group
            if same and before.completed is None and not before.is_async:
                return False
            if same and before.is_async and before.completed is None and before.group is op.group:
                return False
        op.reached = self.now
        return True

    def is_done(self, op):
        if op.is_p2p:
            return self.p2p_done(op)
        calls = self.ops_of(op.group, op.seq)
        order = op.group.ranks
        if op.rank in op.group.partial.get(op.seq, ()):
            return False
        if len({c.key() for c in calls.values()}) > 1:
            return False
        there = {r for r, c in calls.items() if self.is_reached(c) and not c.is_stuck}
        base = op.kind.lstrip("_").replace("_oop", "")
        if base not in ("broadcast", "reduce", "gather", "scatter") or op.group.partial.get(op.seq):
            held = {r for r, c in calls.items() if c.is_stuck}
            return there | held == set(order) and not (held - op.group.partial.get(op.seq, set()))
        root = op.group.ranks[op.root]
        at = order.index(root)
        ring = order[at:] + order[:at]
        if base == "broadcast":
            return set(ring[:ring.index(op.rank) + 1]) <= there
        if base == "reduce":
            ring = ring[1:] + ring[:1]
            return set(ring[:ring.index(op.rank) + 1]) <= there
        if base == "gather":
            return set(order) <= there if op.rank == root else op.rank in there
        return {root, op.rank} <= there

    def halves(self, rank, group, kind, peer):
        """Sends or receives between a pair, in order: (launch, half)."""
        found = []
        for op in self.ranks[rank].issued:
            if op.group is not group or not op.is_p2p:
                continue
            for half in op.parts if op.kind == "coalesced" else (op,):
                if half.kind == kind and half.peer == peer:
                    found.append((op, half))
        return found

    def half_done(self, launch, half):
        if half.peer is None:
            return False
        mine = self.halves(launch.rank, half.group, half.kind, half.peer)
        n = [h for _, h in mine].index(half)
        if half.kind == "send" and half.eager:
            return True
        other = "recv" if half.kind == "send" else "send"
        theirs = self.halves(half.peer, half.group, other, launch.rank)
        if n >= len(theirs):
            return False
        launch2, half2 = theirs[n]
        return self.is_reached(launch2) and not launch2.is_stuck and half2.shape == half.shape

    def p2p_done(self, op):
        if op.kind != "coalesced":
            return self.half_done(op, op)
        return all(self.half_done(op, half) for half in op.parts)

    def issue(self, rank, op):
        counts = rank.counts.setdefault(op.group, [0, 0, 0])
        if op.group not in rank.groups:
            rank.groups.append(op.group)
        counts[1 if op.is_p2p else 0] += 1
        op.seq = counts[1] if op.is_p2p else counts[0]
        op.coll_seq, op.p2p_seq = counts[0], counts[1]
        counts[2] += len(op.parts) or 1
        op.op_id = counts[2]
        op.created = self.now + rank.rank * 1000
        op.is_stuck, op.is_barred = rank.is_dead, rank.is_blocked
        rank.issued.append(op)

    def step_host(self, rank):
        if rank.at == len(rank.program):
            return False
        what = rank.program[rank.at]
        if what == "stop":
            return False
        if what == "wait":
            if any(op.completed is None for op in rank.issued):
                return False
        elif what == "dies":
            rank.is_dead = True
        elif what == "hangs":
            rank.is_blocked = True
        else:
            self.issue(rank, what)
        rank.at += 1
        return True

    def run(self):
        moved = True
        while moved:
            self.now += STEP_NS
            moved = False
            for rank in self.ranks:
                moved = self.step_host(rank) or moved
            done = [op for rank in self.ranks for op in rank.issued if op.completed is None
                    and self.is_reached(op) and not op.is_stuck and self.is_done(op)]
            for op in done:
                op.completed = self.now + 200_000
                moved = True
        for rank in self.ranks:
            if rank.kept:
                del rank.issued[rank.kept:]
                rank.issued[-1].completed = None
            for op in rank.issued[-rank.unnoted:] if rank.unnoted else ():
                op.completed = None
        self.end = self.now + (self.asked_after_s or self.timeout_s + 3) * SECOND_NS
        return self

    # ---- the recorder ----

    def state_of(self, op):
        if op.completed is not None:
            return "completed"
        return "started" if self.timed and op.reached is not None else "scheduled"

    def entries_of(self, rank):
        entries, minor = [], int(self.version.split(".")[1])

        def add(op, launch, name, has_state):
            counts = launch
            state = self.state_of(launch) if has_state else "scheduled"
            started = launch.reached if has_state and self.timed else None
            completed = launch.completed if has_state else None
            sizes = [list(op.shape)] if op.shape is not None else []
            out = [list(op.out)] if op.out is not None else sizes
            dtypes = [op.dtype] * len(sizes)
            e = {
                "record_id": len(entries),
                "pg_id": self.ids_of(rank).index(op.group),
                "process_group": (op.group.name, op.group.desc),
                "collective_seq_id": counts.coll_seq,
                "p2p_seq_id": counts.p2p_seq,
                "op_id": counts.op_id,
                "profiling_name": "%s:%s" % (self.backend, name),
                "time_created_ns": launch.created,
                "input_sizes": sizes,
                "input_dtypes": dtypes,
                "output_sizes": out,
                "output_dtypes": [op.dtype] * len(out),
                "state": state,
                "time_discovered_started_ns": started,
                "time_discovered_completed_ns": completed,
                "retired": completed is not None,
                "timeout_ms": self.timeout_s * 1000,
                # torch says so of a batch's halves alone, not of the entry that ends it.
                "is_p2p": op.is_p2p,
            }
            if minor >= 5:
                e["thread_name"], e["thread_id"] = "python3", "139872"
            entries.append(e)

        for op in rank.issued:
            if op.kind != "coalesced":
                add(op, op, op.name, True)
                continue
            # Members of coalesced collectives are recorded since 2.7, those of batches always.
            for part in op.parts if op.is_p2p or minor >= 7 else ():
                add(part, op, part.name, False)
            add(Op(op.rank, op.group, "coalesced", dtype="Float"), op, op.name, True)
        return entries[-self.buffer:] if self.buffer else entries

    def ids_of(self, rank):
        """Its process groups as it made them."""
        return [g for g in self.groups if rank.rank in g.ranks]

    def status_of(self, rank):
        status = {}
        for i, group in enumerate(self.ids_of(rank)):
            if group not in rank.groups:
                continue
            ops = [op for op in rank.issued if op.group is group]
            done = [op for op in ops if op.completed is not None]
            begun = [op for op in ops if op.reached is not None and self.timed]
            status[str(i)] = {
                "last_enqueued_collective": ops[-1].seq if ops else -1,
                "last_started_collective": begun[-1].seq if begun else -1,
                "last_completed_collective": done[-1].seq if done else -1,
            }
        return status

    def dump_of(self, rank, times, active):
        entries = self.entries_of(rank)
        if active:
            entries = [e for e in entries if e["time_discovered_completed_ns"] is None]
        for e in entries if not times else ():
            for key in e:
                if key.startswith("time_"):
                    e[key] = 0 if key == "time_created_ns" or e[key] is None else e[key] and 0
        minor = int(self.version.split(".")[1])
        dump = {"version": self.version}
        dump["pg_config"] = {
            g.name: {"name": g.name, "desc": g.desc, "ranks": str(g.ranks)}
            for g in self.groups if rank.rank in g.ranks and (g in rank.groups or g is self.world)
        }
        if minor >= 3:
            dump["pg_status"] = self.status_of(rank)
        if minor >= 5:
            dump["comm_lib_version" if minor >= 10 else "nccl_version"] = "2.27.3"
        dump["entries"] = entries
        return dump

    def write(self, path, times=True, active=False):
        for rank in self.ranks:
            if not rank.has_dump:
                continue
            dump = self.dump_of(rank, times, active)
            name = os.path.join(path, self.prefix + str(rank.rank))
            if self.form == "json":
                write_json(name, dump)
            else:
                with open(name, "wb") as f:
                    pickle.dump(dump, f, protocol=2)
            os.utime(name, ns=(self.end, self.end))


def write_json(name, dump):
    """As dump_json(): numbers of pg_status are text, times that are not known 0, no empty list."""
    for status in dump.get("pg_status", {}).values():
        for key in status:
            status[key] = str(status[key])
    for e in dump["entries"]:
        for key in e:
            if key.startswith("time_"):
                e[key] = e[key] or 0
    if not dump["entries"]:
        del dump["entries"]
    with open(name, "w", encoding="utf-8") as f:
        json.dump(dump, f)
