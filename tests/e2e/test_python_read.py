# SPDX-License-Identifier: Apache-2.0
"""Python stacks of a process, read from outside: `collwatch stacks --pid`.

CW_PYTHONS: other interpreters to try, separated by colons."""

import json
import os
import signal
import subprocess
import sys

import pytest
from built import COLLWATCH
from waiting import expect, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "python_places.py")
PYTHONS = os.environ.get("CW_PYTHONS", sys.executable).split(":")
MAX_FRAMES = 100
BUSY_READS = 200
DONE, FAILED, NOTHING = 0, 1, 3


class Program:
    def __init__(self, python, how):
        self.process = subprocess.Popen([python, PROGRAM, how], stdout=subprocess.PIPE)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        expect(line, f"{python} ended")
        self.own = json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def read(pid, *options, **more):
    return subprocess.run([COLLWATCH, "stacks", "--pid", str(pid), *options], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)


def python_of(pid):
    done = read(pid, "--json")
    expect(done.returncode == DONE, f"{done.returncode}: {done.stdout}{done.stderr}")
    doc = json.loads(done.stdout)
    expect(doc["schema"] == "collwatch.evidence/1" and doc["pid"] == pid, str(doc))
    return doc["python"]


def frames_of(thread):
    return [[f["file"], f["line"], f["function"]] for f in thread["frames"]]


def waits(pid):
    """The main thread waits for the end: its frame has left the print()."""
    thread = python_of(pid)["threads"][-1]
    return thread["frames"] and thread["frames"][0]["function"] == "wait" and thread["gil"] is None


def check_equal(program, python):
    threads = {t["id"]: t for t in python["threads"]}
    expect(set(threads) == set(program.own), f"{sorted(threads)} of {sorted(program.own)}")
    for thread, own in program.own.items():
        got = threads[thread]
        if got["tid"] == program.pid:
            # The main thread has gone on, from print() to wait().
            expect([f[2] for f in frames_of(got)][-2:] == ["main", "<module>"], str(got))
            continue
        expect(frames_of(got) == own[:MAX_FRAMES], f"{got}, not {own}")
        expect((got["note"] is not None) == (len(own) > MAX_FRAMES), f"{got['note']}")
    expect(python["threads"][-1]["tid"] == program.pid, "the main thread comes last")
    tids = {int(tid) for tid in os.listdir(f"/proc/{program.pid}/task")}
    expect({t["tid"] for t in threads.values()} == tids, f"{threads} of {tids}")


@pytest.mark.parametrize("python", PYTHONS)
def test_frames_are_those_of_the_interpreter(python):
    with Program(python, "still") as program:
        wait_until(lambda: waits(program.pid), "the main thread waits")
        check_equal(program, python_of(program.pid))
        program.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(program.pid) == "T", "stopped")
        check_equal(program, python_of(program.pid))


@pytest.mark.parametrize("python", PYTHONS)
def test_no_stack_of_a_running_program_is_invented(python):
    with open(PROGRAM, encoding="utf-8") as f:
        lines = {text.split("  # ")[1].strip(): i for i, text in enumerate(f, 1) if "  # " in text}
    read_ones = 0
    with Program(python, "busy") as program:
        for _ in range(BUSY_READS):
            main = python_of(program.pid)["threads"][-1]
            frames = frames_of(main)[::-1]
            expect([f[2] for f in frames[:2]] == ["<module>", "main"][:len(frames)], str(main))
            read_ones += len(frames) >= 2
            for caller, callee in zip(frames[1:], frames[2:]):
                call = f"{caller[2]}-{callee[2]}"
                expect(caller[1] == lines.get(call), f"{call} in {caller}: {main}")
            expect(len(frames) <= 12, str(main))
    expect(read_ones >= BUSY_READS * 0.9, f"{read_ones} of {BUSY_READS} reads gave a stack")


@pytest.mark.parametrize("python", PYTHONS)
def test_says_which_thread_holds_the_interpreter_lock(python):
    with Program(python, "busy") as program:
        def holders():
            return [t["tid"] for t in python_of(program.pid)["threads"] if t["gil"] == "holds"]
        wait_until(lambda: holders() == [program.pid], holders)
        wait_until(lambda: f"main thread {program.pid} " in read(program.pid).stdout and
                   ", holds the GIL, innermost first" in read(program.pid).stdout, "shown")
    with Program(python, "still") as program:
        wait_until(lambda: not holders(), holders)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


def test_shows_threads_to_people():
    with Program(PYTHONS[0], "still") as program:
        wait_until(lambda: waits(program.pid), "the main thread waits")
        done = read(program.pid)
    expect(done.returncode == DONE and f"main thread {program.pid} " in done.stdout and
           "python_places.py" in done.stdout and done.stdout.count("innermost first") == 10,
           done.stdout + done.stderr)


def check_refusal(done, status, reason):
    expect(done.returncode == status and not done.stdout and reason in done.stderr and
           done.stderr.count("\n") == 1, f"{done.returncode}: {done.stdout}{done.stderr}")


def test_says_in_a_line_why_there_is_no_stack():
    process = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith("sleep"), "sleep")
        check_refusal(read(process.pid), NOTHING, "no interpreter in the process")
        process.kill()
        wait_until(lambda: state_of(process.pid) == "Z", "a zombie")
        check_refusal(read(process.pid), NOTHING, "the process is gone")
    finally:
        process.kill()
        process.wait()
    check_refusal(read(process.pid), NOTHING, "the process is gone")


def test_an_impossible_question_is_refused():
    for words in (["x"], ["0"], ["-1"], ["99999999999"], ["1", "job"]):
        expect(read(*words).returncode == FAILED, str(words))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.open_build
def test_another_user_gets_a_refusal():
    def become_nobody():
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    with Program(PYTHONS[0], "still") as program:
        done = read(program.pid, preexec_fn=become_nobody)
        check_refusal(done, FAILED, "no permission to read the process's memory")
        done = read(program.pid, "--json", preexec_fn=become_nobody)
        python = json.loads(done.stdout)["python"]
        expect(done.returncode == FAILED and python["status"] == "refused", done.stdout)


def test_a_process_that_withdrew_is_read_by_root_only():
    """prctl(PR_SET_DUMPABLE, 0): the kernel lets only root trace it."""
    source = ("import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "
              "print('ready', flush=True); sys.stdin.read()")
    process = subprocess.Popen([PYTHONS[0], "-c", source], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        done = read(process.pid)
        if os.geteuid() == 0:
            expect(done.returncode == DONE, done.stderr)
        else:
            check_refusal(done, FAILED, "no permission to read the process's memory")
    finally:
        process.kill()
        process.communicate()
