# SPDX-License-Identifier: Apache-2.0
"""COLLWATCH_POLICY and COLLWATCH_JOB_TIMEOUT, from a rank's environment to what a daemon makes of
the same faults. One daemon, a job for each policy, all at once."""
import tempfile

import pytest
from built import TRAIN_LOOP
from agent_lib import check, environment, start, subprocess, wait_until
from fault_lib import PATIENCE, RealDaemon

RANKS, FAULTY = 2, 1
TRAINING = ["--step-ms", "20", "--log-every", "0", "--elements", "64", "--steps", "0"]
SCENES = {  # job: policy, fault
    "waits": ("training", "block-in-data-loader"),
    "waits-served": ("serving", "block-in-data-loader"),
    "differs": (None, "wrong-count"),
    "differs-served": ("serving", "wrong-count"),
    "differs-off": ("off", "wrong-count"),
}


TIMED = "waits"


class Scenes:
    def __init__(self):
        self.daemon = RealDaemon(config=PATIENCE)
        self.daemon.start()
        self.ranks = []
        for name, (policy, fault) in SCENES.items():
            at = tempfile.mkdtemp(dir=self.daemon.dir)
            more = {"COLLWATCH_POLICY": policy} if policy else {}
            if name == TIMED:
                more["COLLWATCH_JOB_TIMEOUT"] = "30min"
            for rank in range(RANKS):
                env = environment(self.daemon, RANK=str(rank), LOCAL_RANK=str(rank),
                                  WORLD_SIZE=str(RANKS), COLLWATCH_JOB=name, **more)
                self.ranks.append(start(
                    [TRAIN_LOOP, *TRAINING, "--fault", fault, "--fault-rank", str(FAULTY),
                     "--fault-step", "30", "--uid-file", at + "/uid"], env,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def found(self, name):
        return wait_until(lambda: self.daemon.incident_of(name), name + " is found")

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.daemon.__exit__()


@pytest.fixture(scope="module", name="scenes")
def made_scenes():
    scenes = Scenes()
    yield scenes
    scenes.close()


def test_a_proof_alerts_whoever_trains_or_serves(scenes):
    for name in "differs", "differs-served":
        check(scenes.found(name)["class"] == "mismatch", name)


def test_patience_alerts_only_whoever_trains(scenes):
    check(scenes.found("waits")["class"] == "never_entered", "the same fault")
    wait_until(lambda: (scenes.daemon.job("waits-served") or {}).get("state") == "stalled",
               "it is noted")
    check(not scenes.daemon.incident_of("waits-served"), "and nobody is told")


def test_nothing_is_looked_for_where_it_is_off(scenes):
    scenes.found("differs")
    job = wait_until(lambda: next((j for j in [scenes.daemon.job("differs-off")]
                                   if j and j["ranks"] == RANKS), None), "it is watched")
    check((job["state"], job["ranks"], job["incident"]) == ("healthy", RANKS, None), repr(job))
    check(not scenes.daemon.incident_of("differs-off"), "no incident")


def test_what_is_told_says_when_the_job_ends_by_itself(scenes):
    timeout = {"seconds": 1800.0, "assumed": False}
    check(scenes.found(TIMED)["job_timeout"] == timeout, repr(scenes.found(TIMED)))
    check(scenes.daemon.job(TIMED)["job_timeout"] == timeout, repr(scenes.daemon.job(TIMED)))
    check("job_timeout" not in scenes.found("differs"), "nobody said so")
    check(scenes.daemon.job("differs")["job_timeout"] is None, repr(scenes.daemon.job("differs")))
