# SPDX-License-Identifier: Apache-2.0
"""Deaths of ranks, and the report on each: one daemon, a job of two ranks for each way to die, all
at once. With the kernel's facts (BPF) and without.

--slow: also deaths that come with the launcher's. The job is over as a rule, so its alert comes
after two minutes: meson test -C build -v -t 4 deaths --test-args=--slow
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from agent_lib import has_kernels
from built import COLLWATCH, TRAIN_LOOP, TRAIN_LOOP_PY
from daemon import Daemon
from documents_contract import deviations as deviations_of_any
from incident_contract import deviations
from waiting import expect, wait_until

DYING_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/dying_rank.py")
LIBC = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 24, 21, 38, 39
KILLER_UID = 4321
OOM_BYTES = 128 << 20
NO_BPF = "no BPF facts about the ends of ranks: "


# The parent of a rank, as launchers do it: the kernel ends the rank with it.
LAUNCHER = """
import ctypes, os, signal, sys
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.execv(sys.argv[1], sys.argv[1:])
os.wait()
"""
LAUNCHED = [sys.executable, "-c", LAUNCHER]
LAUNCHERS = {"parent": LAUNCHED, "pid-1": ["unshare", "--pid", "--fork", *LAUNCHED]}


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return int(f.read().split()[0])


def without_bpf():
    for capability in CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN:
        expect(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0, "prctl")


def kill_from(name, uid, pid):
    """A process of that name and user sends SIGKILL. Returns its pid."""
    killer = os.fork()
    if killer == 0:
        try:
            with open("/proc/self/comm", "w") as f:
                f.write(name)
            os.setresuid(uid, 0, 0)
            os.kill(pid, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)
    return killer


class MemoryGroup:
    """A control group in a mount of its own: nothing is presumed about those of the machine."""

    def __init__(self):
        self.mount = tempfile.mkdtemp(prefix="cw-group-")
        self.dir = os.path.join(self.mount, "cw-test-%d" % os.getpid())
        at, limit = self.mount.encode(), None
        if LIBC.mount(b"cgroup", at, b"cgroup", 0, b"memory") == 0:
            limit = "memory.limit_in_bytes"
        elif LIBC.mount(b"cgroup2", at, b"cgroup2", 0, None) == 0:
            limit = "memory.max"
        try:
            os.mkdir(self.dir)
            self.write(limit, OOM_BYTES)
        except (OSError, TypeError):
            self.close()
            pytest.skip("no memory control group can be made here")

    def write(self, name, value):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(str(value))

    def close(self):
        if os.path.isdir(self.dir):
            os.rmdir(self.dir)
        LIBC.umount2(self.mount.encode(), 2)
        os.rmdir(self.mount)


def start_jobs(daemon, names):
    """Of two ranks each; number 1 will die."""
    for name in names:
        dying = [*LAUNCHERS.get(name, []), sys.executable, DYING_RANK, TRAIN_LOOP_PY]
        daemon.train(name, 2, program=[[TRAIN_LOOP], dying].__getitem__, stdin=subprocess.PIPE)
    daemon.wait_for_all()


KILLERS = {"stranger": ("python3", KILLER_UID), "job-manager": ("slurmstepd", 0)}

# A death of a rank, also by its own thread, finds it between two calls or in one.
WHERE = "(before it could (enter|finish)|inside)"
KILLED = "(was (killed by SIGKILL|OOM-killed)|ended) " + WHERE
# the summary's words on rank 1, with BPF and without: then it has the cause (from Linux 6.15 on),
# but not the killer
SAYS = {
    "exit-0": ("exited with status 0 " + WHERE, "(exited with status 0|ended) " + WHERE),
    "exit-1": ("exited with status 1 " + WHERE, "(exited with status 1|ended) " + WHERE),
    "segfault": ("was killed by SIGSEGV from the kernel " + WHERE,
                 "(was killed by SIGSEGV|ended) " + WHERE),
    "abort": (r"killed itself \(SIGABRT sent by its own pid\) " + WHERE,
              "(was killed by SIGABRT|ended) " + WHERE),
    "stranger": (r"was killed by SIGKILL sent by python3 \(pid {killer}, uid 4321\) " + WHERE,
                 KILLED),
    "job-manager": (r"was killed by SIGKILL sent by slurmstepd \(pid {killer}, root\) " + WHERE,
                    KILLED),
    "take-memory": (r"was OOM-killed \(cgroup limit of 128 MiB reached, \d+ MiB resident\) " + WHERE,
                    KILLED),
    "parent": (r"was killed by SIGKILL as its parent or session leader ended: "
               r"python3?[0-9.]* \(pid {killer}, root\) " + WHERE, KILLED),
    "pid-1": (r"was killed by SIGKILL as pid 1 of its container ended: "
              r"python3?[0-9.]* \(pid {killer}, root\) " + WHERE, KILLED),
}
# and the culprit's reason without: how, but not who
REASON = {"exit-0": "exited with status 0", "exit-1": "exited with status 1",
          "segfault": "killed by SIGSEGV", "abort": "killed by SIGABRT"}


def die(jobs, group):
    """Returns the killer of each job's rank, where another process killed it."""
    killers = {}
    for job in jobs:
        name, pid = job.name, job.ranks[1].pid
        if name in KILLERS:
            killers[name] = kill_from(*KILLERS[name], pid)
            continue
        if name in LAUNCHERS:
            killers[name] = pid if name == "parent" else child_of(pid)
            os.kill(killers[name], signal.SIGKILL)
            continue
        if name == "take-memory":
            group.write("cgroup.procs", pid)
        job.write_line(1, name)
    for job in jobs:
        job.ranks[1].wait(120)  # as a launcher does: now only the kernel's notes tell
    return killers


