# SPDX-License-Identifier: Apache-2.0
"""One user gives a hang of hers the id of another user's, as far as she can choose an id. The
other's alert goes out all the same, and the bundle stays as it was. Two real users, a real daemon,
a real training job; the attacker knows everything about it."""
import contextlib
import json
import os
import re
import subprocess

import pytest
from agent_lib import environment, start
from built import AGENT
from built_attack import FORGED_HANG
from daemon import Daemon
from job import FOREVER
from open_copy import directory, open_copy
from receiver import Receiver
from waiting import expect, wait_until

VICTIM, ATTACKER = 23100, 23101
FAULT = ["--fault", "block-in-data-loader", "--fault-rank", "1", "--fault-step", "40"]
pytestmark = pytest.mark.root  # to be two users
MASK = (1 << 64) - 1
INIT = 0x636F6C6C77617463
# Patience of a hang that is none by proof; the attacker's is proved within 3 s.
STALL_MIN_S, DEADLINE_S = 20, 120


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def chain(h, *values):
    for value in values:
        h = mix(h ^ mix(value))
    return h


def chosen_id(uid, label, comm_id, seq, start_ticks):
    """The id of a collective with a waiting rank as 64 bits of a chain: an attacker can choose it."""
    job_hash = chain(chain(INIT, uid), *label.encode())
    key = chain(INIT, comm_id, 0, seq, 1)
    return f"{chain(INIT, job_hash or 1, key or 1, start_ticks):016x}"


def start_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rsplit(")", 1)[1].split()[19])


class Attacked(Daemon):
    def __init__(self, receiver, text=""):
        super().__init__(f'webhook_url = "{receiver.url}"\nstall_min = "{STALL_MIN_S}s"\n'
                         f'sample_interval = "100ms"\n{text}')

    def victim(self):
        return self.train("train", 2, [*FOREVER, *FAULT], user=VICTIM)

    def where_it_hangs(self, job):
        """The chosen id of the victim's hang, before there is an incident of it."""
        hang = wait_until(lambda: re.search(r"#(\d+) on (\w+)",
                                            (self.job("train") or {"summary": ""})["summary"]),
                          f"a wait in {self.status()}")
        rows = json.loads(self.ask("status", "--ops", "--json").stdout)["rows"]
        comm = next(r["comm"] for r in rows if r["comm_name"] == hang.group(2))
        return chosen_id(VICTIM, self.job("train")["job"], int(comm, 16), int(hang.group(1)),
                         start_ticks(job.ranks[0].pid))

    @contextlib.contextmanager
    def attack(self, wanted_id):
        process = start([open_copy(FORGED_HANG), self.path, "name:mine", wanted_id],
                        environment(self, preload=open_copy(AGENT), LD_LIBRARY_PATH=directory()),
                        user=ATTACKER, group=ATTACKER, extra_groups=[],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            expect(process.stdout.readline().startswith(b"0x"), "the attacker's communicator")
            yield
        finally:
            process.stdin.close()
            process.wait(120)


def posted(receiver, uid):
    return next((doc for _, doc in receiver.posts if doc["uid"] == uid), None)


@contextlib.contextmanager
def attacked(text=""):
    with Receiver() as receiver, Attacked(receiver, text) as world:
        receiver.listen()
        yield world.start(), receiver


def test_an_alert_goes_out_although_its_id_was_taken_before():
    with attacked() as (world, receiver):
        wanted = world.where_it_hangs(world.victim())
        with world.attack(wanted):
            wait_until(lambda: posted(receiver, ATTACKER), f"the forged hang: {world.log()}")
            wait_until(lambda: posted(receiver, VICTIM) or "went out before" in world.log(),
                       f"the victim's hang: {world.log()}", DEADLINE_S)
            expect(posted(receiver, VICTIM), f"the victim's alert was held back: {world.log()}")
            keys = [key for key, _ in receiver.posts]
            expect(len(set(keys)) == len(keys), f"one key for two alerts: {keys}")


def test_a_bundle_stays_its_owners():
    with attacked() as (world, receiver):
        wanted = world.where_it_hangs(world.victim())
        own = wait_until(lambda: posted(receiver, VICTIM), f"the hang: {world.log()}",
                         DEADLINE_S)["id"]
        expect(len(own) > 16 or own == wanted, f"the id was {own}, not {wanted}")
        with world.attack(wanted):
            wait_until(lambda: "job=name:mine inc=" in world.log(),  # its bundle is written by then
                       f"the forged hang: {world.log()}")
            expect(world.document(own)["uid"] == VICTIM, f"{own} became {world.document(own)}")
            told = world.ask("report", own, uid=VICTIM, check=False)
            expect(told.returncode == 0 and "train" in told.stdout, f"the victim's report: {told}")
            told = world.ask("report", own, uid=ATTACKER, check=False)
            expect(told.returncode == 3, f"the attacker's report of it: {told}")
            wait_until(lambda: posted(receiver, ATTACKER),
                       f"an incident of its own for the forged hang: {world.log()}")
