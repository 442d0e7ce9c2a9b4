# SPDX-License-Identifier: Apache-2.0
"""One user makes a job label that has the 64-bit job_hash of another user's. She must get nothing of
his job, and he nothing of hers, in either order of arrival. tests/attack/label_collision.c found
the label once, in 281 s of CPU time; a shorter hash shows the method."""
import re
import subprocess

import pytest
from built_attack import LABEL_COLLISION
from daemon import Daemon
from receiver import Receiver
from waiting import expect, wait_until

VICTIM, ATTACKER = 4242, 4243
VICTIM_JOB, ATTACKER_JOB = "llama-70b-pretrain", "VwCoIZYcquNrjKFsDu7gbE"
JOB_OF = {VICTIM: VICTIM_JOB, ATTACKER: ATTACKER_JOB}


# ---- the job_hash, as in lib/identity/job_label.c, in so many bits ----

def mix(x, bits):
    mask = (1 << bits) - 1
    a, b, c = (s * bits // 64 for s in (30, 27, 31))
    x = (x + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ x >> a) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ x >> b) * 0x94d049bb133111eb) & mask
    return x ^ x >> c


def job_hash(uid, label, bits=64):
    h = 0x636f6c6c77617463 & (1 << bits) - 1
    for v in [uid, *label.encode()]:
        h = mix(h ^ mix(v, bits), bits)
    return h


# ---- two users of one daemon ----

class Setup:
    """A daemon with alerts. The users start their jobs on it in the given order."""

    def __init__(self, *users):
        self.receiver = Receiver()
        self.receiver.listen()
        self.world = Daemon(f'webhook_url = "{self.receiver.url}"')
        self.job = {}
        try:
            self.world.start()
            for uid in users:
                self.job[uid] = self.world.train(JOB_OF[uid], user=uid)
                wait_until(self.all_train, f"the job of uid {uid} trains: {self.world.log()}")
        except BaseException:
            self.__exit__()
            raise

    def all_train(self):
        """By every name under which they are known."""
        jobs = self.world.status()["jobs"]
        return (sum(j["ranks"] for j in jobs) == sum(len(j.ranks) for j in self.job.values()) and
                all(j["collectives"] > 5 for j in jobs))

    def pids(self, uid):
        return {rank.pid for rank in self.job[uid].ranks}

    def sees_its_own_alone(self, uid):
        jobs = self.world.status(uid)["jobs"]
        expect([(j["job"], j["uid"], j["ranks"], j["ranks_expected"]) for j in jobs] ==
               [("name:" + JOB_OF[uid], uid, 2, 2)], (uid, jobs))
        shown = self.world.ask("stacks", "--json", uid=uid, check=False).stdout
        others = {p for u in self.job if u != uid for p in self.pids(u)}
        # As numbers: in an address there may be the digits of any.
        seen = {int(p) for p in re.findall(r'"[pt]id": (\d+)', shown)}
        expect(not seen & others, f"stacks for uid {uid}, of {others}: {shown}")

    def fails(self, uid):
        """A rank dies; returns the document that was posted."""
        self.job[uid].kill(1)
        wait_until(lambda: self.receiver.posts, f"an alert: {self.world.log()}")
        return self.receiver.posts[0][1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.world.close()
        finally:
            self.receiver.close()


def test_the_labels_have_one_hash():
    expect(job_hash(VICTIM, "name:" + VICTIM_JOB) == job_hash(ATTACKER, "name:" + ATTACKER_JOB),
           "not found for this hash")


def test_a_label_is_found_for_any_job_by_meeting_in_the_middle():
    for bits in (24, 32, 40):
        out = subprocess.run([LABEL_COLLISION, "--bits", str(bits), "7", "slurm:4711.0", "8"], check=True,
                             stdout=subprocess.PIPE, text=True, timeout=120).stdout.strip()
        expect(out.startswith("name:") and len(out) < 160, out)
        expect(job_hash(7, "slurm:4711.0", bits) == job_hash(8, out, bits), (bits, out))


@pytest.mark.root
def test_attacker_who_comes_first_takes_nothing_over():
    with Setup(ATTACKER, VICTIM) as s:
        for uid in JOB_OF:
            s.sees_its_own_alone(uid)
        doc = s.fails(VICTIM)
        expect((doc["job"], doc["uid"]) == ("name:" + VICTIM_JOB, VICTIM), doc)
        expect(doc["culprits"][0]["pid"] == s.job[VICTIM].ranks[1].pid, doc)
        expect([i["job"] for i in s.world.incidents(VICTIM)] == ["name:" + VICTIM_JOB], "the report")
        expect(not s.world.incidents(ATTACKER), "an incident of another user's job")


@pytest.mark.root
def test_attacker_who_comes_second_raises_an_alert_of_her_own_only():
    with Setup(VICTIM, ATTACKER) as s:
        doc = s.fails(ATTACKER)
        expect((doc["job"], doc["uid"]) == ("name:" + ATTACKER_JOB, ATTACKER), doc)
        expect(not s.world.incidents(VICTIM), s.world.incidents(VICTIM))
        expect(s.world.job(VICTIM_JOB, VICTIM)["state"] == "healthy", s.world.status())
        s.sees_its_own_alone(VICTIM)


@pytest.mark.root
def test_muting_her_own_job_silences_nobody_else():
    with Setup(ATTACKER, VICTIM) as s:
        s.world.ask("mute", ATTACKER_JOB, "--for", "1h", uid=ATTACKER)
        doc = s.fails(VICTIM)
        expect((doc["job"], doc["uid"]) == ("name:" + VICTIM_JOB, VICTIM), doc)
        expect(not s.world.document(doc["id"]).get("suppressed"), s.world.document(doc["id"]))