def check_table(names, with_bpf):
    with contextlib.ExitStack() as stack:
        group = MemoryGroup() if "take-memory" in names else None
        if group:
            stack.callback(group.close)
        # No other patience runs out: each incident is a death's.
        daemon = stack.enter_context(Daemon(patience=""))
        daemon.start(preexec=None if with_bpf else without_bpf)
        notes = [n for n in daemon.notes() if n.startswith(NO_BPF)]
        if with_bpf and notes:
            pytest.skip(notes[0])
        expect(with_bpf or len(notes) == 1, "a note says what is not seen: %r" % notes)
        start_jobs(daemon, names)
        killers = die(daemon.jobs, group)
        incidents = lambda: {d["job"].split(":")[-1]: d for d in daemon.documents()}
        wait_until(lambda: set(incidents()) == set(names), "an incident for each", 180)
        for name, doc in incidents().items():
            print("# %s, %s BPF: %s" % (name, "with" if with_bpf else "without", doc["summary"]))
            check_incident(name, doc, killers.get(name, 0), with_bpf)


def check_incident(name, doc, killer, with_bpf):
    what = "%s: %s" % (name, json.dumps([doc["summary"], doc["culprits"]]))
    culprit = doc["culprits"][0]
    expect(doc["class"] == "process_dead" and culprit["rank"] == 1, what)
    says = SAYS[name][0 if with_bpf else 1].format(killer=killer)
    expect(re.match(r"rank 1 \(node-a, pid %d\) %s " % (culprit["pid"], says), doc["summary"]),
           what)
    if not with_bpf:
        expect(culprit["reason"].startswith((REASON.get(name, "killed"), "OOM-killed",
                                              "its process has ended")),
               what)


BY_THEMSELVES = [name for name in SAYS if name not in LAUNCHERS]


@pytest.mark.root
@pytest.mark.bpf
def test_table_of_deaths():
    check_table(BY_THEMSELVES, True)


@pytest.mark.root
def test_table_of_deaths_without_bpf():
    check_table(BY_THEMSELVES, False)


@pytest.mark.root
@pytest.mark.bpf
@pytest.mark.slow
def test_deaths_with_the_launcher():
    check_table(list(LAUNCHERS), True)


@pytest.mark.root
@pytest.mark.slow
def test_deaths_with_the_launcher_without_bpf():
    check_table(list(LAUNCHERS), False)


