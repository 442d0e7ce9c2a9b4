#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sentence of drawn incidents, held against what was so in the cluster (docs/lab/suite.md).

	tests/suite/claims.py COLLWATCH_LAB HOW_MANY SEED [completion]
	tests/suite/claims.py COLLWATCH_LAB FILE

Runs so many drawn scenarios, or those of a file, through leaders and reads each page and notice: summary, culprits' reasons,
ruled-out causes, alternatives, confidence and advice; and each post-mortem: summary, ends and notes.
Each sentence must be one of those below, and each thing that it claims must be so in the simulator at that moment.
Status 1 and a line for each that is not.
"""

import json
import re
import subprocess
import sys
from datetime import datetime

# ---- words ----

RANKS = r"ranks? \d[\d,\-]*(?:,…)?"
WHO = rf"(?:rank \d+ \([^()]*\)|{RANKS})"
OTHERS = rf"(?:the other rank|the other \d+ ranks|{RANKS})"
KIND = r"(?:[a-z_]+|ncclComm\w+|ncclGroupEnd)"
CALL = rf"(?:a call|(?:send|recv) #\d+ (?:to|from) (?:comm )?rank \d+|{KIND} #\d+|ncclComm\w+|ncclGroupEnd)"
OP = rf"{KIND}(?: #\d+)?(?: \w+ x \d+)?(?: (?:sum|prod|max|min|avg))?(?: root \d+)?(?: (?:to|from) \d+)?"
COMM = r"(?:comm 0x[0-9a-f]{16}|comm \d+|[\w.\-]+)"
TIME = r"(?:\d+ ms|\d+\.\d s|\d+ s|\d+ min|\d+ h|an unknown time)"
TRAIT = (
    r"(?:loaded NCCL [\d.]+|loaded an unknown NCCL|started with NCCL_\* variables that differ from those of the other ranks"
    r"|created the communicator with \d+ ranks)"
)
DEATH = r"(?:ended|exited with status \d+|(?:was|were) (?:killed by SIG\w+|killed by signal \d+|OOM-killed))"
HALT = r"(?:stopped by a signal|held by a debugger|frozen with its control group)"
LIVES = {"stopped by a signal": "stopped", "held by a debugger": "traced", "frozen with its control group": "frozen"}
ARGUMENT = r"(?:count \d+|type \w+|operator \w+|root -?\d+)"

SIGNALS = {"SIGHUP": 1, "SIGINT": 2, "SIGABRT": 6, "SIGKILL": 9, "SIGSEGV": 11, "SIGTERM": 15, "SIGBUS": 7}

# What is told was read up to a digest, a look and a delivery ago.
LATE_S = 5.0
# A leader that is held up tells later what it has made sure of; beyond this its clock is another one.
HELD_S = 120.0

NAMES = {"ncclCommInitRank": "comm_init", "ncclCommSplit": "comm_split", "ncclCommFinalize": "comm_finalize"}


# What is told is what was so when the node last looked and told its leader.
LATENCY_S = 1.5


class Untrue(Exception):
    """A claim that is not so."""


def expect(is_so, what):
    """The claim, or what is so instead."""
    if not is_so:
        raise Untrue(what)


def ranks_of(text):
    """ "rank 3 (node-0, pid 7)" or "ranks 0-2,5": the numbers."""
    text = re.sub(r" \(.*\)$", "", text)
    found = set()
    for part in text.split(" ", 1)[1].replace(",…", "").split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


# Of an element, where that is not one.
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int32": 4, "uint32": 4, "fp64": 8, "int64": 8, "uint64": 8}


class Op:
    """A call of a member."""

    def __init__(self, fields):
        (self.index, self.kind, self.dtype, self.redop, self.root, self.peer, self.count, self.seq, self.p2p,
         self.progress, self.is_returned, self.is_no_call, self.age, self.returned_ago,
         self.result) = fields
        self.bytes = self.count * BYTES.get(self.dtype, 1)
        self.peer_rank = None  # its number in the job

    def is_open(self, member):
        if self.kind.startswith("comm_"):
            return not self.is_returned
        return self.index >= member["first_open"] and self.progress != "completed" and not self.is_no_call and not self.has_failed()

    def has_failed(self):
        return self.is_returned and self.result not in (0, 7)

    def is_called(self, text):
        """ "all_reduce #3", "send #4 to rank 1", "send #4 to comm rank 1", "ncclCommSplit"."""
        if text == "a call":
            return True
        m = re.fullmatch(r"(\w+)(?: #(\d+))?(?: (?:to|from) (comm )?rank (\d+))?", text)
        number = self.p2p if self.kind in ("send", "recv") else self.seq
        return (
            NAMES.get(m[1], m[1]) == self.kind
            and (m[2] is None or int(m[2]) == number)
            and (m[4] is None or int(m[4]) == (self.peer if m[3] else self.peer_rank))
        )

    def reads(self, text):
        """As cw_op_format() has it; what is left out there is not looked at."""
        m = re.fullmatch(
            rf"({KIND})(?: #(\d+))?(?: (\w+) x (\d+))?(?: (sum|prod|max|min|avg))?(?: root (\d+))?(?: (?:to|from) (\d+))?",
            text,
        )
        number = self.p2p if self.kind in ("send", "recv") else self.seq
        return (
            NAMES.get(m[1], m[1]) == self.kind
            and (m[2] is None or int(m[2]) == number)
            and (m[3] is None or (m[3] == self.dtype and int(m[4]) == self.count))
            and (m[5] is None or m[5] == self.redop)
            and (m[6] is None or int(m[6]) == self.root)
            and (m[7] is None or int(m[7]) == self.peer)
        )

    def signature(self):
        return (self.kind, self.dtype, self.redop, self.root, self.count)

    def __str__(self):
        return f"{self.kind} #{self.seq or self.p2p} {self.dtype} x {self.count} {self.redop} root {self.root} {self.progress}"


def told_after(truth, incident):
    """How long after it was made sure of; 0 where clocks differ too much to say."""
    confirmed = incident["times"].get("confirmed")
    if not confirmed:
        return 0.0
    late = truth["wall_s"] - datetime.fromisoformat(confirmed.replace("Z", "+00:00")).timestamp()
    return late if 0 < late < HELD_S else 0.0


class Truth:
    """What was so."""

    def __init__(self, doc, incident):
        self.incident = incident
        self.late_s = max(LATE_S, told_after(doc, incident))
        self.ranks = doc["ranks"]
        self.nodes = {n["name"]: n["quiet"] for n in doc["nodes"]}
        self.comms = {}
        for comm in doc["comms"]:
            for member in comm["members"]:
                member["ops"] = [Op(o) for o in member["ops"]]
                for op in member["ops"]:
                    if op.kind in ("send", "recv") and 0 <= op.peer < len(comm["members"]):
                        op.peer_rank = comm["members"][op.peer]["rank"]
            comm["of"] = {m["rank"]: m for m in comm["members"]}
            self.comms[comm["name"]] = comm
        self.all_comms = doc["comms"]

    # -- who, where --

    def comm(self, name):
        expect(name in self.comms, f"there is no comm {name}")
        return self.comms[name]

    def member(self, comm, rank):
        expect(rank in self.comm(comm)["of"], f"rank {rank} is no member of {comm}")
        return self.comm(comm)["of"][rank]

    def rank_at(self, comm, place):
        return self.comm(comm)["members"][place]["rank"]

    def is_dead(self, rank):
        return self.ranks[rank]["life"] in ("exited", "killed")

    def named(self, text):
        """The ranks, each of them on its node and with its pid."""
        m = re.fullmatch(r"rank (\d+) \(([^,()]+)(?:, pid (\d+))?\)", text)
        if m:
            rank = self.ranks[int(m[1])]
            expect(rank["node"] == m[2], f"rank {m[1]} is on {rank['node']}")
            expect(m[3] is None or rank["pid"] == int(m[3]), f"rank {m[1]} has pid {rank['pid']}")
        ranks = ranks_of(text)
        expect(all(r < len(self.ranks) for r in ranks), "there are not so many ranks")
        return ranks

    def others(self, text, named, everybody):
        m = re.fullmatch(r"the other (?:(\d+) ranks|rank)", text)
        if not m:
            return self.named(text)
        rest = set(everybody) - set(named)
        expect(len(rest) == int(m[1] or 1), f"there are {len(rest)} others")
        return rest

    # -- calls --

    def at(self, comm, rank, seq):
        """Its collective of this number; None = it has made none, or it is long ago."""
        for op in self.member(comm, rank)["ops"]:
            if op.seq == seq:
                return op
        return None

    def open_ops(self, rank):
        for comm in self.all_comms:
            member = comm["of"].get(rank)
            for op in member["ops"] if member else []:
                if op.is_open(member):
                    yield comm, op

    def is_in(self, comm, rank, call):
        member = self.member(comm, rank)
        return any(op.is_open(member) and op.is_called(call) for op in member["ops"])

    def has_made(self, comm, rank, call):
        """It has entered this call, or a later one."""
        member = self.member(comm, rank)
        number = re.search(r"#(\d+)", call)
        if any(op.is_called(call) for op in member["ops"] if number or not op.is_returned):
            return True
        return bool(number) and not re.match("send|recv", call) and member["entered"] >= int(number[1])

    def waits(self, rank):
        return not self.is_dead(rank) and any(True for _ in self.open_ops(rank))

    def waits_outside(self, comm, rank):
        """Its device stands in a call on another communicator."""
        here = self.comm(comm)
        return any(op.progress == "reached" for c, op in self.open_ops(rank) if c is not here)

    def is_missed(self, rank):
        """Some rank waits in a call that this one has not made, and its node has told so."""
        for comm in self.all_comms:
            me = comm["of"].get(rank)
            for m in comm["members"] if me else ():
                if m["rank"] != rank and any(op.seq > me["entered"] and op.is_open(m) and op.age > LATENCY_S
                                                for op in m["ops"]):
                    return True
        return False

    def longest_wait(self, ranks):
        return max((op.age for r in ranks if not self.is_dead(r) for _, op in self.open_ops(r)), default=0.0)

    def reach(self, ranks):
        """These ranks, and the ranks that comms with a waiting rank connect with them."""
        todo, seen = list(ranks), set(ranks)
        while todo:
            rank = todo.pop()
            for comm in self.all_comms:
                if rank not in comm["of"] or not any(
                    op.is_open(m) for m in comm["members"] for op in m["ops"] if not self.is_dead(m["rank"])
                ):
                    continue
                for other in comm["of"]:
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
        return seen

    def has_cycle(self):
        """Ranks that wait for each other: each in a call that another of them has not made."""
        edges = {}
        for comm in self.all_comms:
            for m in comm["members"]:
                for op in m["ops"]:
                    if not op.seq or self.is_dead(m["rank"]) or not op.is_open(m):
                        continue
                    for o in comm["members"]:
                        if o["entered"] < op.seq and self.ranks[o["rank"]]["host"] in ("sync", "barrier", "launch"):
                            edges.setdefault(m["rank"], set()).add(o["rank"])
        state = {}

        def visit(rank):
            state[rank] = 1
            for other in edges.get(rank, ()):
                if state.get(other) == 1 or (other not in state and visit(other)):
                    return True
            state[rank] = 2
            return False

        return any(visit(r) for r in list(edges) if r not in state)

    # -- times --

    def time(self, text, seconds, what, at_least=False):
        if text == "an unknown time":
            return
        value, unit = text.replace("less than 1 s", "0 s").split()
        size = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}[unit]
        low, high = float(value) * size, (float(value) + 1) * size
        expect(low - 1.5 <= seconds, f"{what}: {seconds:.1f} s, not {text}")
        expect(at_least or seconds <= high + self.late_s, f"{what}: {seconds:.1f} s, not {text}")

    def around(self, ranks):
        """These, and all that share communicators with them, however indirectly."""
        found = set(ranks)
        while True:
            more = {r for c in self.all_comms if found & c["of"].keys() for r in c["of"]} - found
            if not more:
                return found
            found |= more


# ---- sentences ----

SENTENCES = []


def sentence(pattern):
    """The function is given the truth, a dict of what the incident has said so far, and the match."""

    def add(check):
        SENTENCES.append((re.compile(pattern), check))
        return check

    return add


def expect_waiting(t, ranks, time):
    for r in ranks:
        expect(not t.is_dead(r), f"rank {r} is dead and waits for nothing")
        expect(t.waits(r), f"rank {r} does not wait")
    t.time(time, t.longest_wait(ranks), "the longest wait")


@sentence(
    rf"({WHO}) (?:is ({HALT}) and )?never reached ({CALL}) on ({COMM})(?:; ({RANKS}) (?:is missing from a call on another communicator|are missing from calls on other communicators))?"
)
def never_reached(t, said, who, halt, call, comm, elsewhere):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    for r in said["who"]:
        expect(not t.is_dead(r), f"rank {r} is {t.ranks[r]['life']}")
        expect(not t.has_made(comm, r, call), f"rank {r} has made {call} on {comm}")
        halted(t, r, halt)
    expect(any(t.has_made(comm, m, call) for m in t.comm(comm)["of"]), f"no rank has made {call}")
    if elsewhere:
        others = t.named(elsewhere)
        expect(not others & set(t.comm(comm)["of"]), f"{elsewhere} are members of {comm}")
        for r in others:
            peers = {m for c in t.all_comms if r in c["of"] for m in c["of"]} - said["who"] - others
            expect(any(t.waits(m) for m in peers), f"no rank waits in a comm of rank {r}")
        said["who"] = said["who"] | others


def halted(t, rank, halt):
    life = t.ranks[rank]["life"]
    expect(halt not in LIVES or life == LIVES[halt], f"rank {rank} is {life}")


def is_held(t, rank):
    return t.ranks[rank]["life"] in LIVES.values()


# Of enum cw_host_wait: a person at a prompt, and storage. Any other wait may lead to another rank.
SEEN_WAITS = (5, 6)


def hides_its_wait(t, rank):
    """It waits outside of NCCL, maybe for a rank."""
    r = t.ranks[rank]
    return r["life"] == "alive" and r["host"] == "busy" and not t.waits(rank) and r["wait"] not in SEEN_WAITS


def all_inside(t, comm):
    """The program has done its part: each member has come to the call, none is held, and none did anything else."""
    for r in t.comm(comm)["of"]:
        expect(not is_held(t, r), f"rank {r} is {t.ranks[r]['life']}")
        expect(not t.is_dead(r), f"rank {r} is {t.ranks[r]['life']}")
        expect(t.waits(r) or t.ranks[r]["host"] != "busy", f"rank {r} is outside of NCCL")


@sentence(rf"({WHO}) is ({HALT}) inside ({CALL}) (?:on|of) ({COMM})")
def halted_inside(t, said, who, halt, call, comm):
    said.update(who=t.named(who), all=range(len(t.ranks)), call=call, comm=comm)
    for r in said["who"]:
        halted(t, r, halt)
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")


@sentence(rf"({WHO}) is ({HALT}) and has not called (ncclComm\w+) for ({COMM})")
def halted_before(t, said, who, halt, call, comm):
    said.update(who=t.named(who), all=range(len(t.ranks)), call=call, comm=comm)
    for r in said["who"]:
        halted(t, r, halt)
        expect(not t.is_in(comm, r, call), f"rank {r} is in {call}")


@sentence(rf"({WHO}) is ({HALT}) and has finished its own part of ({CALL}) on ({COMM}); ({OTHERS}) (?:has|have) been inside this call for ({TIME}) and may still need data from the halted process")
def halted_behind(t, said, who, halt, call, comm, others, time):
    said["who"], said["inside"] = t.named(who), t.named(others)
    for r in said["who"]:
        halted(t, r, halt)
        expect(not t.is_in(comm, r, call) and t.has_made(comm, r, call), f"rank {r} and {call}")
    for r in said["inside"]:
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")


@sentence(rf"({OTHERS}) (?:have|has) been waiting(?: for (it|them))?( in it)?( or behind it)? for ({TIME})")
def waiting(t, said, others, whom, inside, behind, time):
    ranks = t.others(others, said.get("who", ()), said.get("all", range(len(t.ranks))))
    expect_waiting(t, ranks, time)
    if whom:
        expect((whom == "it") == (len(said["who"]) == 1), f"{whom} are {len(said['who'])}")
        lost = ranks - t.reach(said["who"])
        expect(not lost, f"ranks {sorted(lost)} have nothing to do with those")
    if inside:
        expect_inside(t, ranks, said["comm"], said["call"], behind)


def expect_inside(t, ranks, comm, call, or_behind):
    """All of them; or one, and the others are connected with those who are missing there."""
    outside = [r for r in ranks if r not in t.comm(comm)["of"] or not t.is_in(comm, r, call)]
    expect(len(outside) < len(ranks), f"no rank is in {call} on {comm}")
    expect(or_behind or not outside, f"ranks {outside} are not in {call} on {comm}")
    lost = set(outside) - t.reach(set(ranks) - set(outside))
    expect(not lost, f"ranks {sorted(lost)} have nothing to do with {comm}")


@sentence(rf"({OTHERS}) (?:have|has) been waiting in ({CALL}) on ({COMM}) or on another communicator for ({TIME})")
def waiting_elsewhere(t, said, others, call, comm, time):
    ranks = t.others(others, said.get("who", ()), said.get("all", range(len(t.ranks))))
    expect_waiting(t, ranks, time)
    inside = {r for r in ranks if r in t.comm(comm)["of"] and t.is_in(comm, r, call)}
    expect(inside, f"no rank is in {call} on {comm}")
    elsewhere = {r for r in ranks if r not in inside or t.waits_outside(comm, r)}
    expect(elsewhere, f"all of them are in {call} on {comm}")
    lost = ranks - t.reach(said["who"])
    expect(not lost, f"ranks {sorted(lost)} have nothing to do with those")


@sentence(rf"({OTHERS}) (?:have|has) been waiting in ({CALL}) on ({COMM})( or behind it)? for ({TIME})(?:; (.*))?")
def waiting_in(t, said, others, call, comm, behind, time, why):
    ranks = t.others(others, said.get("who", ()), said.get("all", range(len(t.ranks))))
    expect_waiting(t, ranks, time)
    expect_inside(t, ranks, comm, call, behind)
    if why is None:
        return
    m = re.fullmatch(r"(\d+) of its ranks (?:is|are) not visible and may be missing", why)
    if m:
        unseen = [r for r in t.comm(comm)["of"] if t.ranks[r]["blind"] or t.nodes[t.ranks[r]["node"]]]
        expect(len(unseen) >= int(m[1]), f"{len(unseen)} are not visible")
        return
    if re.fullmatch(r"the missing rank may be stuck in an earlier call whose device progress was not recorded", why):
        return
    if re.fullmatch(r"the node of the rank that they wait for is not reporting", why):
        expect(any(t.nodes.values()), "all nodes report")
        return
    raise Unparsed(why)


class Unparsed(Exception):
    """A sentence that is none of those known."""


@sentence(rf"({WHO}) (?:has|have) not finished ({CALL}) on ({COMM}); (\d+) of its (\d+) members have completed this call, and it has made no progress for ({TIME})")
def inside_partly(t, said, who, call, comm, done, size, time):
    said["inside"] = t.named(who)
    members = t.comm(comm)["members"]
    seq = int(re.search(r"#(\d+)", call)[1])
    is_p2p = re.match("send|recv", call)
    completed = [m["rank"] for m in members if not is_p2p and m["completed"] >= seq]
    for r in said["inside"]:
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
    expect(len(members) == int(size), f"{comm} has {len(members)} members")
    expect(is_p2p or int(done) == len(completed), f"{len(completed)} have completed it")
    # Members that got out later than these came in moved it.
    t.time(time, t.longest_wait(said["inside"]), "the longest wait", at_least=True)
    same_calls(t, comm, seq)


@sentence(rf"all (\d+) ranks of ({COMM}) entered ({CALL}) and none has finished for ({TIME})")
def inside_all(t, said, size, comm, call, time):
    members = t.comm(comm)["members"]
    expect(len(members) == int(size), f"{comm} has {len(members)} members")
    said["inside"] = {m["rank"] for m in members}
    for r in said["inside"]:
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
    # Since the last one came, or since the first one waits.
    last = min(op.age for m in members for op in m["ops"] if op.is_open(m) and op.is_called(call))
    longest = t.longest_wait(said["inside"])
    if last < longest - LATE_S:
        t.time(time, last, "since all are in it", at_least=True)
    else:
        t.time(time, longest, "the longest wait")
    number = re.search(r"#(\d+)", call)
    if number and not re.match("send|recv", call):
        same_calls(t, comm, int(number[1]))


@sentence(rf"({WHO}) entered ({CALL}) on ({COMM}), no rank is missing, and the call has not finished for ({TIME})")
def inside_some(t, said, who, call, comm, time):
    said["inside"] = t.named(who)
    for r in said["inside"]:
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
    if not re.match("send|recv", call):
        for r in t.comm(comm)["of"]:
            expect(t.has_made(comm, r, call), f"rank {r} is missing in {call}")
    t.time(time, t.longest_wait(said["inside"]), "the longest wait")


def same_calls(t, comm, seq):
    calls = {op.signature()[:1] for op in (t.at(comm, r, seq) for r in t.comm(comm)["of"]) if op}
    expect(len(calls) <= 1, f"the program's calls differ: {calls}")


@sentence(r"(Not the program: c|C)heck network, GPUs and NCCL(?: on (their nodes|.*))?")
def not_the_program(t, said, claim, nodes):
    if claim != "C" and t.comm_said:
        all_inside(t, t.comm_said)
    if nodes in (None, "their nodes"):
        return
    found = set()
    for m in re.finditer(rf"([\w.\-]+) \(({RANKS})\)", nodes):
        ranks = ranks_of(m[2])
        expect(all(t.ranks[r]["node"] == m[1] for r in ranks), f"{m[2]} are not on {m[1]}")
        found |= ranks
    expect(found == said["inside"], f"those inside are {sorted(said['inside'])}")


@sentence(r"(\d+) more ranks? waits? behind (?:it|them)")
def more_behind(t, said, n):
    waiting_ones = {r for r in range(len(t.ranks)) if t.waits(r)} - said.get("inside", set())
    expect(len(waiting_ones) >= int(n), f"{len(waiting_ones)} wait besides")


@sentence(rf"({WHO}) entered ({CALL}) on ({COMM}) ({TIME}) ago, and other ranks have completed it; the device progress of {RANKS} is not known")
def unknown_partly(t, said, who, call, comm, time):
    for r in t.named(who):
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")


@sentence(rf"all ranks of ({COMM}) entered ({CALL}), and ({WHO}) (?:has|have) not returned from it for ({TIME}); the device progress of the ranks is not known")
def unknown_all(t, said, comm, call, who, time):
    for r in t.comm(comm)["of"]:
        expect(t.has_made(comm, r, call), f"rank {r} has not made {call}")
    t.named(who)


@sentence(rf"({WHO}) (?:has|have) not called (ncclComm\w+) for ({COMM})")
def not_made(t, said, who, call, comm):
    said.update(who=t.named(who), all=range(len(t.ranks)), call=call, comm=comm)
    for r in said["who"]:
        expect(not t.is_in(comm, r, call), f"rank {r} is in {call}")


@sentence(rf"(\d+) of the (\d+) ranks of ({COMM}) (?:has|have) not been seen in (ncclComm\w+); ({OTHERS}) (?:has|have) been waiting in it(?: or behind it)? for ({TIME})")
def not_seen_in(t, said, n, size, comm, call, others, time):
    expect(len(t.comm(comm)["of"]) == int(size), f"{comm} has {len(t.comm(comm)['of'])}")
    expect_waiting(t, t.named(others), time)


@sentence(rf"({RANKS}) of ({COMM}) (?:has|have) not been seen in (ncclComm\w+); ({OTHERS}) (?:has|have) been waiting in it(?: or behind it)? for ({TIME})")
def absent_from(t, said, who, comm, call, others, time):
    for r in t.named(who):
        expect(r in t.comm(comm)["of"], f"rank {r} is no member of {comm}")
        came = [op.age for op in t.member(comm, r)["ops"] if op.is_called(call)]
        expect(not came or came[-1] <= t.late_s, f"rank {r} came to {call} {came[-1:]} s ago")
    expect_waiting(t, t.named(others), time)


def in_making(t):
    return {r for r in range(len(t.ranks)) if any(op.kind == "comm_init" for _, op in t.open_ops(r))}


@sentence(r"All (\d+) ranks of the job wait in one of (\d+) such calls, and no rank is left to enter any of them")
def crossed(t, said, ranks, makings):
    expect(len(t.ranks) == int(ranks), f"there are {len(t.ranks)} ranks")
    expect(in_making(t) == set(range(len(t.ranks))), f"in makings: {in_making(t)}")
    expect(int(makings) > 1, "there is but one")


@sentence(rf"({RANKS}) waits? in one of (\d+) such calls, all other ranks of the job wait behind them, and no rank is left to enter any of these calls")
def crossed_behind(t, said, who, makings):
    expect(in_making(t) == t.named(who), f"in makings: {in_making(t)}")
    for r in range(len(t.ranks)):
        expect(t.waits(r), f"rank {r} waits for nothing")
    expect(int(makings) > 1, "there is but one")


@sentence(rf"all ranks of ({COMM}) are inside (ncclComm\w+), which has not finished for ({TIME})")
def all_making(t, said, comm, call, time):
    for r in t.comm(comm)["of"]:
        expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
    t.time(time, t.longest_wait(t.comm(comm)["of"]), "the longest wait")


@sentence(rf"({RANKS}) (?:has|have) been inside (ncclComm\w+) on ({COMM}) for ({TIME}), and no other rank is missing")
def some_making(t, said, who, call, comm, time):
    who = t.named(who)
    for r in t.comm(comm)["of"]:
        came = [op for op in t.member(comm, r)["ops"] if op.is_called(call) and not op.has_failed()]
        over = t.member(comm, r)["state"] in ("over", "finalizing", "ready")
        expect(t.is_in(comm, r, call) if r in who else came or over, f"rank {r} and {call}")
    t.time(time, t.longest_wait(t.comm(comm)["of"]), "the longest wait")


def failed_call(t, comm, rank, call):
    """Of this kind, the newest; it must have failed."""
    ops = [op for op in t.member(comm, rank)["ops"] if op.is_called(call)]
    expect(ops and ops[-1].has_failed(), f"{call} of rank {rank} has not failed: {[o.result for o in ops]}")
    return ops[-1]


def failed_first(t, comm, ranks, call):
    """No other member's call failed, or member ended, surely before; of the others one is inside."""
    first = max(failed_call(t, comm, r, call).returned_ago for r in ranks)
    inside = False
    for r, member in t.comm(comm)["of"].items():
        ago = [op.returned_ago for op in member["ops"][-1:] if op.is_called(call) and op.has_failed()]
        if t.is_dead(r) and not ago:
            ago = [t.ranks[r]["ended_ago"]]
        expect(r in ranks or not ago or ago[0] < first + 1.0, f"rank {r} was before")
        inside = inside or t.is_in(comm, r, call)
    expect(inside, f"no rank is in {call}")


