# SPDX-License-Identifier: Apache-2.0
"""The helper thread and the daemon: handed over, again after restarts, never in the job's way."""
import contextlib
import os
import select
import socket
import subprocess
import sys
import time

from agent_lib import *
from built import PROGRAM, TRAIN_LOOP_PY
from ports import unused_port

ATTEMPTS = 20
F_GET_SEALS = 1034


def waiting_program(daemon, **extra):
    return start([PROGRAM, "wait"], environment(daemon, **extra), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE)


def finish(p):
    out, _ = p.communicate(b"x", timeout=120)
    check(p.returncode == 0 and out.endswith(b"done\n"), "the program ends as ever")


def record_fd(pid):
    """The number of its record's descriptor, or None. The program opens and closes others meanwhile."""
    for n in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "collwatch-record" in os.readlink(f"/proc/{pid}/fd/{n}"):
                return int(n)
    return None


def thread_names(pid):
    names = []
    for t in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{t}/comm", encoding="ascii") as f:
            names.append(f.read().strip())
    return names


def test_hands_over_a_sealed_record():
    import errno
    import fcntl
    with StandIn() as d:
        p = waiting_program(d)
        a = d.accept().welcome()
        check(a.hello.get(1) == 1 and a.hello.get(2) == 1, "versions 1 to 1")
        check(a.hello.get(3) == a.record().total == os.fstat(a.fd).st_size, "size")
        check(a.record().total <= (2 << 20) + (64 << 10), "2 MiB and 64 KiB at most")
        seals = fcntl.fcntl(a.fd, F_GET_SEALS)
        check(seals & 0x17 == 0x17, "SEAL, SHRINK, GROW and FUTURE_WRITE: %#x" % seals)
        try:
            os.pwrite(a.fd, b"x", 0)
            raise AssertionError("the daemon could write")
        except OSError as e:
            check(e.errno in (errno.EPERM, errno.EBADF), "sealed, and open for reading: %s" % e)
        fd = record_fd(p.pid)
        check(fd and fd >= 1000, "descriptor %s is out of the way" % fd)
        finish(p)


def test_beats_once_a_second():
    with StandIn() as d:
        p = waiting_program(d)
        a = d.accept().welcome()
        first = a.record().beat
        check(first > 0, "a first beat")
        wait_until(lambda: a.record().beat > first, "another beat")
        names = thread_names(p.pid)
        check("collwatch" in names, "the thread has a name: %r" % names)
        finish(p)


def test_says_hello_at_the_programs_end():
    """No daemon listens while the program runs, until just before its end."""
    with StandIn() as d:
        d.stop()
        p = waiting_program(d)
        wait_until(lambda: "collwatch" in thread_names(p.pid), "the helper thread runs")
        d.listen()
        finish(p)
        a = d.accept(program=p)
        check(a.record().comms(), "the record holds the communicator")


def test_comes_back_within_two_seconds():
    with StandIn() as d:
        p = waiting_program(d)
        a = d.accept().welcome()
        inode = os.fstat(a.fd).st_ino
        took = []
        # The fastest: a busy test machine may hold all but one of them up.
        while len(took) < 3 or (min(took) >= 2 and len(took) < ATTEMPTS):
            a.close()
            d.stop()
            d.listen()
            began = time.monotonic()
            a = d.accept().welcome()
            took.append(time.monotonic() - began)
            check(os.fstat(a.fd).st_ino == inode, "the same record")
        check(min(took) < 2, "back after %r s" % took)
        finish(p)


def test_late_daemon_gets_the_history():
    with StandIn() as d:
        d.stop()
        os.unlink(d.path)
        p = waiting_program(d)
        wait_until(lambda: record_fd(p.pid), "a record")
        d.listen()
        a = d.accept().welcome()
        wait_until(lambda: a.record().ops_total > 0, "ops")
        finish(p)


def test_a_first_refusal_keeps_it_away_for_seconds_only():
    """The daemon's refusal may be temporary: it does not cost a minute of the job."""
    with StandIn() as d:
        p = waiting_program(d)
        d.accept().refuse()
        d.accept(50).welcome()
        finish(p)


def test_stays_away_longer_after_each_refusal():
    with StandIn() as d:
        p = waiting_program(d)
        for _ in range(3):
            d.accept().refuse()
        ready, _, _ = select.select([d.sock], [], [], 3)
        check(not ready, "no new attempt within 3 s")
        finish(p)


def test_an_answer_is_waited_for():
    """A daemon with thousands to register takes its time; an agent that leaves the line waits
    longer."""
    with StandIn() as d:
        p = waiting_program(d)
        a = d.accept()
        ready, _, _ = select.select([a.conn, d.sock], [], [], 12)
        check(not ready, "it neither hung up nor came again within 12 s")
        a.welcome()
        wait_until(lambda: a.python_stacks(1)[0] in (1, 2), "it is registered")
        finish(p)