def test_nan_fed_before_is_in_the_report(daemon, job):
    """Rank 1 feeds NaN from step 3 on and is killed for it: its record has its input."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    daemon.start()
    nan = job("nan", 2, ["--steps", "0", "--step-ms", "20", "--log-every", "0", "--fault", "feed-nan",
                         "--fault-rank", "1", "--fault-step", "3"],
              program=[sys.executable, TRAIN_LOOP_PY], variables={"COLLWATCH_SUMMARY": "full"})
    daemon.wait_for(nan)
    wait_until(lambda: daemon.status()["tensors"], "its daemon has seen it")
    nan.kill(1)
    doc = wait_until(lambda: daemon.incident_of("nan"), "the incident")
    nonfinite, = doc["nonfinite_inputs"]
    text = "rank 1 fed 1 NaN and 0 Inf among 256 fp32 into all_reduce #"
    expect(nonfinite["rank"] == 1 and nonfinite["host"] == "node-a" and nonfinite["text"].startswith(text), str(doc))
    expect(nonfinite["noticed"] <= doc["times"]["confirmed"], str(doc))
    said = " ".join(daemon.said("report", doc["id"]).split())
    expect(re.search(text + r"\d+ on \S+, \d[\w. ]* before the incident was confirmed", said), said)


def numbers_of(what):
    """The text of `numerics`, without the source of its data."""
    done = subprocess.run([COLLWATCH, "numerics", "--json", what], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    expect(done.stdout, done)
    doc = json.loads(done.stdout)
    for rank in doc["ranks"]:
        del rank["record"]
    doc["ranks"].sort(key=lambda rank: rank["rank"])
    return doc


def test_numbers_of_a_bundle_are_those_of_the_job(daemon, job):
    """Rank 1 feeds NaN and is stopped: nothing moves on, so that we can query both."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    daemon.start()
    label = f"numbers-{os.getpid()}"
    stopped = job(label, 2, ["--steps", "0", "--step-ms", "20", "--log-every", "0", "--fault", "feed-nan",
                             "--fault-rank", "1", "--fault-step", "3"],
                  program=[sys.executable, TRAIN_LOOP_PY], variables={"COLLWATCH_SUMMARY": "full"})
    daemon.wait_for(stopped)
    wait_until(lambda: daemon.status()["tensors"], "its daemon has seen it")
    stopped.ranks[1].send_signal(signal.SIGSTOP)
    doc = wait_until(lambda: daemon.incident_of(label), "the incident", 180)
    bundle = daemon.bundles()[doc["id"]]
    ops, kept = daemon.document(doc["id"], "ops"), daemon.document(doc["id"], "summaries")
    found = deviations_of_any(ops) + deviations_of_any(kept)
    expect(not found, found)
    expect({row["job"] for row in ops["rows"]} == {doc["job"]} and ops["rows"][0]["processes"] == 2, ops)
    expect(len(kept["samples"]) > 100 and kept["ranks_omitted"] == 0, kept)
    living = numbers_of(label)
    expect([first["rank"] for first in living["firsts"]] == [1], living)
    for rank in stopped.ranks:
        rank.kill()
        rank.wait(120)
    dead = numbers_of(bundle)
    expect(dead == living, f"{dead} of the bundle, {living} of the job")
    # Bundles are written again as more is learnt, and when the job ends: these stay as they were.
    wait_until(lambda: "ends" in daemon.document(doc["id"]) or daemon.document(doc["id"])["times"].get("resolved"),
               "the bundle is written again", 180)
    expect(daemon.document(doc["id"], "summaries") == kept, "the same summaries")
    copy = daemon.dir + "/copy"
    daemon.said("report", doc["id"], "--copy", copy, "--anonymise")
    expect(numbers_of(copy)["firsts"][0]["rank"] == 1, "of a copy without names")


def test_failed_job_leaves_a_postmortem(daemon, job):
    """Rank 1 crashes, and the launcher ends the other: no alert is due."""
    daemon.start()
    cascade = daemon.wait_for(job("cascade", 2, ["--steps", "0", "--step-ms", "20", "--log-every", "0"]))
    for rank, signal_number in (1, signal.SIGSEGV), (0, signal.SIGTERM):
        cascade.ranks[rank].send_signal(signal_number)
        cascade.ranks[rank].wait(120)
    doc, = wait_until(lambda: daemon.postmortems(), "the post-mortem", 180)
    expect(not deviations(doc), f"{deviations(doc)} in {doc}")
    expect(doc["severity"] == "failed" and doc["class"] == "process_dead", str(doc))
    expect([c["rank"] for c in doc["culprits"]] == [1] and len(doc["ends"]) == 2, str(doc))
    said = " ".join(daemon.said("report", doc["id"]).split())
    expect("rank 1 on node-a" in said and "How they ended" in said, said)
    page = daemon.said("report", doc["id"], "--html")
    expect("<html" in page and "How they ended" in page, page)