ERROR = r"(?P<error>nccl\w+)(?: \(\"[^\"]*\"\))?"
RESULTS = {"ncclUnhandledCudaError": 1, "ncclSystemError": 2, "ncclInternalError": 3, "ncclInvalidArgument": 4,
           "ncclInvalidUsage": 5, "ncclRemoteError": 6}


def error_of(t, comm, rank, call, name):
    op = failed_call(t, comm, rank, call)
    expect(RESULTS.get(name) == op.result, f"its result is {op.result}")
    return op


@sentence(rf"({WHO}) failed in (ncclComm\w+) on ({COMM}) with (nccl\w+)(?: \(\"[^\"]*\"\))?(?: and ({DEATH}))?")
def failed(t, said, who, call, comm, error, death):
    said.update(who=t.named(who), all=range(len(t.ranks)), call=call, comm=comm)
    failed_first(t, comm, said["who"], call)
    for r in said["who"]:
        error_of(t, comm, r, call, error)
        expect(bool(death) == t.is_dead(r), f"rank {r} is {t.ranks[r]['life']}")
        if death:
            died(t, r, death)


@sentence(rf"(?:Its process is|Their processes are) now (?:(outside NCCL)|inside ({CALL}) on ({COMM})|inside (ncclComm\w+)|(stopped by a signal|held by a debugger))")
def now_is(t, said, outside, call, comm, other, halt):
    for r in said["who"]:
        expect(not t.is_dead(r), f"rank {r} is {t.ranks[r]['life']}")
        if outside:
            expect(t.ranks[r]["host"] not in ("launch", "barrier"), f"rank {r} is in {t.ranks[r]['host']}")
        elif call:
            expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
        elif other:
            expect(any(op.is_called(other) for _, op in t.open_ops(r)), f"rank {r} is not in {other}")
        else:
            halted(t, r, halt)


