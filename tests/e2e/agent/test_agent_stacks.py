# SPDX-License-Identifier: Apache-2.0
"""The table of call stacks: the lines that issue calls.

CW_PYTHONS: other interpreters to try, separated by colons.
"""
import json
import os
import subprocess
import sys
import tempfile

import pytest
from agent_lib import *
from built import COLLWATCH, TRAIN_LOOP

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = os.path.join(HERE, "stacks_rank.py")
PYTHONS = os.environ.get("CW_PYTHONS", sys.executable).split(":")
STACKS, FRAMES = 7, 12  # sections
DROP_STACKS = 8
KNOWN_MINORS = range(11, 15)  # lib/python/python_layout.c
MAX_BYTES = (2 << 20) + (64 << 10)


def line_of(tag):
    with open(RANK) as source:
        return next(i for i, line in enumerate(source, 1) if line.endswith("# %s\n" % tag))


def shown(at):
    """The only record in a directory, as `record show` has it."""
    (name,) = [name for name in os.listdir(at) if name.endswith(".record")]
    p = subprocess.run([COLLWATCH, "record", "show", "--json", "--ops", "1000",
                        os.path.join(at, name)], stdout=subprocess.PIPE, check=True)
    return json.loads(p.stdout)


class Ran:
    """A rank that ended by itself: its record, its ops, the agent's log."""

    def __init__(self, argv, **extra):
        with tempfile.TemporaryDirectory(prefix="cw-stacks-") as at:
            log = os.path.join(at, "log")
            p = start(argv, environment(COLLWATCH_RECORD=at, COLLWATCH_LOG=log, **extra),
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            out, err = p.communicate(timeout=120)
            check(p.returncode == 0, "%r ended with %d: %s" % (argv, p.returncode, err.decode()))
            check(not err, "it says %r" % err)
            self.said = out.decode().split()
            with open(log) as f:
                self.log = f.read()
            self.ops = [op for comm in shown(at)["comms"] for op in comm["ops"]]
            (name,) = [name for name in os.listdir(at) if name.endswith(".record")]
            with open(os.path.join(at, name), "rb") as f:
                self.record = Record(f.fileno())

    def stacks(self, kind):
        return [op.get("stack") for op in self.ops if op["kind"] == kind]


def rank(python, how, **extra):
    minor = subprocess.run([python, "-c", "import sys; print(sys.version_info.minor)"],
                           stdout=subprocess.PIPE, check=True).stdout
    if int(minor) not in KNOWN_MINORS:
        pytest.skip("the agent does not know Python 3.%d" % int(minor))
    return Ran([python, RANK, how], **{"COLLWATCH_CALL_STACKS": "on", **extra})


def python_frames(stack):
    return [frame for frame in stack or [] if " in " in frame]


def test_names_the_line_of_each_call():
    for python in PYTHONS:
        ran = rank(python, "lines")
        check("Python frames too" in ran.log, "the agent's log of %s: %s" % (python, ran.log))
        reduces, gathers = ran.stacks("all_reduce"), ran.stacks("all_gather")
        check(len(reduces) == 20 and len(gathers) == 4, "calls: %r" % ran.ops)
        for stack in reduces:
            where = [frame.rsplit("/", 1)[1] for frame in python_frames(stack)]
            check(where[:2] == ["stacks_rank.py:%d in reduce" % line_of("reduce"),
                                "stacks_rank.py:%d in lines" % line_of("step")] and
                  where[2].endswith("in <module>") and len(where) == 3, "all_reduce: %r" % stack)
        for stack in gathers:
            where = [frame.rsplit("/", 1)[1] for frame in python_frames(stack)]
            check(where[:2] == ["stacks_rank.py:%d in Evaluation.gather" % line_of("gather"),
                                "stacks_rank.py:%d in lines" % line_of("evaluation")],
                  "all_gather: %r" % stack)
        # One entry for all calls of one place.
        used = [raw for raw in ran.record.entries(STACKS) if raw[:8] != bytes(8)]
        check(len(used) <= 4 and ran.record.total <= MAX_BYTES, "%d stacks, %d bytes" %
              (len(used), ran.record.total))
        check(ran.record.drops[DROP_STACKS] == 0, "none is lost")


def test_cuts_a_deep_stack():
    for python in PYTHONS:
        (stack,) = rank(python, "deep").stacks("all_reduce")
        check(stack and stack[-1] == "…" and len(python_frames(stack)) == 40, "%r" % stack)
        check(python_frames(stack)[0].endswith("stacks_rank.py:%d in reduce" % line_of("reduce")),
              "its innermost: %r" % stack[0])


def test_follows_threads_with_small_stacks_and_without_python():
    for python in PYTHONS:
        ran = rank(python, "threads")
        (stack,) = ran.stacks("all_reduce")
        check(python_frames(stack)[0].endswith("stacks_rank.py:%d in reduce" % line_of("reduce")),
              "of a thread: %r" % stack)
        (stack,) = ran.stacks("comm_destroy")
        check(not python_frames(stack), "of a thread that is none of Python's: %r" % stack)


def test_follows_generators_and_coroutines():
    for python in PYTHONS:
        (stack,) = rank(python, "lazy").stacks("all_reduce")
        own = [frame.rsplit("/", 1)[1] for frame in python_frames(stack)
               if "stacks_rank.py" in frame]
        check("in gr??e" in own.pop(2), "a name that is not ASCII: %r" % stack)
        check(own[:4] == ["stacks_rank.py:%d in reduce" % line_of("reduce"),
                          "stacks_rank.py:%d in later" % line_of("later"),
                          "stacks_rank.py:%d in generate" % line_of("generate"),
                          "stacks_rank.py:%d in lazy" % line_of("lazy")], "%r" % stack)


def test_does_no_harm_to_an_interpreter_that_is_taken_down():
    for python in PYTHONS:
        for _ in range(5):
            check(rank(python, "leave").stacks("all_reduce"), "calls")


def test_says_where_the_interpreter_keeps_its_lock():
    for python in PYTHONS:
        ran = Ran([python, RANK, "want"])
        at, n_bytes = ran.record.interpreter
        check(at <= int(ran.said[0], 16) < at + n_bytes < at + (1 << 24),
              "waited for %s, of %x and %d bytes" % (ran.said[0], at, n_bytes))
    with tempfile.TemporaryDirectory(prefix="cw-stacks-") as at:
        p = start([TRAIN_LOOP, "--steps", "3"], environment(COLLWATCH_RECORD=at))
        check(p.wait(timeout=120) == 0, "a program in C")
        (name,) = [name for name in os.listdir(at) if name.endswith(".record")]
        with open(os.path.join(at, name), "rb") as f:
            check(Record(f.fileno()).interpreter == (0, 0), "it has no interpreter")


def test_counts_stacks_that_find_no_place():
    for python in PYTHONS:
        ran = rank(python, "many")
        stacks = ran.stacks("all_reduce")
        used = [raw for raw in ran.record.entries(STACKS) if raw[:8] != bytes(8)]
        check(len(stacks) == 300 and 64 <= len(used) <= 128, "%d stacks" % len(used))
        check(ran.record.drops[DROP_STACKS] == sum(stack is None for stack in stacks) >= 172,
              "%d lost" % ran.record.drops[DROP_STACKS])
        check(len(set(map(tuple, filter(None, stacks)))) >= 64, "each with its own line")


def test_takes_none_unless_asked():
    for value in None, "off", "maybe":
        ran = Ran([PYTHONS[0], RANK, "lines"],
                  **({"COLLWATCH_CALL_STACKS": value} if value else {}))
        check(not any("stack" in op for op in ran.ops), "a stack: %r" % ran.ops[-1])
        check(all(op.stack == 0 for op in ran.record.ring()), "numbers of stacks")
        check(STACKS not in ran.record.sections and FRAMES not in ran.record.sections,
              "room for stacks: %r" % ran.record.sections)
        check(("not off or on" in ran.log) == (value == "maybe"), "the agent's log: %s" % ran.log)


def test_follows_frame_pointers_of_a_program_in_c():
    """Once the agent's thread has looked up which files there are."""
    with tempfile.TemporaryDirectory(prefix="cw-stacks-") as at:
        p = start([TRAIN_LOOP, "--steps", "1000000", "--elements", "16", "--step-ms", "10",
                   "--uid-file", os.path.join(at, "uid")],
                  environment(COLLWATCH_RECORD=at, COLLWATCH_CALL_STACKS="on", RANK="0",
                              WORLD_SIZE="1", LOCAL_RANK="0"), stdout=subprocess.DEVNULL)

        def stack():
            if not any(name.endswith(".record") for name in os.listdir(at)):
                return None
            ops = [op for comm in shown(at)["comms"] for op in comm["ops"]]
            return ops[-1].get("stack") if ops else None
        try:
            frames = wait_until(stack, "a stack of native frames")
        finally:
            p.kill()
            p.wait()
    check(frames[0].startswith("train_loop+0x"), "%r" % frames)
