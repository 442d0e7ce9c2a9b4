# SPDX-License-Identifier: Apache-2.0
"""Every way a program comes to NCCL's functions ends in the record; every other look-up goes past
the agent as if it were not there. NCCL_LIBS=/folder:/another/libnccl.so.2 adds real libraries."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from agent_lib import *
from built import COLLWATCH, OWN_THREADS, PROGRAM, SECOND, SECOND_HOOK, SOURCE, STATIC, WAYS
from sanitized import build_sanitized
from two_ways import (must_tell_of_replays, must_tell_the_same, must_tell_the_same_sends, replayed, sent,
                      trained)

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent_rank.py")
INIT, PROGRAMS_WORK, REDUCES = 1, 22, 20


def recorded(argv, ops, comms=1, preload=AGENT, said=None, probes=0, returned=0,
             **extra):
    """Runs argv until it waits for its input; its record must hold so many ops. probes: connections
    before the agent's, made to see whether there is a daemon."""
    with StandIn() as d:
        p = start(argv, environment(d, preload=preload, **extra), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for _ in range(probes):
                d.sock.accept()[0].close()
            a = d.accept().welcome()
            wait_until(lambda: a.record().ops_total == ops, "%d ops of %r" % (ops, argv))
            r = a.record()
            check(len(r.comms()) == comms, "%d communicators" % len(r.comms()))
            check(all(c.returned == returned and c.state == "ready" for c in r.comms()),
                  "collectives that others take part in: %r" % [c.returned for c in r.comms()])
        finally:
            out = p.communicate(b"x", timeout=120)[0].decode()
        check(p.returncode == 0, "exit status %d: %s" % (p.returncode, out))
        check(said is None or said in out, out)
        return out


def test_linked():
    recorded([PROGRAM, "wait"], INIT + PROGRAMS_WORK)


def test_opened_and_looked_up():
    for how in ("dlopen", "global", "deepbind"):
        recorded([PROGRAM, "wait", how], INIT + PROGRAMS_WORK)


def test_through_ctypes():
    for loader in ("cdll", "global", "deepbind", "pydll"):
        recorded([sys.executable, RANK, loader, "return"], INIT + REDUCES)


COPIES = """
import ctypes, os, shutil, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import agent_rank
ranks = []
for i in range(int(sys.argv[4])):
    os.mkdir(os.path.join(sys.argv[3], str(i)))
    path = os.path.join(sys.argv[3], str(i), "libnccl.so.2")
    shutil.copy(os.path.join(sys.argv[2], "libnccl.so.2"), path)
    load = agent_rank.load
    agent_rank.load = lambda how, name: load(how, path if "nccl" in name else name)
    ranks.append(agent_rank.Rank("cdll"))
    agent_rank.load = load
for i, rank in enumerate(ranks):
    rank.reduce(5 + i)
print(len(ranks), "copies", flush=True)
sys.stdin.read()
"""


def test_two_copies_of_nccl():
    with tempfile.TemporaryDirectory() as at:
        recorded([sys.executable, "-c", COPIES, RANK, SIM_DIR, at, "2"], 2 * INIT + 5 + 6, comms=2)


def test_more_copies_than_there_are_sets():
    """Of wrappers there are four: a fifth copy works, and is not recorded."""
    with tempfile.TemporaryDirectory() as at:
        log = os.path.join(at, "log")
        recorded([sys.executable, "-c", COPIES, RANK, SIM_DIR, at, "5"],
                 4 * INIT + 5 + 6 + 7 + 8, comms=4, said="5 copies", COLLWATCH_LOG=log)
        check("one copy of NCCL too many" in open(log).read(), "it is said")


CLOSED = """
import ctypes, _ctypes, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import agent_rank
for i in range(8):
    rank = agent_rank.Rank("cdll")
    rank.reduce(5)
    agent_rank.check(rank.nccl.ncclCommDestroy(rank.comm), "destroy")
    _ctypes.dlclose(rank.nccl._handle)
print("closed", sum("libnccl" in line for line in open("/proc/self/maps")) > 0, flush=True)
sys.stdin.read()
"""


def test_closed_and_opened_again():
    """By a program that is not linked with it: without the agent it goes, with it wrappers point
    into it, so it stays; each time it is the same copy."""
    argv = [sys.executable, "-c", CLOSED, RANK]
    p = subprocess.run(argv, env=environment(preload=None), input=b"", stdout=subprocess.PIPE)
    check((p.returncode, p.stdout) == (0, b"closed False\n"), p.stdout)
    with StandIn() as d:
        p = start(argv, environment(d), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        a = d.accept().welcome()
        check(p.stdout.readline() == b"closed True\n", "it stays")
        comms = a.record().comms()
        p.communicate(b"", timeout=120)
        check(p.returncode == 0, "exit status %d" % p.returncode)
        check([(c.state, c.op_index) for c in comms] == [("destroyed", 7)] * 8,
              "%r" % [(c.state, c.op_index) for c in comms])


CALLS_IN_THREADS = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
comm = ctypes.c_void_p()
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
lib.ncclCommInitRank(ctypes.byref(comm), 2, Id(b"x"), 0)
for _ in range(3):
    lib.ncclBroadcast(None, None, ctypes.c_size_t(8), 7, 0, comm, None)
    lib.ncclAllReduce(None, None, ctypes.c_size_t(8), 7, 0, comm, None)
print("received", lib.calls_received(), flush=True)
sys.stdin.read()
"""


def test_calls_of_nccls_own():
    """From the caller's thread and from threads of NCCL: each broadcast makes 20 of them."""
    recorded([sys.executable, "-c", CALLS_IN_THREADS, OWN_THREADS], INIT + 3 + 3,
             said="received %d\n" % (20 + 3 * 20 + 3), returned=6)


def test_static_and_linked():
    recorded([WAYS, "static"], INIT + REDUCES, said="static 0")


def test_static_in_a_python_extension():
    code = ("import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); r = lib.static_rank(20);"
            "sys.stdin.read(); print('static', r)")
    recorded([sys.executable, "-c", code, STATIC], INIT + REDUCES, said="static 0")


def test_static_and_asked_by_threads_at_once():
    """The agent searches all loaded files for NCCL: a thread that calls meanwhile gets an answer,
    too."""
    code = ("import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]);"
            "print('not answered', lib.static_asked_at_once())")
    for _ in range(10):
        p = subprocess.run([sys.executable, "-c", code, STATIC], env=environment(),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        check((p.returncode, p.stdout) == (0, b"not answered 0\n"), p.stdout.decode())


def plugin(version=5, preload=None):
    """NCCL loads the agent as a plugin, instead of a preload."""
    return {"preload": preload, "NCCL_PROFILER_PLUGIN": AGENT, "SIM_NCCL_PROFILER": str(version)}


def two_ranks(*how, **extra):
    """The records of agent_program's two ranks after 202 collectives, by rank."""
    with StandIn() as d:
        p = start([PROGRAM, "ranks", *how], environment(d, **extra), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            agents = [d.accept().welcome() for _ in range(2)]
            for a in agents:
                wait_until(lambda: [c for c in a.record().comms() if c.returned == 202],
                           "202 collectives")
            return sorted((a.record() for a in agents), key=lambda r: r.comms()[0].rank)
        finally:
            out = p.communicate(b"xx", timeout=120)[0].decode()
            check(p.returncode == 0, "exit status %d: %s" % (p.returncode, out))


def test_as_a_profiler_plugin():
    for version in 4, 5, 6, 7:
        ranks = two_ranks(**plugin(version))
        comms = [r.comms()[0] for r in ranks]
        check([c.rank for c in comms] == [0, 1] and comms[0].nranks == 2, "ranks")
        check(all(len(r.comms()) == 1 and c.state == "ready" and c.flags & PROFILER
                  for r, c in zip(ranks, comms)), "one communicator, known from the interface")
        check(comms[0].id == comms[1].id != 0, "one id")
        check(comms[0].hash == comms[1].hash, "equal histories")
        check(comms[0].checkpoints == comms[1].checkpoints, "equal checkpoints")
        for r in ranks:
            check(not any(r.drops), "nothing dropped: %r" % (r.drops,))
            ops = r.ring()
            check([o.seq for o in ops] == list(range(1, 203)), "every number once")
            roots = {"all_reduce": -1, "broadcast": 0}
            odd = [vars(o) for o in ops if not o.flags & RETURNED or
                   (o.root_or_peer, o.redop, o.slot) != (roots[o.name], 255, NO_SLOT)]
            check(not odd, "version %d: %r" % (version, odd[:1]))
            check(all(o.return_ns >= o.enter_ns > 0 for o in ops), "times")
            if version >= 5:  # version 4 tells of launches only: there are no groups left
                check(all(o.flags & GROUPED and o.group for o in ops[-2:]), "the group's ops")
                check(not any(o.group for o in ops[:-2]), "no others are grouped")


def test_plugin_tells_what_the_wrappers_tell():
    wrapped = trained()
    for version in 4, 5, 6, 7:
        there = trained(**plugin(version))
        must_tell_the_same(wrapped, there, version)
        check(all(r.nccl_version == 0 for r in there), "the version is not told")


def test_plugin_tells_of_sends_what_the_wrappers_tell():
    """Those of a group may be launched in another order than they were called."""
    wrapped = sent()
    for version in 4, 5, 6, 7:
        must_tell_the_same_sends(wrapped, sent(**plugin(version)), version)


def test_plugin_tells_of_replays_what_it_is_told():
    wrapped = replayed()
    for version in 4, 5, 6, 7:
        must_tell_of_replays(wrapped, replayed(**plugin(version)), version)


def test_plugin_and_preloaded_count_once():
    for how in [], ["dlopen"]:
        ranks = two_ranks(*how, **plugin(preload=AGENT))
        for r in ranks:
            check(len(r.comms()) == 1 and not r.comms()[0].flags & PROFILER, "the wrappers' own")
            check(r.ops_total == 203, "%d ops" % r.ops_total)


def test_plugin_beside_another_copy_stays_out():
    with tempfile.TemporaryDirectory() as at:
        copy = os.path.join(at, "copy.so")
        shutil.copy(AGENT, copy)
        log = os.path.join(at, "log")
        for r in two_ranks(COLLWATCH_LOG=log, **plugin(preload=copy)):
            check(r.ops_total == 203, "%d ops" % r.ops_total)
            check(not r.comms()[0].flags & PROFILER, "the preloaded copy's")
        said = open(log).read()
        check(said.count("another copy of the agent is preloaded") == 2, said)


def test_plugin_of_a_static_nccl():
    """No wrapper sees that NCCL: it is hidden in another vendor's library."""
    with StandIn() as d:
        p = start([WAYS, "static"], environment(d, **plugin()), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
        try:
            a = d.accept().welcome()
            wait_until(lambda: a.record().comms(), "the communicator")
        finally:
            out = p.communicate(b"x", timeout=120)[0].decode()
        check((p.returncode, out) == (0, "static 0\n"), out)
        c = a.record().comms()[0]
        check(c.state == "ready" and c.flags & PROFILER and c.nranks == 1, "it is known")


def test_switched_off_plugin_records_nothing():
    with StandIn() as d:
        p = start([PROGRAM, "wait"], environment(d, COLLWATCH_DISABLE="1", **plugin()),
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        out = p.communicate(b"x", timeout=120)[0]
        check((p.returncode, out) == (0, b"next descriptor 3\ndone\n"), out)


def test_other_look_ups_see_their_caller():
    orders = [None, AGENT]
    for second in (SECOND, SECOND_HOOK):
        orders += [second, AGENT + ":" + second, second + ":" + AGENT]
    seen = {}
    for order in orders:
        p = subprocess.run([WAYS, "neighbours"], env=environment(preload=order),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        check(p.returncode == 0, "%r: %d" % (order, p.returncode))
        seen[order] = p.stdout.decode()
    check(seen[None] == "next b c nobody\nfirst a a a\nlibc right right right\nparent plain\n",
          seen[None])
    for order, text in seen.items():
        without = ":".join(p for p in (order or "").split(":") if p != AGENT) or None
        check(text == seen[without], "%s: %r, without the agent %r" % (order, text, seen[without]))


def test_beside_a_wrapper_of_malloc():
    for preload in (AGENT + ":" + SECOND, SECOND + ":" + AGENT):
        recorded([PROGRAM, "wait", "dlopen"], INIT + PROGRAMS_WORK, preload=preload)


def with_sanitizer(compiler):
    with tempfile.TemporaryDirectory() as at:
        program, wrong = build_sanitized(compiler, at)
        run = [COLLWATCH, "run", "--agent", AGENT, "--"]
        recorded([*run, program, "wait"], INIT + PROGRAMS_WORK, preload=None, probes=1,
                 ASAN_OPTIONS="detect_leaks=0")
        for argv in ([wrong], [*run, wrong]):
            p = subprocess.run(argv, env=environment(preload=None), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=120)
            check(p.returncode == 1 and b"heap-use-after-free" in p.stdout, p.stdout.decode())


def test_gccs_address_sanitizer():
    with_sanitizer("gcc")


def test_clangs_address_sanitizer():
    with_sanitizer("clang")


REAL = """
import ctypes, os, sys
mode = {"local": os.RTLD_LOCAL, "global": os.RTLD_GLOBAL, "deepbind": os.RTLD_DEEPBIND}[sys.argv[2]]
lib = ctypes.CDLL(sys.argv[1], mode=mode | os.RTLD_NOW)
version, unique = ctypes.c_int(), ctypes.create_string_buffer(128)
print(lib.ncclGetVersion(ctypes.byref(version)), version.value)
print(lib.ncclGetUniqueId(unique), any(unique.raw))
lib.ncclGetErrorString.restype = ctypes.c_char_p
print(lib.ncclGetErrorString(5), lib.ncclGroupStart(), lib.ncclGroupEnd())
print([hasattr(lib, n) for n in sys.argv[3:]])
"""


@pytest.mark.skipif(not os.environ.get("NCCL_LIBS"), reason="NCCL_LIBS names no real libraries")
def test_real_libraries_answer_as_ever():
    """Answers of real NCCL without a GPU; NCCL_LIBS names files, or folders to look in."""
    libraries = []
    for place in filter(None, os.environ.get("NCCL_LIBS", "").split(":")):
        libraries += [place] if os.path.isfile(place) else \
            [os.path.join(folder, f) for folder, _, files in os.walk(place) for f in files
             if f == "libnccl.so.2"]
    check(libraries, "no libnccl.so.2 where NCCL_LIBS says")
    text = open(os.path.join(SOURCE, "agent/base/nccl_functions.h")).read()
    names = re.findall(r"^\tF0?\(.*?, (nccl\w+), \d", text, re.M)
    check(len(names) > 90, "names")
    for library in libraries:
        for mode in ("local", "global", "deepbind"):
            argv = [sys.executable, "-c", REAL, library, mode, *names]
            seen = [subprocess.run(argv, env=environment(preload=preload, LD_LIBRARY_PATH="",
                                                         NCCL_SOCKET_IFNAME="lo"),
                                   stdout=subprocess.PIPE, timeout=120) for preload in (None, AGENT)]
            check(seen[0].returncode == 0, "%s runs here" % library)
            check((seen[0].returncode, seen[0].stdout) == (seen[1].returncode, seen[1].stdout),
                  "%s %s: %r, with the agent %r" % (library, mode, seen[0].stdout, seen[1].stdout))
        print("# %s: %s" % (library, seen[1].stdout.decode().split()[1]))