@sentence(rf"({WHO}) (aborted|destroyed) ({COMM}) before (ncclComm\w+) had finished")
def gave_up(t, said, who, what, comm, call):
    said.update(who=t.named(who), all=range(len(t.ranks)), call=call, comm=comm)
    for r in said["who"]:
        expect(t.member(comm, r)["state"] == "over", f"rank {r} has not {what} it")


@sentence(rf"(\d+) of the (\d+) ranks of ({COMM}) left (ncclComm\w+), and (?:is|are) creating another communicator; ({OTHERS}) (?:has|have) been waiting in it(?: or behind it)? for ({TIME})")
def makes_another(t, said, n, size, comm, call, others, time):
    left = {r for r, m in t.comm(comm)["of"].items() if m["state"] in ("failed", "over")}
    expect(len(left) == int(n), f"{sorted(left)} left it")
    expect(len(t.comm(comm)["of"]) == int(size) and left <= in_making(t), f"in makings: {in_making(t)}")
    expect_waiting(t, t.named(others), time)


def died(t, rank, how):
    r = t.ranks[rank]
    expect(t.is_dead(rank), f"rank {rank} is {r['life']}")
    m = re.search(r"exited with status (\d+)", how)
    expect(not m or (r["life"] == "exited" and r["code"] == int(m[1])), f"rank {rank} {r['life']} {r['code']}")
    m = re.search(r"killed by (SIG\w+)", how)
    expect(not m or (r["life"] == "killed" and r["signal"] == SIGNALS[m[1]]), f"signal {r['signal']}")
    how = how.replace("killed by the OOM killer", "OOM-killed")
    expect("OOM" not in how or r["oom"], f"rank {rank} was not killed for memory")
    expect("OOM" in how or not r["oom"] or how == "ended", f"rank {rank} was killed for memory")


