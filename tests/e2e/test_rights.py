# SPDX-License-Identifier: Apache-2.0
"""The daemon's loop has no capability while it serves. Root's daemon does all that needs a right,
for a job of another user, by children that have the right."""
import os
import signal
import sys

import pytest
from built import TRAIN_LOOP_PY
from waiting import expect, wait_until

USER = 12345
SETS = "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"
BLOCKED = ["--steps", "0", "--step-ms", "20", "--log-every", "0", "--fault", "block-in-data-loader", "--fault-rank", "1",
           "--fault-step", "30"]


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def keeper_of(daemon):
    pid, = children_of(daemon.process.pid)
    return pid


def server_of(daemon):
    pid, = wait_until(lambda: children_of(keeper_of(daemon)), "a fork server")
    return pid


def reader_of(daemon):
    """The only child of the fork server that stays."""
    return wait_until(lambda: [pid for pid in children_of(server_of(daemon))
                               if int(status_of(pid)["CapEff"], 16)], "a reader of /proc")[0]


def check_loop(daemon):
    fields = status_of(daemon.process.pid)
    for name in SETS:
        expect(int(fields[name], 16) == 0, f"{name} of the loop: {fields[name]}")
    expect(fields["NoNewPrivs"] == "1", "the loop could gain rights by execve()")


def stuck_job(daemon, job, name):
    """Of another user. Its second rank never enters the collective."""
    daemon.wait_for(job(name, 2, BLOCKED, program=[sys.executable, TRAIN_LOOP_PY], user=USER))
    return wait_until(lambda: daemon.incident_of(name), lambda: f"the incident: {daemon.log()}", 120)


def check_evidence(doc):
    """Root cannot read this of another user's process without capabilities."""
    culprit = next(c for c in doc["culprits"] if c["rank"] == 1)
    expect(culprit["sits_in"].startswith("read_sample (train_loop.py:"), doc)


@pytest.mark.root
def test_loop_without_rights_takes_stacks_and_posts_alerts(daemon, job, receiver):
    receiver.listen()
    daemon.configure(f'webhook_url = "{receiver.url}"')
    daemon.start()
    check_loop(daemon)
    expect(int(status_of(server_of(daemon))["CapEff"], 16) != 0, "the fork server has kept its rights")
    doc = stuck_job(daemon, job, "stuck")
    check_evidence(doc)
    wait_until(lambda: receiver.posts, "the alert")
    check_loop(daemon)
    daemon.stop()


@pytest.mark.root
@pytest.mark.bpf
def test_loop_without_rights_has_the_kernels_facts(daemon, job):
    daemon.start()
    notes = [n for n in daemon.notes() if "no BPF facts" in n]
    if notes:
        pytest.skip(notes[0])
    killed = daemon.wait_for(job("killed", 2, ["--steps", "0", "--step-ms", "20", "--log-every", "0"], user=USER))
    os.kill(killed.ranks[1].pid, signal.SIGKILL)
    killed.ranks[1].wait(120)
    doc = wait_until(lambda: daemon.incident_of("killed"), "the incident", 120)
    expect(f"(pid {os.getpid()}, root)" in doc["summary"], doc["summary"])
    check_loop(daemon)
    daemon.stop()


@pytest.mark.root
def test_lost_reader_of_proc_is_replaced(daemon, job):
    daemon.start()
    old = reader_of(daemon)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: reader_of(daemon) != old, "another reader")
    doc = stuck_job(daemon, job, "after")
    check_evidence(doc)
    check_loop(daemon)
    daemon.stop()


@pytest.mark.root
def test_stopped_reader_of_proc_holds_up_no_loop(daemon, job):
    daemon.start()
    old = reader_of(daemon)
    os.kill(old, signal.SIGSTOP)
    doc = stuck_job(daemon, job, "meanwhile")
    wait_until(lambda: reader_of(daemon) != old, "it was killed, and another one started")
    check_evidence(doc)
    expect(daemon.status()["loop_max_s"] < 0.5, daemon.status()["loop_max_s"])
    daemon.stop()


@pytest.mark.root
def test_lost_fork_server_comes_back_with_its_rights(daemon, job):
    daemon.start()
    old = server_of(daemon)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: children_of(keeper_of(daemon)) not in ([], [old]), "another fork server")
    doc = stuck_job(daemon, job, "again")
    check_evidence(doc)
    daemon.stop()


@pytest.mark.root
def test_daemon_that_lost_its_rights_ends_and_says_so(daemon):
    daemon.start()
    os.kill(keeper_of(daemon), signal.SIGKILL)
    expect(daemon.process.wait(60) == 4, daemon.process.returncode)
    daemon.process = None
    expect("the fork server is lost" in daemon.log(), daemon.log())
