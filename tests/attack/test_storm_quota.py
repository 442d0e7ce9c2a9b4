# SPDX-License-Identifier: Apache-2.0
"""A few users want all places there are: of jobs that a daemon leads, of rank processes on a node,
of clients of the control socket. The daemon still watches and answers users that come late, and
reports the users with unwatched jobs and ranks. Two busy loops run beside the daemon, which has the
settings of its unit.

At full size (E2E_SCALE=1): 4 users of 256 jobs, 2 of 2,048 ranks; 7 users of 8 clients
"""
import contextlib
import os
import socket
import subprocess

import attack_lib
import pytest
from built import COLLWATCH
from crowd_lib import crowd, daemon_of_the_unit
from open_copy import open_copy
from waiting import expect as check
from waiting import wait_until

SCALE = attack_lib.scale()
JOB_USERS, JOBS = 4, attack_lib.scaled(256, SCALE)
RANK_USERS, RANK_JOBS, RANKS = 2, attack_lib.scaled(32, SCALE), 64
CLIENT_USERS, CLIENTS = 7, 8
FIRST_UID, LATE_UID = 21000, 21900
IS_FULL = SCALE >= 1
ALERT_S = 120
pytestmark = pytest.mark.root  # to be several users


def expect_alert(daemon, late):
    """The late user's hang becomes an incident."""
    wait_until(lambda: late.up() == late.n, "the late user's ranks registered")
    incident = wait_until(lambda: daemon.incident_of(late.job()), "the late user's hang is told",
                          ALERT_S)
    check(incident["uid"] == late.uid, incident)


def untracked(daemon, what):
    return {u["uid"]: u["count"] for u in daemon.status()["untracked"] if u["what"] == what}


def expect_untracked(daemon, what, uids):
    """Status and log name the users with unwatched jobs or ranks."""
    told = wait_until(lambda: untracked(daemon, what), "status tells whose have no place")
    check(set(told) <= set(uids), told)
    wait_until(lambda: any(f"of uid {u} " in daemon.log() for u in told), "the log does")
    print(f"# {what} without a place: {told}", flush=True)


def test_four_users_of_256_jobs_leave_a_fifth_watched():
    with daemon_of_the_unit() as d, contextlib.ExitStack() as stack:
        uids = range(FIRST_UID, FIRST_UID + JOB_USERS)
        for uid in uids:
            jobs = stack.enter_context(crowd(d, uid, JOBS, 1, "train"))
            wait_until(lambda: jobs.up() == jobs.n,  # pylint: disable=cell-var-from-loop
                       f"all jobs of uid {uid} registered", 180)
        late = stack.enter_context(crowd(d, LATE_UID, 1, 2, "hang"))
        expect_alert(d, late)
        if IS_FULL:
            expect_untracked(d, "jobs", uids)


def test_two_users_of_2048_ranks_leave_a_third_watched():
    with daemon_of_the_unit() as d, contextlib.ExitStack() as stack:
        uids = range(FIRST_UID, FIRST_UID + RANK_USERS)
        for uid in uids:
            stack.enter_context(crowd(d, uid, RANK_JOBS, RANKS, "train")).settle(300)
        late = stack.enter_context(crowd(d, LATE_UID, 1, 2, "hang"))
        expect_alert(d, late)
        if IS_FULL:
            expect_untracked(d, "rank_processes", uids)


def hold_clients(path, uid, ready):
    """A process that keeps as many connections as it can get, without a word."""
    pid = os.fork()
    if pid:
        return pid
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    held = []
    while True:
        while len(held) < CLIENTS:
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].connect(path)
        os.write(ready, b".")
        held[0].settimeout(1)
        for client in list(held):
            client.settimeout(0.05)
            try:
                if not client.recv(4096):
                    raise ConnectionResetError
            except TimeoutError:
                continue
            except OSError:
                client.close()
                held.remove(client)


def test_seven_users_leave_the_control_socket_to_others():
    with daemon_of_the_unit() as d:
        program = open_copy(COLLWATCH)
        ends, ready = os.pipe()
        holders = [hold_clients(d.control, FIRST_UID + i, ready) for i in range(CLIENT_USERS)]
        try:
            got = b""
            while len(got) < CLIENT_USERS:
                got += os.read(ends, 1)
            for attempt in range(10):
                done = subprocess.run([program, "status", "--control", d.control], check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      timeout=120, user=LATE_UID, group=LATE_UID, extra_groups=[])
                check("collwatchd" in done.stdout,
                      f"question {attempt} of a late user: {done.returncode} {done.stdout}")
        finally:
            for pid in holders:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            os.close(ends)
            os.close(ready)