@sentence(rf"({WHO}) ({DEATH}) (inside|before (it|they|{WHO}) could (?:enter|finish|post the counterpart of)) ({CALL}) on ({COMM})")
def dead(t, said, who, how, place, there, call, comm):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    for r in said["who"]:
        died(t, r, how)
    there = said["who"] if there in (None, "it", "they") else t.named(there)
    expect(set(there) <= set(said["who"]), f"{there} are not among {said['who']}")
    for r in there:
        made = t.has_made(comm, r, call)
        if place == "inside":
            expect(t.is_in(comm, r, call), f"rank {r} is not in {call}")
        elif place.endswith("enter"):
            expect(not made, f"rank {r} has made {call}")
        elif place.endswith("finish"):
            member, seq = t.member(comm, r), number_of(call)
            expect(member["completed"] < seq, f"rank {r} has completed {call}")
    if place.endswith("finish"):
        expect(any(t.has_made(comm, r, call) for r in there), f"none has made {call}")


@sentence(rf"After that ({WHO}) ({DEATH})(?:, and ({OTHERS}) (?:has|have) been waiting(?: or behind it)? for ({TIME}))?")
def died_after_it(t, said, who, how, others, time):
    for r in t.named(who):
        died(t, r, how)
    if others:
        expect_waiting(t, t.others(others, t.named(who), said.get("all", range(len(t.ranks)))), time)


@sentence(rf"([\w.\-]+) \(({RANKS})\) (?:has not been heard from for {TIME}|has stopped reporting)")
def node_gone(t, said, node, ranks):
    said["who"], said["all"] = t.named(ranks), range(len(t.ranks))
    expect(t.nodes.get(node), f"{node} reports")
    on_it = {r["rank"] for r in t.ranks if r["node"] == node}
    expect(said["who"] <= on_it, f"{node} has ranks {sorted(on_it)}")


@sentence(rf"the nodes of ({RANKS}) have stopped reporting")
def nodes_gone(t, said, ranks):
    said["who"], said["all"] = t.named(ranks), range(len(t.ranks))
    for r in said["who"]:
        expect(t.nodes[t.ranks[r]["node"]], f"the node of rank {r} reports")


@sentence(rf"({WHO}) enqueued ({CALL}) on ({COMM}), but (?:its|their) device is stuck in earlier work")
def stuck(t, said, who, call, comm):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    said["call"], said["comm"] = call, comm
    for r in said["who"]:
        is_stuck(t, r, comm, call)


def is_stuck(t, rank, comm, call):
    member = t.member(comm, rank)
    ops = [op for op in member["ops"] if op.is_called(call)]
    expect(ops, f"rank {rank} has not made {call}")
    expect(ops[-1].progress == "enqueued", f"its device has {ops[-1].progress} {call}")


@sentence(rf"({WHO}) has been (sending to|receiving from) ({WHO}) on ({COMM}) \(#(\d+)\) for ({TIME}), but ({RANKS}) never posted the matching (recv|send)(?:; it is already in ({CALL}) on ({COMM}))?")
def unposted(t, said, who, verb, whom, comm, number, time, it, kind, call, other):
    (me,), (peer,) = t.named(who), t.named(whom)
    expect(t.named(it) == {peer}, "it is another")
    said["inside"] = {me}
    mine, its = t.member(comm, me), t.member(comm, peer)
    places = [m["rank"] for m in t.comm(comm)["members"]]
    ours = "send" if verb == "sending to" else "recv"
    expect((ours, kind) in (("send", "recv"), ("recv", "send")), f"{ours} and {kind}")
    op = [o for o in mine["ops"] if o.kind == ours and o.p2p == int(number) and places[o.peer] == peer and o.is_open(mine)]
    expect(op, f"rank {me} is not in {ours} #{number} with rank {peer}")
    t.time(time, op[0].age, "the wait")
    posted = [o for o in its["ops"] if o.kind == kind and places[o.peer] == me and o.p2p >= int(number)]
    expect(not posted, f"rank {peer} has posted {[str(o) for o in posted]}")
    if call:
        expect(t.is_in(other, peer, call), f"rank {peer} is not in {call} on {other}")


@sentence(rf"({WHO}) never posted the counterpart of (a call|{CALL}) on ({COMM})")
def no_counterpart(t, said, who, call, comm):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    expect(call == "a call" or any(t.is_in(comm, m, call) for m in t.comm(comm)["of"]), f"no rank is in {call}")


@sentence(rf"({WHO}) disagree on the size of ({CALL}) on ({COMM})")
def sizes(t, said, who, call, comm):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    counts = {op.count for r in said["who"] for op in t.member(comm, r)["ops"] if op.is_open(t.member(comm, r))}
    counts |= {op.count for r in said["who"] for op in t.member(comm, r)["ops"][-40:] if op.p2p}
    expect(len(counts) > 1, f"their counts are {counts}")


@sentence(rf"({WHO}) disagrees with several ranks, ({RANKS}) among them, on the sizes of their messages on ({COMM})")
def sizes_with_several(t, said, who, one, comm):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    (me,), (other,) = t.named(who), t.named(one)
    places = [m["rank"] for m in t.comm(comm)["members"]]

    def between(a, b, kind):
        """By number, the bytes of what a sends to b, or receives."""
        return {o.p2p: o.bytes for o in t.member(comm, a)["ops"] if o.kind == kind and places[o.peer] == b}

    pairs = [(between(me, other, "send"), between(other, me, "recv")), (between(me, other, "recv"), between(other, me, "send"))]
    expect(any(a[n] != b[n] for a, b in pairs for n in a.keys() & b.keys()), f"ranks {me} and {other} agree")


@sentence(r"The job looks like a server that waits for requests: set COLLWATCH_POLICY=serving in its environment")
def proposal(t, said):
    pass  # advice


# -- messages that do not fit --

PAIRS = r"(?:; the same is true of \d+ more pairs? of ranks)?"


def messages_of(t, comm, sender, receiver):
    """How many were sent, and how many received."""
    a, b = ranks_of(sender).pop(), ranks_of(receiver).pop()
    sent = {peer: n for peer, n, _ in t.member(comm, a)["messages"]}
    received = {peer: n for peer, _, n in t.member(comm, b)["messages"]}
    return a, b, sent.get(b, 0), received.get(a, 0)


@sentence(
    rf"({WHO}) sent (\d+) bytes to ({WHO}) on ({COMM}) as message #(\d+), but ({WHO}) received (\d+) bytes{PAIRS}"
)
def sent_otherwise(t, said, sender, bytes_sent, receiver, comm, number, again, bytes_received):
    a, b, sends, recvs = messages_of(t, comm, sender, receiver)
    expect(receiver == again and bytes_sent != bytes_received, "the sizes are the same")
    expect(min(sends, recvs) >= int(number), f"{sends} were sent, {recvs} received")
    for rank, peer, kind, size in ((a, b, "send", bytes_sent), (b, a, "recv", bytes_received)):
        for op in t.member(comm, rank)["ops"]:
            if op.kind == kind and op.p2p == int(number) and t.rank_at(comm, op.peer) == peer:
                expect(op.bytes == int(size), f"rank {rank}'s {kind} #{number} has {op.bytes} bytes")


