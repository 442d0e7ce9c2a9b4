# SPDX-License-Identifier: Apache-2.0
"""A process with the agent in it behaves like one without."""
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from agent_lib import *
from built import PROGRAM, SECOND, SECOND_HOOK

# Libraries that the agent itself links to; on glibc 2.34 and newer the last two are empty shells.
OWN = re.compile(r"/(libcollwatch\.so|libc\.so\.6|libdl\.so\.2|libpthread\.so\.0)$")

# Pipes do not count, nor what is closed meanwhile: shell and git have some open for a moment.
LOOK = ("n=0; for f in /proc/%s/fd/*; do case $(readlink $f) in pipe:*|'') ;; *) n=$((n+1)) ;; "
        "esac; done; echo $n; set -- /proc/%s/task/*; echo $#; cat /proc/%s/maps")


def output(argv, preload, daemon=None, data=b"", **extra):
    p = subprocess.run(argv, env=environment(daemon, preload=preload, **extra), input=data,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return p.returncode, p.stdout.decode(errors="replace")


def shape(text):
    """Descriptors, threads, and mappings: files, and kinds of anonymous memory."""
    lines = text.splitlines()
    mapped = set()
    for line in lines[2:]:
        parts = line.split(None, 5)
        path = parts[5] if len(parts) > 5 else ""
        if not OWN.search(path):
            mapped.add(path)
    return lines[0], lines[1], sorted(mapped)


def same_in_proc(argv):
    with_agent, without = output(argv, AGENT), output(argv, None)
    check(with_agent[0] == without[0] == 0, "exit status %r" % (with_agent,))
    check("libcollwatch.so" in with_agent[1], "the agent is loaded")
    check("libcollwatch.so" not in without[1], "and it is not")
    check(shape(with_agent[1]) == shape(without[1]),
          "%r\n%r" % (shape(with_agent[1]), shape(without[1])))
    check("collwatch-record" not in with_agent[1], "no record")


def test_bash_is_the_same():
    same_in_proc(["bash", "-c", "%s; :" % LOOK.replace("%s", "$$")])


def test_git_is_the_same():
    same_in_proc(["git", "-c", "alias.look=!%s; :" % LOOK.replace("%s", "$PPID"), "look"])


def test_python_is_the_same():
    same_in_proc([sys.executable, "-c", """
import os
print(len(os.listdir("/proc/self/fd")))
print(len(os.listdir("/proc/self/task")))
print(open("/proc/self/maps").read())"""])


def test_nccl_is_absent_where_it_is_absent():
    code, text = output([sys.executable, "-c", """
import ctypes
print(hasattr(ctypes.CDLL(None), "ncclAllReduce"), hasattr(ctypes.CDLL(None), "printf"))"""], AGENT)
    check(text == "False True\n", text)


def test_functions_nccl_lacks_are_absent():
    """The simulator has no ncclTeamWorld; the agent exports one."""
    code, text = output([sys.executable, "-c", """
import ctypes
lib = ctypes.CDLL("libnccl.so.2")
print(hasattr(lib, "ncclAllReduce"), hasattr(lib, "ncclTeamWorld"), hasattr(lib, "ncclNothing"))"""],
                        AGENT)
    check(text == "True False False\n", text)


def test_copies_of_nccl_stay_apart():
    """Each handle's functions end in its own copy; more copies than wrapper sets go unrecorded."""
    with StandIn() as d:
        code, text = output([sys.executable, "-c", """
import ctypes, os, shutil, sys
address = lambda f: ctypes.cast(f, ctypes.c_void_p).value
seen, version = set(), ctypes.c_int()
for i in range(6):
    os.mkdir(os.path.join(sys.argv[1], str(i)))
    path = os.path.join(sys.argv[1], str(i), "libnccl.so.2")
    shutil.copy(os.path.join(sys.argv[2], "libnccl.so.2"), path)
    lib = ctypes.CDLL(path)
    assert lib.ncclGetVersion(ctypes.byref(version)) == 0 and version.value == 22809
    seen.add(address(lib.ncclAllReduce))
    assert address(lib.ncclAllReduce) == address(ctypes.CDLL(path).ncclAllReduce)
    raw = address(lib.ncclAllReduce) == address(lib.pncclAllReduce)
    print(i, "raw" if raw else "wrapped")
print(len(seen))""", d.dir, SIM_DIR], AGENT)
        check(code == 0, text)
        lines = text.split("\n")
        check(lines[0] == "0 wrapped" and lines[5] == "5 raw" and lines[6] == "6", text)


def same_output(mode, data=b"x", **extra):
    with StandIn() as d:
        reference = output([PROGRAM, mode], None, data=data)
        check(reference[0] == 0, "without the agent: %r" % (reference,))
        for how in ([], ["dlopen"]):
            got = output([PROGRAM, mode, *how], AGENT, d, data, **extra)
            check(got == reference, "%r is not %r" % (got, reference))


def test_forks_and_execs():
    same_output("fork")


def test_closes_every_descriptor():
    same_output("closefrom")


def test_has_few_descriptors():
    same_output("limits")


def test_may_not_make_memfds():
    same_output("seccomp")


def test_may_write_no_large_files():
    """Neither the flight record nor another line of the log fits."""
    with tempfile.TemporaryDirectory() as at:
        log = os.path.join(at, "log")
        with open(log, "wb") as f:
            f.truncate(1 << 17)
        same_output("file-size", COLLWATCH_LOG=log)
        check(os.path.getsize(log) == 1 << 17, "the log did not grow")


def test_keeps_signals_locale_and_errno():
    same_output("state")


SWEEP = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[1])
import agent_rank

