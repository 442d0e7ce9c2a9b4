# SPDX-License-Identifier: Apache-2.0
"""Jobs that know the agent only as a plugin of NCCL's profiler interface, down to the verdict. One
daemon, a job for each fault, all at once."""
import tempfile

import pytest
from built import TRAIN_LOOP
from agent_lib import AGENT, check, environment, start, subprocess, wait_until
from fault_lib import PATIENCE, RealDaemon

RANKS, FAULTY = 2, 1
TRAINING = ["--step-ms", "20", "--log-every", "0", "--elements", "64", "--steps", "0"]
SCENES = {  # fault: newest version of the interface, class
    "block-in-data-loader": (5, "never_entered"),
    "wrong-count": (4, "mismatch"),
}


class Scenes:
    def __init__(self):
        self.daemon = RealDaemon(config=PATIENCE)
        self.daemon.start()
        self.ranks = []
        for name, (version, _) in SCENES.items():
            at = tempfile.mkdtemp(dir=self.daemon.dir)
            for rank in range(RANKS):
                env = environment(self.daemon, preload=None, RANK=str(rank), LOCAL_RANK=str(rank),
                                  WORLD_SIZE=str(RANKS), COLLWATCH_JOB=name,
                                  NCCL_PROFILER_PLUGIN=AGENT, SIM_NCCL_PROFILER=str(version))
                self.ranks.append(start(
                    [TRAIN_LOOP, *TRAINING, "--fault", name, "--fault-rank", str(FAULTY),
                     "--fault-step", "30", "--uid-file", at + "/uid"], env,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

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


def check_verdict(scenes, fault):
    doc = wait_until(lambda: scenes.daemon.incident_of(fault), fault + " is found")
    check(doc["class"] == SCENES[fault][1], str(doc))
    if doc["class"] == "never_entered":
        check([c["rank"] for c in doc["culprits"]] == [FAULTY], str(doc))
    print("# %s (%s): %s" % (doc["class"], doc["confidence"], doc["summary"]))


def test_finds_block_in_data_loader(scenes):
    check_verdict(scenes, "block-in-data-loader")


def test_finds_wrong_count(scenes):
    check_verdict(scenes, "wrong-count")