@sentence(rf"the message sizes that ({WHO}) sent to ({WHO}) on ({COMM}) differ from those that ({WHO}) received \((\d+) messages?\){PAIRS}")
def sizes_of_all(t, said, sender, receiver, comm, again, number):
    _, _, sends, recvs = messages_of(t, comm, sender, receiver)
    expect(receiver == again and min(sends, recvs) >= int(number), f"{sends} were sent, {recvs} received")


@sentence(
    rf"({WHO}) sent (\d+) messages? to ({WHO}) on ({COMM}), but ({WHO}) received only (\d+){PAIRS}"
)
def never_received(t, said, sender, sent, receiver, comm, again, received):
    counts = messages_of(t, comm, sender, receiver)[2:]
    expect(receiver == again and counts == (int(sent), int(received)), f"sent and received: {counts}")


@sentence(
    rf"({WHO}) posted (\d+) receives? from ({WHO}) on ({COMM}), but ({WHO}) sent only (\d+) messages?{PAIRS}"
)
def never_sent(t, said, receiver, posted, sender, comm, again, sent):
    counts = messages_of(t, comm, sender, receiver)[2:]
    expect(sender == again and counts == (int(sent), int(posted)), f"sent and received: {counts}")


@sentence(r"No rank waits because of this")
def nobody_waits(t, said):
    pass  # of a message that went, or will not be asked for: who waits elsewhere says nothing


# -- calls that differ --


def most_of(t, said, most, comm):
    return t.others(most, said["who"], t.comm(comm)["of"])


def made(t, comm, ranks, seq, is_right, what):
    """Of each whose call is still known."""
    for r in ranks:
        op = t.at(comm, r, seq)
        expect(op is None or is_right(op), f"rank {r} called {op}, not {what}")


@sentence(rf"({WHO}) called ({KIND}) as #(\d+) on ({COMM}); ({OTHERS}) called ({KIND})")
def other_kind(t, said, who, kind, seq, comm, most, usual):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    made(t, comm, said["who"], int(seq), lambda op: op.kind == kind, kind)
    made(t, comm, most_of(t, said, most, comm), int(seq), lambda op: op.kind == usual, usual)


def has_argument(op, text):
    what, value = text.split()
    return str({"count": op.count, "type": op.dtype, "operator": op.redop, "root": op.root}[what]) == value


@sentence(rf"({WHO}) called ({KIND}) #(\d+) on ({COMM}) with ({ARGUMENT}); ({OTHERS}) called it with ({ARGUMENT})")
def other_argument(t, said, who, kind, seq, comm, its, most, theirs):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    made(t, comm, said["who"], int(seq), lambda op: op.kind == kind and has_argument(op, its), its)
    made(t, comm, most_of(t, said, most, comm), int(seq), lambda op: op.kind == kind and has_argument(op, theirs), theirs)


def number_of(op):
    return int(re.search(r"#(\d+)", op)[1])


@sentence(rf"({WHO}) called ({OP}) on ({COMM}); ({OTHERS}) called ({OP}) \(\w+ differs\)")
def other_call(t, said, who, its, comm, most, theirs):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    made(t, comm, said["who"], number_of(its), lambda op: op.reads(its), its)
    made(t, comm, most_of(t, said, most, comm), number_of(theirs), lambda op: op.reads(theirs), theirs)


@sentence(rf"the ranks of ({COMM}) disagree on call #(\d+): ({WHO}) called ({OP}), ({WHO}) called ({OP}) \(\w+ differs\)")
def disagree(t, said, comm, seq, some, theirs, others, its):
    made(t, comm, t.named(some), int(seq), lambda op: op.reads(theirs), theirs)
    made(t, comm, t.named(others), int(seq), lambda op: op.reads(its), its)


@sentence(rf"({WHO}) skipped ({OP}) on ({COMM}), a call that ({OTHERS}) made, and went on with ({OP})")
def skipped(t, said, who, skipped_call, comm, most, its):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    seq = number_of(skipped_call)
    others = most_of(t, said, most, comm)
    made(t, comm, others, seq, lambda op: op.reads(skipped_call), skipped_call)
    made(t, comm, said["who"], number_of(its), lambda op: op.reads(its), its)
    made(t, comm, said["who"], seq, lambda op: not op.reads(skipped_call), "another")
    # What it goes on with, the others call next.
    after = t.at(comm, min(said["who"]), seq)
    for r in others if after else ():
        op = t.at(comm, r, seq + 1)
        expect(op is None or op.signature() == after.signature(), f"rank {r} went on with {op}")


@sentence(rf"({WHO}) made an extra call on ({COMM}): ({OP}); at this point ({OTHERS}) called ({OP})")
def extra(t, said, who, comm, its, most, theirs):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    seq = number_of(its)
    made(t, comm, said["who"], seq, lambda op: op.reads(its), its)
    others = most_of(t, said, most, comm)
    made(t, comm, others, seq, lambda op: op.reads(theirs), theirs)
    # Behind it, its call is what the others called.
    for r in said["who"]:
        after, usual = t.at(comm, r, seq + 1), t.at(comm, min(others), seq)
        expect(not after or not usual or after.signature() == usual.signature(), f"rank {r} went on with {after}")


BETWEEN = r"(?:between collectives #\d+ and #\d+|before collective #\d+)"


@sentence(rf"({WHO}) made a different call than ({OTHERS}) on ({COMM}), ({BETWEEN}); that call is no longer recorded")
def another_call(t, said, who, most, comm, between):
    said["who"], said["all"] = t.named(who), range(len(t.ranks))
    most_of(t, said, most, comm)


@sentence(rf"({WHO}) and ({WHO}) made different calls on ({COMM}), ({BETWEEN}); those calls are no longer recorded")
def different_calls(t, said, some, others, comm, between):
    expect(not t.named(some) & t.named(others), "the same rank stands on both sides")


def has_trait(t, ranks, trait, comm=None):
    versions = {t.ranks[r]["version"] for r in ranks}
    m = re.fullmatch(r"loaded NCCL (\d+)\.(\d+)\.(\d+)", trait)
    if m:
        number = int(m[1]) * (10000 if (int(m[1]), int(m[2])) >= (2, 9) else 1000) + int(m[2]) * 100 + int(m[3])
        expect(versions == {number}, f"they have {versions}")
    m = re.fullmatch(r"created the communicator with (\d+) ranks", trait)
    if m and comm:
        told = {t.member(comm, r)["told"] for r in ranks}
        expect(told == {int(m[1])}, f"they were told {told}")


@sentence(rf"({WHO}) ({TRAIT})(?:, but ({WHO}) ({TRAIT})| \(({RANKS})\)); ({CALL}) on ({COMM}) has not finished for ({TIME})")
def setup(t, said, odd, its, usual, theirs, rest, call, comm, time):
    usual = usual or rest
    has_trait(t, t.named(odd), its, comm)
    if theirs:
        has_trait(t, t.named(usual), theirs, comm)
    if "NCCL_* variables that differ" in its:
        some = {t.ranks[r]["environment"] for r in t.named(odd)}
        rest = {t.ranks[r]["environment"] for r in t.named(usual)}
        expect(not some & rest, f"{some} and {rest}")
    # It counts from when the last one came in.
    t.time(time, t.longest_wait(t.comm(comm)["of"]), "the longest wait", at_least=True)


# -- circles --


@sentence(rf"deadlock: (.*)")
def deadlock(t, said, chain):
    m = re.fullmatch(r"(.*), and so on around a cycle of (\d+) ranks", chain)
    links = re.findall(
        rf"(?:({RANKS})|which) waits in ({CALL}) on ({COMM}) for ({RANKS})(?=, which|, and|$)", m[1] if m else chain
    )
    said_again = ", which".join(
        f"{' ' if i else ''}{link[0] if not i else ''}{'' if i else ' '}waits in {link[1]} on {link[2]} for {link[3]}".replace("  ", " ")
        for i, link in enumerate(links)
    )
    if not links or said_again != (m[1] if m else chain):
        raise Unparsed(chain)
    me = None
    for first, call, comm, other in links:
        me = min(ranks_of(first)) if first else me
        it = min(ranks_of(other))
        expect(t.is_in(comm, me, call), f"rank {me} is not in {call} on {comm}")
        waits_for(t, comm, me, call, it)
        me = it
    if not m:
        expect(me == min(ranks_of(links[0][0])), "it does not close")


def waits_for(t, comm, rank, call, other):
    """In the call, for that one: it has not made it, or its part of it is not done."""
    if re.match("send|recv", call):
        places = [m["rank"] for m in t.comm(comm)["members"]]
        op = next(o for o in t.member(comm, rank)["ops"] if o.is_called(call) and o.is_open(t.member(comm, rank)))
        expect(places[op.peer] == other, f"{call} is with rank {places[op.peer]}")
        return
    number = re.search(r"#(\d+)", call)
    if number:
        it = t.member(comm, other)
        expect(it["completed"] < int(number[1]), f"rank {other} has completed {call}")
        op = t.at(comm, other, int(number[1]))
        expect(op is None or op.progress != "completed", f"rank {other} has completed {call}")


# ---- what is said of a culprit ----

REASONS = []


def reason(pattern):
    def add(check):
        REASONS.append((re.compile(pattern), check))
        return check

    return add


