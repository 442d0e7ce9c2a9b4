# SPDX-License-Identifier: Apache-2.0
"""Programs that reach NCCL in each way there is leave the same correct flight record."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

import pytest
from agent_lib import *
from built import COLLWATCH, PROGRAM, TRAIN_LOOP, TRAIN_LOOP_PY
from ports import unused_port

WAITS_CALLS = 23  # calls of a waiting agent_program: a communicator, 22 collectives


def build_id(path):
    """As readelf sees it; "" if the linker made none."""
    p = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True)
    m = re.search(r"Build ID: (\w+)", p.stdout.decode())
    return m[1] if m else ""


def two_ranks(*how):
    """work(100) on two ranks: 200 calls, then two in a group."""
    with StandIn() as d:
        p = start([PROGRAM, "ranks", *how], environment(d), stdin=subprocess.PIPE,
                  stdout=subprocess.DEVNULL)
        agents = [d.accept().welcome() for _ in range(2)]
        record = lambda a: [c for c in a.record().comms() if c.returned == 202]
        wait_until(lambda: all(record(a) for a in agents), "202 collectives on both ranks")
        comms = sorted((a.record().comms()[0] for a in agents), key=lambda c: c.rank)
        for a in agents:
            r = a.record()
            check(r.state == 1 and r.version == 11, "a valid record")
            check(not any(r.drops), "nothing dropped: %r" % (r.drops,))
            check(r.has & HAS_PROGRESS, "device progress")
            check(r.nccl_version == 22809 and r.driver_version > 0, "versions")
            check(r.pid == a.pid and r.start_ticks > 0 and r.created > 0, "identity")
            check([o.seq for o in r.ring() if o.seq] == list(range(1, 203)), "every number once")
            check([o.op_index for o in r.ring()] == list(range(1, 204)), "op_index")
            for o in r.ring():
                check(o.flags & RETURNED and o.return_ns >= o.enter_ns > 0, "times of an op")
            check([o.name for o in r.ring()[-2:]] == ["all_reduce"] * 2, "the group's ops")
            check(all(o.flags & GROUPED and o.group for o in r.ring()[-2:]), "the group's mark")
            check(not any(o.group for o in r.ring()[:-2]), "no others are grouped")
            last = r.ring()[-1]
            wait_until(lambda: a.record().progress(last.slot) == (203, 203), "device completion")
            wait_until(lambda: any(m.endswith("agent_program") for m in a.record().modules()),
                       "the caller's module")
            if not build_id(PROGRAM):
                print("# agent_program has no build-id to compare")
            check(build_id(PROGRAM) in a.record().build_ids().values(), "its build-id")
        check([c.rank for c in comms] == [0, 1] and comms[0].nranks == 2, "ranks")
        check(comms[0].id == comms[1].id != 0, "one id")
        check(comms[0].hash == comms[1].hash, "equal histories")
        check(comms[0].checkpoints == comms[1].checkpoints, "equal checkpoints")
        # Of 202 collectives: the last four multiples of 8, and all of 64 (lib/model/signature.h).
        check(sorted(c[0] for c in comms[0].checkpoints if c[0]) ==
              [64, 128, 160, 176, 184, 192, 200], "checkpoints")
        p.communicate(b"xx", timeout=120)
        check(p.returncode == 0, "exit status %d" % p.returncode)
        for a in agents:
            c = a.record().comms()[0]
            check(c.state == "destroyed" and c.ended > 0, "the record outlives the rank")


def test_linked_program():
    two_ranks()


def test_program_that_opens_nccl():
    two_ranks("dlopen")


def train(argv, ranks=4, **extra):
    with tempfile.TemporaryDirectory(prefix="cw-train-") as at:
        port = unused_port()
        ps = [start([*argv, "--steps", "40", "--tp", "2", "--log-every", "0"],
                    environment(RANK=str(r), WORLD_SIZE=str(ranks), LOCAL_RANK=str(r),
                                MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                                COLLWATCH_JOB="unit", COLLWATCH_RECORD=at, **extra),
                    stdout=subprocess.DEVNULL) for r in range(ranks)]
        for p in ps:
            check(p.wait(120) == 0, "exit status %d" % p.returncode)
        records = copies(at)
        check(len(records) == ranks, "records of all ranks: %r" % os.listdir(at))
        return records


def same_histories(records):
    histories = {}
    for r in records:
        check(r.job == "name:unit" and r.rank_source == "RANK", "labels")
        check(r.world_label == len(records), "world size")
        check(not any(r.drops), "nothing dropped: %r" % (r.drops,))
        for c in r.comms():
            histories.setdefault(c.id, []).append((c.hash, c.returned, c.nranks, c.rank, c.parent,
                                                   c.ordinal))
    for members in histories.values():
        check(len({m[:3] for m in members}) == 1, "one history per communicator: %r" % members)
        check(len(members) == members[0][2], "every member has it under the same id")
        check(sorted(m[3] for m in members) == list(range(len(members))), "ranks")
    return histories


def test_linked_training():
    histories = same_histories(train([TRAIN_LOOP]))
    check(sum(1 for m in histories.values() if m[0][4]) == 4, "two splits with two colours each")


def test_python_through_ctypes():
    same_histories(train([sys.executable, TRAIN_LOOP_PY]))


def test_switched_off():
    for word in "1", "true", "Yes":
        switched_off(COLLWATCH_DISABLE=word)
    for word in "0", "False", "no", "OFF":
        switched_off(COLLWATCH=word)
    switched_off(COLLWATCH="on", COLLWATCH_DISABLE="on")
    switched_off(COLLWATCH="off", COLLWATCH_DISABLE="off")


def switched_off(**switches):
    with StandIn() as d:
        p = start([PROGRAM, "wait"], environment(d, **switches), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
        # work() was done once the program waits for input, in a pipe read.
        wait_until(lambda: "pipe" in open("/proc/%d/wchan" % p.pid).read()
                   or blocked_in_read(p.pid), "the program waits")
        check("collwatch-record" not in os.popen("ls -l /proc/%d/fd" % p.pid).read(), "no record")
        out, _ = p.communicate(b"x", timeout=120)
        check(p.returncode == 0 and out.endswith(b"done\n"), "it ran")


def blocked_in_read(pid):
    return open("/proc/%d/syscall" % pid).read().startswith("0 0x0 ")


def test_progress_off():
    with StandIn() as d:
        p = start([PROGRAM, "ranks"], environment(d, COLLWATCH_PROGRESS="off"),
                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        agents = [d.accept().welcome() for _ in range(2)]
        # An agent says hello before there is a communicator.
        wait_until(lambda: all([c.returned for c in a.record().comms()] == [202] for a in agents),
                   "work")
        for a in agents:
            check(not a.record().has & HAS_PROGRESS, "not marked as there")
            check(all(o.slot == NO_SLOT for o in a.record().ring()), "completion is unknown")
        p.communicate(b"xx", timeout=120)


def test_summaries_tell_who_fed_nan():
    """In step 3 rank 2 feeds one NaN, and again in each later step; all ranks get NaN."""
    records = train([sys.executable, TRAIN_LOOP_PY, "--fault", "feed-nan", "--fault-rank", "2",
                     "--fault-step", "3"], COLLWATCH_SUMMARY="full")
    if not records[0].has & HAS_SUMMARIES:
        pytest.skip("built without nvcc and clang: there is no kernel")
    for r in records:
        firsts, ring = r.summaries()
        world = [c for c in r.comms() if c.nranks == 4 and not c.parent][0]
        check(len(ring) == 120 and not any(r.drops), "a full ring, nothing dropped %r" % (r.drops,))
        check({s["is_output"] for s in ring} == {0, 1}, "inputs and outputs")
        check(all(s["device_ns"] > 0 and s["elements"] == s["offered"] > 0 for s in ring), "whole")
        ours = [s for s in ring if s["comm"] == world.index and s["is_output"]]
        check(len({s["checksum"] for s in ours}) > 1, "checksums differ from op to op")
        check(bool(firsts) == (r.rank_label == 2), "who: %r" % (firsts,))
    bad = records[2].summaries()[0][0]
    check((bad["nans"], bad["infs"], bad["elements"]) == (1, 0, 256), "how many: %r" % (bad,))
    check(bad["is_output"] == 0 and KIND[bad["kind"]] == "all_reduce", "what")
    outputs = lambda r: {(r.comms()[s["comm"]].id, s["seq"], s["kind"]): s["checksum"]
                         for s in r.summaries()[1] if s["is_output"]}
    same = [k for k in outputs(records[0]) if all(k in outputs(r) for r in records)]
    check(same and all(len({outputs(r)[k] for r in records}) == 1 for k in same
                       if k[2] in (1, 2)), "all ranks got the same out")
def shown(path):
    p = subprocess.run([COLLWATCH, "record", "show", path, "--json"], stdout=subprocess.PIPE)
    return json.loads(p.stdout) if p.returncode == 0 else None


def test_kept_in_a_file():
    """Without a daemon: of a killed process, and of one with a normal end."""
    for ends in False, True:
        with tempfile.TemporaryDirectory() as at:
            p = start([PROGRAM, "wait"], environment(COLLWATCH_RECORD=at), stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE)
            path = os.path.join(at, "%s-%d.record" % (os.uname().nodename, p.pid))
            wait_until(lambda: os.path.exists(path) and shown(path)["calls"] == WAITS_CALLS,
                       "the copy")
            if ends:
                out = p.communicate(b"x", timeout=120)[0]
                check((p.returncode, out) == (0, b"next descriptor 3\ndone\n"), out)
            else:
                p.kill()
                p.communicate()
            # A kill during a write leaves a part of the next copy.
            found = {f for f in os.listdir(at) if ends or not f.endswith(".tmp")}
            check(found == {os.path.basename(path)}, "one file: %r" % found)
            check(os.stat(path).st_mode & 0o777 == 0o600, "it is its owner's")
            doc = shown(path)
            check(doc["calls"] == (WAITS_CALLS + 22 if ends else WAITS_CALLS), doc)
            check(doc["comms"][0]["ops"], "its calls")


def test_kept_nowhere_it_cannot_be():
    for place in "relative", "/proc/nowhere":
        with tempfile.TemporaryDirectory() as at:
            p = subprocess.run([PROGRAM, "wait"], input=b"x", stdout=subprocess.PIPE, cwd=at,
                               env=environment(COLLWATCH_RECORD=place, COLLWATCH_LOG=at + "/log"),
                               timeout=120)
            check((p.returncode, p.stdout) == (0, b"next descriptor 3\ndone\n"), p.stdout)
            log = open(at + "/log").read()
            check("COLLWATCH_RECORD" in log or "cannot be written" in log, log)
            check(os.listdir(at) == ["log"], "nothing else was written")


def test_kept_where_it_no_longer_fits():
    """The program, or a user on its behalf, lowers the limit of a file's size."""
    for blocked in False, True:
        with tempfile.TemporaryDirectory() as at:
            mask = lambda: signal.pthread_sigmask(signal.SIG_BLOCK if blocked else
                                                  signal.SIG_UNBLOCK, [signal.SIGXFSZ])
            p = start([PROGRAM, "wait"], environment(COLLWATCH_RECORD=at, COLLWATCH_LOG=at + "/log"),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=mask)
            path = os.path.join(at, "%s-%d.record" % (os.uname().nodename, p.pid))
            wait_until(lambda: os.path.exists(path) and shown(path)["calls"] == WAITS_CALLS,
                       "the copy")
            resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (65536, 65536))
            out = p.communicate(b"x", timeout=120)[0]
            check((p.returncode, out) == (0, b"next descriptor 3\ndone\n"), (p.returncode, out))
            check("cannot be written: File too large" in open(at + "/log").read(), "one line says why")
            check(shown(path)["calls"] >= WAITS_CALLS, "the last whole copy stays")
            check(not os.path.exists(path + ".tmp"), "the rest of a copy is gone")


