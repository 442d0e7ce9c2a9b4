# SPDX-License-Identifier: Apache-2.0
"""The same programs recorded by the wrappers and by the plugin of NCCL's profiler interface, and
the facts that must be equal: on the simulated NCCL and on NVIDIA's."""
import os
import subprocess
import sys
import tempfile

from agent_lib import CAPTURED, GROUPED, QUEUED, RETURNED, check, copies, environment, start, wait_until
from built import TRAIN_LOOP as TRAIN

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/agent/agent_rank.py")
FIRST_HOST_OP = 32  # making and ending communicators, which the profiler interface does not tell
# Only launches, with the bytes they move.
LAUNCHES = 4
UNCOUNTED = 0x10  # of a communicator: its numbers are worth nothing


def records_of(directory, ranks):
    """When they have ended, by rank."""
    try:
        for p in ranks:
            check(p.wait(120) == 0, "exit status %d" % p.returncode)
    finally:
        for p in ranks:
            p.kill()
            p.wait()
    records = copies(directory)
    check(len(records) == len(ranks), "records of all ranks: %r" % os.listdir(directory))
    return records


def trained(each=lambda rank: {}, **extra):
    """The records of four ranks after 30 steps: collectives of every kind, alone and in groups, on a
    communicator over all and on two that are made by splits; by rank. each: variables of a rank."""
    with tempfile.TemporaryDirectory() as at, tempfile.TemporaryDirectory() as meeting:
        ranks = [start([TRAIN, "--steps", "30", "--tp", "2", "--log-every", "0", "--elements", "64",
                        "--uid-file", meeting + "/uid"],
                       environment(RANK=str(r), WORLD_SIZE="4", LOCAL_RANK=str(r),
                                   COLLWATCH_RECORD=at, **extra, **each(r)),
                       stdout=subprocess.DEVNULL) for r in range(4)]
        return records_of(at, ranks)


def told(record, of_launches, untold=()):
    """The facts of both ways: for each communicator its properties and actions, call by call. Of
    launches: no groups, and a call that only moves bytes has no other type. With `untold` calls:
    without them, their numbers and their count."""
    def call(o):
        is_plain = of_launches and o.name in ("broadcast", "all_gather")
        return (None if untold else o.seq, o.name, o.bytes, o.root_or_peer, o.flags & (RETURNED | QUEUED),
                None if is_plain else (o.dtype, o.count), not of_launches and bool(o.flags & GROUPED))

    ops = [o for o in record.ring() if o.kind < FIRST_HOST_OP and o.name not in untold]
    return [(c.name, c.nranks, c.rank, None if untold else (c.entered, c.returned), record.p2p(c),
             [call(o) for o in ops if o.comm == c.index]) for c in record.comms()]


def must_tell_the_same(wrapped, plugged, version, untold=()):
    """Records of all ranks of trained(). untold: calls that NCCL does not report to
    this version."""
    calls = sum(len(c[-1]) for c in told(wrapped[0], False))
    check(calls > 100, "%d calls" % calls)
    for here, there in zip(wrapped, plugged):
        for a, b in zip(told(here, version == LAUNCHES, untold),
                        told(there, version == LAUNCHES, untold)):
            check(a[:-1] == b[:-1], "version %d: %r\nwrappers: %r" % (version, b[:-1], a[:-1]))
            odd = [(x, y) for x, y in zip(a[-1], b[-1]) if x != y]
            check(not odd, "version %d, wrappers and plugin: %r" % (version, odd[:1]))
            check(len(a[-1]) == len(b[-1]), "%d and %d calls" % (len(a[-1]), len(b[-1])))
        check(len(here.comms()) == len(there.comms()) == 3, "communicators")
        check((there.job, there.env_hash) == (here.job, here.env_hash),
              "the header: %r" % (vars(there)))


MEET = """
import ctypes, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import agent_rank
rank, unique = int(sys.argv[3]), agent_rank.UniqueId()
if rank == 0:
    ctypes.CDLL("libnccl.so.2").ncclGetUniqueId(ctypes.byref(unique))
    open(sys.argv[2] + ".new", "wb").write(bytes(unique))
    os.rename(sys.argv[2] + ".new", sys.argv[2])
else:
    unique = agent_rank.UniqueId.from_buffer_copy(open(sys.argv[2], "rb").read())
r = agent_rank.Rank("cdll", 2, rank, unique)
at = ctypes.c_void_p(r.buffer.value)
move = lambda f, n: agent_rank.check(f(at, ctypes.c_size_t(n), 7, 1 - rank, r.comm, r.stream), "p2p")
"""