# A call of no elements has no number.
LAST = (
    rf"(?:; its last call on {COMM}, (?P<last>{CALL}|[a-z_]+), (?P<end>returned|failed) (?P<ago>{TIME}) ago(?:, but its device had completed only #(?P<done>\d+))?"
    rf"|; it (?:is|was) inside (?P<inside>{CALL}|[a-z_]+) on {COMM})?"
)
HOST_ACTIVITY = (
    rf"(?:; (?P<shared>its process )?(?:(?:last (?:used CPU|did I/O|called NCCL|had a busy child process)|was last active)"
    rf" (?P<when>less than 1 s|{TIME}) ago|has been idle for (?P<idle>less than 1 s|{TIME})))?"
)
# In the order of enum cw_host_wait, from 1.
WAITS = (
    "another of its threads, and no thread is running", "Python's interpreter lock (GIL)",
    "a pipe, a condition variable or a timer",
    "a socket", "input from a terminal", "storage, and no data is moving",
)
WAIT = rf"(?:; it waits for (?P<wait>{'|'.join(map(re.escape, WAITS))}))?"


def last_call(t, rank, m):
    comm = t.comm_said
    if m["last"] and comm:
        member = t.member(comm, rank)
        ops = [op for op in member["ops"] if op.is_called(m["last"])]
        expect(ops and ops[-1] is member["ops"][-1], f"its last call is {member['ops'][-1] if member['ops'] else None}")
        expect(ops[-1].is_returned, f"{m['last']} has not returned")
        expect((m["end"] == "failed") == ops[-1].has_failed(), f"its result is {ops[-1].result}")
        t.time(m["ago"], ops[-1].returned_ago, "it returned")
        expect(m["done"] is None or member["completed"] == int(m["done"]), f"it has done #{member['completed']}")
    if m["inside"] and comm:
        member = t.member(comm, rank)
        ops = [op for op in member["ops"] if op.is_called(m["inside"])]
        expect(ops and not ops[-1].is_returned, f"it is not inside {m['inside']}")


def host_activity(t, rank, m):
    pid = (t.ranks[rank]["node"], t.ranks[rank]["pid"])
    of = [r["active_ago"] for r in t.ranks if (r["node"], r["pid"]) == pid]
    expect((len(of) > 1) == bool(m["shared"]) or not (m["idle"] or m["when"]), f"{len(of)} ranks are its process")
    if m["idle"]:
        t.time(m["idle"], min(of), "it worked", at_least=True)
    # Times of a rank whose daemon was away count from when that was back.
    if m["when"] and not t.was_away:
        t.time(m["when"], min(of), "it worked")


@reason(rf"(?P<call>ncclComm\w+) failed (?:(?P<ago>{TIME}) ago )?with {ERROR}(?:; alive, (?P<state>outside NCCL|inside [^;]+|stopped by a signal|held by a debugger))?{HOST_ACTIVITY}{WAIT}")
def reason_failed(t, rank, m):
    op = error_of(t, t.comm_said, rank, m["call"], m["error"])
    expect(not t.is_dead(rank), f"it is {t.ranks[rank]['life']}")
    if m["ago"]:
        t.time(m["ago"], op.returned_ago, "it failed")
    if m["state"] == "outside NCCL":
        expect(t.ranks[rank]["host"] not in ("launch", "barrier"), f"it is inside NCCL: {t.ranks[rank]['host']}")
    host_activity(t, rank, m)


@reason(rf"(?P<how>exited with status \d+,?|killed by SIG\w+|killed by signal \d+|OOM-killed)(?: (?P<since>{TIME}) ago)?; (?P<call>ncclComm\w+) had failed (?:(?P<ago>{TIME}) ago )?with {ERROR}")
def reason_dead_after(t, rank, m):
    died(t, rank, m["how"])
    op = error_of(t, t.comm_said, rank, m["call"], m["error"])
    if m["ago"]:
        t.time(m["ago"], op.returned_ago, "it failed")


@reason(rf"(?P<how>its process has ended|exited with status \d+,?|killed by SIG\w+|killed by signal \d+|OOM-killed)(?: (?P<since>{TIME}) ago)?{LAST}")
def reason_dead(t, rank, m):
    died(t, rank, m["how"])
    if m["since"]:
        t.time(m["since"], t.ranks[rank]["ended_ago"], "it died")
    last_call(t, rank, m)


@reason(rf"(?P<state>alive, outside NCCL|outside NCCL|stopped by a signal|held by a debugger|frozen with its control group)(?P<d>, in uninterruptible sleep \(state D\))?{LAST}{HOST_ACTIVITY}{WAIT}")
def reason_outside(t, rank, m):
    halted(t, rank, m["state"])
    expect(not t.is_dead(rank), f"it is {t.ranks[rank]['life']}")
    if "outside NCCL" in m["state"]:
        expect(t.ranks[rank]["host"] not in ("launch", "barrier"), f"it is inside NCCL: {t.ranks[rank]['host']}")
    last_call(t, rank, m)
    host_activity(t, rank, m)
    if m["wait"]:
        expect(t.ranks[rank]["host"] == "busy" and not t.ranks[rank]["by"], f"it is {t.ranks[rank]['host']}")
        expect(t.ranks[rank]["wait"] == 1 + WAITS.index(m["wait"]), f"it waits in {t.ranks[rank]['wait']}")


@reason(rf"inside (?P<call>{CALL}) on (?P<comm>{COMM}), a call that waits for no other rank{LAST}{HOST_ACTIVITY}")
def reason_elsewhere(t, rank, m):
    expect(t.is_in(m["comm"], rank, m["call"]), f"it is not in {m['call']} on {m['comm']}")
    last_call(t, rank, m)


@reason(rf"inside (?P<call>{CALL}){LAST}{HOST_ACTIVITY}")
def reason_other_call(t, rank, m):
    expect(any(op.is_called(m["call"]) for _, op in t.open_ops(rank)), f"it is not in {m['call']}")
    last_call(t, rank, m)


@reason(rf"alive; it has (?P<what>aborted|destroyed) the communicator{LAST}{HOST_ACTIVITY}")
def reason_destroyed(t, rank, m):
    expect(t.member(t.comm_said, rank)["state"] == "over", "it has not")
    last_call(t, rank, m)


@reason(r"its node (?P<node>[\w.\-]+) has stopped reporting")
def reason_node(t, rank, m):
    expect(t.ranks[rank]["node"] == m["node"], f"it is on {t.ranks[rank]['node']}")
    expect(t.nodes[m["node"]], "it reports")


@reason(rf"called (?P<op>{OP})(?P<colour>; the group has \d+ members, but an even split of its parent would give it \d+: check the colour that this rank passed to the split)?")
def reason_called(t, rank, m):
    op = t.at(t.comm_said, rank, number_of(m["op"]))
    expect(op is None or op.reads(m["op"]), f"it called {op}")


@reason(r"its calls differ from those of the other ranks at #\d+(?:, but were the same up to #\d+)?")
def reason_differs(t, rank, m):
    pass


@reason(rf"(?P<trait>{TRAIT})")
def reason_trait(t, rank, m):
    has_trait(t, {rank}, m["trait"], t.comm_said)


@reason(rf"waits in (?P<call>{CALL}) on (?P<comm>{COMM}) while other ranks wait for it in another call")
def reason_waits(t, rank, m):
    expect(t.is_in(m["comm"], rank, m["call"]), f"it is not in {m['call']} on {m['comm']}")


@reason(rf"has not finished (?P<call>{CALL}|the call), which other ranks have completed{HOST_ACTIVITY}")
def reason_unfinished(t, rank, m):
    if m["call"] == "the call":
        return
    expect(t.is_in(t.comm_said, rank, m["call"]), f"it is not in {m['call']}")
    seq = number_of(m["call"])
    expect(any(o["completed"] >= seq for o in t.comm(t.comm_said)["members"]), "no member has completed it")
    host_activity(t, rank, m)


@reason(rf"enqueued the call, but its stream is stuck in earlier work{HOST_ACTIVITY}")
def reason_stuck(t, rank, m):
    host_activity(t, rank, m)


@reason(r"it left no recording, and other ranks wait in a call of its group")
def reason_no_recording(t, rank, m):
    expect(t.ranks[rank]["blind"], "it has one")


@reason(rf"(?:was )?inside (?P<op>{OP})")
def reason_inside(t, rank, m):
    expect(any(op.reads(m["op"]) for op in t.member(t.comm_said, rank)["ops"]), "it is not")


@reason(r"has posted a call of a different size")
def reason_size(t, rank, m):
    pass


@reason(r"did not post (?:the counterparts of calls that other ranks posted|(?:sends|receives) for which other ranks posted (?:sends|receives))")
def reason_not_posted(t, rank, m):
    mine = {peer: (s, r) for peer, s, r in t.member(t.comm_said, rank)["messages"]}
    theirs = {m["rank"]: (r, s) for m in t.comm(t.comm_said)["members"] for peer, s, r in m["messages"] if peer == rank}
    expect(any(mine.get(p, (0, 0))[d] < both[d] for p, both in theirs.items() for d in (0, 1)), "it has not")


@reason(r"(?P<verb>sent|received) (?P<bytes>\d+) bytes as message #(?P<number>\d+)")
def reason_of_message(t, rank, m):
    kind = "send" if m["verb"] == "sent" else "recv"
    known = {op.bytes for op in t.member(t.comm_said, rank)["ops"] if op.kind == kind and op.p2p == int(m["number"])}
    expect(not known or int(m["bytes"]) in known, f"it has {known} bytes")


@reason(r"its messages differ in size from those of its peer")
def reason_sizes(t, rank, m):
    expect(t.member(t.comm_said, rank)["messages"], "it exchanges none")


# ---- what was ruled out, and what else it could be ----

RULED_OUT = []


def ruled_out(pattern):
    def add(check):
        RULED_OUT.append((re.compile(pattern), check))
        return check

    return add