def test_blocks_nobody_and_writes_into_nothing_else():
    """A FIFO with a reader, a link to another file, a file that is open to others: under each name
    of the copy, and in place of the folder."""
    def fifo(at, path):
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return lambda: (os.read(reader, 1), os.close(reader))[0] == b""

    def link(at, path):
        with open(at + "/other", "w") as f:
            f.write("of somebody")
        os.link(at + "/other", path)
        return lambda: open(at + "/other").read() == "of somebody"

    def lax(at, path):
        os.close(os.open(path, os.O_CREAT, 0o600))
        os.chmod(path, 0o666)
        return lambda: True

    for make, suffix in [(m, s) for m in (fifo, link, lax) for s in (".tmp", "")]:
        with tempfile.TemporaryDirectory() as at:
            # Begins when the name is taken.
            p = start(["sh", "-c", "read line; exec \"$@\"", "sh", PROGRAM, "wait"],
                      environment(COLLWATCH_RECORD=at), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            path = "%s/%s-%d.record" % (at, os.uname().nodename, p.pid)
            is_untouched = make(at, path + suffix)
            out = p.communicate(b"\nx", timeout=120)[0]
            check((p.returncode, out) == (0, b"next descriptor 3\ndone\n"), out)
            check(is_untouched(), "%s%s was written into" % (make.__name__, suffix))
            check(shown(path)["calls"] == WAITS_CALLS + 22, "the copy is there all the same")
            check(os.stat(path).st_mode & 0o777 == 0o600, "it is its owner's")
    with tempfile.TemporaryDirectory() as at:
        os.mkfifo(at + "/fifo")
        p = subprocess.run([PROGRAM, "wait"], input=b"x", stdout=subprocess.PIPE, timeout=120,
                           env=environment(COLLWATCH_RECORD=at + "/fifo", COLLWATCH_LOG=at + "/log"))
        check((p.returncode, p.stdout) == (0, b"next descriptor 3\ndone\n"), p.stdout)
        check("cannot be written: Not a directory" in open(at + "/log").read(), "one line says why")