def test_daemon_that_never_accepts():
    with StandIn(backlog=0) as d:
        fillers = []
        for _ in range(4):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.setblocking(False)
            try:
                s.connect(d.path)
            except BlockingIOError:
                pass
            fillers.append(s)
        p = waiting_program(d)
        finish(p)


def test_daemon_that_talks_nonsense():
    with StandIn() as d:
        p = waiting_program(d)
        for junk in (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\3abc", os.urandom(5000),
                     b"\0\0\x0f\0" + b"\x0a" * 3840):
            a = d.accept()
            try:
                a.conn.sendall(junk)
            except OSError:
                pass
            a.close()
        a = d.accept().welcome()
        a.conn.sendall(envelope(999, b"from the future"))
        wait_until(lambda: a.python_stacks(5)[0] == 1, "still there; a C program has no Python")
        finish(p)


def test_python_stacks_name_the_line():
    with StandIn() as d:
        env = environment(d, RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=str(unused_port()))
        p = start([sys.executable, TRAIN_LOOP_PY, "--steps", "5", "--fault", "block-in-data-loader",
                   "--fault-rank", "0", "--fault-step", "3"], env, stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
        try:
            a = d.accept().welcome()
            wait_until(lambda: a.record().has & HAS_PYTHON, "armed")
            def stuck():
                return "read_sample" in a.python_stacks(8)[1]
            wait_until(stuck, "the stack shows the data loader")
            for number in (9, 10):
                status, text = a.python_stacks(number)
                check(status == 0, "status %d: %s" % (status, text))
                check('train_loop.py", line' in text and "in __next__" in text, text)
            check(a.record().beat > 0, "beats")
        finally:
            p.kill()
            p.wait()


def test_python_stacks_can_be_off():
    with StandIn() as d:
        env = environment(d, RANK="0", WORLD_SIZE="1", COLLWATCH_PYTHON_STACKS="off",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=str(unused_port()))
        p = start([sys.executable, TRAIN_LOOP_PY, "--steps", "0", "--step-ms", "20"], env,
                  stdout=subprocess.DEVNULL)
        a = d.accept().welcome()
        wait_until(lambda: a.record().ops_total > 10, "work")
        check(a.python_stacks(1)[0] == 2, "not armed")
        p.kill()
        p.wait()


ENDING = """
import sys
sys.path.insert(0, sys.argv[1])
import agent_rank
rank = agent_rank.Rank("cdll")
sys.stdin.readline()
for _ in range(200):
    rank.reduce(20)
"""


def test_interpreter_ends_cleanly():
    with StandIn() as d:
        argv = [sys.executable, "-c", ENDING, os.path.dirname(os.path.abspath(__file__))]
        for _ in range(5):
            p = start(argv, environment(d), stdin=subprocess.PIPE)
            a = d.accept(program=p).welcome()
            p.stdin.close()  # it works and ends from here on: not before its agent is connected
            try:  # asked again and again right into the end; a busy machine may make it stand still
                while True:
                    status = a.python_stacks(1)[0]
                    check(status in (0, 2, 3), "status %d while it runs" % status)
            except (EOFError, ConnectionError):
                pass
            check(p.wait(120) == 0, "exit status %d" % p.returncode)


HELD = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
import agent_rank
path, rank, unique = sys.argv[2], int(sys.argv[3]), agent_rank.UniqueId()
if rank == 0:
    agent_rank.load("pydll", "libnccl.so.2").ncclGetUniqueId(ctypes.byref(unique))
    with open(path, "wb") as f:
        f.write(bytes(unique))
else:
    unique = agent_rank.UniqueId.from_buffer_copy(open(path, "rb").read())
agent_rank.Rank("pydll", 2, rank, unique).reduce(20)
print("reduced")
"""


def test_an_interpreter_held_by_nccl_is_not_waited_for():
    """The first rank waits for the second in ncclCommInitRank, and keeps the GIL meanwhile."""
    with StandIn() as d:
        argv = [sys.executable, "-c", HELD, os.path.dirname(os.path.abspath(__file__)), d.dir + "/uid"]
        ranks = [start([*argv, "0"], environment(d), stdout=subprocess.PIPE)]
        try:
            a = d.accept().welcome()
            wait_until(lambda: [c.state for c in a.record().comms()] == ["init"], "inside init")
            for number in 1, 2, 3:
                check(a.python_stacks(number)[0] == 2, "not armed")
            beat = a.record().beat
            wait_until(lambda: a.record().beat > beat, "its thread lives")
            check([c.state for c in a.record().comms()] == ["init"], "still inside")
        finally:
            ranks.append(start([*argv, "1"], environment(d), stdout=subprocess.PIPE))
            ends = [(p.communicate(timeout=120)[0], p.returncode) for p in ranks]
        check(ends == [(b"reduced\n", 0)] * 2, repr(ends))