class Bytes(ctypes.Structure):
    _fields_ = [("ints", ctypes.c_int * 3)]

BY_VALUE = {"ncclUniqueId": agent_rank.UniqueId, "ncclTeam_t": Bytes, "size_t": ctypes.c_size_t,
            "uint64_t": ctypes.c_uint64}
lib = ctypes.CDLL("libnccl.so.2", use_errno=True)
rank = agent_rank.Rank("cdll")
handles = {"none": None, "real": rank.comm}

def nothing(kind, comm):
    if kind == "ncclComm_t":
        return comm
    if "*" in kind or kind.endswith("_t") and kind not in BY_VALUE and kind not in ENUMS:
        return None
    return BY_VALUE.get(kind, ctypes.c_int)()

ENUMS = ("ncclDataType_t", "ncclRedOp_t", "ncclResult_t")
for name, kinds in json.load(sys.stdin):
    f = getattr(lib, name, None)
    if not f:
        print(name, "is absent")
        continue
    for which, comm in handles.items():
        ctypes.set_errno(17)
        print(name, which, f(*[nothing(k, comm) for k in kinds]) & 0xff, ctypes.get_errno(), flush=True)
"""
# They end the communicator, or open a group that is never closed.
NOT_SWEPT = {"ncclGroupStart", "ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize",
             "ncclCommRevoke"}


def test_every_call_answers_as_ever():
    """Without arguments, with a communicator and with none: result and errno of each function."""
    from test_agent_table import table
    rows = [(name, kinds) for name, (result, kinds, _) in table().items()
            if name not in NOT_SWEPT and result == "ncclResult_t"]
    argv = [sys.executable, "-c", SWEEP, os.path.dirname(os.path.abspath(__file__))]
    expected, got = (output(argv, preload, data=json.dumps(rows).encode())
                     for preload in (None, AGENT))
    check(expected[0] == 0 and expected[1].count("\n") > len(rows), "without the agent: %r" % (expected,))
    odd = [pair for pair in zip(expected[1].split("\n"), got[1].split("\n")) if pair[0] != pair[1]]
    check(got == expected, "without and with the agent: %r" % odd[:4])


def test_a_child_does_not_touch_its_parents_record():
    with tempfile.TemporaryDirectory() as at:
        p = start([PROGRAM, "fork"], environment(COLLWATCH_RECORD=at), stdout=subprocess.DEVNULL)
        check(p.wait(120) == 0, "exit status")
        r, = copies(at)  # the children leave none
        check(r.pid == p.pid, "the parent's")
        # init, then (20 + 2) + (20 + 2) ops of the parent
        check(r.ops_total == 45, "ops %d" % r.ops_total)
        check(all(o.tid == r.pid for o in r.ring()), "all by the parent")


def test_log_goes_to_its_file_only():
    with StandIn() as d:
        path = os.path.join(d.dir, "log")
        got = output([PROGRAM, "seccomp"], AGENT, d, COLLWATCH_LOG=path)
        check(got[0] == 0 and got[1].endswith("done\n"), repr(got))
        check("no flight record" in open(path).read(), "one line says why")


def test_a_pipe_as_log_holds_nobody_up():
    """A FIFO without a reader, and a full one."""
    for is_full in False, True:
        with StandIn() as d:
            path = os.path.join(d.dir, "log")
            os.mkfifo(path)
            fds = []
            if is_full:
                fds = [os.open(path, os.O_RDONLY | os.O_NONBLOCK),
                       os.open(path, os.O_WRONLY | os.O_NONBLOCK)]
                fcntl.fcntl(fds[1], fcntl.F_SETPIPE_SZ, 4096)
                os.write(fds[1], bytes(4096))
            try:
                same_output("seccomp", COLLWATCH_LOG=path)
            finally:
                for fd in fds:
                    os.close(fd)


def test_log_writes_into_nobody_elses_file():
    """Another user may leave links in a directory that both may write."""
    with StandIn() as d:
        path, other = d.dir + "/log", d.dir + "/other"
        for lay in os.symlink, os.link:
            with open(other, "w", encoding="ascii") as f:
                f.write("mine\n")
            lay(other, path)
            same_output("seccomp", COLLWATCH_LOG=path)
            check(open(other).read() == "mine\n", "%s leads to a file that grew" % lay.__name__)
            os.unlink(path)
        os.unlink(other)
        os.symlink(other, path)
        same_output("seccomp", COLLWATCH_LOG=path)
        check(not os.path.exists(other), "a link that leads nowhere makes no file")
        os.unlink(path)
        if os.geteuid() == 0:
            with open(path, "w", encoding="ascii"):
                os.chown(path, 65534, 65534)
            same_output("seccomp", COLLWATCH_LOG=path)
            check(os.path.getsize(path) == 0, "another user's file grew")


def test_log_can_be_stderr():
    with StandIn() as d:
        p = subprocess.run([PROGRAM, "seccomp"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=environment(d, COLLWATCH_LOG="/dev/stderr"), timeout=120)
        check(p.returncode == 0 and b"no flight record" in p.stderr, repr(p))


def test_other_preloads_keep_their_place():
    code = "import os; print(os.getppid() > 1000000)"
    for preload in (AGENT + ":" + SECOND, SECOND + ":" + AGENT, AGENT + ":" + SECOND_HOOK,
                    SECOND_HOOK + ":" + AGENT):
        got = output([sys.executable, "-c", code], preload)
        check(got == (0, "True\n"), "%s: %r" % (preload, got))
        got = output([PROGRAM, "wait", "dlopen"], preload, data=b"x")
        check(got[0] == 0 and got[1].endswith("done\n"), "%s: %r" % (preload, got))