@ruled_out(rf"no mismatch: ({RANKS}) made the same call as #(\d+) on ({COMM})")
def out_mismatch(t, ranks, seq, comm):
    calls = {}
    for r in ranks_of(ranks):
        op = t.at(comm, r, int(seq))
        if op:
            calls[op.signature()] = r
    expect(len(calls) <= 1, f"they called {list(calls)}")


@ruled_out(r"no mixed versions: all members (loaded NCCL [\d.]+|loaded an unknown NCCL) and have the same NCCL_\* variables")
def out_versions(t, what):
    members = t.comm(t.comm_said)["of"]
    has_trait(t, members, what)
    expect(len({t.ranks[r]["environment"] for r in members}) == 1, "they have not")


@ruled_out(r"no dead process: all (\d+) visible processes that share communicators are alive")
def out_dead(t, n):
    around = t.around(t.comm(t.comm_said)["of"]) if t.comm_said else {r["rank"] for r in t.ranks}
    seen = [r for r in t.ranks if not r["blind"] and r["rank"] in around]
    expect(int(n) <= len(seen), f"{len(seen)} are visible")
    gone = [r["rank"] for r in seen if t.is_dead(r["rank"]) and r["ended_ago"] > LATE_S and not t.nodes[r["node"]]]
    expect(not gone, f"ranks {gone} are dead")


@ruled_out(r"no deadlock: no ranks wait for each other in a cycle")
def out_cycle(t):
    expect(not t.has_cycle(), "there is one")
    hidden = [r["rank"] for r in t.ranks if hides_its_wait(t, r["rank"]) and t.is_missed(r["rank"])]
    expect(not hidden, f"ranks {hidden} sleep in a wait that the daemon cannot see into")


@ruled_out(r"no lost node: (?:all (\d+) nodes report|both nodes report|the only node reports)")
def out_node(t, n):
    quiet = [name for name, is_quiet in t.nodes.items() if is_quiet]
    expect(t.was_away or not quiet, f"{quiet} do not report")
    expect(int(n or 1) <= len(t.nodes), f"there are {len(t.nodes)}")


ALTERNATIVES = [
    re.compile(rf"{RANKS} {TRAIT}"),
    re.compile(rf"{RANKS} may have made a call that no other rank makes"),
    re.compile(rf"some of the waiting ranks also wait for {RANKS}"),
    re.compile(r"some of the waiting ranks wait in a call from which no rank is missing"),
]

# ---- how sure it is, and what it advises ----


def check_sureness(t, incident):
    """No verdict on a rank that waits outside of NCCL is certain."""
    if incident["confidence"] != "certain" or incident["class"] != "never_entered":
        return
    hidden = [c["rank"] for c in incident["culprits"] if hides_its_wait(t, c["rank"])]
    expect(not hidden, f"ranks {hidden} sleep in a wait that the daemon cannot see into")


ADVICE = []


def advised(pattern):
    """The function is given the truth and the incident. Advice without one claims nothing."""

    def add(check):
        ADVICE.append((re.compile(pattern), check))
        return check

    return add


def culprits_are(t, incident, life):
    lives = {c["rank"]: t.ranks[c["rank"]]["life"] for c in incident["culprits"]}
    expect(any(of == life for of in lives.values()), f"they are {lives}")


@advised(r"The rank is stopped by a signal")
def advice_stopped(t, incident):
    culprits_are(t, incident, "stopped")


@advised(r"A debugger holds it")
def advice_traced(t, incident):
    culprits_are(t, incident, "traced")


@advised(r"Its control group is frozen")
def advice_frozen(t, incident):
    culprits_are(t, incident, "frozen")


@advised(r"All ranks entered the call, so the cause is the network, a GPU or NCCL, not the program")
def advice_network(t, incident):
    if t.comm_said:
        all_inside(t, t.comm_said)


@advised(r"Find what holds it up before it calls NCCL")
def advice_before(t, incident):
    held = [c["rank"] for c in incident["culprits"] if is_held(t, c["rank"])]
    expect(not held, f"ranks {held} are held")


@advised(r".*nothing is wrong with the ranks that wait")
def advice_waiters(t, incident):
    hidden = [c["rank"] for c in incident["culprits"] if hides_its_wait(t, c["rank"])]
    expect(not hidden, f"ranks {hidden} may wait for one of them")


@advised(r"The kernel killed it for lack of memory")
def advice_oom(t, incident):
    expect(any(t.ranks[c["rank"]]["oom"] for c in incident["culprits"]), "it did not")


@advised(r"The job cannot recover by itself")
def advice_restart(t, incident):
    expect(incident["class"] == "deadlock" or any(t.is_dead(c["rank"]) for c in incident["culprits"]), "none has ended")


# ---- a post-mortem ----

# Instants of deaths on two nodes, told apart by clocks that are known to this.
UNSURE_S = 1.1
END = r"it (?:was )?(?P<how>exited with status \d+|killed by SIG\w+|killed by signal \d+|OOM-killed|killed by the OOM killer|ended)[^;]*?"
POSTMORTEM = [
    re.compile(rf"(?P<tie>(?:{RANKS}|\d+ process(?:es)?)) ended too close together to tell which was first; (?P<who>rank \d+) on (?P<node>[\w.\-]+): {END}"),
    re.compile(
        rf"(?:the process of )?(?P<who>{RANKS}|\d+ process(?:es)?) on (?P<node>[\w.\-]+) (?P<verb>alone failed|failed|was the first to fail|ended first): {END}"
        r"(?:, which can explain the end of (?P<together>\d+) others? at the same time)?"
    ),
]
OTHERS_ENDED = re.compile(r"(?P<n>\d+) others? ended within (?P<within>\d+\.\d) s")
ALL_WELL = re.compile(r"all ranks ended without an error, but (?:data were wrong|sends and receives did not match)")
CANCELLED = re.compile(rf"the job was cancelled: (?P<who>rank \d+) on (?P<node>[\w.\-]+) (?:was )?(?P<how>exited with status \d+|killed by SIG\w+|killed by signal \d+|ended)\b.*")
WAITED = re.compile(r"the job ended after (?P<for>\d+) s of waiting: ")
OF_RANKS = rf"(?P<who>{RANKS}|\d+ process(?:es)?): "
NOTES = [
    (re.compile(OF_RANKS + r"the way they ended is not known, because their node does not report"), lambda t, r: t.nodes[t.ranks[r]["node"]] or not t.is_dead(r)),
    (re.compile(OF_RANKS + r"no kernel evidence \(BPF\): .*"), lambda t, r: t.is_dead(r)),
    (re.compile(OF_RANKS + r"the signal came from outside of the daemon's pid namespace: .*"), lambda t, r: t.ranks[r]["life"] == "killed" or t.ranks[r]["code"]),
    (re.compile(OF_RANKS + r"their node's clock was measured too rarely to order their ends exactly"), lambda t, r: t.is_dead(r)),
    (re.compile(r"this leader did not see the job just before the deaths: .*"), None),
    (re.compile(r"(?:\d+ of \d+|[\w.\-]+|\d+) .*"), None),  # of coverage: checked by the tests of status
]
# Of these the calls are still there when the ranks have ended.
LASTING = ("other_kind", "other_argument", "other_call", "disagree", "skipped", "extra", "another_call", "different_calls",
           "died_after_it")


def has_failed(rank):
    return rank["life"] == "killed" or (rank["life"] == "exited" and rank["code"] != 0)


def ended_first(t, ranks, verb):
    """No failed rank ended surely before these; alone: no other rank failed."""
    first = max(t.ranks[r]["ended_ago"] for r in ranks)
    if verb == "alone failed":
        others = [r["rank"] for r in t.ranks if has_failed(r) and r["rank"] not in ranks]
        expect(not others, f"ranks {others} failed, too")
    if verb not in ("failed", "alone failed"):
        before = [r["rank"] for r in t.ranks if has_failed(r) and r["ended_ago"] > first + UNSURE_S]
        expect(not before, f"ranks {before} failed before")


def check_first(t, doc, part, found):
    for pattern in POSTMORTEM:
        m = pattern.fullmatch(part)
        if m:
            break
    else:
        raise Unparsed(part)
    who = ranks_of(m["who"]) if m["who"].startswith("rank") else set()
    for r in who:
        expect(t.ranks[r]["node"] == m["node"], f"rank {r} is on {t.ranks[r]['node']}")
        died(t, r, m["how"])
    if who and pattern is POSTMORTEM[1]:
        ended_first(t, who, m["verb"])
    # The report prints "First: not known" where this is null.
    expect(pattern is POSTMORTEM[0] or doc.get("first") is not None, "the post-mortem has no first rank")
    found["first"] = who


def check_wait(t, doc, text, told):
    """A sentence of the time before: it is understood, and what lasts is so."""
    for one in sentences_of(text + "."):
        check, m = first_that_fits(SENTENCES, lower_first(one))
        if check.__name__ in LASTING:
            check(t, {"who": set()}, *m.groups())


def check_not_told(t, doc, text, told):
    check_wait(t, doc, text, told)
    paged = [i["where"]["comm_name"] for i in told if i["class"] in ("mismatch", "p2p_unmatched") and i.get("where")]
    named = [c["name"] for c in t.all_comms if re.search(rf" on {re.escape(c['name'])}\b", text)]
    expect(not set(paged) & set(named), f"it was told of {sorted(set(paged) & set(named))}")


