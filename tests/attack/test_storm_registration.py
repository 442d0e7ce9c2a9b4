# SPDX-License-Identifier: Apache-2.0
"""Storms of registrations: the ranks of many users after a restart of the daemon, and one user's
ranks beside two others that hold thousands of connections and open each anew the moment it is
closed. The ranks wait a minute after a refusal, as agents of running jobs may, so one refusal is a
failure. Two busy loops run beside the daemon, which has the settings of its unit.

At full size (E2E_SCALE=1): 64 users, 2,000 connections a flood
"""
import contextlib
import json
import os
import signal
import struct
import time

import attack_lib
import pytest
from agent_lib import start
from built_attack import STORM_AGENTS
from daemon import Daemon
from job import state_of
from waiting import expect as check
from waiting import wait_until

pytestmark = pytest.mark.root  # to be several users
SCALE = attack_lib.scale()
USERS, RANKS = attack_lib.scaled(64, SCALE, 2), 32
FLOODS, CONNECTIONS = 2, attack_lib.scaled(2000, SCALE, 4)
# A flood at the priority of the daemon: we test the daemon, not the scheduler.
NICE = attack_lib.UNIT_NICE
# Of each: with their six descriptors they fit into what tests may open.
CROWD = CONNECTIONS // 2
FIRST_UID, FLOOD_UID, VICTIM_UID = 24000, 25000, 25900
BACK_S, VICTIM_S, CROWD_S, LOOP_S = (attack_lib.time_limit(s, SCALE) for s in (10, 5, 60, 0.1))
SLOT = struct.Struct("=4IqQ")  # struct slot of storm_agents.c
# No rank computes and no rank waits: no job is in trouble.
CONFIG = 'first_op_after = "1h"\nno_progress_after = "1h"\n'


class Party:
    """A run of storm_agents, and the state it reports."""

    def __init__(self, daemon, name, kind, *numbers):
        self.path = f"{daemon.dir}/{name}.state"
        self.process = start([STORM_AGENTS, kind, daemon.path, self.path, *map(str, numbers)],
                             dict(os.environ), cwd="/",
                             preexec_fn=(lambda: os.nice(NICE)) if kind == "flood" else None)

    def slots(self):
        try:
            with open(self.path, "rb") as f:
                data = f.read()
        except FileNotFoundError:
            return []
        return [SLOT.unpack_from(data, at) for at in range(0, len(data), SLOT.size)]

    def up(self):
        return sum(s[0] for s in self.slots())

    def refused(self):
        return sum(s[1] for s in self.slots())

    def deferred(self):
        return sum(s[2] for s in self.slots())

    def opened(self):
        return sum(s[5] for s in self.slots())

    def last_up(self):
        """Seconds on time.monotonic()."""
        return max(s[4] for s in self.slots()) / 1e9

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def party(*args):
    it = Party(*args)
    try:
        yield it
    finally:
        it.kill()


@contextlib.contextmanager
def daemon_of_the_unit():
    with Daemon(patience=CONFIG) as d:
        yield d


def start_daemon(d):
    d.start(preexec=attack_lib.unit_settings)


def loop_s(d):
    return d.status()["loop_max_s"]


def all_up(it, n, since, limit, d, share):
    """Whether the last rank was welcome in time; on a shared machine, in that share of the time.
    Waits beyond the limit, so that a failure states the excess."""
    try:
        wait_until(lambda: it.up() == n, "all ranks registered", 180)
    except AssertionError:
        raise AssertionError("only %d of %d ranks registered, %d refused, %d deferred; agents: %s" % (
            it.up(), n, it.refused(), it.deferred(),
            json.dumps(d.status().get("agents")))) from None
    took, of_machine = it.last_up() - since, share.now()
    print("# %d ranks registered after %.1f s of %.0f %% of the machine; %d refused, "
          "%d tries without an answer" % (
              n, took, 100 * of_machine, it.refused(), it.deferred()), flush=True)
    check(it.refused() == 0, "%d ranks were refused" % it.refused())
    check(took * of_machine <= limit, "it took %.1f s of %.0f %% of the machine, not %d" % (
        took, 100 * of_machine, limit))


def check_loop(d):
    held = loop_s(d)
    print("# loop held up for %.0f ms at most; agents: %s" % (
        1000 * held, json.dumps(d.status()["agents"])), flush=True)
    check(held <= LOOP_S, "the loop was held for %.0f ms" % (1000 * held))


