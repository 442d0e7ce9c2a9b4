# SPDX-License-Identifier: Apache-2.0
"""Several devices and host threads in a process, every type and reduction, groups that fail or are
simulated, communicators that are made later. NCCL treats them as without the agent, and the record
shows NCCL's actions."""
import subprocess

from agent_lib import *
from built import DEVICES

RANKS, ROUNDS, COUNT = 4, 20, 32
SIZES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1]  # by NCCL's number of a type
OPS = 5  # and one made by the user
REDUCED_TYPES = 10
NON_BLOCKING = 1 << 0


def look(mode, **extra):
    """The record while the program waits; its output is the one without the agent."""
    expected = subprocess.run([DEVICES, mode], env=environment(preload=None), input=b"x",
                              stdout=subprocess.PIPE, timeout=120)
    check(expected.returncode == 0, "without the agent: %r" % (expected,))
    with StandIn() as d:
        p = start([DEVICES, mode], environment(d, **extra), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
        try:
            a = d.accept().welcome()
            out = b""
            while not out.endswith(b"ready\n"):
                line = p.stdout.readline()
                check(line, "it ended: %r" % out)
                out += line
            record = a.record()
        finally:
            out += p.communicate(b"x", timeout=120)[0]
        check((p.returncode, out) == (0, expected.stdout),
              "%r is not %r" % (out, expected.stdout))
        check(not any(record.drops), "nothing dropped: %r" % (record.drops,))
        return record


def members(record, parent=0):
    """Those of the world, or of its children, by rank and colour."""
    found = [c for c in record.comms() if bool(c.parent) == bool(parent)]
    return sorted(found, key=lambda c: (c.color, c.rank))


def one_communicator(comms, returned):
    check([c.rank for c in comms] == list(range(len(comms))), "ranks %r" % [c.rank for c in comms])
    check(all(c.nranks == len(comms) and c.state == "ready" for c in comms), "ready")
    check(len({c.id for c in comms}) == 1, "one id")
    check([c.returned for c in comms] == [returned] * len(comms), "%r" % [c.returned for c in comms])
    check([c.entered for c in comms] == [returned] * len(comms), "%r" % [c.entered for c in comms])
    check(len({c.hash for c in comms}) == 1, "equal histories")


def devices_and_completion(record, comms):
    check([c.device for c in comms] == list(range(RANKS)), "%r" % [c.device for c in comms])
    for c in comms:
        last = c.ops[-1]
        check(last.slot != NO_SLOT, "rank %d: how far its device is" % c.rank)
        check(record.progress(last.slot) == (last.op_index, last.op_index), "it is through")


def test_one_process_with_four_devices():
    r = look("devices")
    world = members(r)
    check(len(r.comms()) == RANKS, "%d communicators" % len(r.comms()))
    one_communicator(world, ROUNDS)
    devices_and_completion(r, world)
    check(len({o.group for c in world for o in c.ops if o.name == "all_reduce"}) == ROUNDS,
          "a group for each round")


def test_a_thread_for_each_device():
    r = look("threads")
    world = members(r)
    one_communicator(world, ROUNDS)
    devices_and_completion(r, world)
    threads = [{o.tid for o in c.ops} for c in world]
    check(all(len(t) == 1 for t in threads), "each by one thread")
    check(len(set.union(*threads)) == RANKS, "of its own")


def test_every_type_with_every_reduction():
    """In the order of the program: type by type, reduction by reduction, a broadcast, rank by rank."""
    r = look("types")
    calls = [(kind, dtype, op) for dtype in range(len(SIZES)) for kind, op in
             [("all_reduce", op) for op in range(OPS + 1) if dtype < REDUCED_TYPES] +
             [("broadcast", None)]]
    one_communicator(members(r), len(calls))
    seen = [o for o in r.ring() if o.name in ("all_reduce", "broadcast")]
    check(len(seen) == RANKS * len(calls), "%d ops" % len(seen))
    numbers = {}  # of a type or reduction in the record, by NCCL's
    for i, o in enumerate(seen):
        kind, dtype, op = calls[i // RANKS]
        check((o.name, o.count, o.bytes) == (kind, COUNT, COUNT * SIZES[dtype]), "%r is %s of %d" %
              (vars(o), kind, dtype))
        check(numbers.setdefault(("type", dtype), o.dtype) == o.dtype, "one number for a type")
        check(numbers.setdefault(("op", op), o.redop) == o.redop,
              "one for a reduction, though the ranks' handles differ")
    check(len({n for (what, _), n in numbers.items() if what == "type"}) == len(SIZES), "each its own")
    check(len({n for (what, _), n in numbers.items() if what == "op"}) == OPS + 2, "each its own")


def test_groups_that_are_no_plain_ones():
    r = look("groups")
    # Failed and simulated: nothing. Nested: 2. Simulated into nothing: 1.
    one_communicator(members(r), 3)
    children = members(r, parent=1)
    check(len(children) == RANKS, "%d children" % len(children))
    one_communicator(children[:2], 1)
    one_communicator(children[2:], 1)
    dropped = [o for o in r.ring() if o.flags & DROPPED and o.name == "all_reduce"]
    check(len(dropped) == 2 * RANKS and not any(o.flags & QUEUED for o in r.ring()),
          "%d ops came to nothing" % len(dropped))


def test_communicators_that_are_made_later():
    r = look("non-blocking")
    one_communicator(members(r), ROUNDS)
    children = members(r, parent=1)
    one_communicator(children[:2], 1)
    one_communicator(children[2:], 1)
    check(all(c.flags & NON_BLOCKING for c in r.comms()), "marked")
    check(all(o.slot == NO_SLOT for o in r.ring()), "how far their devices are is unknown")