SENDS = MEET + """
for i in range(20):
    agent_rank.check(r.nccl.ncclGroupStart(), "start")
    move(r.nccl.ncclSend, 1 + i)
    move(r.nccl.ncclRecv, 1 + i)
    agent_rank.check(r.nccl.ncclGroupEnd(), "end")
    r.reduce(1)
    move(r.nccl.ncclSend if rank == 0 else r.nccl.ncclRecv, 40)
r.reduce(1)
"""


def two(program, each, extra):
    """The records of two ranks of it."""
    with tempfile.TemporaryDirectory() as at, tempfile.TemporaryDirectory() as meeting:
        ranks, uid = [], meeting + "/uid"
        for r in range(2):
            ranks.append(start([sys.executable, "-c", program, RANK, uid, str(r)],
                               environment(RANK=str(r), COLLWATCH_RECORD=at, **extra, **each(r))))
            wait_until(lambda: os.path.exists(uid), "the unique id")
        return records_of(at, ranks)


def sent(each=lambda rank: {}, **extra):
    """The records of two ranks that send to each other in groups, and one to the other outside."""
    return two(SENDS, each, extra)


def must_tell_the_same_sends(wrapped, plugged, version):
    """Records of both ranks of sent(). Sends of a group may be launched in another order than they
    were called."""
    for rank, r in enumerate(wrapped):
        (peer, (sends, recvs, *_)), = r.p2p(r.comms()[0]).items()
        check((peer, sends, recvs) == (1 - rank, 40 - 20 * rank, 20 + 20 * rank),
              "%r" % ((sends, recvs),))
    for here, there in zip(wrapped, plugged):
        (a,), (b,) = told(here, True), told(there, True)
        check(a[:-1] == b[:-1], "version %d: %r\nwrappers: %r" % (version, b[:-1], a[:-1]))
        check(sorted(a[-1]) == sorted(b[-1]), "version %d: %r" % (version, set(a[-1]) ^ set(b[-1])))


REPLAYS = MEET + """
launches = 3
capture, graph, exe = ctypes.c_int(1), ctypes.c_void_p(), ctypes.c_void_p()
r.reduce(1)
agent_rank.check(r.cuda.cuStreamBeginCapture_v2(r.stream, capture), "capture")
agent_rank.check(r.nccl.ncclAllReduce(at, at, ctypes.c_size_t(8), 7, 0, r.comm, r.stream), "all_reduce")
agent_rank.check(r.nccl.ncclGroupStart(), "start")
move(r.nccl.ncclSend, 3)
move(r.nccl.ncclRecv, 3)
agent_rank.check(r.nccl.ncclGroupEnd(), "end")
agent_rank.check(r.cuda.cuStreamEndCapture(r.stream, ctypes.byref(graph)), "end of capture")
agent_rank.check(r.cuda.cuGraphInstantiateWithFlags(ctypes.byref(exe), graph, ctypes.c_ulonglong(0)), "graph")
for _ in range(launches):
    agent_rank.check(r.cuda.cuGraphLaunch(exe, r.stream), "launch")
    agent_rank.check(r.cuda.cuStreamSynchronize(r.stream), "its end")
    r.reduce(1)
agent_rank.check(r.cuda.cuStreamSynchronize(r.stream), "the end")
"""


def replayed(each=lambda rank: {}, **extra):
    """The records of two ranks that launch a graph three times, with a reduction before, between and
    after; in the graph there are a reduction, a send and a receive."""
    return two(REPLAYS, each, extra)


def must_tell_of_replays(wrapped, plugged, version):
    """Records of both ranks of replayed(). The profiler interface reports captured calls, except
    for sends. It reports these at the launch, and reports no launch that needs no proxy. Version 4
    cannot tell a capture from a launch, and must not count on its reports."""
    def calls(record):
        return [(o.name, o.count, bool(o.flags & CAPTURED)) for o in record.ring()
                if o.kind < FIRST_HOST_OP and o.name == "all_reduce"]

    for here, there in zip(wrapped, plugged):
        (a,), (b,) = here.comms(), there.comms()
        (sends, recvs, *_), = here.p2p(a).values()
        check((a.entered, sends, recvs) == (4 + 3, 3, 3), "wrappers: %r" % ((a.entered, sends, recvs),))
        check(calls(here) == [("all_reduce", 64, False), ("all_reduce", 8, True)] +
              3 * [("all_reduce", 64, False)], "wrappers: %r" % calls(here))
        check(not a.flags & UNCOUNTED, "wrappers count replays")
        if version == LAUNCHES:
            check(b.flags & UNCOUNTED, "version 4 counts a communicator that replays")
            continue
        check(calls(there) == calls(here), "version %d: %r" % (version, calls(there)))
        check((b.entered, b.flags & UNCOUNTED) == (5, 0), "version %d: %r" % (version, vars(b)))
        check(not there.p2p(b), "version %d: %r" % (version, there.p2p(b)))