def children(pid):
    """Those it has now."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(child) for child in f.read().split()]


def is_zombie(pid):
    try:
        return state_of(pid) in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def keeper(d):
    """The daemon's only child, which keeps a fork server. Its name appears some milliseconds later
    than the child; a killed one is reaped later."""
    def named():
        pids = [pid for pid in children(d.process.pid) if not is_zombie(pid)]
        check(len(pids) <= 1, f"children {pids} of the daemon")
        for pid in pids:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read() != "collwatchd-fork\n":
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                check(f.read() == b"collwatchd\0--fork-server\0", "it was executed")
            return pid
        return None
    return wait_until(named, "a keeper of the fork server")


def fork_server(d):
    """The only child of its keeper."""
    def living():
        return [pid for pid in children(keeper(d)) if not is_zombie(pid)]
    return wait_until(living, "a fork server")[0]


def test_the_daemon_itself_forks_for_no_registration():
    """It would wait for the kernel to copy its page tables, which are large where it leads."""
    with daemon_of_the_unit() as d:
        start_daemon(d)
        child = keeper(d)
        with party(d, "flood", "flood", FLOOD_UID, 40), \
             party(d, "ranks", "ranks", FIRST_UID, 2, RANKS) as ranks:
            def registered():
                check(children(d.process.pid) == [child],
                      f"{children(d.process.pid)} are children of the daemon, not {child} alone")
                return ranks.up() == 2 * RANKS
            wait_until(registered, "all ranks registered", 60)


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSTOP])
def test_ranks_register_though_the_fork_server_is_lost(sig):
    with daemon_of_the_unit() as d:
        start_daemon(d)
        with party(d, "first", "ranks", FIRST_UID, 1, RANKS) as first:
            wait_until(lambda: first.up() == RANKS, "all ranks registered", 60)
            server = fork_server(d)
            os.kill(server, sig)
            with party(d, "ranks", "ranks", FIRST_UID + 1, 2, RANKS) as ranks:
                wait_until(lambda: ranks.up() == 2 * RANKS, "all ranks registered", 60)
                check(ranks.refused() == 0, "%d ranks were refused" % ranks.refused())
                check(fork_server(d) != server, "a new one")


def test_all_users_are_back_after_a_restart():
    with daemon_of_the_unit() as d:
        start_daemon(d)
        with party(d, "ranks", "ranks", FIRST_UID, USERS, RANKS) as ranks:
            wait_until(lambda: ranks.up() == USERS * RANKS, "all ranks registered", 180)
            with attack_lib.busy():
                d.stop()
                before = ranks.refused()
                check(before == 0, "%d ranks were refused at their start" % before)
                began, share = time.monotonic(), attack_lib.Share()
                start_daemon(d)
                all_up(ranks, USERS * RANKS, began, BACK_S, d, share)
                check_loop(d)


@contextlib.contextmanager
def floods(d):
    with contextlib.ExitStack() as stack:
        them = [stack.enter_context(party(d, f"flood{i}", "flood", FLOOD_UID + i, CONNECTIONS))
                for i in range(FLOODS)]
        wait_until(lambda: all(f.opened() >= 2 * CONNECTIONS for f in them), "a flood")
        yield them
        print("# the floods opened %d connections" % sum(f.opened() for f in them))


def test_a_victim_registers_beside_a_flood():
    with daemon_of_the_unit() as d, attack_lib.busy():
        start_daemon(d)
        with floods(d):
            began, share = time.monotonic(), attack_lib.Share()
            with party(d, "victim", "ranks", VICTIM_UID, 1, RANKS) as victim:
                all_up(victim, RANKS, began, VICTIM_S, d, share)
                check_loop(d)


def test_a_victim_is_back_after_a_restart_beside_a_flood():
    with daemon_of_the_unit() as d, attack_lib.busy():
        start_daemon(d)
        with party(d, "victim", "ranks", VICTIM_UID, 1, RANKS) as victim:
            wait_until(lambda: victim.up() == RANKS, "all ranks registered")
            with floods(d):
                d.stop()
                began, share = time.monotonic(), attack_lib.Share()
                start_daemon(d)
                all_up(victim, RANKS, began, VICTIM_S, d, share)
                check_loop(d)


def test_a_victim_registers_beside_two_crowds():
    """Thousands of processes, each of them in order: they wait in line before it."""
    with daemon_of_the_unit() as d, attack_lib.busy(), contextlib.ExitStack() as stack:
        start_daemon(d)
        crowds = [stack.enter_context(party(d, f"crowd{i}", "ranks", FLOOD_UID + i, 1, CROWD))
                  for i in range(FLOODS)]
        wait_until(lambda: all(c.up() > CROWD // 10 for c in crowds), "a crowd")
        began, share = time.monotonic(), attack_lib.Share()
        with party(d, "victim", "ranks", VICTIM_UID, 1, RANKS) as victim:
            all_up(victim, RANKS, began, VICTIM_S, d, share)
            print("# of the crowds, %d of %d were registered by then" % (
                sum(c.up() for c in crowds), FLOODS * CROWD))
            for crowd in crowds:
                all_up(crowd, CROWD, began, CROWD_S, d, share)
            check_loop(d)
