# SPDX-License-Identifier: Apache-2.0
"""Programs that play tricks on themselves: with the agent in them, output, exit status and
descriptors are the same as without it."""
import os
import shutil
import subprocess
import sys
import tempfile

import pytest
from agent_lib import *
from built import PROGRAM
from sanitized import build_sanitized

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent_rank.py")


def outcome(argv, preload, daemon=None, data=b"", **extra):
    p = subprocess.run(argv, env=environment(daemon, preload=preload, **extra), input=data,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return p.returncode, p.stdout.decode(errors="replace")


def same(argv, status=0, said=None, ways=((),), daemon=None, **extra):
    expected = outcome(argv, None, **extra)
    check(expected[0] == status, "without the agent: %r" % (expected,))
    check(said is None or said in expected[1], "without the agent: %r" % (expected,))
    for way in ways:
        got = outcome([*argv, *way], AGENT, daemon, **extra)
        check(got == expected, "%r\nwith the agent is not\n%r" % (got, expected))


BOTH = ((), ("dlopen",))


def mode(name, status=0, said=None):
    """The mode with a daemon that takes the record and with none."""
    same([PROGRAM, name], status, said, BOTH)
    with StandIn() as d:
        same([PROGRAM, name], status, said, BOTH, daemon=d)


def test_gets_what_the_agent_does_not():
    for name in ("no-threads", "few-threads", "no-sockets", "no-descriptors", "one-descriptor",
                 "no-memory", "little-memory"):
        mode(name)


def test_the_scarcity_was_the_agents():
    """The modes above are no test of anything unless the agent failed in them as meant."""
    with tempfile.TemporaryDirectory() as at:
        for name, line in (("no-threads", "no helper thread"), ("few-threads", "no helper thread"),
                           ("little-memory", "no helper thread"),
                           ("no-memory", "no flight record")):
            log = os.path.join(at, name)
            os.chmod(at, 0o777)  # one of them is another user by then
            code, text = outcome([PROGRAM, name], AGENT, COLLWATCH_LOG=log)
            check(code == 0, text)
            check(os.path.exists(log) and line in open(log).read(), "%s: no %r" % (name, line))


def test_closes_a_range():
    mode("close-range", said="first: 3\nsecond: 4")


def test_moves_away_and_drops_privileges():
    mode("move")


def test_becomes_a_daemon():
    for preload in (None, AGENT):
        code, text = outcome([PROGRAM, "daemonise"], preload)
        # Two processes print: in any order.
        check(code == 0 and sorted(text.split("\n")) ==
              ["", "child: exit 0", "daemon at work", "done", "next descriptor 3"], text)


def test_becomes_another_program():
    mode("exec", said="errno 12345")
    mode("exec-echo", said="became echo")


def test_dies():
    for name, signal in (("segv", 11), ("term", 15), ("kill", 9), ("abort", 6)):
        mode(name, -signal, "about to die")


def test_uses_nccl_at_the_very_end():
    mode("destructor", said="destroyed in a destructor")


def test_uses_nccl_in_a_signal_handler():
    mode("handler", said="handled 10")
    mode("alarm", said="alarmed")


def test_closes_nccl():
    mode("dlclose")


def test_python_ends_in_every_way():
    """Also between the request for Python's stacks and their arming."""
    for loader in ("cdll", "pydll"):
        for end, status in (("return", 0), ("exit", 4), ("os-exit", 5), ("thread", 0)):
            same([sys.executable, RANK, loader, end], status)


def test_python_ends_while_stacks_are_armed():
    argv = [sys.executable, RANK, "pydll", "thread"]
    with StandIn() as d:
        for _ in range(8):
            check(outcome(argv, AGENT, d) == (0, "leaving\n"), "the same end each time")


def test_a_compiler_compiles():
    cc = shutil.which("gcc") or shutil.which("cc")
    with tempfile.TemporaryDirectory() as at:
        source = os.path.join(at, "a.c")
        with open(source, "w") as f:
            f.write("#include <stdio.h>\nint main(void) { puts(\"built\"); return 3; }\n")
        objects = []
        for preload in (None, AGENT):
            program = os.path.join(at, "a.out")
            got = outcome([cc, "-O2", "-o", program, source], preload)
            check(got == (0, ""), repr(got))
            objects.append(open(program, "rb").read())
            check(outcome([program], preload) == (3, "built\n"), "it runs")
        check(objects[0] == objects[1], "the same program")


def test_a_storm_of_children():
    same(["sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; "
          "seq 200 | xargs -P 8 -n 1 sh -c 'exit 0'; echo $(seq 50 | xargs -n 1 echo)"])


def test_a_storm_of_a_ranks_own_children():
    mode("storm", said="forked 40, cloned 40, vforked 40, spawned 40")


def test_first_calls_while_it_forks():
    """A look-up or a start that another thread was in the middle of holds up no child."""
    for _ in range(5):
        mode("first-calls", said="children 8")


def test_changes_environment_and_locale():
    with tempfile.TemporaryDirectory() as at:
        name, written = "C.UTF-8", "1234.50"
        if shutil.which("localedef") and subprocess.run(
                ["localedef", "-i", "de_DE", "-f", "UTF-8", at + "/de_DE.UTF-8"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            name, written = "de_DE.UTF-8", "1234,50"
        for record in {}, {"COLLWATCH_RECORD": at, "COLLWATCH_LOG": at + "/log"}:
            same([PROGRAM, "surroundings"], ways=BOTH, LOCPATH=at, LC_ALL=name, **record,
                 said="locale %s, %s\nOWN_FIRST=1\nlocale C, 1234.50\nOWN_THIRD=3\n" % (name, written))


def test_works_in_a_repository():
    """Of git: its output, and the objects it writes."""
    if not shutil.which("git"):
        pytest.skip("no git")
    script = ("git init -q -b main . && for i in 1 2 3; do seq $i 300 > file; git add file; git commit -qm c$i; "
              "done && git gc -q && git log --format=%H:%s && git fsck --full && git status --short && git diff HEAD~1 --stat")
    got = []
    for preload in None, AGENT:
        with tempfile.TemporaryDirectory() as at:
            who = {"GIT_%s_%s" % (a, b): v for a in ("AUTHOR", "COMMITTER") for b, v in
                   (("NAME", "n"), ("EMAIL", "e@x"), ("DATE", "1700000000 +0000"))}
            p = subprocess.run(["bash", "-c", script], cwd=at, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=120,
                               env=environment(preload=preload, HOME=at, GIT_CONFIG_NOSYSTEM="1", **who))
            got.append((p.returncode, p.stdout))
    check(got[0][0] == 0 and got[0][1].count(b":c") == 3, "without the agent: %r" % (got[0],))
    check(got[0] == got[1], "%r\nwith the agent is not\n%r" % (got[1], got[0]))


def test_uses_nccl_after_the_last_copy_was_written():
    """A destructor writes the copy of the record, too: the order of destructors is arbitrary."""
    with tempfile.TemporaryDirectory() as at:
        same([PROGRAM, "destructor"], said="destroyed in a destructor", ways=BOTH, COLLWATCH_RECORD=at)
        check(len(os.listdir(at)) == 2, "two copies: %r" % os.listdir(at))


def with_address_sanitizer(compiler, runtime=None):
    """runtime: where it is a library, it must come before everything else that is preloaded."""
    first = []
    if runtime:
        path = subprocess.run([compiler, "-print-file-name=" + runtime], stdout=subprocess.PIPE)
        first = [path.stdout.decode().strip()]
    with tempfile.TemporaryDirectory() as at:
        program, wrong = build_sanitized(compiler, at)
        options = {"ASAN_OPTIONS": "detect_leaks=0"}
        for name in ("state", "fork", "storm", "closefrom", "exec-echo", "destructor", "handler", "dlclose"):
            for way in BOTH:
                argv = [program, name, *way]
                expected = outcome(argv, None, data=b"x", **options)
                check(expected[0] == 0, "without the agent: %r" % (expected,))
                got = outcome(argv, ":".join(first + [AGENT]), data=b"x", **options)
                check(got == expected, "%r\nwith the agent is not\n%r" % (got, expected))
        code, text = outcome([wrong], ":".join(first + [AGENT]), **options)
        check(code == 1 and "heap-use-after-free" in text, text)


def test_programs_with_gccs_address_sanitizer():
    with_address_sanitizer("gcc", "libasan.so")


def test_programs_with_clangs_address_sanitizer():
    with_address_sanitizer("clang")