def postmortem_parts(doc):
    """The summary taken apart: (what it is, text) each."""
    text, told = doc["summary"], None
    if "; not told before: " in text:
        text, told = text.split("; not told before: ", 1)
    m = re.search(rf"; ({OTHERS_ENDED.pattern})$", text)
    if m:
        yield "others", m[1]
        text = text[:m.start()]
    if not ALL_WELL.fullmatch(text) and not CANCELLED.fullmatch(text):
        starts = [m.start() for m in re.finditer(rf"(?:^|(?<=; ))(?:the process of )?(?:{RANKS}|\d+ process(?:es)?) (?:on [\w.\-]+ (?:alone failed|failed|was the first to fail|ended first): |ended too close together)", text)]
        if not starts:
            raise Unparsed(text)
        wait = text[:starts[-1]].rstrip("; ")
        if wait:
            yield "wait", WAITED.sub("", wait)
        yield "first", text[starts[-1]:]
    else:
        yield "whole", text
    if told:
        yield "told", told.rstrip(".")


def check_end(t, end):
    rank = t.ranks[end["rank"]]
    expect((rank["node"], rank["pid"]) == (end["host"], end["pid"]), f"it is {rank['node']}, {rank['pid']}")
    if end["kind"] == "alive":
        expect(not t.is_dead(end["rank"]) or t.nodes[rank["node"]] or rank["ended_ago"] < LATE_S, f"it is {rank['life']}")
    else:
        died(t, end["rank"], end["how"])


def check_note(t, note):
    is_so, m = first_that_fits([(pattern, check) for pattern, check in NOTES], note)
    if is_so and m["who"].startswith("rank"):
        wrong = [r for r in ranks_of(m["who"]) if not is_so(t, r)]
        expect(not wrong, f"ranks {wrong} are {[t.ranks[r]['life'] for r in wrong]}")


def check_postmortem(line, told):
    """As check_incident(); told: incidents of the same scenario so far."""
    doc, found, n, known = line["incident"], [], 0, {}
    t = Truth(line["truth"], doc)
    t.comm_said, t.was_away = None, any(t.nodes.values())

    def whole(text):
        m = CANCELLED.fullmatch(text)
        if m:
            for r in ranks_of(m["who"]):
                died(t, r, m["how"])
        else:
            failed = [r["rank"] for r in t.ranks if has_failed(r)]
            expect(not failed, f"ranks {failed} failed")

    def others(text):
        m = OTHERS_ENDED.fullmatch(text)
        dead = [r["ended_ago"] for r in t.ranks if t.is_dead(r["rank"])]
        expect(len(dead) > int(m["n"]), f"{len(dead)} have ended")
        expect(max(dead) - min(dead) + UNSURE_S >= float(m["within"]), f"all ended within {max(dead) - min(dead):.1f} s")

    checks = {"first": lambda text: check_first(t, doc, text, known), "others": others, "whole": whole,
              "wait": lambda text: check_wait(t, doc, text, told), "told": lambda text: check_not_told(t, doc, text, told)}
    try:
        parts = list(postmortem_parts(doc))
    except Unparsed as e:
        return [f"not understood: {e}"], 1
    for kind, text in parts:
        check_one(found, text, lambda: checks[kind](text))
        n += 1
    for end in doc["ends"]:
        check_one(found, f"rank {end['rank']}: {end['how']}", lambda: check_end(t, end))
        n += 1
    for group in doc["ended"]:
        for r in ranks_of("ranks " + group["ranks"]) if group["ranks"] and group["how"] != "had not ended" else ():
            check_one(found, f"rank {r}: {group['how']}", lambda: died(t, r, group["how"]) if t.is_dead(r) else None)
        n += 1
    for note in doc.get("end_notes", ()):
        check_one(found, note, lambda: check_note(t, note))
        n += 1
    return found, n


def is_old_postmortem(line):
    """The ranks were started anew since, or one ended after the last look."""
    ranks = {r["rank"]: r for r in line["truth"]["ranks"]}
    since = LATENCY_S + told_after(line["truth"], line["incident"])
    anew = any((ranks[e["rank"]]["node"], ranks[e["rank"]]["pid"]) != (e["host"], e["pid"]) or
               (e["kind"] not in ("alive", "none") and ranks[e["rank"]]["ended_ago"] < 0)
               for e in line["incident"]["ends"])
    return anew or any(0 <= r["ended_ago"] <= since for r in ranks.values())


# ---- an incident ----


def first_that_fits(patterns, text):
    for pattern, check in patterns:
        m = pattern.fullmatch(text)
        if m:
            return check, m
    raise Unparsed(text)


def sentences_of(summary):
    """Of a paragraph: they begin with a capital or a number."""
    if not summary.endswith("."):
        raise Unparsed(f"no full stop: {summary}")
    return re.split(r"\. (?=[A-Z0-9])", summary[:-1])


def lower_first(text):
    return text[0].lower() + text[1:] if re.match("The other|Ranks? ", text) else text


def check_one(found, text, run):
    try:
        run()
    except Untrue as e:
        found.append(f"untrue: {text}\n\t\t{e}")
    except Unparsed as e:
        found.append(f"not understood: {e}")


def check_incident(line):
    """What is wrong with it, and how many sentences it has."""
    incident, found = line["incident"], []
    t = Truth(line["truth"], incident)
    where = incident.get("where") or {}
    t.comm_said = where.get("comm_name") if where.get("comm_name") in t.comms else None
    t.was_away = any(t.nodes.values()) or line.get("was_away", False)
    said, n = {}, 0

    def summary(text):
        check, m = first_that_fits(SENTENCES, lower_first(text))
        check(t, said, *m.groups())

    def of_culprit(culprit):
        check, m = first_that_fits(REASONS, culprit["reason"])
        groups = dict.fromkeys(("last", "ago", "done", "inside", "when", "child"))
        groups.update(m.groupdict())
        check(t, culprit["rank"], groups)

    def out(text):
        check, m = first_that_fits(RULED_OUT, text)
        check(t, *m.groups())

    def alternative(text):
        if not any(a.fullmatch(text) for a in ALTERNATIVES):
            raise Unparsed(text)

    try:
        parts = sentences_of(incident["summary"])
    except Unparsed as e:
        return [f"not understood: {e}"], 1
    for text in parts:
        check_one(found, text, lambda: summary(text))
        n += 1
    for culprit in incident["culprits"]:
        if culprit["reason"]:
            check_one(found, f"rank {culprit['rank']}: {culprit['reason']}", lambda: of_culprit(culprit))
            n += 1
    for text in incident["ruled_out"]:
        check_one(found, text, lambda: out(text))
        n += 1
    check_one(found, f"{incident['confidence']}: {incident['summary']}", lambda: check_sureness(t, incident))
    for text in line.get("advice", ()):
        for pattern, check in ADVICE:
            if pattern.match(text):
                check_one(found, text, lambda: check(t, incident))
        n += 1
    for other in incident["alternatives"]:
        check_one(found, other["reason"], lambda: alternative(other["reason"]))
        n += 1
    return found, n


# A rank that takes longer to make a communicator waits for other ranks.
WAIT_S = 5.0


def is_made_since(line, since):
    """Whether the communicator that it is about was made within that time, after a wait."""
    name = (line["incident"]["where"] or {}).get("comm_name")
    ops = [Op(o) for c in line["truth"]["comms"] if c["name"] == name for m in c["members"] for o in m["ops"]]
    return any(
        op.kind.startswith("comm_") and op.is_returned and op.returned_ago <= since and op.age - op.returned_ago > WAIT_S
        for op in ops
    )


def is_old_news(line):
    """Whether somebody ended, one who is named went on after a wait, or the communicator was made, after it was last
    looked at: nodes tell once a second."""
    ranks = {r["rank"]: r for r in line["truth"]["ranks"]}
    since = LATENCY_S + told_after(line["truth"], line["incident"])
    return (
        any(0 <= r["ended_ago"] <= since for r in ranks.values())
        or any(0 <= ranks[culprit["rank"]]["let_go_ago"] <= since for culprit in line["incident"]["culprits"])
        or is_made_since(line, since)
    )


def main():
    lab, how_many, *more = sys.argv[1:]
    if how_many.isdigit():
        seed = more[0]
        completion = more[1] if len(more) > 1 else "nccl"
        command = [lab, "suite", "--generate", how_many, "--seed", seed, "--completion", completion, "--incidents"]
    else:
        seed = how_many
        command = [lab, "suite", how_many, "--incidents"]
    n_incidents = n_sentences = n_wrong = n_old = n_postmortems = 0
    scenario, told = None, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as lab_run:
        for text in lab_run.stdout:
            line = json.loads(text)
            is_postmortem = line["incident"]["severity"] == "failed"
            if scenario != (line["file"], line["line"], line["name"]):
                scenario, told = (line["file"], line["line"], line["name"]), []
            if not is_postmortem:
                told.append(line["incident"])
            if is_old_postmortem(line) if is_postmortem else is_old_news(line):
                n_old += 1
                continue
            found, n = check_postmortem(line, told) if is_postmortem else check_incident(line)
            n_incidents += not is_postmortem
            n_postmortems += is_postmortem
            n_sentences += n
            for what in found:
                n_wrong += 1
                print(f"{line['file']} \"{line['name']}\" ({line['incident'].get('severity', 'post-mortem')})\n\t{what}", flush=True)
    status = lab_run.returncode
    print(f"{seed}: {n_sentences} sentences of {n_incidents} incidents and {n_postmortems} post-mortems, {n_wrong} wrong; "
          f"{n_old} not checked: ranks ended, or went on, within {LATENCY_S} s before it was told")
    return 1 if n_wrong or status not in (0, 2) or not n_incidents + n_postmortems else 0


if __name__ == "__main__":
    sys.exit(main())
